"""The private repository of a worktree: a .git of its own that borrows every object from the hub.

Written file by file, which takes no process and no lock. It belongs to the agent in the tree; what we read of it is
untrusted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from legion.git.hub.objects import Signature
from legion.git.hub.repository import Hub
from legion.system import trees

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[gc]
\tauto = 0
[user]
\tname = "{name}"
\temail = "{email}"
"""
_SHA256 = """\
[core]
\trepositoryformatversion = 1
[extensions]
\tobjectformat = sha256
"""
_SHA256_DIGITS = 64


def write_private(place: Path, *, hub: Hub, commit: str, branch: str | None, index: Path, author: Signature) -> None:
    """Make the folder `place` a repository at `commit`, on `branch` or detached, whose index is a copy of `index`."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (place / folder).mkdir(parents=True)
    config = _CONFIG.format(name=_quoted(author.name), email=_quoted(author.email))
    (place / "config").write_text(config + (_SHA256 if len(commit) == _SHA256_DIGITS else ""))
    (place / "objects/info/alternates").write_text(f"{hub.objects}\n")
    tags = hub.tags()
    if tags:
        (place / "packed-refs").write_bytes(b"# pack-refs with: sorted \n" + tags)
    if branch is None:
        (place / "HEAD").write_text(f"{commit}\n")
    else:
        ref = place / "refs/heads" / branch
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(f"{commit}\n")
        (place / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    shutil.copy2(index, place / "index")
    # What setup makes: the agent's own `git add --all` leaves it out, too. And where a shallow history ends.
    for file in ("info/exclude", "shallow"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(hub.path / file, place / file)


def remove_stale_locks(place: Path) -> None:
    """Remove the locks that a killed git left in the repository: with them nothing can be committed.

    Only where no program is at work in the tree. The agent may have made links of its folders; none is followed.
    """
    if place.is_symlink():
        return
    refs = place / "refs"
    with contextlib.suppress(OSError):
        found = [one.path for one in os.scandir(place)]
        if not refs.is_symlink():
            found += [str(refs / one.path) for one in trees.walk(refs)]
        for path in found:
            if path.endswith(".lock"):
                Path(path).unlink(missing_ok=True)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
