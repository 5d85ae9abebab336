"""Imports the commits that an agent made itself into the hub.

The agent's git runs only inside the sandbox; a small change is read as plain files (`agent_objects.py`). Both are
untrusted: they are checked in a folder of their own, and the hub receives the objects only when they are complete,
valid and built on the base.
"""

from __future__ import annotations

import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.errors import GitError
from legion.git.hub.agent_objects import MOST_BYTES, MOST_OBJECTS, head_line, new_commits
from legion.git.hub.objects import parents_of, read_loose
from legion.git.hub.repository import Hub
from legion.system import crash
from legion.system.crash import Point
from legion.system.process import FinishedProcess

_HEADER_LIMIT = 64 * 1024
_BUNDLE = re.compile(rb"# v[23] git bundle\n(?:@[^\n]*\n|-[^\n]*\n)*([0-9a-f]{40,64}) HEAD\n\n")

_FOLDERS = re.compile("pack|[0-9a-f]{2}")
_NAMES = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}|pack-[0-9a-f]+\.(pack|idx|rev)")


def agent_commits(
    hub: Hub,
    *,
    base: str,
    run_sandboxed: Callable[[Sequence[str]], FinishedProcess],
    work_tree: Path | None = None,
    max_bytes: int = 1 << 30,
) -> str | None:
    """The agent's HEAD, now in the hub; None unless it is valid and adds commits to `base`.

    No ref names it yet: the caller keeps a commit that contains it. Until then nothing is lost, since the hub prunes
    nothing. `run_sandboxed` runs a command in the agent's sandbox with its worktree as current folder. Given the
    `work_tree`, a few loose objects are read as files first, which takes no sandbox and no git.
    """
    found = new_commits(work_tree) if work_tree is not None else None
    if found is not None and _adopt(hub, found.pack, base=base, head=found.head):
        return found.head
    bundle = run_sandboxed(("git", "bundle", "create", "--quiet", "-", "HEAD", "--not", base))
    header = _BUNDLE.match(bundle.stdout[:_HEADER_LIMIT])
    if bundle.code != 0 or header is None or len(bundle.stdout) > max_bytes:
        return None
    head = header[1].decode()
    return head if _adopt(hub, bundle.stdout[header.end() :], base=base, head=head) else None


def _adopt(hub: Hub, pack: bytes, *, base: str, head: str) -> bool:
    """Move the objects of a pack into the hub, if they are sound."""
    folder = hub.path / "incoming" / uuid.uuid4().hex
    (folder / "pack").mkdir(parents=True)
    try:
        if not _is_sound(hub, folder, pack, base=base, head=head) or _names_filters(hub, folder, base, head):
            return False
        adopt_objects(folder, hub.objects)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    crash.reach(Point.GIT_COMMITS_BEFORE_KEEP)
    return True


def _names_filters(hub: Hub, folder: Path, base: str, head: str) -> bool:
    """Whether there are filters, or a commit adds some: the agent's git has none, so it would store what they hide."""
    if hub.filters(base) is not None:
        return True
    words = ("--no-literal-pathspecs", "log", "-m", "--format=%H", r"-Gfilter|\[attr\]", f"{base}..{head}")
    place = ("--", ":(top,glob)**/.gitattributes")
    return bool(git(*words, *place, git_dir=hub.path, objects=folder, borrow=(hub.objects,)).stdout)


def is_at(work_tree: Path, commit: str) -> bool:
    """Whether the HEAD of an agent's repository plainly is `commit`, read without running git on it.

    False also where the answer would need git (packed refs, other formats): the caller then asks git in the sandbox.
    """
    return head_line(work_tree) == b"%s\n" % commit.encode()


def _is_sound(hub: Hub, folder: Path, pack: bytes, *, base: str, head: str) -> bool:
    def ask(*args: str, stdin: bytes = b"") -> FinishedProcess:
        return git(*args, git_dir=hub.path, objects=folder, borrow=(hub.objects,), stdin=stdin)

    try:
        if _is_small(pack):
            # Strict: every object is valid, and what it names is here or in the hub, which is complete.
            ask("unpack-objects", "-q", "--strict", stdin=pack)
            if _descends(folder, head, base):
                return True
        else:
            ask("index-pack", "--stdin", "--fix-thin", "--strict", stdin=pack)
        # Fails where an object is missing. The base is at the boundary exactly where the head descends from it.
        listed = ask("rev-list", "--objects", "--boundary", head, f"^{base}").stdout
    except GitError:
        return False
    return b"-%s\n" % base.encode() in listed


def _descends(folder: Path, head: str, base: str) -> bool:
    """Whether the loose commits in the folder lead from `head` to `base`: the new commits of any honest bundle do."""
    waiting, seen = [head], set[str]()
    while waiting:
        commit = waiting.pop()
        if commit == base:
            return True
        if commit not in seen:
            seen.add(commit)
            waiting += parents_of(read_loose(folder, commit))
    return False


def _is_small(pack: bytes) -> bool:
    """Whether it becomes loose objects, since every git process opens the index of every pack in the hub.

    By the number of objects in the header; git itself refuses a header that does not fit.
    """
    return len(pack) <= MOST_BYTES and int.from_bytes(pack[8:12], "big") <= MOST_OBJECTS


def adopt_objects(source: Path, objects: Path) -> None:
    """Move checked objects over. The index of a pack goes last, since a pack counts only with it."""
    for part in sorted(object_files(source), key=lambda part: part.suffix == ".idx"):
        target = objects / part.parent.name
        target.mkdir(exist_ok=True)
        if not (target / part.name).exists():
            part.rename(target / part.name)


def object_files(objects: Path) -> Iterator[Path]:
    """The packs and loose objects of a store: plain files, reached without following a link."""
    for folder in objects.iterdir():
        if _FOLDERS.fullmatch(folder.name) and not folder.is_symlink() and folder.is_dir():
            yield from (file for file in folder.iterdir() if _NAMES.fullmatch(file.name) and _is_plain(file))


def _is_plain(file: Path) -> bool:
    return stat.S_ISREG(file.lstat().st_mode)
