"""Bringing commits that an agent made itself into the hub.

The agent's git runs only inside the sandbox. What comes out is bytes of a stranger: they are checked in a folder of
their own, and the hub sees them only when they turned out to be whole, sound and built on the base.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.errors import GitError
from legion.git.hub.repository import Hub
from legion.system import crash
from legion.system.crash import Point
from legion.system.process import FinishedProcess

_HEADER_LIMIT = 64 * 1024
_BUNDLE = re.compile(rb"# v[23] git bundle\n(?:@[^\n]*\n|-[^\n]*\n)*([0-9a-f]{40,64}) HEAD\n\n")


def agent_commits(
    hub: Hub,
    *,
    base: str,
    run_sandboxed: Callable[[Sequence[str]], FinishedProcess],
    keep_as: str,
    max_bytes: int = 1 << 30,
) -> str | None:
    """The agent's HEAD, kept in the hub as `keep_as`; None unless it is sound and adds commits to `base`.

    `run_sandboxed` runs a command in the agent's sandbox with its worktree as current folder.
    """
    bundle = run_sandboxed(("git", "bundle", "create", "--quiet", "-", "HEAD", "--not", base))
    header = _BUNDLE.match(bundle.stdout[:_HEADER_LIMIT])
    if bundle.code != 0 or header is None or len(bundle.stdout) > max_bytes:
        return None
    head = header[1].decode()
    folder = hub.path / "incoming" / uuid.uuid4().hex
    (folder / "pack").mkdir(parents=True)
    try:
        if not _is_sound(hub, folder, bundle.stdout[header.end() :], base=base, head=head):
            return None
        _adopt(folder / "pack", hub.objects / "pack")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    crash.reach(Point.GIT_COMMITS_BEFORE_KEEP)
    hub.keep(keep_as, head)
    return head


def _is_sound(hub: Hub, folder: Path, pack: bytes, *, base: str, head: str) -> bool:
    def ask(*args: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> FinishedProcess:
        return git(*args, git_dir=hub.path, objects=folder, borrow=hub.objects, stdin=stdin, accept=accept)

    try:
        ask("index-pack", "--stdin", "--fix-thin", "--strict", stdin=pack)
        if ask("merge-base", "--is-ancestor", base, head, accept=(0, 1)).code != 0:
            return False
        ask("rev-list", "--objects", "--quiet", head, f"^{base}")
    except GitError:
        return False
    return True


def _adopt(source: Path, packs: Path) -> None:
    """Move finished packs over; the index goes last, since a pack counts only with it."""
    packs.mkdir(exist_ok=True)
    for part in sorted(source.iterdir(), key=lambda part: part.suffix == ".idx"):
        if part.suffix != ".keep":
            part.rename(packs / part.name)
