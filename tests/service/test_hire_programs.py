"""Which programs a standing agent can work with, and what is refused at its hire."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from legion.domain.agents.agent import ROOT
from legion.domain.errors import LegionError
from legion.drivers import registry
from legion.jobs.agent import preparation
from legion.jobs.turn import delivery
from legion.service.agents import attach, claim, delegation
from legion.service.agents import hire as hiring
from legion.store.board import plan_approvals
from legion.store.staff import agents
from legion.wire.agents import ClaimTicket, HireAgent, SetDelegation
from legion.wire.terminal import AttachAgent
from tests.jobs.office import Office
from tests.store.making import add_ticket

SMALL = """
title = "Small"
driver = "acp"
conversations = ["*.jsonl"]
program = {run = ["small"], version = []}
can = {resume = true, transcript = true}
"""


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """With a program of the person's own that can be a standing agent."""
    programs = tmp_path / "config" / "programs"
    programs.mkdir(parents=True)
    (programs / "small.toml").write_text(SMALL)
    small = tmp_path / "bin" / "small"
    small.parent.mkdir()
    small.write_text("#!/bin/sh\n")
    small.chmod(0o755)
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config" / "config.toml"))
    monkeypatch.setenv("PATH", f"{small.parent}{os.pathsep}{os.environ['PATH']}")
    one = Office(tmp_path)
    yield one
    one.close()


def hire(office: Office, *, caller: str = ROOT, **wanted: object) -> str:
    cwd = str(office.root) if caller == ROOT else ""
    return hiring.hire(office.context, caller, HireAgent(task="work", cwd=cwd, **wanted)).id  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        ({"driver": "nosuch"}, "no driver 'nosuch'"),
        ({"driver": "aider"}, "aider cannot be a standing agent, since it has no conversation"),
        ({"driver": "command"}, "cannot be a standing agent, since it has no conversation"),
        ({"driver": "cline"}, "a later turn cannot continue its conversation"),
        ({"driver": "small", "tools": ["Read"]}, "Small cannot be limited to some of its tools"),
        ({"driver": "small", "plan": True}, "Small cannot be limited to some of its tools"),
        ({"driver": "small", "delegate": True}, "Small cannot be limited to some of its tools"),
        ({"driver": "small", "role": "Leader"}, "A leader needs the driver claude"),
        ({"driver": "codex"}, "npm install"),
    ],
    ids=["unknown", "aider", "command", "cline", "tools", "plan", "delegate", "leader", "missing"],
)
def test_what_a_program_cannot_do_is_refused_at_the_hire(office: Office, wanted: dict[str, Any], refusal: str):
    with pytest.raises(LegionError, match=refusal):
        hire(office, **wanted)
    assert office.standing() == ()


def test_a_program_that_keeps_to_no_limit_cannot_only_lead(office: Office):
    ada = hire(office, name="ada", driver="small")
    with pytest.raises(LegionError, match="Small cannot be limited to some of its tools, so ada cannot only lead"):
        delegation.delegate(office.context, ROOT, SetDelegation(id=ada, on=True))
    delegation.delegate(office.context, ROOT, SetDelegation(id=ada, on=False))


def test_an_agent_keeps_the_program_that_it_was_hired_with(office: Office, tmp_path: Path):
    hire(office, name="ada", driver="small")
    hire(office, name="bob", driver=registry.DEFAULT)
    ada, bob = office.standing()
    assert [preparation.profile(one).name for one in (ada, bob)] == ["small", registry.DEFAULT]
    state = tmp_path / "state"
    (state / "small" / ".legion-conversations").mkdir(parents=True)
    (state / "small" / ".legion-conversations" / ada.id).write_text("s-1")
    (state / "small" / "s-1.jsonl").write_text("(prompt p-1)")
    assert delivery.delivered(state, ada, ["p-1"]) == {"p-1"}
    assert delivery.delivered(state, bob, ["p-1"]) == frozenset()


def test_an_agent_chooses_a_program_only_with_the_right_to_it(office: Office):
    boss = hire(office, name="boss")
    with pytest.raises(LegionError, match="Only the person chooses another program"):
        hire(office, caller=boss, driver="small")


def test_what_an_agent_hires_has_its_program_and_with_it_its_model(office: Office):
    boss = hire(office, name="boss", driver="small", model="gpt-5-codex")
    hire(office, caller=boss, name="child")
    child = office.standing()[-1]
    assert (child.driver, child.model) == ("small", "gpt-5-codex")
    with pytest.raises(LegionError, match="Only the person chooses another program"):
        hire(office, caller=boss, driver=registry.DEFAULT)


def test_without_an_interactive_form_there_is_no_takeover(office: Office):
    hire(office, name="ada", driver="small")
    with pytest.raises(LegionError, match="Small has no interactive form: `legion tell ada`"):
        attach.attach(office.context, AttachAgent(id="ada"))


def test_a_ticket_whose_plan_comes_first_is_not_for_a_program_that_cannot_only_read(office: Office):
    id = hire(office, name="ada", driver="small")
    with office.context.store.write() as tx:
        ticket = add_ticket(tx, office.project)
        plan_approvals.want(tx, ticket.id)
        free = add_ticket(tx, office.project)
    assert claim.claim(office.context, id, ClaimTicket()).ticket == free.id
    with office.context.store.read() as tx:
        assert agents.get(tx, id).driver == "small"
