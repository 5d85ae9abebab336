"""What status, ticket, log and doctor say is what holds: silent models, switched-off walls, replaced drivers, rests."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from legion.runner import control
from tests.support.legion import PATIENCE, Project
from tests.support.looking import until_seen
from tests.support.models import Company, company


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Without a way to a model at first, and with agents who ask a silent one again for a long time."""
    with company(tmp_path_factory.mktemp("saying"), provided=False, retries=20, stand_in=True) as one:
        yield one


@contextlib.contextmanager
def settings(here: Company, old: str, new: str) -> Iterator[None]:
    """The person's file says something else for a while."""
    before = here.squad.settings.read_text()
    assert old in before
    here.squad.settings.write_text(before.replace(old, new))
    try:
        yield
    finally:
        here.squad.settings.write_text(before)


def finding(here: Company, name: str) -> str:
    """A line of doctor and its advice as one text; empty if it has none of this name."""
    found = here.squad.client.doctor(here.project.cwd).findings
    return " ".join(f"{one.ok} {one.detail} {one.advice}" for one in found if one.name == name)


def test_doctor_says_that_a_driver_of_the_persons_own_replaces_claude_code(here: Company):
    assert finding(here, "Claude Code replaced") == ""
    assert finding(here, "model").startswith("False Claude Code has no access to one")
    with settings(here, "[sandbox]", '[drivers.claude]\nrun = "cat"\n[sandbox]'):
        assert "your [drivers.claude] is a plain program: no gateway" in finding(here, "Claude Code replaced")
        assert finding(here, "model").strip() == "True not needed: you use another driver"
        assert "not needed: you use another driver" in here.told("doctor")
        refused = here.cli("dispatch", "-t", "x", "--driver", "claude", "--budget", "2")
        assert (refused.returncode, "--budget needs a driver that can keep a budget" in refused.stderr) == (2, True)


def test_doctor_asks_nothing_of_those_who_use_another_driver(here: Company):
    with settings(here, "[sandbox]", '[drivers.own]\nrun = "cat"\n[sandbox]'):
        assert finding(here, "Claude Code replaced") == ""
        assert finding(here, "model").strip() == "True not needed: you use another driver"


def test_status_says_that_the_sandbox_is_switched_off(here: Company):
    works = here.squad.client.status(None).daemon.sandbox
    with settings(here, "[sandbox]", '[sandbox]\nmode = "off"'):
        assert here.squad.client.status(None).daemon.sandbox == "off, by your settings"
    assert here.squad.client.status(None).daemon.sandbox == works != "off, by your settings"


def test_a_model_that_does_not_answer_is_said_while_it_is_asked_again(here: Company):
    here.provide()
    here.script("silent", "[[step]]\nstatus = 529\n")
    ticket = here.dispatch("silent")
    until_retried(here, ticket, 3)
    said = here.project.ticket(ticket).ticket
    assert said.state == "working"
    assert re.fullmatch(r"the model does not answer \(529\), asked ([3-9]|10) times", said.doing)
    assert "the model does not answer (529), asked" in here.told("status").partition("At work")[2]
    assert "the model does not answer (529), asked" in here.told("ticket", str(ticket))
    here.project.stop(ticket)


def until_retried(here: Company, ticket: int, times: int) -> None:
    """Look again whenever the run's journal rings."""
    until_seen(here.squad, lambda: here.journal(ticket), "the run's journal")
    (run,) = here.project.ticket(ticket).runs
    folder = here.squad.data.runs / f"ticket-{ticket}-run-{run.id}"
    with control.connect(folder, PATIENCE) as connection:
        control.send(connection, "follow")
        while len([event for event in here.journal(ticket) if event.kind == "retry"]) < times:
            assert connection.recv(4096), "the run ended"


def test_a_ticket_that_rests_or_waits_for_the_provider_does_not_need_the_person(project: Project):
    ticket = project.dispatch("hasty", "false", max_attempts=20)
    project.until_true(lambda: project.state(ticket) == "parked" and project.ticket(ticket).ticket.attempt >= 3)
    shown = project.squad.cli("status", cwd=project.repository.root).stdout
    assert "Needs you" not in shown
    assert f"#{ticket}  hasty" in shown.partition("Waiting")[2]
    first, *_, last = [run.id for run in project.ticket(ticket).runs]
    logged = project.squad.cli("log", str(ticket), cwd=project.repository.root)
    assert f"This is run {last}; earlier ones are {first}, " in logged.stderr
    project.stop(ticket)
