"""Trees in which checks run: warm between checks, and each time exactly the commit under test.

What a check left behind is gone before the next one: changed and hidden files, ignored files, nested repositories
and the whole .git. Only what `keep` names (the outputs of setup) stays.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from legion.git.core.command import as_text
from legion.git.core.errors import GitError
from legion.git.core.history import GITLINK
from legion.git.hub.objects import Signature, tree_entries
from legion.git.hub.repository import Hub
from legion.git.trees.obstacles import exactly, obstacles
from legion.git.trees.private_repository import write_private
from legion.git.trees.tree import Tree
from legion.system import crash, files, trees
from legion.system.crash import Point

_SLOT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
OWN = "-own"
"""The end of a slot's name whose tree serves one commit, and is removed afterwards."""
_SETUP = "check-setup-"
_CHECKER = Signature(name="Legion checks", email="checks@legion.invalid")


class CheckTrees:
    """One tree per slot. A slot serves one check at a time; different slots may be prepared at once."""

    def __init__(self, hub: Hub, root: Path, side: Path) -> None:
        self._hub = hub
        self._root = root.absolute()
        self._scrap = self._root / ".scrap"
        self._side = side.absolute() / "check-trees"
        for folder in (self._scrap, self._side):
            folder.mkdir(parents=True, exist_ok=True)
        for left in self._scrap.iterdir():
            trees.remove(left)
        # What a killed process had no time to remove.
        left_over = {place.name for place in self._root.glob(f"*{OWN}")}
        left_over |= {place.stem.removeprefix(_SETUP) for place in side.absolute().glob(f"{_SETUP}*{OWN}.json")}
        for slot in left_over:
            self.remove(slot)

    def prepare(self, slot: str, commit: str, keep: Sequence[str] = ()) -> Path:
        """The slot's tree with exactly the files of `commit`, and the present content of the paths in `keep`."""
        tree = self._ready(slot)
        # A slot without a record is not ready: after a crash here, some git of ours may still be writing in it.
        self._record(slot).unlink(missing_ok=True)
        if tree is not None:
            try:
                self._move(tree, commit, keep)
            except (GitError, OSError):
                # A check can lock its own files away; a new tree owes nothing to the old one.
                tree = None
        if tree is None:
            tree = self._cold(slot, commit)
        crash.reach(Point.GIT_CHECK_TREE_AFTER_MOVE)
        fresh = self._scrap / f"{tree.index.stem}.git"
        trees.remove(fresh)
        write_private(fresh, hub=self._hub, commit=commit, branch=None, index=tree.index, author=_CHECKER)
        fresh.rename(tree.path / ".git")
        crash.reach(Point.GIT_CHECK_TREE_BEFORE_READY)
        record = {"index": tree.index.name, "inode": tree.path.stat().st_ino}
        files.write_atomic(self._record(slot), json.dumps(record))
        return tree.path

    def remove(self, slot: str) -> None:
        """Remove the slot's tree with everything in it."""
        self._clear(slot)
        self.setup_record(slot).unlink(missing_ok=True)
        self._record(slot).unlink(missing_ok=True)

    def setup_record(self, slot: str) -> Path:
        """The place of what is known of the setup in the slot's tree."""
        return self._side.parent / f"{_SETUP}{slot}.json"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder on the same file system, for as long as it is needed."""
        place = Path(tempfile.mkdtemp(dir=self._scrap))
        try:
            yield place
        finally:
            trees.remove(place)

    def _record(self, slot: str) -> Path:
        if not _SLOT.fullmatch(slot):
            raise ValueError(f"{slot!r} is no name for a slot; use letters, digits, '-', '_' and '.'.")
        return self._side / f"{slot}.json"

    def _ready(self, slot: str) -> Tree | None:
        place = self._root / slot
        try:
            record = json.loads(self._record(slot).read_bytes())
            inode = place.lstat().st_ino
        except FileNotFoundError:
            return None
        index = self._side / record["index"]
        return Tree(self._hub, place, index) if record["inode"] == inode and index.exists() else None

    def _cold(self, slot: str, commit: str) -> Tree:
        token = self._clear(slot)
        place = self._root / slot
        half = Tree(self._hub, self._scrap / token, self._side / f"{token}.index")
        half.path.mkdir()
        half.show(commit)
        half.path.rename(place)
        return Tree(self._hub, place, half.index)

    def _clear(self, slot: str) -> str:
        """Remove everything of the slot. Returns a new name for what will be its own."""
        # Slot names hold no '~', so everything that starts like this belongs to this slot.
        token = f"{slot}~{uuid.uuid4().hex}"
        place = self._root / slot
        if os.path.lexists(place):
            place.rename(self._scrap / f"{token}.old")
        for old in (*self._scrap.glob(f"{slot}~*"), *self._side.glob(f"{slot}~*")):
            trees.remove(old)
        return token

    def _move(self, tree: Tree, commit: str, keep: Sequence[str]) -> None:
        # A pipe that a check left must not make git wait, nor a rule that it left make git take a file for unchanged.
        obstacles(tree.path, skip=keep, rules=False)
        kept = [word for path in keep for word in ("-e", exactly(path))]
        if self._hub.filters(commit) is not None:
            # A filter may load code from the tree: it finds nothing there that a check left.
            tree.clear(commit)
            tree.git("clean", "-ffdxq", *kept)
        filled = tree.show(commit)
        # `git clean` passes over pipes, sockets and a .git in tracked folders, and over all in a submodule's folder.
        _remove_unseen(tree.path)
        for mode, _, path in tree_entries(tree.git("ls-tree", "-r", "-d", "-z", commit).stdout):
            place = tree.path / os.fsdecode(path)
            # Git leaves a link where a folder holds nothing but submodules. Outer folders come first.
            if place.is_symlink():
                raise GitError(("git", "clean"), f"a link is in the place of {as_text(path)}")
            if mode == GITLINK.decode() and os.fsdecode(path) not in filled:
                trees.remove(place)
                place.mkdir(parents=True)
            elif mode != GITLINK.decode():
                _remove_unseen(place)
        tree.git("clean", "-ffdxq", *kept)


def _remove_unseen(folder: Path) -> None:
    """Remove what git never lists from one folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            plain = entry.is_symlink() or entry.is_file() or entry.is_dir()
            if entry.name == ".git" or not plain:
                trees.remove(Path(entry.path))
