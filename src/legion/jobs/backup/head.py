"""The state of a head as one file: all rows of its database, and every project's hub. And the head made from it.

The rows and the refs of the hubs are read while no other part can write to the database. Legion records the intent to
move a target before it moves it, so what the file holds is a state that a killed head could have left behind, and the
next head continues from it like from any other.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from legion import __version__
from legion.domain.errors import BadInput, StateConflict
from legion.git.hub import board_ref
from legion.store.board_records import SCHEMA
from legion.store.database import schema
from legion.store.database.full_copy import copy_all
from legion.store.database.transactions import Store, sqlite_url
from legion.system.paths import DataDir

FORMAT = 1
_FACTS, _ROWS = "head.json", "rows.db"


@dataclass(frozen=True, kw_only=True)
class HeadCopy:
    """What was written or restored."""

    rows: int
    projects: tuple[str, ...]
    bytes: int


def write(data: DataDir, store: Store, file: Path) -> HeadCopy:
    """Write the backup. It replaces the file only when it is complete. The daemon may work meanwhile."""
    if not file.parent.is_dir():
        raise BadInput(f"There is no folder {file.parent}: name a file in a folder that exists.")
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as made:
        folder = Path(made)
        rows = Store(sqlite_url(folder / _ROWS))
        try:
            with store.write() as tx:
                count = copy_all(tx, rows)
                projects = {int(row.id): str(row.name) for row in tx.execute(select(schema.projects))}
                hubs = {id: data.project(id) / "hub.git" for id in projects}
                refs = {id: board_ref.refs_of(hub) for id, hub in hubs.items() if hub.is_dir()}
        finally:
            rows.close()
        for id, mine in refs.items():
            board_ref.pack(hubs[id], mine, folder / str(id))
        facts = {"format": FORMAT, "schema": SCHEMA, "version": __version__, "rows": count, "refs": refs}
        (folder / _FACTS).write_text(json.dumps(facts))
        half = folder / "complete"
        _archive(folder, sorted(refs), half)
        half.replace(file)
    return HeadCopy(rows=count, projects=tuple(projects.values()), bytes=file.stat().st_size)


def read(file: Path, data: DataDir, store: Store) -> HeadCopy:
    """Fill an empty database and an empty folder of projects. Raises BadInput, StateConflict."""
    taken = sorted(one.name for one in data.projects.glob("*") if (one / "hub.git").exists())
    if taken:
        raise StateConflict(f"{data.projects} holds hubs already: move that folder away, or name another --data-dir.")
    with tempfile.TemporaryDirectory(dir=data.root, prefix=".restore.") as made:
        folder = Path(made)
        facts = _extract(file, folder)
        for id, refs in facts["refs"].items():
            board_ref.unpack(folder / id / board_ref.PACK, refs, folder / "hubs" / id / "hub.git")
        rows = Store(sqlite_url(folder / _ROWS))
        try:
            rows.migrate()
            with rows.read() as tx:
                names = tuple(tx.execute(select(schema.projects.c.name)).scalars())
                count = copy_all(tx, store)
        finally:
            rows.close()
        # After the rows: a database without hubs is reported, hubs without a database would be taken for lost boards.
        for id in facts["refs"]:
            data.project(int(id)).parent.mkdir(parents=True, exist_ok=True)
            (folder / "hubs" / id).rename(data.project(int(id)))
    return HeadCopy(rows=count, projects=names, bytes=file.stat().st_size)


def _archive(folder: Path, projects: list[int], goal: Path) -> None:
    with goal.open("wb") as out:
        # Packs are compressed already.
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name in (_FACTS, _ROWS, *(f"{id}/{board_ref.PACK}" for id in projects)):
                tar.add(folder / name, name)
        out.flush()
        os.fsync(out.fileno())
    goal.chmod(0o600)


def _extract_file(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Plain files below the folder and nothing else. Python 3.11.2 has no filter that refuses the rest."""
    goal = (folder / member.name).resolve()
    content = tar.extractfile(member) if member.isreg() else None
    if content is None or not goal.is_relative_to(folder.resolve()):
        raise ValueError(f"{member.name} does not belong in a backup")
    goal.parent.mkdir(parents=True, exist_ok=True)
    with content, goal.open("wb") as out:
        shutil.copyfileobj(content, out)


def _extract(file: Path, folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    try:
        with tarfile.open(file) as tar:
            for member in tar:
                _extract_file(tar, member, folder)
        facts = json.loads((folder / _FACTS).read_bytes())
        fits = facts["format"] == FORMAT
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as wrong:
        raise BadInput(f"{file} is no backup of a head: {wrong}") from wrong
    if not fits or facts["schema"] > SCHEMA:
        raise BadInput(f"{file} was written by Legion {facts.get('version')}, which is newer: update Legion first.")
    return dict(facts)
