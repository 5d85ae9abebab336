"""A hub as two files, one pack and a list of refs, and the hub that is made again from them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from legion.git.core.command import git

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
