"""`legion machine head` as a person types it: a backup, a head made from it, and the move to Postgres."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from legion.store.board import tickets
from legion.store.database.transactions import Store, sqlite_url
from tests.support.board import Board
from tests.support.legion import PATIENCE, SOURCE
from tests.support.postgres import fresh_database
from tests.support.warm import warm


def typed(data: Path, config: Path, *words: str, group: str = "head") -> subprocess.CompletedProcess[str]:
    """In a process of its own: it ends with its data folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env |= {"PYTHONPATH": str(SOURCE), "LEGION_DATA_DIR": str(data), "LEGION_CONFIG": str(config)}
    line = [*([group] if group else []), *words]
    return warm(SOURCE).run("legion", line, env, data.parent, stdin="", patience=PATIENCE)


def test_a_head_is_backed_up_restored_and_moved_to_postgres(tmp_path: Path):
    board = Board(tmp_path)
    board.put(1, "Greet")
    board.close()
    config, file, second = tmp_path / "config.toml", tmp_path / "monday.tar", tmp_path / "second"
    done = typed(board.context.data.root, config, "backup", str(file), "--json")
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout)
    assert (state["schema"], state["projects"], state["bytes"]) == ("legion.head/1", ["shop"], file.stat().st_size)

    done = typed(second, config, "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Restored 1 project, ")
    again = typed(second, config, "restore", str(file))
    assert (again.returncode, again.stdout) == (5, "")
    assert "holds hubs already" in again.stderr

    with fresh_database() as url:
        done = typed(second, config, "move", url.replace("+psycopg", ""))
        assert done.returncode == 0, done.stderr
        assert "[daemon]" in done.stdout
        assert not (second / "legion.db").exists()
        assert (second / "legion.db.moved").exists()
        store = Store(url)
        with store.read() as tx:
            assert tickets.get(tx, 1).spec.title == "Greet"
        store.close()
        on_postgres = tmp_path / "postgres.toml"
        on_postgres.write_text(f'[daemon]\ndatabase = "{url}"\n')
        done = typed(second, on_postgres, "backup", str(tmp_path / "tuesday.tar"))
        assert done.returncode == 0, done.stderr
    third = tmp_path / "third"
    done = typed(third, config, "restore", str(tmp_path / "tuesday.tar"))
    assert done.returncode == 0, done.stderr
    store = Store(sqlite_url(third / "legion.db"))
    with store.read() as tx:
        assert tickets.get(tx, 1).spec.title == "Greet", "the way back to SQLite"
    store.close()
    lost = typed(second, config, "serve", group="")
    assert lost.returncode == 5
    assert "was moved to Postgres: write its address into your settings as `daemon.database`" in lost.stderr
    assert not (second / "legion.db").exists(), "the old one can be renamed back"
    refused = typed(second, config, "move", "sqlite:///elsewhere.db")
    assert refused.returncode == 2
    assert "Name a Postgres database" in refused.stderr
    assert "The way back to SQLite is a backup" in refused.stderr
