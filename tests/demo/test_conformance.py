"""The conformance suite, played with Claude Code, one program of the Agent Client Protocol and one of JSON lines.

Each takes 15 to 22 seconds of CPU, so `make test` draws one of them by its seed, and `make soak` plays all three.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from legion.demo.conformance.suite import Places as TrialPlaces
from legion.demo.conformance.suite import Promise, cases, play_suite, scripts
from legion.drivers.programs import catalog
from legion.rehearsal.script import parser
from legion.service.providers import agent_programs
from tests.jobs.office import Office
from tests.support import programs
from tests.support.legion import forked_daemons
from tests.support.sampling import sampled

PLAYED = ("claude", "copilot", "codex")


@pytest.fixture
def office(tmp_path: Path):
    one = Office(tmp_path)
    yield one
    one.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sampled(PLAYED, 1))
def test_a_program_keeps_every_promise(name: str, office: Office, monkeypatch: pytest.MonkeyPatch):
    if name != "claude":
        try:
            folder = programs.install(catalog.programs().found[name])
        except programs.NotInstalled as missing:
            pytest.skip(f"{name} cannot be tried here: {missing}")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    # The suite points this process at a Legion of its own.
    monkeypatch.setenv("LEGION_CONFIG", os.environ.get("LEGION_CONFIG", ""))
    with forked_daemons():
        result = play_suite(agent_programs.shown(office.context, name))
    assert [(one.promise, one.detail) for one in result.results if one.ok is False] == []
    assert [one.promise for one in result.results] == [one.value for one in Promise]


@pytest.mark.parametrize("name", sorted(catalog.shipped()))
def test_the_scripts_of_every_program_can_be_read(name: str, office: Office, tmp_path: Path):
    page = agent_programs.shown(office.context, name)
    if not page.trial.command_tool:
        pytest.skip("it is described as not tried")
    places = TrialPlaces(trees="/trees", secret="/secret", planted="/planted")
    for script, text in scripts(page.trial, places).items():
        file = tmp_path / f"{script}.toml"
        file.write_text(text)
        assert parser.read(file).steps
    shown = {promise for found in cases(page).values() for promise in found}
    assert Promise.LIMIT in shown
    assert (Promise.KILL in shown) == ("resumes" in page.driver.can)


@pytest.mark.parametrize("name", sorted(name for name, one in catalog.programs().found.items() if one.program.npm))
def test_the_lock_of_a_program_holds_the_described_version_and_digests(name: str):
    package, _, version = catalog.programs().found[name].program.npm.rpartition("@")
    lock = json.loads((programs.LOCKS / name / "package-lock.json").read_text())["packages"]
    assert lock[""]["dependencies"][package] == version
    assert lock[f"node_modules/{package}"]["version"] == version
    assert all("integrity" in one for place, one in lock.items() if place and not one.get("inBundle"))
