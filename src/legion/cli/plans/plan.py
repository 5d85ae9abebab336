"""`legion plan`, `plans`, `split` and `replan`: have tickets planned, and look at plans."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.editor import edit, refuse_no_editor
from legion.cli.base.output import sanitize, sanitize_lines
from legion.cli.base.parameters import files, ticket_argument
from legion.cli.base.row_command import described_by, filled, flag, row_command
from legion.cli.base.texts import file_text, read_text
from legion.cli.plans.decisions import approved_lines, number_of
from legion.client.text.plans import list_rows, page_rows
from legion.client.text.rows import Row
from legion.wire.errors import BadInput, ChecksFailed, LegionError, NotFound
from legion.wire.forge import PlanIssues
from legion.wire.plans import ApprovePlan, NewPlan, PlanList, PlanPage, PlanRows, ReplanEpic, SavePlan, SplitTicket
from legion.wire.ticket_fields import fields_of

_EXIT_CODES = {"faulty": ChecksFailed.exit_code, "failed": LegionError.exit_code}
"""Of --wait, by the plan's state; 0 for every other."""

_EXAMPLE = """\
legion plan 'Users can log in and log out' --questions
legion plan --from goal.md --team tech_lead_team --budget 2
legion plan show P3
legion plan edit P3"""

_SPEC = fields_of(NewPlan)["depth"].rule
_ALL = flag("all", "Also plans that are approved or dropped.")
_WAIT = click.option("-w", "--wait", is_flag=True, help="Wait until the planner is done, and show the plan.")


def _rows(found: PlanList, width: int) -> list[Row]:
    return list_rows(found, width, "legion plan 'GOAL'")


@described_by(NewPlan)
@command("plan", example=_EXAMPLE)
@click.argument("words", nargs=-1, metavar="GOAL | show P3 | edit P3 | spec P3 | retry P3 | drop P3")
@click.option(
    "--from", "file", metavar="FILE", shell_complete=files, help="Read the goal, or the edited plan, from a file."
)
@click.option("--issues", metavar="N,N", default="", help="Issues of the project's forge; GOAL may say more.")
@click.option("--spec", "depth", is_flag=False, flag_value="full", metavar="[auto|short|full]", help=_SPEC.help)
@click.option("--print", "prints", is_flag=True, help="With `edit`: print the text that it would open.")
@_WAIT
@click.option("--approve", is_flag=True, help="Wait, and approve the plan if nothing was found.")
def plan(
    call: CommandCall,
    words: tuple[str, ...],
    file: str | None,
    issues: str,
    prints: bool,
    depth: str | None,
    wait: bool,
    approve: bool,
    **given: Any,
) -> int:
    """Have a planner propose tickets for a goal. Nothing starts until you approve: `legion approve P3`.

    The planner reads the landed code and changes nothing. Its plan is checked, and goes back to it up to three times;
    then you see it. GOAL may be - for stdin.

    `show` prints a plan, `edit` opens it in your editor as TOML, or its specification while that waits (`--print`
    prints that text), `spec` prints the documents of its specification, `retry` starts a failed planner again, and
    `drop` ends a plan; tickets that you approved stay.

    With --wait or --approve it ends with 0 when the plan is ready or asks you, 6 when findings are left, and 1 when it
    failed.
    """
    verbs: dict[str, Callable[[CommandCall, int, str | None], None]] = {
        "show": _show,
        "edit": _print_text if prints else _edit,
        "spec": _spec,
        "retry": lambda call, id, _: _print(call, call.legion().retry_plan(id)),
        "drop": lambda call, id, _: _print(call, call.legion().drop_plan(id)),
    }
    if words and words[0] in verbs:
        if len(words) != 2:
            raise BadInput(f"Name the plan: legion plan {words[0]} P3. `legion plan list` lists them.")
        verbs[words[0]](call, number_of(words[1]), file)
        return 0
    if depth not in (None, *_SPEC.choices):
        # Alone, the option takes the next word: `legion plan --spec GOAL`.
        words, depth = (str(depth), *words), "full"
    goal = _goal(words, file) if words or file or not issues else ""
    wanted = filled(NewPlan, given, call.cwd, goal=goal, depth=depth or "")
    page = call.legion().plan_issues(of_issues(wanted, issues)) if issues else call.legion().plan(wanted)
    return _started(call, page, wait, approve=approve)


def of_issues(wanted: NewPlan, issues: str) -> PlanIssues:
    numbers = issues.replace("#", " ").replace(",", " ").split()
    if not all(number.isdecimal() and len(number) < 10 for number in numbers):
        raise BadInput("--issues takes numbers of issues: --issues 3,5")
    return PlanIssues(issues=[int(number) for number in numbers], **vars(wanted))


plans = row_command("plans", PlanRows.plans, "legion plan list\nlegion plan list --all", _ALL, shows=_rows)


@described_by(SplitTicket)
@command("split", example="legion plan split 12")
@ticket_argument
@_WAIT
def split(call: CommandCall, id: int, wait: bool, **given: Any) -> int:
    """Have a planner propose several tickets in place of one that is too large.

    Ticket N stays until you have approved the whole plan; then the new tickets take its place on the board.
    """
    page = call.legion().split(id, filled(SplitTicket, given, call.cwd))
    return _started(call, page, wait)


@described_by(ReplanEpic)
@command("replan", example="legion plan replan P3 'The API changed.'")
@_WAIT
def replan(call: CommandCall, wait: bool, **given: Any) -> int:
    """Plan what is left of an epic after something landed or failed; only what changes is proposed."""
    return _started(call, call.legion().replan(filled(ReplanEpic, given, call.cwd)), wait)


def _goal(words: tuple[str, ...], file: str | None) -> str:
    if file is not None:
        if words:
            raise BadInput("--from takes the goal from the file; remove GOAL.")
        return file_text(file)
    if not words:
        raise BadInput("Say what you want: legion plan 'GOAL', or --from FILE.")
    if len(words) > 1:
        raise BadInput("GOAL must be one argument; put it in quotes, as in legion plan 'Users can log in'.")
    return read_text(words[0], "GOAL")


def _started(call: CommandCall, page: PlanPage, wait: bool, *, approve: bool = False) -> int:
    if wait or approve:
        planned = _until_decidable(call, page)
        if approve and planned.plan.state == "ready":
            wanted = ApprovePlan(request=os.urandom(16).hex())
            made = call.legion().approve_plan(number_of(planned.plan.id), wanted)
            call.answer(made, lambda: approved_lines(made, call.screen))
            return 0
        _print(call, planned)
        return _EXIT_CODES.get(planned.plan.state, 0)
    call.answer(page, lambda: [f"Plan ID: {page.plan.id}"])
    for note in page.notes:
        call.say(f"Note: {sanitize(note)}")
    if not call.json:
        call.say(f"`legion plan show {page.plan.id}` shows it; `legion plan list` lists what waits for you.")
    return 0


def _until_decidable(call: CommandCall, page: PlanPage) -> PlanPage:
    """Wait until the planner is done or asks."""
    legion, id = call.legion(), number_of(page.plan.id)
    after = legion.status(call.cwd).last_event
    page, said = legion.plan_page(id), list[str]()
    while page.plan.state == "planning":
        if page.notes != said:
            said = page.notes
            for note in said:
                call.say(f"{page.plan.id} waits: {sanitize(note)}")
        # A wait for tickets would return at once where there are none; the stream of events does not.
        after = next(event.n for event in legion.events(after, cwd=call.cwd) if event is not None)
        page = legion.plan_page(id)
    return page


def _show(call: CommandCall, id: int, file: str | None) -> None:
    _print(call, call.legion().plan_page(id))


def _spec(call: CommandCall, id: int, file: str | None) -> None:
    page = call.legion().plan_page(id)
    if not page.documents:
        how = "it is still written" if page.spec else "`legion plan --spec GOAL` writes one"
        raise NotFound(f"{page.plan.id} has no specification: {how}.")
    call.answer(page, lambda: _documents(page))


def _documents(page: PlanPage) -> Iterator[str]:
    """The corrected specification replaces the first one."""
    corrected = any(one.stage == "criticise" for one in page.documents)
    for one in page.documents:
        if one.stage != "write" or not corrected:
            yield from (*sanitize_lines(one.text), "")


def _print(call: CommandCall, page: PlanPage) -> None:
    call.show(page, lambda page, width: page_rows(page, width, questions=True))


def _print_text(call: CommandCall, id: int, file: str | None) -> None:
    there = call.legion().plan_text(id)
    call.answer(there, lambda: sanitize_lines(there.text))


def _edit(call: CommandCall, id: int, file: str | None) -> None:
    legion = call.legion()
    there = legion.plan_text(id)
    if file is not None:
        _print(call, legion.save_plan(id, SavePlan(text=file_text(file), version=there.version)))
        return
    saving = f"legion plan edit {there.plan}"
    refuse_no_editor(saving)
    page = edit(
        call,
        there.plan,
        there.text,
        is_unchanged=lambda text: text == there.text or not text.strip(),
        save=lambda text: legion.save_plan(id, SavePlan(text=text, version=there.version)),
        command=saving,
    )
    if page is not None:
        _print(call, page)
