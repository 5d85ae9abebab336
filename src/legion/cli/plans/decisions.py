"""`legion approve` and `legion plan reject`: plans of goals by P3, plans of agents by name or ticket number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, numbers, sanitize
from legion.cli.base.parameters import completes
from legion.cli.base.texts import read_text
from legion.client.text.rows import table
from legion.wire.agents import PlanVerdict
from legion.wire.errors import BadInput
from legion.wire.plans import ApprovePlan, PlanApproved, RejectPlan
from legion.wire.text import plan_number

complete_plans = completes(lambda legion: ((one.id, one.goal) for one in legion.plans(str(Path.cwd())).plans))


def number_of(word: str) -> int:
    """Raises BadInput for a word that names no plan."""
    found = plan_number(word)
    if found is None:
        raise BadInput(f"`{sanitize(word)[:40]}` is no plan; write P and its number, as `legion plan list` shows them.")
    return found


_APPROVE = "legion approve P3\nlegion approve P3 schema login\nlegion approve tess\nlegion approve 12"


@command("approve", example=_APPROVE)
@click.argument("id", metavar="ID", shell_complete=complete_plans)
@click.argument("words", nargs=-1, metavar="[TICKET]... | [TEXT]")
@click.option("--anyway", is_flag=True, help="Of a plan P3: approve it although findings are left.")
@click.option("--dry-run", is_flag=True, help="Of a plan P3: show what would be dispatched.")
def approve(call: CommandCall, id: str, words: tuple[str, ...], anyway: bool, dry_run: bool) -> None:
    """Approve a plan. P3 is the plan of a goal: its tickets, or those that you name by key, are dispatched.

    Any other ID is an agent, or the agent of ticket ID, that only reads until its plan is approved; TEXT goes to it.
    """
    number = plan_number(id)
    if number is None:
        if anyway or dry_run or len(words) > 1:
            raise BadInput("Only plans like P3 have tickets, --anyway and --dry-run; TEXT must be one argument.")
        _decide(call, id, words[0] if words else "", yes=True)
        return
    keys = list(words)
    wanted = ApprovePlan(tickets=keys, anyway=anyway, dry_run=dry_run, request=os.urandom(16).hex())
    made = call.legion().approve_plan(number, wanted)
    call.answer(made, lambda: approved_lines(made, call.screen))
    for note in made.notes:
        call.say(f"Note: {sanitize(note)}")


@command(
    "reject",
    example="legion plan reject P3 'Smaller tickets, and no new dependency.'\nlegion plan reject tess 'Keep it.'",
)
@click.argument("id", metavar="ID", shell_complete=complete_plans)
@click.argument("why", metavar="WHY")
def reject(call: CommandCall, id: str, why: str) -> None:
    """Send a plan back with a reason. The planner of P3 plans again; what you approved stays.

    Any other ID is an agent, or the agent of ticket ID: it keeps reading and plans again.
    """
    number = plan_number(id)
    if number is None:
        _decide(call, id, why, yes=False)
        return
    page = call.legion().reject_plan(number, RejectPlan(why=read_text(why, "WHY")))
    call.answer(page, lambda: [f"{page.plan.id} goes back to its planner."])


def _decide(call: CommandCall, id: str, text: str, *, yes: bool) -> None:
    why = read_text(text, "TEXT")
    verdict = PlanVerdict(agent=id, approve=yes, why=why, request=os.urandom(16).hex())
    sent = call.legion().decide_plan(verdict)
    call.answer(sent, lambda: [sanitize(sent.message)])


def approved_lines(made: PlanApproved, screen: Screen) -> Iterator[str]:
    yield from (f"Ticket ID: {number}  {key}" for key, number in made.tickets.items())
    if not made.tickets:
        lines = [(one.key, [Cell(one.key, Colour.BOLD), Cell(sanitize(one.title))]) for one in made.proposed]
        yield from screen.rows(table(lines, screen.columns, keep=1))
    if made.dropped:
        yield f"Removed from the board: {numbers(made.dropped)}"
    yield sanitize(made.message)
