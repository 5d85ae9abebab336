"""Words for an agent at work, and a hand on its shoulder. Whether it heard them is in its run's journal."""

from __future__ import annotations

import contextlib
import time
import uuid
from pathlib import Path

from legion.domain.errors import BadInput, StateConflict
from legion.domain.runs import Run
from legion.domain.tickets.ticket import State
from legion.drivers.profile import Capabilities
from legion.jobs.context import Context
from legion.jobs.run.job import run_dir
from legion.runner import control, launch
from legion.runner.journal import read_journal
from legion.runner.spec import RunnerError, read_spec
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.questions import MessageText, Told

PATIENCE = 30.0
"""Seconds: an agent hears between two of its steps, and one may be a long command."""
_LONGEST = 100_000


def tell(context: Context, ticket_id: int, words: MessageText, *, patience: float = PATIENCE) -> Told:
    """In the run that it is in; waits a while for the agent to hear it."""
    if not words.text.strip():
        raise BadInput("There is nothing to tell: give a message, or - to read it from stdin.")
    _refuse_long(words.text)
    run, folder, can = _at_work(context, ticket_id)
    if not can.talks:
        raise _refuse(ticket_id, "take messages during a run")
    id = str(uuid.uuid4())
    if not launch.tell(folder, id, words.text):
        raise _gone(ticket_id)
    was_heard = heard(folder, id, patience)
    return Told(ticket=ticket_id, run=run.id, heard=was_heard, message=_words_of(ticket_id, was_heard))


def interrupt(context: Context, ticket_id: int, words: MessageText, *, patience: float = PATIENCE) -> Told:
    """Ctrl-C, and words to go on with. Without any the run ends, and its ticket is paused."""
    _refuse_long(words.text)
    run, folder, can = _at_work(context, ticket_id)
    if not can.interrupts:
        raise _refuse(ticket_id, "be interrupted")
    id, text = str(uuid.uuid4()), words.text.strip()
    if not launch.interrupt(folder, id, text):
        raise _gone(ticket_id)
    if not text:
        return Told(ticket=ticket_id, run=run.id, heard=None, message=_interrupted(folder, ticket_id, patience))
    was_heard = heard(folder, id, patience)
    return Told(ticket=ticket_id, run=run.id, heard=was_heard, message=_words_of(ticket_id, was_heard))


def _at_work(context: Context, ticket_id: int) -> tuple[Run, Path, Capabilities]:
    """Its running agent, and what the driver of that can do."""
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        run = runs.at_work(tx, ticket_id)
    if ticket.state is not State.WORKING or run is None or run.ended_at is not None:
        held = ticket.state in (State.CHECKING, State.REVIEWING, State.LANDING)
        hint = (
            f"`legion bounce {ticket_id} ...` sends it back with words" if held else f"see `legion ticket {ticket_id}`"
        )
        raise StateConflict(f"No agent works on ticket {ticket_id}, which is {ticket.state.value}: {hint}.")
    folder = run_dir(context, run)
    try:
        can = read_spec(folder).profile.capabilities
    except RunnerError:
        raise StateConflict(f"The agent of ticket {ticket_id} has not begun yet: try again in a moment.") from None
    return run, folder, can


def _refuse(ticket_id: int, missing: str) -> StateConflict:
    return StateConflict(
        f"The driver of ticket {ticket_id} cannot {missing}. Use `legion stop {ticket_id}`, then `legion retry "
        f"{ticket_id} --feedback ...`."
    )


def heard(folder: Path, id: str, patience: float) -> bool | None:
    """True or False once the journal says so; None where it says nothing in time."""
    deadline = time.monotonic() + patience
    with contextlib.suppress(OSError), control.connect(folder, patience) as connection:
        control.send(connection, "follow")
        # The answer to `follow` comes first, so no bell is missed between a look and the next one.
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(4096):
                # Its runner has ended, or was killed: what is not heard by now was not heard at all.
                launch.wait(folder)
                return _look(folder, id) or False
            if (found := _look(folder, id)) is not None:
                return found
    return _look(folder, id)


def _interrupted(folder: Path, ticket_id: int, patience: float) -> str:
    """Said once the run has come to its end, which is when its connection closes."""
    deadline = time.monotonic() + patience
    with contextlib.suppress(OSError), control.connect(folder, patience) as connection:
        control.send(connection, "follow")
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(4096):
                return f"The agent of ticket {ticket_id} is interrupted: `legion resume {ticket_id}` lets it go on."
    return f"The agent of ticket {ticket_id} is asked to end: see `legion ticket {ticket_id}`."


def _look(folder: Path, id: str) -> bool | None:
    for event in read_journal(folder):
        if event.kind in ("heard", "not-heard") and event.facts.get("id") == id:
            return event.kind == "heard"
    return None


def _words_of(ticket_id: int, heard: bool | None) -> str:
    match heard:
        case True:
            return f"The agent of ticket {ticket_id} has heard it."
        case False:
            return (
                f"The agent of ticket {ticket_id} ended before it heard this; if the ticket goes on, it is told then: "
                f"see `legion ticket {ticket_id}`."
            )
        case _:
            return f"The agent of ticket {ticket_id} hears it after what it is doing now: see `legion log {ticket_id}`."


def _refuse_long(text: str) -> None:
    if len(text) > _LONGEST:
        raise BadInput(f"A message has at most {_LONGEST:,} letters: put long material into the repository.")


def _gone(ticket_id: int) -> StateConflict:
    return StateConflict(f"The agent of ticket {ticket_id} has just ended: see `legion ticket {ticket_id}`.")
