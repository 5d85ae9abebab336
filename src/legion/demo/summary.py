"""The summary of the demo, judged by what the daemon recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from legion.cli.base.output import Cell, Colour, Screen, count, fine_duration, numbers, sanitize, state_cell
from legion.client.text.board import drawing
from legion.client.text.plans import point_rows
from legion.demo.cost import PlayCost
from legion.demo.stage import DemoFolder
from legion.demo.tickets import DemoTicket, met_a_conflict
from legion.wire.board import Graph
from legion.wire.plans import PlanCriterionLine
from legion.wire.projects import CollectResult
from legion.wire.ticket_pages import TicketPage

_PAIR = ("discount", "tax")


@dataclass(kw_only=True)
class TicketSummary:
    id: int
    key: str
    title: str
    state: str
    after: list[int]
    attempts: int
    runs: list[str]
    """How each run of its agent ended."""
    green_receipts: int
    red_receipts: int
    """Receipts of its own proofs and of the commit with which it landed."""
    seconds: float
    """From the start of its first run to its end."""
    landed: str | None
    story: str


@dataclass(kw_only=True)
class Summary:
    """`legion demo --json`."""

    schema: str = "legion.demo/1"
    ok: bool
    problems: list[str]
    """What did not go as intended."""
    seconds: float
    folder: str
    repository: str
    data_dir: str
    sandbox: str
    claude: str
    """The version of Claude Code that played the agents."""
    commits: int
    """Commits that `collect` brought into the repository."""
    receipts: int
    red_receipts: int
    requests: int
    """To the scripted model; like the next two as it reports them. Nothing was spent."""
    tokens: int
    usd: float
    tickets: list[TicketSummary]
    points: list[PlanCriterionLine]
    """What its last reader found of the goal."""
    edges: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The data for a summary."""

    stage: DemoFolder
    sandbox: str
    claude: str
    spent: PlayCost
    seconds: float
    pages: Sequence[tuple[DemoTicket, TicketPage]]
    graph: Graph
    verdicts: Sequence[str]
    """Verdicts of all receipts, those of batches included."""
    collected: CollectResult | None
    points: list[PlanCriterionLine]
    problems: Sequence[str]
    """Problems found during the run."""


def summarise(outcome: DemoResult) -> Summary:
    problems = [*outcome.problems, *_problems(outcome)]
    return Summary(
        ok=not problems,
        problems=problems,
        seconds=round(outcome.seconds, 1),
        folder=str(outcome.stage.folder),
        repository=str(outcome.stage.repository),
        data_dir=str(outcome.stage.scratch.data),
        sandbox=outcome.sandbox,
        claude=outcome.claude,
        commits=outcome.collected.commits if outcome.collected else 0,
        receipts=len(outcome.verdicts),
        red_receipts=sum(verdict != "green" for verdict in outcome.verdicts),
        requests=outcome.spent.requests,
        tokens=outcome.spent.tokens,
        usd=outcome.spent.usd,
        tickets=[_ticket(part, page) for part, page in outcome.pages],
        points=outcome.points,
        edges=outcome.graph.edges,
    )


def _problems(outcome: DemoResult) -> Iterator[str]:
    for part, page in outcome.pages:
        number, state = page.ticket.id, page.ticket.state
        if state != part.ends:
            why = f" ({page.ticket.reason})" if page.ticket.reason else ""
            yield f"Ticket {number} is {state}{why}; it should be {part.ends}."
        elif not part.happened(page):
            yield f"Ticket {number} is {state}, but not as expected: {part.story}."
    pair = [page for part, page in outcome.pages if part.ticket.key in _PAIR]
    if pair and not any(met_a_conflict(page) for page in pair):
        named = numbers(page.ticket.id for page in pair)
        yield f"Tickets {named} change the same lines, but none of them had to resolve a conflict."
    if outcome.collected is None:
        yield "The landed work did not reach the repository."


def _ticket(part: DemoTicket, page: TicketPage) -> TicketSummary:
    line = page.ticket
    verdicts = [receipt.verdict for receipt in page.receipts]
    began = page.runs[0].started_at if page.runs else line.moved_at
    return TicketSummary(
        id=line.id,
        key=part.ticket.key,
        title=line.title,
        state=line.state,
        after=line.after,
        attempts=line.attempt,
        runs=[run.outcome or "at work" for run in page.runs],
        green_receipts=verdicts.count("green"),
        red_receipts=len(verdicts) - verdicts.count("green"),
        seconds=round(max(0.0, line.moved_at - began), 1),
        landed=page.landed,
        story=_story(part, page),
    )


def _story(part: DemoTicket, page: TicketPage) -> str:
    if page.ticket.state != part.ends or not part.happened(page):
        return page.ticket.reason or page.ticket.state
    if part.ticket.key in _PAIR:
        if met_a_conflict(page):
            return "conflicted with the other one; resolved from the feedback"
        return "changed the same lines as another ticket, and landed first"
    return part.story


def lines_of(summary: Summary, graph: Graph, screen: Screen) -> Iterable[str]:
    yield screen.bold("The board")
    narrower = _narrower(screen)
    yield from (f"  {line}" if line else "" for line in narrower.rows(drawing(graph, narrower.columns)))
    yield ""
    yield screen.bold("What happened")
    yield from _table(summary, screen)
    yield ""
    yield screen.bold("What a last reader found of the goal: `legion status epic P1`")
    yield from narrower.rows(point_rows(summary.points, narrower.columns))
    yield ""
    yield from _totals(summary, screen)
    yield ""
    yield from _next_steps(summary, screen)


def _narrower(screen: Screen) -> Screen:
    return Screen(
        tty=screen.tty, colours=screen.colours, unicode=screen.unicode, width=screen.width - 2, height=screen.height
    )


def _table(summary: Summary, screen: Screen) -> Iterator[str]:
    """Two lines per ticket, so that no text is cut on a narrow screen."""
    heads = [Cell(head, Colour.DIM) for head in ("", "", "", "attempts", "receipts", "time")]
    rows = [heads]
    for ticket in summary.tickets:
        red = f", {ticket.red_receipts} red" if ticket.red_receipts else ""
        rows.append(
            [
                state_cell(screen, ticket.state),
                Cell(f"#{ticket.id}", Colour.BOLD),
                Cell(sanitize(ticket.title)),
                Cell(str(ticket.attempts) if ticket.runs else "no agent"),
                Cell(f"{ticket.green_receipts} green{red}" if ticket.green_receipts + ticket.red_receipts else "none"),
                Cell(fine_duration(ticket.seconds)),
            ]
        )
    head, *lines = screen.table(rows)
    yield head
    for line, ticket in zip(lines, summary.tickets, strict=True):
        yield line
        yield screen.line(Cell(sanitize(ticket.story), Colour.DIM), indent=6)


def _totals(summary: Summary, screen: Screen) -> Iterator[str]:
    landed = sum(ticket.landed is not None and bool(ticket.runs) for ticket in summary.tickets)
    checkpoints = sum(ticket.state == "done" and not ticket.runs for ticket in summary.tickets)
    failed = sum(ticket.state == "failed" for ticket in summary.tickets)
    runs = sum(len(ticket.runs) for ticket in summary.tickets)
    tickets = count(len(summary.tickets), "ticket")
    yield f"  {tickets}: {landed} landed, {checkpoints} checkpoint passed, {failed} failed."
    receipts = f"{count(summary.receipts, 'receipt')} ({summary.red_receipts} red)"
    yield f"  {count(runs, 'run')} of Claude Code {summary.claude}, {receipts}, {summary.seconds:.0f} s in all."
    yield f"  {PlayCost(requests=summary.requests, tokens=summary.tokens, usd=summary.usd).text}."
    if summary.ok:
        yield screen.line(Cell("  Everything ended as it should, and nothing was lost.", Colour.GREEN))
    for problem in summary.problems:
        yield screen.line(Cell(f"  Problem: {sanitize(problem)}", Colour.RED))


def _next_steps(summary: Summary, screen: Screen) -> Iterator[str]:
    yield screen.bold("All files are still there")
    steps = [
        (f"cd {summary.repository}", ""),
        ("git log --graph --oneline", f"{count(summary.commits, 'commit')} that Legion landed and collected"),
        ("../legion status", "the board; starts the demo's own daemon again"),
        ("../legion tui", "the same as a terminal UI: 2 is the board, Enter opens a ticket, q quits"),
        ("../legion plan show P2", "the plan for what is missing of the goal; nothing of it has started"),
        ("../legion ticket 1", "its first failure, and the receipts"),
        ("../legion log 4", "what that agent wrote and did, before and after the kill"),
        ("../legion diff 3", "a change"),
        ("../legion down", f"when you are done; then delete {summary.folder}"),
    ]
    yield f"  {steps[0][0]}"
    yield from screen.table([[Cell(step), Cell(why, Colour.DIM)] for step, why in steps[1:]])
