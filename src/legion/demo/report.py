"""The report of a rehearsal: the graph, the time of each ticket, the order of landings, and the errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from legion.cli.base.output import Cell, Colour, Screen, count, duration, fine_duration, sanitize, state_cell
from legion.client.text.board import drawing
from legion.demo.chaos import Kill
from legion.demo.cost import PlayCost
from legion.domain.tickets import board
from legion.rehearsal.protocol.log import LogLine, RequestKind
from legion.wire.board import Graph
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import EventLine


@dataclass(kw_only=True)
class RehearsedTicket:
    id: int
    key: str
    title: str
    state: str
    reason: str
    after: list[int]
    attempts: int
    runs: list[str]
    """How each run of its agent ended."""
    seconds: float
    """From the start of its first run to its end."""
    cause: str = ""
    """Why its last attempt failed: `checks`, `conflict`, `review` or `attempt`. Empty if it did not."""


@dataclass(kw_only=True)
class Rehearsed:
    """`legion plan rehearse --json`."""

    schema: str = "legion.rehearsed/1"
    ok: bool
    """Every ticket is done, and nothing was lost."""
    problems: list[str]
    """What was lost or never ended."""
    seed: int | None
    """Seed of the chaos; None without."""
    seconds: float
    chain: list[int]
    """The chain of dependent tickets that took longest."""
    chain_seconds: float
    claude: str
    """The version of Claude Code that played the agents."""
    landed: list[int]
    """Tickets in the order in which they landed."""
    limits: int
    """How often a ticket was parked until a limit ended."""
    troubles: dict[str, int]
    """Errors of the scripted model, by kind."""
    killed: list[str]
    requests: int
    """To the scripted model; like the next two as it reports them. Nothing was spent."""
    tokens: int
    usd: float
    tickets: list[RehearsedTicket]
    edges: list[list[int]] = field(default_factory=list)
    folder: str | None = None
    """The folder with all files, if it was kept."""


@dataclass(frozen=True, kw_only=True)
class RehearsalRecord:
    """The data for a report."""

    keys: Mapping[int, str]
    pages: Sequence[TicketPage]
    graph: Graph
    events: Sequence[EventLine]
    kills: Sequence[Kill]
    asked: Sequence[LogLine]
    """Requests to the scripted model."""
    spent: PlayCost
    seconds: float
    claude: str
    seed: int | None
    problems: Sequence[str]
    folder: str | None


def report(record: RehearsalRecord) -> Rehearsed:
    tickets = [_ticket(record.keys.get(page.ticket.id, ""), page) for page in record.pages]
    took = {ticket.id: ticket.seconds for ticket in tickets}
    chain = board.critical_path({ticket.id: ticket.after for ticket in tickets}, took)
    return Rehearsed(
        ok=not record.problems and all(ticket.state == "done" for ticket in tickets),
        problems=list(record.problems),
        seed=record.seed,
        seconds=round(record.seconds, 1),
        chain=chain,
        chain_seconds=round(sum(took[number] for number in chain), 1),
        claude=record.claude,
        landed=[event.ticket for event in record.events if event.kind == "landing.landed" and event.ticket is not None],
        limits=sum(_is_limit(event) for event in record.events),
        troubles=dict(Counter(_trouble(line) for line in record.asked if line.kind is RequestKind.TROUBLE)),
        killed=[kill.text for kill in record.kills],
        requests=record.spent.requests,
        tokens=record.spent.tokens,
        usd=record.spent.usd,
        tickets=tickets,
        edges=record.graph.edges,
        folder=record.folder,
    )


def _is_limit(event: EventLine) -> bool:
    return event.kind == "run.ended" and event.data.get("outcome") == "limited"


def _trouble(line: LogLine) -> str:
    return {0: "dropped", 200: "dropped in the middle"}.get(line.status, str(line.status))


def _ticket(key: str, page: TicketPage) -> RehearsedTicket:
    line = page.ticket
    began = page.runs[0].started_at if page.runs else line.moved_at
    return RehearsedTicket(
        id=line.id,
        key=key,
        title=line.title,
        state=line.state,
        reason=line.reason,
        after=line.after,
        attempts=line.attempt,
        runs=[run.outcome or "at work" for run in page.runs],
        seconds=round(max(0.0, line.moved_at - began), 1),
        cause=page.cause,
    )


def lines_of(rehearsed: Rehearsed, graph: Graph, screen: Screen) -> Iterable[str]:
    yield screen.bold("The board")
    yield from screen.rows(drawing(graph, screen.columns))
    yield ""
    yield screen.bold("How it went")
    yield from _table(rehearsed, screen)
    yield ""
    yield from _sentences(rehearsed)
    yield ""
    yield from _verdict(rehearsed, screen)


def _table(rehearsed: Rehearsed, screen: Screen) -> Iterator[str]:
    heads = [Cell(head, Colour.DIM) for head in ("", "", "", "landed", "attempts", "time", "runs")]
    rows = [heads]
    for ticket in rehearsed.tickets:
        place = f"{rehearsed.landed.index(ticket.id) + 1}." if ticket.id in rehearsed.landed else "-"
        rows.append(
            [
                state_cell(screen, ticket.state),
                Cell(f"#{ticket.id}", Colour.BOLD),
                Cell(sanitize(ticket.title)),
                Cell(place),
                Cell(str(ticket.attempts) if ticket.runs else "no agent"),
                Cell(fine_duration(ticket.seconds)),
                Cell(", ".join(ticket.runs), Colour.DIM),
            ]
        )
    yield from screen.table(rows)


def _sentences(rehearsed: Rehearsed) -> Iterator[str]:
    runs = sum(len(ticket.runs) for ticket in rehearsed.tickets)
    yield (
        f"  {duration(rehearsed.seconds)} in all, {count(runs, 'run')} of Claude Code {rehearsed.claude}; "
        "a real model takes longer."
    )
    if len(rehearsed.chain) > 1:
        chain = " → ".join(str(number) for number in rehearsed.chain)
        yield f"  The longest chain is {chain}, {duration(rehearsed.chain_seconds)}: more agents do not shorten that."
    yield f"  {PlayCost(requests=rehearsed.requests, tokens=rehearsed.tokens, usd=rehearsed.usd).text}."
    if rehearsed.seed is not None:
        met = ", ".join(f"{number} x {kind}" for kind, number in sorted(rehearsed.troubles.items())) or "none"
        kills = count(len(rehearsed.killed), "kill")
        yield f"  Chaos with seed {rehearsed.seed}: {kills}; trouble with the model: {met}."
    if rehearsed.limits:
        yield f"  {count(rehearsed.limits, 'time')} a ticket waited for a limit to end and continued."


def _verdict(rehearsed: Rehearsed, screen: Screen) -> Iterator[str]:
    done = sum(ticket.state == "done" for ticket in rehearsed.tickets)
    total = count(len(rehearsed.tickets), "ticket")
    if rehearsed.ok:
        text = f"All {total} ended well." if len(rehearsed.tickets) > 1 else "The ticket ended well."
        yield screen.line(Cell(f"  {text}", Colour.GREEN))
    else:
        yield screen.line(Cell(f"  {done} of {total} ended well.", Colour.RED))
        for ticket in rehearsed.tickets:
            if ticket.state != "done":
                why = sanitize(ticket.reason or "it waits")
                yield screen.line(Cell(f"  #{ticket.id} {ticket.state}: {why}", Colour.RED))
    if any(ticket.state == "failed" and ticket.cause == "conflict" for ticket in rehearsed.tickets):
        yield '  For conflicts: let one come `after` the other, or name `files` and set `conflicts.overlap` to "rule".'
    if not rehearsed.problems:
        text = "Nothing was lost: all tickets ended, and the target only moved to tested commits."
        yield screen.line(Cell(f"  {text}", Colour.GREEN))
    for problem in rehearsed.problems:
        yield screen.line(Cell(f"  Problem: {sanitize(problem)}", Colour.RED))
    if rehearsed.folder is None and not rehearsed.ok:
        yield "  `--keep` keeps all files: briefings, answers of agents, and the output of checks."
    if rehearsed.folder is not None:
        yield f"  All files are kept; run {rehearsed.folder}/legion status"
