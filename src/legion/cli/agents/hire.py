"""`legion agents hire`, `fire`, `delegate`, `claim` and `submit`: standing agents, and the tickets they take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize, sanitize_lines
from legion.cli.base.parameters import TICKET, Seconds
from legion.cli.base.row_command import described_by, filled, row_command
from legion.cli.base.texts import read_text
from legion.client.legion import Legion
from legion.wire.agents import AgentRows, HireAgent, Hired, SetDelegation, SubmitTicket
from legion.wire.errors import LegionError, Retryable
from legion.wire.mail import MessageLine, ReadMail


@described_by(HireAgent)
@command("hire", example="legion agents hire 'Keep the tests quick.' --name tess --model sonnet --budget 5")
@click.option("--wait", "waits", is_flag=True, help="Wait for the result of its first turn, and print it.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="With --wait: give up after S seconds.")
def hire(call: CommandCall, waits: bool, timeout: float | None, **given: Any) -> int:
    """Hire a standing agent, which works turn by turn until you fire it. Prints its id at once; - reads stdin."""
    given["task"] = read_text(given["task"], "TASK")
    wanted = filled(HireAgent, given, call.here)
    wanted.cwd = _folder(call, wanted.cwd)
    legion = call.legion()
    before = legion.status(None).last_event if waits else 0
    hired = legion.hire(wanted)
    if not waits or not call.json:
        call.answer(hired, lambda: [sanitize(hired.message)])
        for note in hired.notes:
            call.say(sanitize(note))
    if not waits:
        return 0
    result = _first_result(legion, hired, before, timeout)
    call.answer(result, lambda: sanitize_lines(result.text))
    return 0


@command("delegate", example="legion agents delegate boss\nlegion agents delegate boss --off")
@click.argument("id", metavar="ID")
@click.option("--off", is_flag=True, help="It uses the tools of its program again.")
def delegate(call: CommandCall, id: str, off: bool) -> None:
    """Let an agent only lead, from its next turn on: it uses Legion's tools alone, and its hires do the work."""
    call.report(call.legion().delegate(SetDelegation(id=id, on=not off)))


def _folder(call: CommandCall, cwd: str) -> str:
    if not cwd:
        return call.cwd
    folder = os.path.abspath(os.path.expanduser(cwd))  # noqa: PTH100, PTH111  # as the shell would
    if not os.path.isdir(folder):  # noqa: PTH112
        raise LegionError(f"There is no folder {folder}; choose one inside a project with --cwd.")
    return folder


def _first_result(legion: Legion, hired: Hired, after: int, timeout: float | None) -> MessageLine:
    """The result of the agent's first turn: its first message of that kind."""
    for event in _within(legion, after, timeout):
        if event.get("from") == hired.id and event.get("kind") == "result":
            for message in legion.mail(ReadMail(agent=hired.id, all=True)).messages:
                if message.id == event.get("message"):
                    return message
    raise Retryable(f"{hired.name} is still working; see `legion status {hired.name}`.")


def _within(legion: Legion, after: int, timeout: float | None) -> Iterator[dict[str, object]]:
    deadline = None if timeout is None else time.monotonic() + timeout
    for event in legion.events(after):
        if event is not None and event.kind == "mail.sent":
            yield event.data
        if deadline is not None and time.monotonic() > deadline:
            return


fire = row_command("fire", AgentRows.fire, "legion agents fire tess\nlegion agents fire 3f2a --subtree")
claim = row_command("claim", AgentRows.claim, "legion agents claim")


@command("submit", example="legion agents submit 12\nlegion agents submit")
@click.argument("ticket", metavar="[N]", type=TICKET, required=False)
@click.option("--let-go", is_flag=True, help="Give the ticket back to the board instead.")
@click.option("--why", metavar="WHY", default="", help="With --let-go: what the next agent should know.")
def submit(call: CommandCall, ticket: int | None, let_go: bool, why: str) -> None:
    """Submit the change of a ticket that you work on yourself: it is checked, reviewed and landed as any other.

    Without N, for a standing agent, in its own shell: submit its folder at the end of this turn as its ticket's change.
    """
    if ticket is not None:
        call.report(call.legion().submit_ticket(ticket))
        return
    wanted = SubmitTicket(let_go=let_go, why=why, request=os.urandom(16).hex())
    call.report(call.legion().submit(wanted))
