"""`legion uninstall` leaves nothing of Legion's, and nothing of a person's goes with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.legion import Project, Squad
from tests.support.repository import Repository


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Squad]:
    made = Squad(tmp_path)
    made.start()
    yield made
    made.close()


def _person(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config"), "XDG_CACHE_HOME": str(folder / ".cache")}


def _uninstall(project: Project, home: Path, *words: str, code: int = 0) -> str:
    done = project.squad.cli("uninstall", *words, cwd=project.repository.root, extra=_person(home))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if "--json" in words else done.stdout + done.stderr


def test_everything_of_legion_goes_and_all_else_stays(one: Squad, tmp_path: Path) -> None:
    project = one.adopt(Repository(tmp_path / "shop"))
    landed = project.dispatch("Landed", "echo x > landed.txt")
    project.until_settled(landed)
    trees = project.worktrees
    own = trees / "notes.txt"
    own.write_text("a person's")
    assert "Not Legion's" in _uninstall(project, tmp_path, "--yes", code=5)
    own.unlink()
    settings = project.repository.root / "legion.toml"

    listed = json.loads(_uninstall(project, tmp_path, "--json"))["notes"]
    assert any(str(one.data.root) in line for line in listed)
    assert "Nothing is changed yet" in _uninstall(project, tmp_path, code=4)
    assert "run `legion collect` first" in _uninstall(project, tmp_path, "--yes", code=5)
    assert one.data.root.exists()

    project.collect()
    _uninstall(project, tmp_path, "--yes")

    assert not one.data.root.exists()
    assert not trees.exists()
    assert settings.exists()
    assert (project.repository.root / "landed.txt").exists()
    assert not one.processes()


def test_work_that_did_not_land_is_asked_about_by_itself(one: Squad, tmp_path: Path) -> None:
    project = one.adopt(Repository(tmp_path / "shop"))
    failed = project.dispatch("Half", "echo BROKEN > half.txt")
    project.until(failed, "failed")

    said = _uninstall(project, tmp_path, "--yes", code=4)
    assert "the work of 1 ticket that did not land" in said
    assert one.data.root.exists()

    _uninstall(project, tmp_path, "--yes", "--unsaved")
    assert not one.data.root.exists()


def test_a_project_that_refuses_keeps_legion_and_the_next_time_nothing_is_left(one: Squad, tmp_path: Path) -> None:
    first, second = (one.adopt(Repository(tmp_path / name)) for name in ("first", "second"))
    trees = [first.worktrees, second.worktrees]
    second.until_settled(second.dispatch("Landed", "echo x > landed.txt"))
    assert "No longer projects: first." in _uninstall(second, tmp_path, "--yes", code=5)
    assert one.data.root.exists()

    second.collect()
    _uninstall(second, tmp_path, "--yes")
    assert not [folder for folder in (*trees, one.data.root) if folder.exists()]
