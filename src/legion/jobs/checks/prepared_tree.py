"""The tree of a check: exactly its commit, and what [setup] made on the target.

A commit that changes anything that setup read on the target gets a tree of its own, in which setup runs on that commit.
That tree is removed afterwards, so a change that has not landed leaves nothing for the check of another.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from legion.git.trees.check_trees import OWN
from legion.jobs.context import Context
from legion.jobs.live_state import FIRST
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import kept_outputs, setup
from legion.jobs.workspace.command import CancelToken

_BY_FILES = (
    *(errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO),
    *(errno.EACCES, errno.EPERM),
)
"""Errors that the files in a tree cause. With others (a full disk) no change is to blame, and the job tries again."""


@dataclass(frozen=True, kw_only=True)
class PreparedTree:
    context: Context
    project: ProjectContext
    name: str
    """Of its slot among the check trees."""
    commit: str
    made_on: str
    """The commit on which setup runs for it."""
    landed: bool
    """That commit was the target. Else it is the tree's own."""
    cancel: CancelToken
    """Of what needs the tree. Setup on the target serves others too, and is not cancelled."""

    @property
    def is_landed(self) -> bool:
        """Whether nothing in the tree is of a change that has not landed."""
        return self.landed and self.commit == self.made_on

    @property
    def _record(self) -> Path:
        return self.project.check_trees.setup_record(self.name)

    def show(self) -> tuple[Path, tuple[Path, ...]]:
        """The tree with exactly the files of its commit and the outputs of setup, and what of it is read-only.

        A check can move the folder that holds an output and put another in its place: then setup runs again.
        Raises SetupFailed.
        """
        if not self.project.config.setup.run:
            return self.project.check_trees.prepare(self.name, self.commit), ()
        place = self._shown(self.commit)
        if not setup.is_intact(self._record, place):
            self.make()
            if self.landed and not self.serves(self.commit):
                # The target has moved since, or setup reads something else this time.
                self._of_its_own(self.name).make()
            place = self._shown(self.commit)
        return place, setup.shown(place, kept_outputs.outputs(self._record))

    def make(self) -> None:
        """Run setup from nothing. Raises SetupFailed, or Cancelled."""
        self._record.unlink(missing_ok=True)
        setup.ensure(
            self.context,
            self.project,
            self._shown(self.made_on),
            record=self._record,
            shows=self.made_on,
            landed=self.made_on if self.landed else "",
            cancel=None if self.landed else self.cancel,
        )

    def serves(self, commit: str) -> bool:
        """Whether what setup made is there, and is what it would make on this commit."""
        setup.forget_cut_off(self._record)
        return setup.serves(self.project, self._record, commit)

    def is_served(self) -> bool:
        """Whether the slot holds what setup would make on the commit. Setup runs on the target first where that may
        be of use. Raises SetupFailed where the commit is the target."""
        if self.serves(self.commit):
            return True
        is_target = self.commit == self.made_on
        if not is_target and (
            self.serves(self.made_on) or setup.would_read(self.project, self._record, self.made_on, self.commit)
        ):
            return False
        try:
            self.make()
        except setup.SetupFailed:
            if is_target:
                raise
            # The commit may be what fixes it.
            return False
        return self.serves(self.commit)

    @contextmanager
    def own(self) -> Iterator[PreparedTree]:
        """Another tree with what setup makes on the commit itself. Nothing of it stays. Raises SetupFailed, also where
        files of the change stop us from preparing the tree."""
        own = self._of_its_own(f"{self.name}{OWN}")
        try:
            own.remove()
            own.make()
            yield own
        except OSError as trouble:
            if trouble.errno not in _BY_FILES:
                raise
            raise setup.SetupFailed(f"What [setup] made of this change cannot be used: {trouble}.") from trouble
        finally:
            own.remove()

    def remove(self) -> None:
        self.project.check_trees.remove(self.name)

    def _of_its_own(self, name: str) -> PreparedTree:
        return replace(self, name=name, made_on=self.commit, landed=False)

    def _shown(self, commit: str) -> Path:
        return self.project.check_trees.prepare(self.name, commit, keep=kept_outputs.outputs(self._record))


@contextmanager
def prepared(
    context: Context, project: ProjectContext, slot: int, commit: str, cancel: CancelToken
) -> Iterator[PreparedTree]:
    """Raises SetupFailed where setup fails on the commit, or on the target if the commit is the target; Cancelled."""
    shared = PreparedTree(
        context=context,
        project=project,
        name=_name_of(slot),
        commit=commit,
        made_on=project.target,
        landed=True,
        cancel=cancel,
    )
    if not project.config.setup.run or shared.is_served():
        yield shared
        return
    with shared.own() as own:
        yield own


def setup_would_read(project: ProjectContext, base: str, commit: str) -> bool:
    """Whether what differs between the commits is of what setup reads, as far as the tree knows that is used most."""
    return setup.would_read(project, project.check_trees.setup_record(_name_of(FIRST)), base, commit)


def _name_of(slot: int) -> str:
    return str(slot)
