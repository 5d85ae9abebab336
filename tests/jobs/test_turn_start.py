"""A turn whose program can never start ends with the reason, and is tried again with pauses, not for ever at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from legion.config.files.user import CurrentSettings
from legion.config.sections.machine import SandboxChoice, SandboxMode
from legion.domain.agents.agent import ROOT
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import JobKind
from legion.jobs.turn import job
from legion.runner.probe import SandboxKind, SandboxState
from legion.service.agents import hire as hiring
from legion.store.staff import agents
from legion.store.work import claims, runs
from legion.wire.agents import HireAgent
from tests.jobs.test_check_setup import Make, make

__all__ = ["make"]


@pytest.mark.parametrize("wanted", [{"mode": SandboxMode.REQUIRE}, {"kind": SandboxChoice.CONTAINER}], ids=str)
def test_a_turn_without_the_sandbox_that_the_settings_require_ends_with_the_reason(make: Make, wanted: dict[str, Any]):
    ground = make('[checks.test]\nrun = "true"\n', {"a.txt": "a\n"})
    board = ground.board.context
    user = replace(board.user, sandbox=replace(board.user.sandbox, **wanted))
    none = SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=False, why="none is installed")
    context = replace(board, settings=CurrentSettings(user), sandbox=none)
    hired = hiring.hire(context, ROOT, HireAgent(task="work", cwd=str(ground.repository.root)))
    with context.store.write() as tx:
        number = agents.get(tx, hired.id).number
        job.begin(tx, number)
        claim = claims.claim(tx, JobKind.SERVE, number, "here")
    job.serve(context, claim)
    with context.store.read() as tx:
        (run,) = runs.of_agent(tx, number)
        held = agents.get(tx, hired.id).held_until
    assert run.outcome is Outcome.NOT_STARTED
    assert "none works here: none is installed" in run.detail
    assert held is not None
    assert held > context.clock()
