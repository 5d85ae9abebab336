"""Plans as rows: the list, and one plan with its tickets, findings and estimate."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

from legion.client.text.board import drawing
from legion.client.text.questions import question_rows
from legion.client.text.rows import BLANK, Row, clean, definitions, facts, head, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, count, duration, numbers
from legion.client.text.tickets import cost, dollars
from legion.wire.board import Graph
from legion.wire.plans import PlanCriterionLine, PlanLine, PlanList, PlanPage, PlanTicketLine
from legion.wire.tickets import TicketLine

KEY = "plan "
"""Of the row of a plan, before its number."""
APPROVABLE = ("ready", "faulty", "partly")
COLOURS = {
    "planning": Colour.CYAN, "asking": Colour.YELLOW, "written": Colour.YELLOW, "ready": Colour.GREEN,
    "faulty": Colour.RED, "partly": Colour.GREEN, "approved": Colour.DIM, "reached": Colour.GREEN, "failed": Colour.RED,
    "dropped": Colour.DIM,
}  # fmt: skip
_AUTHORS = {
    "planner": "a planner that read this repository, so its files may have put words there",
    "person": "you",
    "template": "a template, with values of this repository",
}
_IMPOSSIBLE = ("circle", "unknown")
"""Findings with which no plan is approved."""
_LINES = 40
"""Of each text of a proposed ticket. All kinds of text are shown: an agent gets each of them."""
_GOAL = 100
"""Letters of a goal in a list; its page has the rest."""


def number_of(plan: PlanLine) -> int:
    """3 of P3."""
    return int(plan.id.removeprefix("P"))


def key_of(plan: PlanLine) -> str:
    return f"{KEY}{number_of(plan)}"


def waiting(plans: PlanList | None) -> list[PlanLine]:
    """Those that the person decides about, oldest first."""
    found = [one for one in plans.plans if one.state in (*APPROVABLE, "written", "failed")] if plans is not None else []
    return sorted(found, key=lambda one: one.created_at)


def why(plan: PlanLine) -> str:
    """Its state, and what it waits for, in short."""
    left = count(plan.tickets - plan.approved, "ticket")
    approved = f"{plan.approved} of {plan.tickets} approved"
    match plan.state:
        case "written":
            return "its specification waits for you"
        case "ready":
            return f"ready, {left} to approve{f': {clean(plan.reason)}' if plan.reason else ''}"
        case "partly":
            return f"partly approved, {approved}"
        case "faulty":
            return f"faulty, {left}, {count(plan.findings, 'finding')}"
        case _:
            text = f"{plan.state}, {approved}" if plan.approved else plan.state
            return f"{text}: {clean(plan.reason)}" if plan.reason else text


def _first_paragraph(goal: str) -> str:
    """On one line. The plan of an issue has the issue's complete text in its goal, as further paragraphs."""
    return clean(goal.strip().partition("\n\n")[0])[:_GOAL]


def plan_row(plan: PlanLine, width: int) -> list[Row]:
    goal = Cell(_first_paragraph(plan.goal))
    cells = [Cell(plan.id, Colour.BOLD), Cell(why(plan), COLOURS.get(plan.state, Colour.NONE)), goal]
    return definitions([(key_of(plan), cells)], width)[:2]


def list_rows(plans: PlanList | None, width: int, new: str) -> list[Row]:
    """Those that wait for the person first. `new` is what makes one."""
    if plans is None:
        return [note("Reading the plans.")]
    if not plans.plans:
        return paragraph(f"No open plans: {new}", width, colour=Colour.DIM)
    first = waiting(plans)
    rest = [one for one in plans.plans if one not in first]
    return [made for one in [*first, *rest] for made in plan_row(one, width)]


def page_rows(
    page: PlanPage | None, width: int, *, chosen: Collection[str] | None = None, questions: bool = False
) -> list[Row]:
    """Tickets have their key; those that are `chosen` are marked where they can be. `questions`: and how to go on."""
    if page is None:
        return []
    plan = page.plan
    made = [row(Cell(f"{plan.id}  ", Colour.BOLD), Cell(why(plan), COLOURS.get(plan.state, Colour.NONE)))]
    made += paragraph(plan.goal, width, indent=2, most=6)
    made += [line for text in page.notes for line in paragraph(text, width, indent=2, colour=Colour.YELLOW)]
    if page.documents:
        kept = "; they land with the first ticket" if page.keep_docs else ""
        done = ", ".join(one.stage for one in page.documents)
        text = f"Specification: {done}{kept}. `legion plan spec {plan.id}` prints it."
        made += paragraph(text, width, indent=2, colour=Colour.DIM)
    if page.depth:
        made += paragraph(f"Specification chosen by rule, {page.depth}", width, indent=2, colour=Colour.DIM)
    if plan.state == "written":
        made += [BLANK, *paragraph(page.documents[-1].text, width, indent=2)]
    if page.summary and page.summary != plan.goal:
        made += [BLANK, *paragraph(page.summary, width, indent=2)]
    if page.points:
        made += [BLANK, head("What the last reader found"), *point_rows(page.points, width)]
    if page.findings:
        made += [BLANK, head(count(len(page.findings), "finding"))]
        for one in page.findings:
            text = f"{one.ticket}: {one.text}" if one.ticket else one.text
            made += paragraph(text, width, indent=2, colour=Colour.RED)
    # What the decision needs comes before the tickets.
    made += [BLANK, *_facts(page, width)]
    if page.tickets:
        names = {n: one.key for n, one in enumerate(page.tickets, 1)}
        # Only the tickets below it can be marked.
        made += [BLANK, *(Row(one.cells) for one in drawing(graph_of(page), width, names))]
    for ticket in page.tickets:
        made += [BLANK, *_ticket(ticket, chosen, width)]
    if questions:
        made += [line for one in page.questions for line in (BLANK, *question_rows(one, width, time.time()))]
        made += paragraph(_next(page), width, indent=2, colour=Colour.DIM)
    return made


_STATES = {"done": Colour.GREEN, "missing": Colour.RED, "different": Colour.YELLOW}


def point_rows(points: Sequence[PlanCriterionLine], width: int) -> list[Row]:
    """The goal, point by point: its state, and what shows it."""
    made: list[tuple[str, list[Cell]]] = []
    for one in points:
        said = {"green": "passes", "red": "fails"}.get(one.tried, f"not tried: {one.tried}" if one.tried else "a check")
        shown = "; ".join(filter(None, (f"`{one.proof}` {said}" if one.proof else "", one.evidence)))
        made.append(("", [Cell(one.state, _STATES.get(one.state, Colour.NONE)), Cell(clean(one.text))]))
        made.append(("", [Cell(""), Cell(clean(shown), Colour.DIM)]))
    return definitions(made, width, indent=2)


def graph_of(page: PlanPage) -> Graph:
    """The plan as a board: positions in place of numbers, so that the drawing of the board serves both."""
    place = {one.key: n for n, one in enumerate(page.tickets, 1)}
    edges = {n: [place[key] for key in one.after if key in place] for n, one in enumerate(page.tickets, 1)}
    drawable = page.chain or not any(edges.values())
    return Graph(
        tickets=[_line(n, one, page.plan) for n, one in enumerate(page.tickets, 1)],
        edges=[[n, other] for n, before in edges.items() for other in before] if drawable else [],
        waves=_waves(edges) if drawable else [list(edges)],
        critical_path=[place[key] for key in page.chain],
    )


def _waves(edges: dict[int, list[int]]) -> list[list[int]]:
    waves: list[list[int]] = []
    left = dict(edges)
    # What stands in a circle is in no wave.
    while ready := [n for n, before in left.items() if not set(before) & set(left)]:
        waves.append(ready)
        left = {n: before for n, before in left.items() if n not in ready}
    return waves


def _line(n: int, ticket: PlanTicketLine, plan: PlanLine) -> TicketLine:
    return TicketLine(
        id=n,
        project=plan.project,
        title=ticket.title,
        state=ticket.state or "draft",
        after=[],
        attempt=0,
        max_attempts=0,
        checkpoint=ticket.checkpoint,
        epic=plan.epic,
        priority=0,
        reason="",
        unchecked=False,
        held_up_by=[],
        created_at=plan.created_at,
        moved_at=plan.moved_at,
        doing=f"ticket {ticket.ticket}" if ticket.ticket is not None else "",
    )


def _facts(page: PlanPage, width: int) -> list[Row]:
    estimate = page.estimate
    usd = "unknown" if estimate.usd is None else f"{dollars(estimate.usd)}{_error(estimate.usd_error)}"
    time_ = "unknown" if estimate.seconds is None else f"{duration(estimate.seconds)}{_error(estimate.seconds_error)}"
    authors = [one.author for one in page.rounds if one.usable]
    known = (
        ("written by", _AUTHORS[authors[-1]] if authors else ""),
        ("expected cost", usd if page.tickets else ""),
        ("expected time", time_ if page.tickets else ""),
        ("planner spent", cost(page.usage) if page.usage else ""),
        ("risks", page.risks),
        ("team", page.team),
        ("epic", page.plan.epic),
        ("replaces tickets", numbers(page.drops)),
    )
    return facts(known, width, indent=2)


def _error(share: float | None) -> str:
    return ", error of earlier estimates unknown" if share is None else f", earlier estimates were off by {share:.0%}"


def _ticket(ticket: PlanTicketLine, chosen: Collection[str] | None, width: int) -> Iterator[Row]:
    is_chosen = chosen is not None and ticket.key in chosen
    mark = "" if chosen is None else "[x] " if is_chosen else "[ ] " if ticket.ticket is None else f"#{ticket.ticket} "
    yield row(
        Cell(mark, Colour.GREEN if is_chosen or ticket.ticket else Colour.DIM),
        Cell(f"{clean(ticket.key)}  ", Colour.BOLD),
        Cell(clean(ticket.title)),
        key=ticket.key,
    )
    for name, text in (("", ticket.text), ("context", ticket.context), ("approach", ticket.plan)):
        if text and name:
            yield row(Cell(f"    {name}", Colour.DIM), key=ticket.key)
        rest = f"… of {len(text)} characters; `legion plan edit` shows all"
        yield from paragraph(text, width, indent=6 if name else 4, key=ticket.key, most=_LINES, rest=rest)
    known = [
        ("after", ", ".join(ticket.after)),
        ("only if", ticket.when),
        ("files", ", ".join(ticket.files)),
        ("new files", ", ".join(ticket.new_files)),
        ("lines", str(ticket.lines or "")),
        ("asks you (not to add tests)", ", ".join(ticket.asks_for)),
        *(("done when", f"{one.text}  ({_proof(one)})") for one in ticket.criteria),
    ]
    yield from facts(known, width, indent=4, key=ticket.key)


def _proof(one: PlanCriterionLine) -> str:
    if not one.proof:
        return f"not proven: {one.why_not}" if one.why_not else "no proof"
    return f"`{one.proof}`" if one.tried in ("", "red", "green") else f"`{one.proof}`, not tried: {one.tried}"


def _next(page: PlanPage) -> str:
    id = page.plan.id
    impossible = any(one.kind in _IMPOSSIBLE for one in page.findings)
    anyway = "" if impossible else f", or legion approve {id} --anyway"
    hints = {
        "written": f"legion approve {id} plans from it, legion plan edit {id}, legion plan reject {id} WHY",
        "ready": f"legion approve {id} [TICKET...], legion plan edit {id}, legion plan reject {id} WHY",
        "faulty": f"legion plan edit {id}, legion plan reject {id} WHY{anyway}",
        "partly": f"legion approve {id} approves the rest",
        "failed": f"legion plan retry {id}, or legion plan drop {id}; its words: legion conversations",
    }
    return hints.get(page.plan.state, "")
