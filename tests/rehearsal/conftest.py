"""A rehearsal per test, whose scripts the test writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from legion.rehearsal.process import Playing
from tests.rehearsal.program import Claude
from tests.support.stage import playing


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    folder.mkdir()
    return folder


@pytest.fixture
def write(scripts: Path) -> Callable[[str, str], None]:
    """Put a script into the folder of the play."""

    def put(name: str, text: str) -> None:
        (scripts / f"{name}.toml").write_text(dedent(text))

    return put


@pytest.fixture
def stage(scripts: Path, tmp_path: Path) -> Iterator[Playing]:
    with playing(scripts, tmp_path) as running:
        yield running


@pytest.fixture
def generic_stage(scripts: Path, tmp_path: Path) -> Iterator[Playing]:
    with playing(scripts, tmp_path, default="generic") as running:
        yield running


@pytest.fixture
def claude(stage: Playing, tmp_path: Path) -> Claude:
    return Claude(folder=tmp_path / "agent", url=stage.url)
