"""Agent programs as data: the shipped files, the person's own, and what is refused in them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from legion.domain.errors import BadInput
from legion.drivers import registry
from legion.drivers.json_lines.driver import READERS
from legion.drivers.profile import ProgramUnusable
from legion.drivers.programs import catalog, locate
from legion.drivers.programs.description import JSON_READERS, AbilityPart, DriverKind, ProgramDescription, described
from legion.drivers.turns import profile
from tests.support.codebase import SOURCE

LEAST = {"title": "X", "driver": "acp", "program": {"run": ["x", "--acp"]}}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's folder of programs."""
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", sorted(catalog.shipped()))
def test_a_shipped_program_says_everything_that_a_run_and_the_suite_need(name: str):
    program = described(name, catalog.shipped()[name], name)
    assert program.title
    assert program.program.install
    if program.tried:
        assert program.model.default
        assert program.trial.command_tool or program.driver is DriverKind.COMMAND, "the suite can play it"
        assert program.program.least
        assert program.program.npm or program.program.pip
    texts = [*program.environment.values(), *program.files.values(), *program.program.run]
    if program.tried:
        assert any("{url}" in text for text in texts), "its model goes through the gateway"
        assert any("{token}" in text for text in texts)


def test_a_description_survives_the_spec_of_a_run():
    program = described("copilot", catalog.shipped()["copilot"], "copilot.toml")
    assert ProgramDescription.from_json({**program.to_json(), "later": 1}) == program


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"titel": "X"}, "In f, `titel` is unknown: did you mean `title`?."),
        ({"driver": "tmux"}, "In f, `driver` must be one of acp, json, command, terminal."),
        ({"tried": "yes"}, "In f, `tried` must be true or false."),
        ({"title": 3}, "In f, `title` must be text."),
        ({"program": {"run": "x"}}, "In f, `program.run` must be a list of texts."),
        ({"program": {}}, "In f, `program.run` is missing: list the words"),
        (
            {"driver": "json", "json": {"reader": "amp"}},
            "In f, `json.reader` must name the reader of its lines: codex or pi.",
        ),
        ({"driver": "json"}, "In f, `json.reader` must name the reader of its lines: codex or pi."),
        ({"environment": {"A": 1}}, "In f, `environment` must be a table of texts."),
        ({"can": {"fly": True}}, "In f, `can.fly` is unknown: known are resume"),
        ({"can": 1}, "In f, `can` must be a table."),
        ({"files": {"../x": ""}}, "In f, `files.../x` must be a path below the program's home folder."),
        ({"files": {"/etc/x": ""}}, "In f, `files./etc/x` must be a path below the program's home folder."),
    ],
)
def test_a_fault_is_answered_with_file_key_and_remedy(change: dict[str, object], sentence: str):
    with pytest.raises(BadInput) as refused:
        described("x", {**LEAST, **change}, "f")
    assert refused.value.message.startswith(sentence)


def test_a_title_is_needed():
    with pytest.raises(BadInput, match="`title` is missing"):
        described("x", {"driver": "acp"}, "f")


def test_a_file_of_the_person_adds_a_program_and_another_changes_a_shipped_one(own: Path):
    (own / "mine.toml").write_text('title = "Mine"\ndriver = "acp"\n[program]\nrun = ["mine", "--acp"]\n')
    (own / "copilot.toml").write_text('[model]\ndefault = "gpt-5"\n')
    mine, copilot = registry.find("mine"), registry.find("copilot")
    assert mine is not None
    assert mine.title == "Mine"
    assert mine.kind == DriverKind.ACP.value
    assert copilot is not None
    assert copilot.default_model == "gpt-5"
    assert copilot.capabilities.resumes
    assert "mine" in registry.built_in()
    (own / "mine.toml").unlink()
    assert registry.find("mine") is None
    assert registry.is_known("mine", "acp"), "its runs go on"


def test_a_changed_command_line_counts_as_not_tried(own: Path):
    (own / "copilot.toml").write_text('[program]\nrun = ["/opt/copilot", "--acp"]\n')
    program = catalog.programs().found["copilot"]
    assert (program.tried, program.program.run, program.program.least) == (False, ("/opt/copilot", "--acp"), "1.0.100")


def test_a_broken_file_makes_only_its_own_program_unusable(own: Path):
    (own / "copilot.toml").write_text("[model\n")
    (own / "Bad Name.toml").write_text("")
    found = catalog.programs()
    assert "copilot" not in found.found
    assert "claude" not in found.faults
    assert "is not valid TOML" in found.faults["copilot"]
    assert "small letters" in found.faults["Bad Name"]
    assert registry.find("claude") is not None


def test_a_program_without_a_conversation_can_only_keep_a_budget():
    table = {**LEAST, "driver": "command", "can": {"resume": True, "interrupt": True}}
    found = profile.capabilities(described("x", {**table, "environment": {"BASE_URL": "{url}"}}, "f"))
    assert (found.talks, found.resumes, found.interrupts, found.budgets, found.models) == (False,) * 3 + (True,) * 2
    outside = profile.capabilities(described("x", table, "f"))
    assert (outside.budgets, outside.models) == (False, False), "Legion sees nothing of its account"


def test_each_ability_that_a_description_can_claim_has_an_effect():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert [one.name for one in fields(AbilityPart) if f"can.{one.name}" not in text] == []


def test_abilities_that_older_files_claim_are_ignored():
    assert described("x", {**LEAST, "can": {"images": True, "plan": True, "cost": True}}, "f").can == AbilityPart()


def test_the_readers_of_descriptions_are_those_that_there_are():
    assert tuple(READERS) == JSON_READERS


def written(folder: Path, script: str, **program: object) -> ProgramDescription:
    file = folder / "agent"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return described("x", {**LEAST, "program": {"run": [str(file)], **program}}, "f")


def test_a_program_that_is_slow_to_print_its_version_is_started_without_it(tmp_path: Path):
    slow = written(tmp_path, "test -e started || { touch started; exec sleep 60; }; echo 2.1.0", least="9.0")
    assert locate.find(slow, patience=0.2).version == "", "a busy machine is no broken installation"
    quick = written(tmp_path, "echo version 2.1.0")
    assert locate.find(quick).version == "2.1.0"


@pytest.mark.parametrize("script", ["echo usage: agent >&2; exit 2", "true", "echo dev build"])
def test_a_program_that_prints_no_version_is_started_without_it(tmp_path: Path, script: str):
    assert locate.find(written(tmp_path, script, least="1.0")).version == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("#!/usr/bin/env no-such-interpreter\n", "exit code 127"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
    ],
)
def test_a_program_that_cannot_run_is_refused_in_a_sentence(tmp_path: Path, content: str, why: str):
    program = written(tmp_path, "")
    (tmp_path / "agent").write_text(content)
    with pytest.raises(ProgramUnusable) as refused:
        locate.find(program)
    assert str(refused.value) == f"{tmp_path}/agent does not run ({why}): install X again."
