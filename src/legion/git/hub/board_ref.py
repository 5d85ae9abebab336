"""Copies of a board and a hub: the board as a ref inside the hub's folder, the hub as a pack and a list of refs.

Not among the hub's own objects: agents read those, and would find each other's tickets there. What was on the ref
before is swept away now and then, so it does not grow. One thread writes to it. Does not know what a ticket is.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.errors import BoardMoved, BoardUnreadable, GitError
from legion.git.hub.objects import blobs_by_path
from legion.git.hub.writable import WritableRepository
from legion.system import crash
from legion.system.crash import Point

REF = "refs/legion/board"
_NEXT = "refs/legion/next"
_AUTHOR = b"Legion <legion@localhost>"
_LOOSE_ENOUGH = 500
"""How often it is written before the remains of earlier ones are swept away."""


class BoardRef(WritableRepository):
    """What `hub` holds of its project's board."""

    def __init__(self, hub: Path) -> None:
        super().__init__(hub / "board")
        self._hub = hub
        self._written = 0
        self._trees: dict[str, str] = {}
        """The tree of the commit that was written last."""

    @property
    def exists(self) -> bool:
        return self.path.is_dir()

    def tip(self) -> str | None:
        """The commit that the ref names; None where nothing was written yet, or nothing readable."""
        return self.resolve(REF) if self.exists else None

    def read(self) -> dict[str, bytes]:
        """Every file by its path. Raises BoardUnreadable where any of it is damaged."""
        try:
            tip = self.tip()
            if tip is None:
                raise BoardUnreadable(f"{REF} names no commit")
            return blobs_by_path(self, tip)
        except (GitError, ValueError, IndexError) as damage:
            raise BoardUnreadable(" ".join(str(damage).split())) from damage

    def is_whole(self) -> bool:
        try:
            return not self.exists or bool(self.read())
        except BoardUnreadable:
            return False

    def write(
        self, changes: Mapping[str, bytes], *, expected: str | None, whole: bool = False, message: str, when: int
    ) -> str:
        """Write these files over those of `expected`, or nothing but these where they are the `whole` board.

        Returns the new tip. Raises BoardMoved where the ref is not at `expected` any more.
        """
        self._make()
        commit = self._store(changes, None if whole else expected, message, when)
        crash.reach(Point.GIT_BOARD_BEFORE_SWAP)
        orders = f"update {REF} {commit} {expected or '0' * len(commit)}\ndelete {_NEXT}\n"
        try:
            self._writing("update-ref", "--stdin", stdin=orders.encode())
        except GitError:
            if self.tip() not in (expected, commit):
                raise BoardMoved(f"The board in {self.path} was written by another process meanwhile.") from None
            raise
        crash.reach(Point.GIT_BOARD_AFTER_SWAP)
        self._written += 1
        if self._written % _LOOSE_ENOUGH == 0:
            self.sweep()
        return commit

    def set_aside(self) -> Path:
        """Make room for the board of another database. Answers where this one stays."""
        place = self._hub / f"board-before-{time.time_ns()}"
        self.path.rename(place)
        return place

    def sweep(self) -> None:
        """Remove what no ref holds any more."""
        self._writing("repack", "-a", "-d", "-q", "--no-write-bitmap-index")
        self._writing("prune", "--expire=now")

    def _make(self) -> None:
        if self.exists:
            return
        # In a folder of which the hub's tidying sweeps what a killed process leaves.
        half = self._hub / "incoming" / uuid.uuid4().hex
        half.parent.mkdir(exist_ok=True)
        git("init", "--quiet", "--bare", "--template=", half, git_dir=None, cwd=half.parent)
        try:
            half.rename(self.path)
        except OSError:
            shutil.rmtree(half)
            if not self.exists:
                raise

    def _store(self, changes: Mapping[str, bytes], onto: str | None, message: str, when: int) -> str:
        """A commit without a parent: what was before is no concern of the board."""
        text = message.encode()
        lines = [b"commit %s\nmark :1\ncommitter %s %d +0000\n" % (_NEXT.encode(), _AUTHOR, when)]
        lines.append(b"data %d\n%s\n" % (len(text), text))
        if onto is not None:
            tree = self._trees.get(onto) or self.tree_of(onto)
            lines.append(b'M 040000 %s ""\n' % tree.encode())
        for path, content in changes.items():
            lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
        lines.append(b'\nget-mark :1\nls :1 ""\ndone\n')
        told = self._writing("fast-import", "--quiet", "--force", "--done", stdin=b"".join(lines))
        commit, tree = (line.split()[-1] for line in told.text.splitlines())
        self._trees = {commit: tree}
        return commit


PACK = "hub.pack"
_HOURS = 6 * 3600.0


def refs_of(hub: Path) -> dict[str, str]:
    """Every ref of the hub and its object, as of now."""
    listed = git("for-each-ref", "--format=%(objectname) %(refname)", git_dir=hub).text
    pairs = (line.split(" ", 1) for line in listed.splitlines())
    return {name: object for object, name in pairs}


def pack(hub: Path, refs: Mapping[str, str], folder: Path) -> Path:
    """Write everything that these refs need into a pack in the folder, whatever the refs are by now."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = "".join(f"{object}\n" for object in sorted(set(refs.values())))
    name = git(
        "pack-objects", "--quiet", "--revs", folder / "made", git_dir=hub, stdin=wanted.encode(), timeout=_HOURS
    ).text.strip()
    (folder / f"made-{name}.pack").rename(folder / PACK)
    for rest in folder.glob(f"made-{name}.*"):
        rest.unlink()
    return folder / PACK


def unpack(pack: Path, refs: Mapping[str, str], hub: Path) -> None:
    """Make the hub. Every object is verified, and the hub appears complete or not at all."""
    half = hub.with_name(f".{hub.name}.{uuid.uuid4().hex}")
    hub.parent.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--bare", "--template=", half, git_dir=None, cwd=hub.parent)
    packs = half / "objects/pack"
    packs.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pack, packs / "pack-restored.pack")
    git("index-pack", packs / "pack-restored.pack", git_dir=half, timeout=_HOURS)
    commands = "".join(f"create {name} {object}\n" for name, object in refs.items())
    git("update-ref", "--stdin", git_dir=half, stdin=commands.encode())
    git("fsck", "--connectivity-only", "--no-dangling", git_dir=half, timeout=_HOURS)
    half.rename(hub)
