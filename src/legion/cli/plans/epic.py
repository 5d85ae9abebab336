"""`legion status epic`: an epic's progress, graph, money, plans and landed commits; watch or stop all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, progress, sanitize
from legion.cli.base.shapes import EpicLine, EpicsShape
from legion.cli.tickets.wait import exit_code, until_settled
from legion.client.text.board import drawing
from legion.client.text.plans import point_rows
from legion.client.text.tickets import Group, style_of
from legion.wire.board import Graph
from legion.wire.errors import BadInput
from legion.wire.plans import EpicBudget, EpicGate, EpicPage, EpicStageLine, NamedEpic

_BAR = 30
_STAGE_COLOURS = {"working": Colour.CYAN, "asking": Colour.YELLOW, "done": Colour.GREEN, "failed": Colour.RED}
_GATES = ("auto", "person", "risk", "project")
_VERBS = {
    "create": "The first ticket makes an epic: legion dispatch --epic {name}, or legion plan --epic {name} GOAL.",
    "add": "A ticket joins an epic when it is dispatched: legion dispatch --epic {name}.",
    "stage": "`legion plan --epic {name} GOAL` stages tickets, and `legion approve` starts them.",
    "launch": "`legion plan --epic {name} GOAL` stages tickets, and `legion approve` starts them.",
    "status": "Leave `status` out: legion status epic {name}",
    "watch": "Write legion status epic {name} --watch",
    "land": "Tickets land one by one. With a branch of its own, see `--own-branch`: legion status epic {name} --land",
    "close": "It is complete when its last ticket has ended; legion status epic {name} --stop ends what is open.",
    "stop": "Write legion status epic {name} --stop",
}
"""Verbs of tools in which an epic is a thing of its own."""


@command(
    "epic",
    example="legion status epic\nlegion status epic P3\nlegion status epic P3 --watch\n"
    "legion status epic P3 --budget 20",
)
@click.argument("words", nargs=-1, metavar="[NAME]")
@click.option("-w", "--watch", is_flag=True, help="Wait until all of it has ended, then show it.")
@click.option("--stop", is_flag=True, help="Stop all of it that has not ended.")
@click.option("--budget", metavar="USD", type=float, help="Limit what all its tickets may cost together; 0 removes it.")
@click.option("--gate", type=click.Choice(_GATES), help="Whether its changes wait for `legion land`.")
@click.option("--own-branch", is_flag=True, help="Let its new tickets land on a branch of its own.")
@click.option("--land", is_flag=True, help="Land that branch as one change or one pull request, as soon as it may.")
def epic(
    call: CommandCall,
    words: tuple[str, ...],
    watch: bool,
    stop: bool,
    budget: float | None,
    gate: str | None,
    own_branch: bool,
    land: bool,
) -> int:
    """An epic: progress, tickets, cost, plans and what landed. Without NAME, the epics that have open tickets.

    An epic exists by its tickets: `legion dispatch --epic NAME` and `legion plan --epic NAME` make or extend it, and
    the tickets of a plan are the epic of its name. It is complete when the last of them has ended.

    A plan with --spec is an epic from the start: the stages of its specification come before its tickets.

    With --watch the exit codes are those of `legion wait`.
    """
    if not words or words == ("list",):
        found = _open_epics(call)
        call.answer(found, lambda: _list_lines(found, call.screen))
        return 0
    name = _name(words)
    if sum((watch, stop, budget is not None, gate is not None, own_branch, land)) > 1:
        raise click.UsageError(
            "Choose one of --watch, --stop, --budget, --gate, --own-branch and --land", click.get_current_context()
        )
    if own_branch:
        call.report(call.legion().open_epic_branch(NamedEpic(cwd=call.here, epic=name)))
        return 0
    if land:
        with progress("Collecting its branch"):
            whole = call.legion().land_epic(NamedEpic(cwd=call.here, epic=name))
        call.report(whole)
        return 0
    if gate is not None:
        wanted = EpicGate(cwd=call.cwd, epic=name, gate="" if gate == "project" else gate)
        return _show(call, call.legion().epic_gate(wanted))
    if stop:
        acted = call.legion().stop_epic(NamedEpic(cwd=call.cwd, epic=name))
        call.answer(acted, lambda: [sanitize(acted.message)])
        return 0
    if budget is not None:
        return _show(call, call.legion().epic_budget(EpicBudget(cwd=call.cwd, epic=name, usd=budget)))
    code = _watch(call, name) if watch else 0
    return _show(call, call.legion().epic(call.cwd, name), code)


def _show(call: CommandCall, page: EpicPage, code: int = 0) -> int:
    call.answer(page, lambda: epic_lines(page, call.screen))
    return code


def _name(words: tuple[str, ...]) -> str:
    """Raises BadInput with the command that does what another tool's verb does."""
    verb, *rest = words
    if rest and verb in _VERBS:
        raise BadInput(_VERBS[verb].format(name=shlex.quote(rest[0])))
    if rest:
        raise BadInput(f"NAME must be one argument: legion status epic {shlex.quote(' '.join(words))}")
    return verb


def _open_epics(call: CommandCall) -> EpicsShape:
    """A failed ticket is open, too: something has to be done about it."""
    tickets = call.legion().status(call.cwd).tickets
    names = dict.fromkeys(one.epic for one in tickets if one.epic and style_of(one.state).group is not Group.ENDED)
    pages = [call.legion().epic(call.cwd, name) for name in names]
    return EpicsShape(
        epics=[EpicLine(name=one.name, done=one.done, total=one.total, counts=one.counts) for one in pages]
    )


def _list_lines(found: EpicsShape, screen: Screen) -> list[str]:
    if not found.epics:
        return ["No epic has open tickets: legion dispatch --epic NAME, legion plan GOAL"]
    rows = [
        [Cell(sanitize(one.name), Colour.BOLD), Cell(f"{one.done} of {one.total} landed"), Cell(_states(one.counts))]
        for one in found.epics
    ]
    return screen.table(rows, indent=0)


def _states(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))


def _watch(call: CommandCall, name: str) -> int:
    """Wait for its specification, then for its tickets. Returns the exit code."""
    ids = [ticket.id for ticket in _until_written(call, name).tickets]
    if not ids:
        return 0
    return exit_code(call.legion(), until_settled(call, ids, all_projects=False, timeout=None).state)


def _until_written(call: CommandCall, name: str) -> EpicPage:
    """Wait for the author of its specification, until it is done, fails or asks."""
    legion = call.legion()
    after = legion.status(call.cwd).last_event
    page = legion.epic(call.cwd, name)
    while any(one.state == "working" for one in page.stages):
        after = next(event.n for event in legion.events(after, cwd=call.cwd) if event is not None)
        page = legion.epic(call.cwd, name)
    return page


def _stage_lines(page: EpicPage, screen: Screen) -> Iterator[str]:
    if not page.stages:
        return
    done = sum(one.state == "done" for one in page.stages)
    yield screen.bold(f"Specification, {done} of {count(len(page.stages), 'stage')} done")
    yield from screen.table([_stage_row(one) for one in page.stages])
    if done:
        yield from screen.aside(f"`legion plan spec {page.stages[0].plan}` prints its documents.")


def _stage_row(one: EpicStageLine) -> list[Cell]:
    cost = f"${one.usd:.2f}" if one.usd is not None else ""
    return [Cell(one.stage), Cell(one.state, _STAGE_COLOURS.get(one.state, Colour.DIM)), Cell(cost, Colour.DIM)]


def epic_lines(page: EpicPage, screen: Screen) -> Iterator[str]:
    landed = f"{page.done} of {page.total} landed" if page.total else "no tickets yet"
    yield screen.line(Cell(sanitize(page.name), Colour.BOLD), Cell(f"  {landed}"))
    yield from _stage_lines(page, screen)
    if page.total:
        yield from _ticket_lines(page, screen)
    else:
        yield from (f"  {one.id} {one.state}" for one in page.plans)
    if page.points:
        yield screen.bold("What the last reader found")
        yield from screen.rows(point_rows(page.points, screen.columns))
        yield from screen.aside(f"Its plan: `legion plan show {page.reader}`.")


def _ticket_lines(page: EpicPage, screen: Screen) -> Iterator[str]:
    filled = round(_BAR * page.done / max(1, page.total))
    full, empty = ("█", "░") if screen.unicode else ("#", ".")
    yield screen.line(Cell(full * filled + empty * (_BAR - filled), Colour.GREEN), indent=2)
    money = f"${page.usage.usd:.2f}" if page.usage else "nothing counted"
    limit = f" of ${page.budget:.2f}" if page.budget is not None else ""
    rows = [("tickets", _states(page.counts)), ("cost", f"{money}{limit}")]
    rows += [("gate", page.gate)] if page.gate else []
    rows += [("lands", f"as one change, when {page.lands_when}")] if page.lands_when else []
    rows += [("plans", ", ".join(f"{one.id} {one.state}" for one in page.plans))] if page.plans else []
    yield from screen.table([[Cell(name, Colour.DIM), Cell(sanitize(value))] for name, value in rows])
    edges = [[ticket.id, other] for ticket in page.tickets for other in ticket.after]
    drawn = Graph(tickets=page.tickets, edges=edges, waves=page.waves, critical_path=page.critical_path)
    yield from screen.rows(drawing(drawn, screen.columns))
    if page.landed:
        yield screen.bold(f"Landed, {count(len(page.landed), 'commit')}")
        yield from (f"  {commit[:12]}" for commit in page.landed)
