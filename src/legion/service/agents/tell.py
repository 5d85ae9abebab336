"""Send a message to the running agent of a ticket, or interrupt it. Its run's journal shows the delivery."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from legion.domain.errors import BadInput, StateConflict
from legion.domain.runs import Run
from legion.domain.tickets.ticket import State
from legion.drivers.profile import Capabilities
from legion.jobs.board import Board
from legion.jobs.run.job import run_dir
from legion.runner import launch
from legion.runner.journal import JournalReader
from legion.runner.spec import RunnerError, read_spec
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.mail import Delivered, MessageText

PATIENCE = 30.0
"""Seconds. An agent receives messages between two of its steps, and a step may be a long command."""
_LONGEST = 100_000


def tell(context: Board, ticket_id: int, message: MessageText, *, patience: float = PATIENCE) -> Delivered:
    """Send it to the running agent and wait a while for the delivery."""
    if not message.text.strip():
        raise BadInput("The message is empty: give a text, or - to read it from stdin.")
    _refuse_long(message.text)
    run, folder, can = _at_work(context, ticket_id)
    if not can.talks:
        raise _refuse(ticket_id, "take messages during a run")
    id = str(uuid.uuid4())
    if not launch.tell(folder, id, message.text):
        raise _gone(ticket_id)
    delivered = wait_for_delivery(folder, id, patience)
    return Delivered(ticket=ticket_id, run=run.id, heard=delivered, message=_delivery_message(ticket_id, delivered))


def interrupt(context: Board, ticket_id: int, message: MessageText, *, patience: float = PATIENCE) -> Delivered:
    """Interrupt the agent, which then continues with the text. Without one the run ends and the ticket is paused."""
    _refuse_long(message.text)
    run, folder, can = _at_work(context, ticket_id)
    if not can.interrupts:
        raise _refuse(ticket_id, "be interrupted")
    id, text = str(uuid.uuid4()), message.text.strip()
    if not launch.interrupt(folder, id, text):
        raise _gone(ticket_id)
    if not text:
        return Delivered(ticket=ticket_id, run=run.id, heard=None, message=_interrupted(folder, ticket_id, patience))
    delivered = wait_for_delivery(folder, id, patience)
    return Delivered(ticket=ticket_id, run=run.id, heard=delivered, message=_delivery_message(ticket_id, delivered))


def _at_work(context: Board, ticket_id: int) -> tuple[Run, Path, Capabilities]:
    """Its running agent, and what its driver can do."""
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        run = runs.at_work(tx, ticket_id)
    if ticket.state is not State.WORKING or run is None or run.ended_at is not None:
        held = ticket.state in (State.CHECKING, State.REVIEWING, State.LANDING)
        hint = (
            f"`legion retry --one {ticket_id} ...` sends it back with a message"
            if held
            else f"see `legion ticket {ticket_id}`"
        )
        raise StateConflict(f"No agent works on ticket {ticket_id}, which is {ticket.state.value}: {hint}.")
    folder = run_dir(context, run)
    try:
        can = read_spec(folder).profile.capabilities
    except RunnerError:
        raise StateConflict(f"The agent of ticket {ticket_id} has not started yet: try again in a moment.") from None
    return run, folder, can


def _refuse(ticket_id: int, missing: str) -> StateConflict:
    return StateConflict(
        f"The driver of ticket {ticket_id} cannot {missing}. Use `legion stop {ticket_id}`, then `legion retry "
        f"{ticket_id} --feedback ...`."
    )


def wait_for_delivery(folder: Path, id: str, patience: float) -> bool | None:
    """True or False once the journal shows it; None if it does not in time."""
    journal = JournalReader(folder)
    try:
        # The first comes at once, so nothing is missed between two reads of the journal.
        for _ in launch.bells(folder, patience):
            if (found := _delivered(journal, id)) is not None:
                return found
    except TimeoutError:
        return _delivered(journal, id)
    # The runner has ended or was killed: what is not delivered by now never will be.
    with contextlib.suppress(launch.RunNotStarted):
        # Raised where it was killed before its program had started.
        launch.wait(folder)
    return _delivered(journal, id) or False


def _interrupted(folder: Path, ticket_id: int, patience: float) -> str:
    """Wait for the end of the run, and describe the result."""
    try:
        for _ in launch.bells(folder, patience):
            pass
    except TimeoutError:
        return f"The agent of ticket {ticket_id} is asked to end: see `legion ticket {ticket_id}`."
    return f"The agent of ticket {ticket_id} is interrupted: `legion resume {ticket_id}` continues it."


def _delivered(journal: JournalReader, id: str) -> bool | None:
    """What the lines say that were added since the last look."""
    for event in journal.read_on():
        if event.kind in ("heard", "not-heard") and event.facts.get("id") == id:
            return event.kind == "heard"
    return None


def _delivery_message(ticket_id: int, delivered: bool | None) -> str:
    match delivered:
        case True:
            return f"The agent of ticket {ticket_id} has received it."
        case False:
            return (
                f"The agent of ticket {ticket_id} ended before it received this; "
                f"if the ticket continues, its next run gets it: see `legion ticket {ticket_id}`."
            )
        case _:
            return f"The agent of ticket {ticket_id} receives it after its present step: see `legion log {ticket_id}`."


def _refuse_long(text: str) -> None:
    if len(text) > _LONGEST:
        raise BadInput(f"A message has at most {_LONGEST:,} characters: put long material into the repository.")


def _gone(ticket_id: int) -> StateConflict:
    return StateConflict(f"The agent of ticket {ticket_id} has just ended: see `legion ticket {ticket_id}`.")
