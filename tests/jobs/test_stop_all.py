"""Stopping everything in hand, at the moment in which something lands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.tickets.ticket import Start, State
from legion.runner.spec import RunnerError
from legion.service.tickets import actions
from legion.store.board import landings, tickets
from legion.store.work import runs
from tests.jobs.office import Office
from tests.jobs.silent import runner
from tests.store.making import COMMIT, add_ticket


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


@pytest.mark.parametrize(
    ("many", "landing", "said"),
    [
        (0, (), "No open tickets."),
        (1, (), "1 ticket is stopped."),
        (2, (), "2 tickets are stopped."),
        (2, (2,), "1 ticket is stopped. Ticket 2 was not stopped: a ticket that is just landing cannot be"),
        (2, (1, 2), "Tickets 1, 2 were not stopped: a ticket that is just landing cannot be; `legion undo N`"),
    ],
)
def test_what_lands_at_this_moment_is_named(office: Office, many: int, landing: tuple[int, ...], said: str):
    with office.context.store.write() as tx:
        numbers = [add_ticket(tx, office.project).id for _ in range(many)]
        if landing:
            landings.open(tx, office.project, base="a", commit="b", tree="c", tickets=dict.fromkeys(landing, "b"))
    acted = actions.stop_all(office.context, str(office.root))
    assert acted.tickets == [number for number in numbers if number not in landing]
    assert acted.message.startswith(said)


def test_all_runners_are_asked_to_stop_also_behind_one_that_does_not_answer(office: Office):
    with office.context.store.write() as tx:
        numbers = [add_ticket(tx, office.project).id for _ in range(2)]
        for number in numbers:
            tickets.move(tx, number, Start(COMMIT))
        silent, answering = (office.context.data.runs / runs.start(tx, number, 1).name for number in numbers)
    with (
        runner(silent, answers=False),
        runner(answering, answers=True) as asked,
        pytest.raises(RunnerError, match="did not answer"),
    ):
        actions.stop_all(office.context, str(office.root))
    assert asked == ["stop"]
    with office.context.store.read() as tx:
        assert set(tickets.states_of(tx, numbers).values()) == {State.STOPPED}
