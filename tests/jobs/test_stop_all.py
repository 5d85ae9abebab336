"""Stopping everything in hand, at the moment in which something lands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.service.tickets import dispatch
from legion.store.board import landings
from tests.jobs.office import Office
from tests.store.making import add_ticket


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
    acted = dispatch.stop_all(office.context, str(office.root))
    assert acted.tickets == [number for number in numbers if number not in landing]
    assert acted.message.startswith(said)
