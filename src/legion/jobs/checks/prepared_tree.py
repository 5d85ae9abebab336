"""The tree of a check: exactly its commit, and what [setup] made on the target.

A commit that changes anything that setup read on the target gets a tree of its own, in which setup runs on that commit.
That tree is removed afterwards, so a change that has not landed leaves nothing for the check of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import setup


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

    @property
    def is_landed(self) -> bool:
        """Whether nothing in the tree is of a change that has not landed."""
        return self.landed and self.commit == self.made_on

    @property
    def _record(self) -> Path:
        return self.project.folder / f"check-setup-{self.name}.json"

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
            place = self._shown(self.commit)
        return place, setup.shown(place, setup.outputs(self._record))

    def make(self) -> None:
        """Run setup from nothing. Raises SetupFailed."""
        self._record.unlink(missing_ok=True)
        place = self._shown(self.made_on)
        setup.ensure(self.context, self.project, place, self._record, shows=self.made_on, landed=self.landed)

    def serves(self, commit: str) -> bool:
        """Whether what setup made is there, and is what it would make on this commit."""
        setup.forget_cut_off(self._record)
        return setup.serves(self.project, self._record, commit)

    def remove(self) -> None:
        self.project.check_trees.remove(self.name)
        self._record.unlink(missing_ok=True)

    def _shown(self, commit: str) -> Path:
        return self.project.check_trees.prepare(self.name, commit, keep=setup.outputs(self._record))


@contextmanager
def prepared(context: Context, project: ProjectContext, slot: int, commit: str) -> Iterator[PreparedTree]:
    """Raises SetupFailed where setup fails on the commit, or on the target if the commit is the target."""
    target = project.target
    shared = PreparedTree(context=context, project=project, name=str(slot), commit=commit, made_on=target, landed=True)
    if not project.config.setup.run or _is_served(shared, commit, target):
        yield shared
        return
    own = replace(shared, name=f"{slot}-own", made_on=commit, landed=False)
    try:
        own.remove()
        own.make()
        yield own
    finally:
        own.remove()


def _is_served(shared: PreparedTree, commit: str, target: str) -> bool:
    """Whether the slot holds what setup would make on the commit. Setup runs on the target first, if that is needed."""
    if shared.serves(commit):
        return True
    if commit != target and shared.serves(target):
        return False
    try:
        shared.make()
    except setup.SetupFailed:
        if commit == target:
            raise
        # The commit may be what fixes it.
        return False
    return shared.serves(commit)
