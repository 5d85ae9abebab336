"""[setup]: dependencies prepared in a tree, once per content of the lock files. No part of any change."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from legion.domain.errors import LegionError
from legion.jobs import commands
from legion.jobs.world import Workshop, World
from legion.system import crash, files
from legion.system.crash import Point


class SetupFailed(LegionError):
    """The project's own [setup] command did not work: nobody's change is to blame."""


def key_of(shop: Workshop, tree: Path) -> str:
    """What decides whether setup must run again: the command and the content of the key files."""
    setup = shop.config.setup
    digest = hashlib.sha256(setup.run.encode())
    for name in setup.key:
        file = tree / name
        content = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def record_of(shop: Workshop, tree: Path) -> Path:
    """Where it is written down that setup ran in this worktree. A tree keeps its number when it is renamed, and what
    setup made must still be there, so a number that comes back with another tree deceives nobody."""
    return shop.folder / "setup" / f"{tree.stat().st_ino}.json"


def outputs(record: Path) -> tuple[str, ...]:
    """The top-level names that setup made in the tree of this record."""
    try:
        return tuple(json.loads(record.read_text())["outputs"])
    except (FileNotFoundError, ValueError, KeyError):
        return ()


def ensure(world: World, shop: Workshop, tree: Path, record: Path) -> None:
    """Run setup in the tree unless it has run there for the same key."""
    if not shop.config.setup.run:
        return
    key = key_of(shop, tree)
    before = _top_level(tree)
    if _recorded_key(record) == key and before.issuperset(outputs(record)):
        return
    crash.reach(Point.SETUP_BEFORE_RUN)
    shop.cache.mkdir(parents=True, exist_ok=True)
    ended = commands.run(
        world,
        shop,
        name="setup",
        command=shop.config.setup.run,
        tree=tree,
        timeout=shop.config.setup.timeout,
        writable=(shop.cache,),
        env={"XDG_CACHE_HOME": str(shop.cache), "PIP_CACHE_DIR": str(shop.cache / "pip")},
    )
    if ended.exit_code != 0:
        raise SetupFailed(
            f"The project's setup `{shop.config.setup.run}` failed ({ended.how}): mend [setup] in legion.toml; "
            f"its output ends with: {ended.tail[-400:].strip() or 'nothing'}"
        )
    made = sorted(set(outputs(record)) | (_top_level(tree) - before))
    made = [name for name in made if name in _top_level(tree)]
    _leave_out_of_changes(shop, made)
    record.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(record, json.dumps({"key": key, "outputs": made}))
    crash.reach(Point.SETUP_AFTER_RECORD)


def _recorded_key(record: Path) -> str | None:
    try:
        return str(json.loads(record.read_text())["key"])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def _top_level(tree: Path) -> set[str]:
    return {entry.name for entry in tree.iterdir() if entry.name != ".git"}


def _leave_out_of_changes(shop: Workshop, names: list[str]) -> None:
    """Snapshots are taken with the hub's own exclude file, which no agent can reach."""
    exclude = shop.hub.path / "info" / "exclude"
    with files.waiting_lock(shop.folder / "exclude.lock"):
        lines = exclude.read_text().splitlines() if exclude.exists() else []
        new = [f"/{name}" for name in names if f"/{name}" not in lines]
        if new:
            exclude.parent.mkdir(exist_ok=True)
            files.write_whole(exclude, "\n".join([*lines, *new]) + "\n", mode=0o644)
