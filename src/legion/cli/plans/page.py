"""Prints a plan: its tickets as a graph, files, criteria, proofs, findings, and the estimate."""

from __future__ import annotations

from collections.abc import Iterator

from legion.cli.base.output import Cell, Colour, Screen, count, duration, numbers, sanitize
from legion.cli.board.graph import drawing_of
from legion.wire.plans import PlanEstimateLine, PlanLine, PlanPage, PlanTicketLine
from legion.wire.projects import Graph
from legion.wire.tickets import TicketLine

COLOURS = {
    "planning": Colour.CYAN,
    "asking": Colour.YELLOW,
    "ready": Colour.GREEN,
    "faulty": Colour.RED,
    "partly": Colour.GREEN,
    "approved": Colour.DIM,
    "failed": Colour.RED,
    "dropped": Colour.DIM,
}
_IMPOSSIBLE = ("circle", "unknown")
"""Findings with which no plan is approved."""
_GOAL_LINES = 4
_TEXT_LINES = 6


def page_lines(page: PlanPage, screen: Screen) -> Iterator[str]:
    plan = page.plan
    yield screen.line(Cell(plan.id, Colour.BOLD), Cell(f"  {plan.state}", COLOURS.get(plan.state, Colour.NONE)))
    yield from screen.paragraph(plan.goal, most_lines=_GOAL_LINES, rest="--json")
    if plan.reason:
        yield from screen.aside(sanitize(plan.reason))
    for note in page.notes:
        yield screen.line(Cell(sanitize(note), Colour.YELLOW), indent=2)
    if page.documents:
        kept = "; they land with the first ticket" if page.keep_docs else ""
        done = ", ".join(one.stage for one in page.documents)
        yield from screen.aside(f"Specification: {done}{kept}. `legion plan spec {plan.id}` prints it.")
    if page.summary and page.summary != plan.goal:
        yield from screen.paragraph(page.summary)
    if page.tickets:
        yield ""
        yield from drawing_of(graph_of(page), screen, names={n: one.key for n, one in enumerate(page.tickets, 1)})
        for ticket in page.tickets:
            yield ""
            yield from _ticket(ticket, screen)
        yield ""
        yield from _facts(page, screen)
    if page.findings:
        yield screen.bold(count(len(page.findings), "finding"))
        for one in page.findings:
            about = f"{one.ticket}: " if one.ticket else ""
            yield screen.line(Cell(sanitize(f"{about}{one.text}"), Colour.RED), indent=2)
    for question in page.questions:
        yield screen.line(Cell(f"Question {question.id}: ", Colour.YELLOW), Cell(sanitize(question.words)))
        yield from screen.aside(sanitize(f"{', '.join(question.choices)}; without an answer: {question.default}"))
    yield from _next(plan, page, screen)


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
    while left:
        ready = [n for n, before in left.items() if not set(before) & set(left)]
        waves.append(ready)
        left = {n: before for n, before in left.items() if n not in ready}
    return waves


def _line(n: int, ticket: PlanTicketLine, plan: PlanLine) -> TicketLine:
    became = f"ticket {ticket.ticket}" if ticket.ticket is not None else ""
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
        doing=became,
    )


def _ticket(ticket: PlanTicketLine, screen: Screen) -> Iterator[str]:
    yield screen.line(Cell(ticket.key, Colour.BOLD), Cell(f"  {sanitize(ticket.title)}"))
    yield from screen.paragraph(ticket.text, indent=4, most_lines=_TEXT_LINES, rest="--json")
    facts = [("after", ", ".join(ticket.after)), ("only if", ticket.when), ("files", ", ".join(ticket.files))]
    facts += [("new files", ", ".join(ticket.new_files)), ("lines", str(ticket.lines or ""))]
    facts += [("protected, asks you", ", ".join(ticket.asks_for))]
    rows = [[Cell(name, Colour.DIM), Cell(sanitize(value))] for name, value in facts if value]
    for one in ticket.criteria:
        proof = f"`{one.proof}`" if one.proof else f"not proven: {one.why_not}" if one.why_not else "no proof"
        rows.append([Cell("done when", Colour.DIM), Cell(sanitize(f"{one.text}  ({proof})"))])
    yield from screen.table(rows, indent=4)


def _facts(page: PlanPage, screen: Screen) -> Iterator[str]:
    rows = [("expected cost", _usd(page.estimate)), ("expected time", _time(page.estimate))]
    spent = f"${page.usage.usd:.2f}" if page.usage else ""
    rows += [("planner spent", spent), ("risks", page.risks), ("team", page.team), ("epic", page.plan.epic)]
    rows += [("replaces tickets", numbers(page.drops))] if page.drops else []
    yield from screen.table([[Cell(name, Colour.DIM), Cell(sanitize(value))] for name, value in rows if value])


def _usd(estimate: PlanEstimateLine) -> str:
    return "unknown" if estimate.usd is None else f"${estimate.usd:.2f}{_error(estimate.usd_error)}"


def _time(estimate: PlanEstimateLine) -> str:
    return "unknown" if estimate.seconds is None else f"{duration(estimate.seconds)}{_error(estimate.seconds_error)}"


def _error(share: float | None) -> str:
    return ", error of earlier estimates unknown" if share is None else f", earlier estimates were off by {share:.0%}"


def _next(plan: PlanLine, page: PlanPage, screen: Screen) -> Iterator[str]:
    impossible = any(one.kind in _IMPOSSIBLE for one in page.findings)
    anyway = "" if impossible else f", or legion approve {plan.id} --anyway"
    hints = {
        "ready": f"legion approve {plan.id} [TICKET...], legion plan edit {plan.id}, legion plan reject {plan.id} WHY",
        "faulty": f"legion plan edit {plan.id}, legion plan reject {plan.id} WHY{anyway}",
        "partly": f"legion approve {plan.id} approves the rest",
        "failed": f"legion plan retry {plan.id}, or legion plan drop {plan.id}; its words: legion conversations",
        "asking": "legion answer N CHOICE",
    }
    if plan.state in hints:
        yield from screen.aside(hints[plan.state])
