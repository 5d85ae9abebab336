"""The choice of a program, over the real service: from ended tickets, printed, recorded, and off by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.config.files import user as settings
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Change, Fail, Land, Propose, Prove, Start
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from tests.support.office import Office, office

SETTINGS = """
default_driver = "slow"
[drivers.slow]
run = "true"
[drivers.quick]
run = "true"
[models]
learn = {learn}
"""


def dispatch(here: Office, **fields: object) -> Dispatched:
    new = NewTicket(title="x", **fields)  # type: ignore[arg-type]
    return here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[new]))


def ended(here: Office, driver: str, *, lands: bool, **fields: object) -> None:
    (number,) = dispatch(here, driver=driver, **fields).ids
    commit = "c" * 40
    steps = (Propose(Change(base=commit, commit=commit)), Prove(), Land(commit)) if lands else (Fail("no"),)
    with here.context.store.write() as tx:
        tickets.move(tx, number, Start(commit))
        run = runs.start(tx, number, 1)
        runs.note_driver(tx, run.id, driver)
        runs.end(tx, run.id, Outcome.FINISHED)
        for step in steps:
            tickets.move(tx, number, step)


@pytest.mark.parametrize("learns", [True, False])
def test_the_program_that_landed_most_gets_the_next_ticket_of_its_kind(tmp_path: Path, learns: bool):
    user = settings.parse(SETTINGS.format(learn=str(learns).lower()), origin="config.toml")
    with office(tmp_path, user) as here:
        for _ in range(3):
            ended(here, "slow", lands=False, labels=["docs"])
            ended(here, "quick", lands=True, labels=["docs"])
        made = dispatch(here, labels=["docs"])
        page = here.person.ticket(made.ids[0])
        placed = [event for event in page.history if event.kind == "ticket.program_chosen"]
        if not learns:
            assert ([note for note in made.notes if "goes to" in note], placed) == ([], [])
            return
        (note,) = [note for note in made.notes if "goes to" in note]
        assert note == (
            f"Ticket {made.ids[0]} goes to quick: of tickets with the label docs, quick landed 3 of 3 in 1.0 attempts; "
            "slow landed 0 of 3 in 3.0 attempts."
        )
        assert [event.data["driver"] for event in placed] == ["quick"]
        chosen = dispatch(here, labels=["docs"], driver="slow")
        assert not [note for note in chosen.notes if "goes to" in note], "what the person names is not overruled"
