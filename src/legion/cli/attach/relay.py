"""Puts the person's terminal in front of a run's, and says how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from legion.cli.base.command import CommandCall
from legion.cli.base.output import sanitize
from legion.cli.base.progress import progress
from legion.client.discovery import is_remote
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.terminal import How, RelayEnd, refuse_no_terminal, relay
from legion.wire.errors import BadInput
from legion.wire.projects import Done
from legion.wire.terminal import Attach, AttachAgent, GiveBackAgent, OpenTerminal

LOST = 1


def refuse_elsewhere() -> None:
    """Raises BadInput where no terminal of this machine could be relayed."""
    refuse_no_terminal()
    if is_remote():
        raise BadInput("Attaching needs Legion on this machine: unset LEGION_URL, or log in where it runs.")


def opened(legion: Legion, ticket: int, *, only_looks: bool) -> OpenTerminal:
    """Wait until the ticket has a terminal."""
    began = time.monotonic()
    with progress("Waiting for a safe moment of the agent"):
        while True:
            found = legion.attach(ticket, Attach(only_looks=only_looks, waited=time.monotonic() - began))
            if found.socket or only_looks:
                return found


def sit_down_with_agent(call: CommandCall, agent: str, *, only_looks: bool) -> int:
    """A standing agent, by its name or id. The exit code of the command."""
    began = time.monotonic()
    with progress("Waiting for a safe moment of the agent"):
        while True:
            wanted = AttachAgent(id=agent, only_looks=only_looks, waited=time.monotonic() - began)
            found = call.legion().attach_agent(wanted)
            if found.socket or only_looks:
                break
    if not found.socket:
        call.say(sanitize(found.message))
        return 0
    left = relay(found.socket, message=sanitize(found.message), only_looks=only_looks)
    if left.how is How.DETACHED and not only_looks:
        call.say(given_back(call, lambda legion: legion.give_back_agent(GiveBackAgent(id=agent))))
    elif left.how is How.LOST:
        call.say(f"The terminal is gone, and opens again for ten minutes: `legion attach {sanitize(agent)}` returns.")
    elif left.how is not How.DETACHED:
        call.say(f"The terminal has ended; `legion tell {sanitize(agent)} TEXT` reaches the agent.")
    return LOST if left.how is How.LOST else 0


def sit_down(call: CommandCall, ticket: int, found: OpenTerminal, *, only_looks: bool) -> int:
    """The exit code of the command."""
    left = relay(found.socket, message=sanitize(found.message), only_looks=only_looks)
    if left.how is How.DETACHED and found.wheel and not only_looks:
        call.say(given_back(call, lambda legion: legion.give_back(ticket)))
    elif left.how is How.DETACHED:
        call.say(f"Detached: `legion attach {ticket}` returns.")
    else:
        call.say(_ended(ticket, left, wheel=found.wheel))
    return LOST if left.how is How.LOST else 0


def given_back(call: CommandCall, give: Callable[[Legion], Done]) -> str:
    """The terminal does not need the daemon, which may have ended meanwhile."""
    try:
        return give(call.legion()).message
    except NotRunning:
        call.again_or_start()
        return give(call.legion()).message


def _ended(ticket: int, left: RelayEnd, *, wheel: bool) -> str:
    if left.how is How.LOST or left.end is None:
        return f"The terminal is gone; the work is kept: `legion ticket {ticket}` shows what follows."
    if wheel:
        return f"The agent of ticket {ticket} works alone again, with what was said."
    return f"{left.end.message} `legion ticket {ticket}` shows what follows."
