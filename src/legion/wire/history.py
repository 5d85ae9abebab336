"""History of the work: events, live output, costs and results."""

from __future__ import annotations

from dataclasses import field

from legion.wire.bases import TextPiece
from legion.wire.lazy import dataclass
from legion.wire.plans import PlanLine
from legion.wire.table import (
    LONGEST_WAIT,
    Count,
    Cursor,
    Folder,
    Hours,
    OpenTo,
    RunId,
    Seconds,
    Table,
    Text,
    TicketId,
    operation,
)
from legion.wire.tickets import EventLine, TicketLine, UsageLine


@dataclass(kw_only=True)
class HistoryLine(EventLine):
    """One fact, from the daemon's events or from the journal of a run."""

    source: str
    """event or run."""
    run: int | None
    rule: str
    """The rule by which it was decided. Empty where nothing was."""
    why: str
    """The rule, explained."""
    rewind: str = ""
    """The moment's name for `legion rewind N --to`, where the ticket can go back to it."""


@dataclass(kw_only=True)
class Events:
    schema: str = "legion.events/1"
    lines: list[HistoryLine]
    """Oldest first."""
    omitted: int
    """Older ones that are not listed; no more than 1,000 are counted."""
    cursor: str
    """Ask with it for what happened since."""


@dataclass(kw_only=True)
class FollowOutput:
    """Asks for what was printed since. The answer comes when there is something new, or when the time is up."""

    cwd: str = ""
    """Any folder inside the project; empty: all projects."""
    ticket: int | None = None
    """Only runs of this ticket."""
    seen: dict[str, int] = field(default_factory=dict)
    """How far the caller has read, in bytes, by the number of the run. A run that is missing starts near its end."""


@dataclass(kw_only=True)
class RunningLine:
    """A run at work: of a ticket, or a turn of a standing agent."""

    run: int
    ticket: int | None
    agent: str
    """The standing agent's id; empty for a ticket's run."""
    name: str
    """The standing agent's name, or the role that a team's agent has; empty for the builder."""
    started_at: float
    activity: str = ""
    """The last tool that it used, and on what; empty where its program does not report that."""
    activity_at: float | None = None
    usage: UsageLine | None = None


@dataclass(kw_only=True)
class OutputPiece(TextPiece):
    run: int


@dataclass(kw_only=True)
class LiveOutput:
    schema: str = "legion.output/1"
    running: list[RunningLine]
    pieces: list[OutputPiece]
    """Only of runs that have printed something new."""


@dataclass(kw_only=True)
class UsageShare:
    """What one ticket, agent, model, day or epic took; or all of them."""

    key: str
    """The ticket's number, the agent, the model, the day (UTC) or the epic. Empty where there is none."""
    title: str
    """The ticket's; else empty."""
    usage: UsageLine
    seconds: float
    """Of the clock, while its agents were at work."""
    runs: int
    landed: int
    """Tickets."""
    usd_per_landed: float | None
    """Null where none landed."""
    wasted: UsageLine
    """The part of `usage` that went into attempts that did not land."""
    wasted_seconds: float
    wasted_runs: int


@dataclass(kw_only=True)
class UsageReport:
    schema: str = "legion.usage/1"
    by: str
    project: str | None
    """Null: all projects."""
    total: UsageShare
    shares: list[UsageShare]
    since: str = ""
    """The first day that is counted, of UTC; empty: all time."""


@dataclass(kw_only=True)
class WorkSummary:
    """What came of the work since a moment."""

    schema: str = "legion.stretch/1"
    project: str
    since: float
    because: str
    """The reason why it starts there, as a sentence."""
    landed: list[TicketLine]
    failed: list[TicketLine]
    stopped: list[TicketLine]
    waiting: list[TicketLine]
    """Those that wait for the person."""
    open: int
    """Tickets that have not ended."""
    to_collect: int
    """Landed commits that the person's branch lacks."""
    usage: UsageShare
    sent_back: int
    """Attempts that did not make it."""
    conflicts: int
    """Those of them that conflicted."""
    goals: list[PlanLine] = field(default_factory=list)
    """What last readers found of goals that are over."""


class HistoryRows(Table):
    """No agent reads events or costs."""

    @operation("GET", "/v1/history", open_to=OpenTo.LOOKS)
    def history(
        self,
        cwd: Folder | None,
        ticket: TicketId | None = None,
        run: RunId | None = None,
        after: Cursor = "",
        last: Count = 0,
        kinds: Text = "",
        since: Text = "",
        until: Text = "",
    ) -> Events:
        """Events, with the rules that decided them"""

    @operation("GET", "/v1/stretch", open_to=OpenTo.LOOKS)
    def stretch(self, cwd: Folder, hours: Hours | None = None) -> WorkSummary:
        """Summarize the work since your last collect: landed, failed, waiting for you, and its cost"""

    @operation("GET", "/v1/usage", open_to=OpenTo.LOOKS)
    def usage(self, cwd: Folder | None, by: Text = "ticket", since: Text = "") -> UsageReport:
        """Tokens, money and time, by ticket, agent, role, model, day, epic, project or driver, from a day on"""

    @operation("POST", "/v1/output", open_to=OpenTo.LOOKS, plain="cwd ticket seen", waits=True)
    def output(self, wanted: FollowOutput, /, timeout: Seconds = LONGEST_WAIT) -> LiveOutput:
        """Wait for new output of any agent at work, at most 25 s"""
