"""Packs between a hub and its mirror on another machine: thin ones out, checked ones in.

What a machine sends is untrusted: it is checked in a folder of its own, and the hub receives the objects only when they
are complete, valid and built on the base.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from legion.git.core.command import git
from legion.git.core.errors import GitError
from legion.git.hub.incoming import adopt_objects
from legion.git.hub.repository import TARGET, Hub

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OURS = "refs/legion/"
_MIRRORED = "mirror"
_MOST_MIRRORED = 40


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def write(hub: Hub, file: Path, *, wanted: Sequence[str], have: Iterable[str]) -> None:
    """A thin pack with what leads to the wanted commits and is not part of those in `have`."""
    known = [one for one in have if hub.resolve(f"{one}^{{commit}}") is not None]
    _write(hub, file, wanted, known)


def write_change(mirror: Hub, file: Path, *, head: str, have: Iterable[str]) -> None:
    """A thin pack of the commits up to `head`, for a hub that has those in `have`."""
    _write(mirror, file, [head], have)


def _write(repository: Hub, file: Path, wanted: Iterable[str], have: Iterable[str]) -> None:
    """git itself writes the file: a pack may be larger than the memory."""
    revisions = "".join(f"{one}\n" for one in (*wanted, *(f"^{one}" for one in have)))
    half = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    listed = half.with_name(f"{half.name}.revisions")
    try:
        listed.write_text(revisions)
        git(
            "pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset",
            git_dir=repository.path, source=listed, sink=half,
        )  # fmt: skip
        half.rename(file)
    finally:
        half.unlink(missing_ok=True)
        listed.unlink(missing_ok=True)


def take(hub: Hub, pack: Path | None, *, base: str, head: str) -> bool:
    """Whether the hub now holds `head` with everything that it needs, built on `base`. Without a pack it had to be
    there already.
    """
    if pack is None:
        return hub.resolve(f"{head}^{{commit}}") is not None and hub.is_ancestor(base, head)
    folder = hub.path / "incoming" / uuid.uuid4().hex
    (folder / "pack").mkdir(parents=True)
    try:
        if not _is_sound(hub, folder, pack, base=base, head=head):
            return False
        adopt_objects(folder, hub.objects)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _is_sound(hub: Hub, folder: Path, pack: Path, *, base: str, head: str) -> bool:
    def ask(*args: str, source: Path | None = None) -> bytes:
        return git(*args, git_dir=hub.path, objects=folder, borrow=(hub.objects,), source=source).stdout

    try:
        # Strict: every object is valid. A thin pack is completed from the hub.
        ask("index-pack", "--stdin", "--fix-thin", "--strict", source=pack)
        if head == base:
            return True
        # Fails where an object is missing. The base is at the boundary exactly where the head descends from it.
        listed = ask("rev-list", "--objects", "--boundary", head, f"^{base}")
    except GitError:
        return False
    return b"-%s\n" % base.encode() in listed


def make_mirror(path: Path, *, object_format: str) -> Hub:
    """The mirror of a hub, empty at first; or the one that is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        git("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", half, git_dir=None)
        try:
            half.rename(path)
        except OSError:
            # Another thread was first.
            shutil.rmtree(half)
            if not path.is_dir():
                raise
    return Hub(path)


def mirrored(mirror: Hub) -> tuple[str, ...]:
    """Commits that the mirror has with everything that leads to them, at most so many as a request may name."""
    kept = mirror.kept()
    target = kept.get(TARGET.removeprefix(_OURS))
    remembered = (commit for name, commit in kept.items() if name.startswith(f"{_MIRRORED}/"))
    return tuple(dict.fromkeys((*(() if target is None else (target,)), *remembered)))[:_MOST_MIRRORED]


def lacks(mirror: Hub, commits: Iterable[str]) -> tuple[str, ...]:
    """Those that the mirror does not have: neither remembered nor part of its target."""
    known = set(mirrored(mirror))
    unknown = [one for one in commits if one not in known]
    target = mirror.target() if unknown else None
    return tuple(one for one in unknown if target is None or not _is_part(mirror, one, target))


def _is_part(mirror: Hub, commit: str, target: str) -> bool:
    return mirror.resolve(f"{commit}^{{commit}}") is not None and mirror.is_ancestor(commit, target)


def receive(mirror: Hub, pack: Path, *, commits: Sequence[str], target: str) -> None:
    """Take a pack of the head, and remember the commits that are complete now. Raises GitError for a damaged one."""
    git("index-pack", "--stdin", "--fix-thin", "--strict", git_dir=mirror.path, source=pack)
    for commit in commits:
        git("rev-list", "--quiet", "--objects", commit, git_dir=mirror.path)
        mirror.keep(f"{_MIRRORED}/{commit}", commit)
    set_target(mirror, target)
    _forget_merged(mirror, target)


def _forget_merged(mirror: Hub, target: str) -> None:
    """The target stands for all commits that it contains; each landing would leave one more otherwise."""
    place = f"{_OURS}{_MIRRORED}/"
    merged = git("for-each-ref", f"--merged={target}", "--format=%(refname)", place, git_dir=mirror.path).text
    gone = [name for name in merged.splitlines() if not name.endswith(target)]
    git("update-ref", "--stdin", git_dir=mirror.path, stdin="".join(f"delete {name}\n" for name in gone).encode())


def set_target(mirror: Hub, commit: str) -> None:
    """The head alone moves targets; a mirror follows wherever its next job says."""
    git("update-ref", TARGET, commit, git_dir=mirror.path)
