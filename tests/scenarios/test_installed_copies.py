"""Setups that install a copy of the package, tried as attacks: what was broken does not land on a check of the copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.test_small_projects import PROJECTS, person, tried
from tests.support.legion import Squad

__all__ = ["person"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

COPIES = {
    "pip, src": "python3 -m venv .venv && .venv/bin/python -m pip install -q . pytest && echo '*' > .venv/.gitignore",
    "pip, flat": "python3 -m venv .venv && .venv/bin/python -m pip install -q . pytest && echo '*' > .venv/.gitignore",
    "uv workspace": "uv sync -q --frozen --no-editable",
}
"""Setups that install a copy, which the tests, or a program that they start elsewhere, then import."""


@pytest.mark.parametrize("name", COPIES)
def test_what_was_broken_does_not_land_where_a_copy_is_tested(name: str, person: Squad, tmp_path: Path):
    check = '[checks.test]\nrun = ".venv/bin/python -m pytest -q"\n'
    project, found = tried(
        name, person, tmp_path / "shop", f'[setup]\nrun = "{COPIES[name]}"\nkey = ["pyproject.toml"]\n{check}'
    )
    assert found.state == "done", found.lines
    code = next(path for path in PROJECTS[name].files if path.endswith("__init__.py"))
    ticket = project.dispatch("break it", f"sed -i s/7/8/ {code}", max_attempts=1)
    project.until_settled(ticket, patience=600)
    # Either the trial asks first, or the copy is made again from the change and its check is red.
    assert project.state(ticket) == ("parked" if found.sees == "no" else "failed"), found.lines
