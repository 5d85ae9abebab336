"""Puts the person's terminal in front of a run's, and says how it ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from legion.cli.base.command import CommandCall
from legion.cli.base.output import progress, sanitize
from legion.client.discovery import is_remote
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.terminal import How, RelayEnd, refuse_no_terminal, relay
from legion.wire.errors import BadInput
from legion.wire.projects import Done
from legion.wire.terminal import Attach, AttachAgent, GiveBackAgent, OpenTerminal

LOST = 1
GAVE_UP = 130
"""As any command that Ctrl-C ended."""


def refuse_elsewhere() -> None:
    """Raises BadInput where no terminal of this machine could be relayed."""
    refuse_no_terminal()
    if is_remote():
        raise BadInput("Attaching needs Legion on this machine: unset LEGION_URL, or log in where it runs.")


@dataclass(frozen=True, kw_only=True)
class AttachTarget:
    """Where a person sits down: how to ask for the conversation, and how to give it back."""

    ask: Callable[[Legion, float, bool], OpenTerminal]
    """Gets the seconds that the person has waited, and whether they only look."""
    give_back: Callable[[Legion], Done]

    @staticmethod
    def of_ticket(id: int) -> AttachTarget:
        return AttachTarget(
            ask=lambda legion, waited, looks: legion.attach(id, Attach(only_looks=looks, waited=waited)),
            give_back=lambda legion: legion.give_back(id),
        )

    @staticmethod
    def of_agent(id: str) -> AttachTarget:
        return AttachTarget(
            ask=lambda legion, waited, looks: legion.attach_agent(AttachAgent(id=id, only_looks=looks, waited=waited)),
            give_back=lambda legion: legion.give_back_agent(GiveBackAgent(id=id)),
        )


def opened(call: CommandCall, target: AttachTarget, *, only_looks: bool) -> OpenTerminal | None:
    """Wait until there is a terminal. None: the person gave up, or closed their own, and the agent works on alone."""
    began, waited = time.monotonic(), 0.0
    before = signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with progress("Waiting for a safe moment of the agent", "Ctrl-C gives up"):
            while True:
                found = target.ask(call.legion(), waited, only_looks)
                if found.socket or only_looks:
                    return found
                waited = time.monotonic() - began
    except KeyboardInterrupt:
        call.say(given_back(call, target.give_back))
        return None
    finally:
        signal.signal(signal.SIGHUP, before)


def sit_down_with_agent(call: CommandCall, agent: str, *, only_looks: bool) -> int:
    """A standing agent, by its name or id. The exit code of the command."""
    target = AttachTarget.of_agent(agent)
    found = opened(call, target, only_looks=only_looks)
    if found is None:
        return GAVE_UP
    if not found.socket:
        call.say(sanitize(found.message))
        return 0
    left = relay(found.socket, message=sanitize(found.message), only_looks=only_looks)
    if left.how is How.DETACHED and not only_looks:
        call.say(given_back(call, target.give_back))
    elif left.how is How.LOST:
        call.say(f"The terminal is gone, and opens again for ten minutes: `legion attach {sanitize(agent)}` returns.")
    elif left.how is not How.DETACHED:
        call.say(f"The terminal has ended; `legion tell {sanitize(agent)} TEXT` reaches the agent.")
    return LOST if left.how is How.LOST else 0


def sit_down(call: CommandCall, ticket: int, found: OpenTerminal | None, *, only_looks: bool) -> int:
    """The exit code of the command."""
    if found is None:
        return GAVE_UP
    left = relay(found.socket, message=sanitize(found.message), only_looks=only_looks)
    if left.how is How.DETACHED and found.wheel and not only_looks:
        call.say(given_back(call, AttachTarget.of_ticket(ticket).give_back))
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
