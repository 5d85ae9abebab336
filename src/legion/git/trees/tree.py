"""A folder of files seen through the hub and an index of ours: how we read and write trees that hold no trust."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from legion.git.core.command import fields, git
from legion.git.core.errors import FilterFailed, GitError, ObjectsUnreadable
from legion.git.hub.attribute_files import EMPTY_TREE, EVERYWHERE
from legion.git.hub.filters import Filters
from legion.git.hub.repository import Hub
from legion.git.hub.submodules import Submodule, bring, submodules
from legion.git.trees.live import Call, LiveTree, quarantine
from legion.system import trees
from legion.system.process import FinishedProcess


@dataclass(frozen=True)
class Tree:
    """`index` describes the files at `path`. The folder's own .git takes no part in anything done here."""

    hub: Hub
    path: Path
    index: Path

    def git(
        self, *args: str | os.PathLike[str], stdin: bytes = b"", timeout: float = 600.0, accept: tuple[int, ...] = (0,)
    ) -> FinishedProcess:
        return git(
            *args,
            git_dir=self.hub.path,
            work_tree=self.path,
            index=self.index,
            stdin=stdin,
            timeout=timeout,
            accept=accept,
        )

    def show(self, commit_or_tree: str, *, modules: Path | None = None) -> tuple[str, ...]:
        """Make tracked files exactly these, replacing what is in their way. Other files stay.

        The folders of submodules that the person's clone has are filled again; their paths are returned. `modules` is
        where that clone keeps them.

        A file whose times alone are others is read again first, and not written: it would be newer than what a build
        made of it.
        """
        filters = self.hub.filters(commit_or_tree)
        if filters is not None and filters.personal:
            listed = self.git("ls-tree", "-r", "-z", "--name-only", commit_or_tree)
            filters = filters.on(fields(listed.stdout))
        self._clear_other_form(filters, commit_or_tree)
        show = ("read-tree", "--reset", "-u", commit_or_tree)
        try:
            self._clear_other_attributes(commit_or_tree)
            if filters is None:
                if self.index.exists():
                    self.git("update-index", "-q", "--refresh", accept=(0, 1))
                self.git(*show)
            else:
                self._through(filters, Call(show))
                # A filter may have written the index.
                self.git("diff-index", "--cached", "--quiet", commit_or_tree)
        except GitError as failed:
            if ObjectsUnreadable.SAID.search(failed.complaint):
                raise ObjectsUnreadable(failed) from failed
            raise
        if modules is None and self.hub.source is not None:
            modules = self.hub.source.common_dir / "modules"
        return () if modules is None else self._fill(submodules(self.hub, commit_or_tree, modules))

    def _fill(self, found: Sequence[Submodule]) -> tuple[str, ...]:
        """Check out submodules as plain files. Raises GitError where a program left a link in the place of a folder."""
        here = [one for one in found if bring(self.hub, one)]
        for one in here:
            parents = [self.path / folder for folder in PurePosixPath(one.path).parents]
            if any(folder.is_symlink() for folder in parents):
                raise GitError(("git", "read-tree"), f"a link leads to {one.path}")
            place = self.path / one.path
            trees.remove(place)
            place.mkdir(parents=True)
            with scratch_index(self.hub) as index:
                Tree(self.hub, place, index).show(one.commit, modules=one.repository / "modules")
        return tuple(one.path for one in here)

    def _through(self, filters: Filters, call: Call) -> None:
        """Run git with filters, where no tracked file is: in their sandbox, by a repository that is gone afterwards."""
        with quarantine(self.hub, filters) as place:
            tree = LiveTree(hub=self.hub, path=self.path, confine=filters.source.confine)
            try:
                place.run(tree, call, writes=True)
            except GitError as failed:
                raise FilterFailed(filters.names, failed) from failed
            place.admit()
            place.take_index(self.index, checked=True)

    def clear(self, commit_or_tree: str) -> None:
        """Remove the tracked files, to show something else next. No filter runs."""
        if self.index.exists():
            self.git("read-tree", "--reset", "-u", EMPTY_TREE[len(self.hub.tree_of(commit_or_tree))])

    def _clear_other_form(self, filters: Filters | None, commit_or_tree: str) -> None:
        """Remove the tracked files if they were written through other filters: git would take them for unchanged. And
        wherever there are filters: none runs on what a program left, since its code may come from there.
        """
        written = self.index.with_name(f"{self.index.name}.filters")
        before = written.read_text() if written.exists() else ""
        now = "" if filters is None else filters.mark
        if now or before != now:
            self.clear(commit_or_tree)
            written.write_text(now)

    def _clear_other_attributes(self, commit_or_tree: str) -> None:
        """Remove the tracked files if other .gitattributes shaped them (ends of lines, encoding): git would take them
        for unchanged."""
        words = ("--no-literal-pathspecs", "diff-index", "--cached", "--quiet", commit_or_tree, "--", EVERYWHERE)
        if self.index.exists() and self.git(*words, accept=(0, 1)).code == 1:
            self.git("read-tree", "--reset", "-u", EMPTY_TREE[len(self.hub.tree_of(commit_or_tree))])

    def describe(self, commit: str) -> None:
        """Make the index say `commit` and leave the files alone; what is known of unchanged files stays known."""
        self.git("read-tree", *(("-i", "-m") if self.index.exists() else ()), commit)


@contextmanager
def scratch_index(hub: Hub) -> Iterator[Path]:
    """A place for an index that is gone afterwards."""
    # In the hub, where `tidy` sweeps away what a killed process leaves.
    place = hub.path / "incoming"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="index-", dir=place) as scratch:
        yield Path(scratch) / "index"


def tree_with_files(hub: Hub, commit: str, files: Mapping[str, bytes]) -> str:
    """The tree of the commit with these files as they are given; a file of the same path is replaced."""
    with scratch_index(hub) as index:

        def run(*args: str, stdin: bytes = b"") -> str:
            return git(*args, git_dir=hub.path, index=index, stdin=stdin).text.strip()

        run("read-tree", commit)
        for path, content in files.items():
            blob = run("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
            run("update-index", "--add", "--replace", "--cacheinfo", f"100644,{blob},{path}")
        return run("write-tree")
