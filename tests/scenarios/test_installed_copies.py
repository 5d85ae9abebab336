"""Setups that install the package, as a copy or as editable, tried as attacks: what was broken does not land on a check
that imports anything but the change itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.test_small_projects import PROJECTS, person, tried
from tests.support.legion import Squad

__all__ = ["person"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

LAYOUTS = (
    *("pip, flat", "pip, src", "namespace package", "setuptools where", "setuptools package-dir"),
    *("hatch", "poetry-core", "pdm-backend", "uv_build"),
)
PIP = "python3 -m venv .venv && .venv/bin/python -m pip install -q {} pytest && echo '*' > .venv/.gitignore"
SETUPS = {
    **{f"{layout}, copied": (layout, PIP.format(".")) for layout in LAYOUTS},
    **{f"{layout}, editable": (layout, PIP.format("-e .")) for layout in LAYOUTS},
    "uv workspace, copied": ("uv workspace", "uv sync -q --frozen --no-editable"),
    "uv workspace, editable": ("uv workspace", "uv sync -q --frozen"),
    "poetry, editable": ("poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install -q --no-interaction"),
    "poetry packages from, editable": (
        "poetry packages from",
        "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install -q --no-interaction",
    ),
}
"""By name the project, and a setup whose result the tests, or a program that they start elsewhere, then import."""


@pytest.mark.parametrize("name", SETUPS)
def test_what_was_broken_does_not_land_where_it_is_installed(name: str, person: Squad, tmp_path: Path):
    layout, setup = SETUPS[name]
    check = '[checks.test]\nrun = ".venv/bin/python -m pytest -q"\n'
    project, found = tried(
        layout, person, tmp_path / "shop", f'[setup]\nrun = "{setup}"\nkey = ["pyproject.toml"]\n{check}'
    )
    assert found.state == "done", found.lines
    code = next(path for path in PROJECTS[layout].files if path.endswith("__init__.py"))
    ticket = project.dispatch("break it", f"sed -i s/7/8/ {code}", max_attempts=1)
    project.until_settled(ticket, patience=600)
    # Either the trial asks first, or the copy is made again from the change and its check is red.
    assert project.state(ticket) == ("parked" if found.sees == "no" else "failed"), found.lines
