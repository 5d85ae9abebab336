"""A person stops, retries, drops, pauses and resumes; what an agent wrote is never lost by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.errors import NotFound, StateConflict
from legion.wire.projects import Where
from tests.scenarios.conftest import settings_with_gates, shared_project
from tests.scenarios.test_agents import resting
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new, squad
from tests.support.repository import Repository


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    yield from shared_project(house, tmp_path_factory.mktemp("acting"))


def test_a_stopped_ticket_keeps_its_files_and_a_retry_goes_on_in_them(project: Project, gate: Gate):
    agent = f"""
    if [ -e half.txt ]; then grep -q 'write it out' "$LEGION_BRIEFING" && echo whole > whole.txt; exit; fi
    echo half > half.txt; {gate.pause}
    """
    ticket = project.dispatch("halves", agent, max_attempts=1)
    gate.arrived()
    project.stop(ticket)
    page = project.until_idle(ticket)
    assert (page.ticket.state, page.runs[-1].outcome) == ("stopped", "stopped")
    assert (project.worktree(ticket) / "half.txt").read_text() == "half\n"
    project.retry(ticket, feedback="write it out")
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert (project.landed("half.txt"), project.landed("whole.txt")) == ("half\n", "whole\n")


def test_an_agent_that_ignores_signals_is_ended_all_the_same(project: Project, gate: Gate):
    agent = f"trap '' INT TERM HUP QUIT; echo kept > a.txt; while :; do {gate.pause}; done"
    ticket = project.dispatch("deaf", agent)
    gate.arrived()
    project.stop(ticket)
    page = project.until_idle(ticket)
    assert (page.ticket.state, page.runs[-1].outcome) == ("stopped", "stopped")
    assert (project.worktree(ticket) / "a.txt").read_text() == "kept\n"


def test_a_ticket_stopped_while_its_tree_is_prepared_never_starts_its_agent(make: Callable[..., Project], gate: Gate):
    setup = f"if [ -e second ]; then {gate.pause}; fi"
    project = make(f"[setup]\nrun = '''{setup}'''\nkey = ['second']\n")
    ticket = project.dispatch("twice", "echo attempt $LEGION_ATTEMPT; echo 2 > second; exit 1")
    gate.arrived()
    project.stop(ticket)
    gate.open()
    page = project.until_idle(ticket)
    assert page.ticket.state == "stopped"
    assert [run.outcome for run in page.runs] == ["failed", "stopped"]
    assert project.log(ticket) == ""


def test_a_ticket_stopped_in_the_merge_queue_does_not_land_and_its_companion_does(
    make: Callable[..., Project], gate: Gate
):
    project = make(f"[checks.test]\nrun = '''! [ -e held.txt ] || {gate.pause}'''\n")
    held = project.dispatch("held", "touch held.txt")
    gate.arrived()
    project.until(held, "landing")
    companion = project.dispatch("companion", "touch b.txt")
    project.until(companion, "landing")
    project.stop(held)
    gate.open()
    project.until_settled()
    assert project.states() == {held: "stopped", companion: "done"}
    assert (project.landed("held.txt"), project.landed("b.txt")) == (None, "")
    assert (project.worktree(held) / "held.txt").exists()


def test_stopping_all_leaves_nothing_in_hand(project: Project, gate: Gate):
    tickets = [project.dispatch(f"ticket {n}", f"{gate.pause}; touch {n}") for n in range(6)]
    gate.arrived(4)
    assert sorted(project.squad.client.stop_all(Where(cwd=project.cwd)).tickets) == tickets
    for ticket in tickets:
        project.until_idle(ticket)
    states = project.states()
    assert {states[ticket] for ticket in tickets} == {"stopped"}


def test_what_has_landed_cannot_be_stopped_retried_or_resumed(project: Project):
    ticket = project.dispatch("done", "touch landed.txt")
    project.until_settled(ticket)
    with pytest.raises(StateConflict, match=f"Ticket {ticket} is done"):
        project.stop(ticket)
    with pytest.raises(StateConflict, match=f"Ticket {ticket} is done"):
        project.retry(ticket)
    with pytest.raises(StateConflict, match="nothing to resume"):
        project.squad.client.resume_ticket(ticket)


def test_a_dropped_ticket_leaves_the_board_and_its_files_lie_in_the_trash(project: Project, gate: Gate):
    first, second = project.dispatch_all(
        [new("first", f"echo mine > a.txt; {gate.pause}", key="one"), new("second", "touch b.txt", after_keys=["one"])]
    )
    gate.arrived()
    with pytest.raises(StateConflict, match=f"`legion stop {first}` first"):
        project.squad.client.drop(first)
    project.stop(first)
    project.until_idle(first)
    with pytest.raises(StateConflict, match=rf"come after ticket {first}: {second}\. Drop them first"):
        project.squad.client.drop(first)
    project.squad.client.drop(second)
    project.squad.client.drop(first)
    assert not {first, second} & set(project.states())
    assert not project.worktree(first).exists()
    assert project.kept(first, "a.txt") == "mine\n"
    with pytest.raises(NotFound):
        project.ticket(first)


def test_a_paused_ticket_goes_on_with_the_same_attempt_in_the_same_tree(project: Project, gate: Gate):
    agent = f"echo again >> paused.txt; [ $(wc -l < paused.txt) = 2 ] || {gate.pause}"
    ticket = project.dispatch("paused", agent)
    gate.arrived()
    project.squad.client.pause_ticket(ticket)
    page = project.until_idle(ticket)
    assert (page.ticket.state, page.ticket.reason) == ("parked", "paused by a person")
    assert project.until_settled(ticket).stuck == [ticket]
    project.squad.client.resume_ticket(ticket)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
    assert project.landed("paused.txt") == "again\nagain\n"


def test_in_a_paused_project_running_agents_go_on_and_nothing_new_starts(make: Callable[..., Project], gate: Gate):
    project = make()
    first = project.dispatch("first", f"{gate.pause}; touch a.txt")
    gate.arrived()
    project.pause()
    second, stopped = project.dispatch_all([new("second", "touch b.txt"), new("stopped", "touch c.txt")])
    project.stop(stopped)
    gate.open()
    project.until(first, "done")
    state = project.until_settled()
    assert (project.states(), state.stuck) == ({first: "done", second: "queued", stopped: "stopped"}, [second])
    assert project.ticket(second).ticket.doing == "waits for `legion resume`"
    project.resume()
    project.until_settled()
    assert project.states() == {first: "done", second: "done", stopped: "stopped"}
    assert project.ticket(stopped).runs == [], "what is stopped in the queue never starts"


def test_the_next_daemon_ends_an_agent_that_was_being_stopped_and_keeps_a_rest(tmp_path: Path):
    with squad(tmp_path, settings=settings_with_gates(tmp_path)) as legion:
        project = legion.adopt(Repository(tmp_path / "ada"))
        gate = Gate(tmp_path / "gates", "gate")
        ticket = project.dispatch("deaf", f"trap '' INT TERM; echo kept > a.txt; while :; do {gate.pause}; done")
        gate.arrived()
        hopeless = project.dispatch("hopeless", "exit 1", max_attempts=20)
        rest = resting(project, hopeless, attempt=2)
        project.stop(ticket)
        legion.kill()
        legion.start()
        page = project.until_idle(ticket)
        assert (page.ticket.state, page.runs[-1].outcome) == ("stopped", "stopped")
        assert page.runs[-1].saved is not None
        legion.client.drop(ticket)
        assert project.kept(ticket, "a.txt") == "kept\n"
        project.until_true(lambda: project.ticket(hopeless).ticket.attempt > rest.ticket.attempt)
        next_run = project.ticket(hopeless).runs[rest.ticket.attempt]
        assert next_run.started_at >= (rest.parked_until or 0.0) > 0.0
        gate.close()
