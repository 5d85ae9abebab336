"""A dispatch: new tickets with the rules of their fields, and tickets of other tools."""

from __future__ import annotations

from dataclasses import field

from legion.domain.machines import machine
from legion.domain.review.path_patterns import glob_fault
from legion.domain.tickets.spec import MOST_BUDGET, LandingGate, ReviewPolicy
from legion.wire.lazy import dataclass
from legion.wire.table import OpenTo, Table, operation
from legion.wire.ticket_fields import REQUIRED, AgentNeed, command_fault, described, fields_of, label_fault

_MOST_TEXT = 1_000_000
"""Characters of each text that an agent is given; what is longer belongs into a file of the repository."""


@dataclass(kw_only=True)
class NewTicket:
    """A ticket as a person writes it. Each field declares its option, limits and documents: see `ticket_fields`."""

    title: str = described(REQUIRED, short="-t", most=300, help="One line; the first 40 letters of TEXT if left out.")
    text: str = described("", argument="TEXT", most=_MOST_TEXT, help="The change that you want; - reads it from stdin.")
    context: str = described(
        "", short="-c", most=_MOST_TEXT, help="What the agent should know: where to look, what was decided."
    )
    criteria: str = described(
        "", short="-k", most=_MOST_TEXT, help="When it is done, in terms that can be checked; one per line."
    )
    plan: str = described("", short="-p", most=_MOST_TEXT, help="How to do it, if you know.")
    key: str = described("", no_option=True, help="The name by which other tickets of the plan file refer to it.")
    after: list[int] = described(
        list, short="-a", metavar="N,N", label="after", see="board.md", help="Tickets that must land before it starts."
    )
    after_keys: list[str] = field(default_factory=list)
    """Keys of tickets of the same request that it comes after."""
    files: list[str] = described(
        list,
        metavar="GLOB",
        item_fault=glob_fault,
        label="files",
        see="configuration.md#protected",
        help="Patterns of the files it will change; protected ones among them then need no approval; "
        "may be given again.",
    )
    prove: list[str] = described(
        list,
        metavar="COMMAND",
        item_fault=command_fault,
        label="proofs",
        see="checks.md",
        help="A command that must pass on its change; may be given again. "
        "'CRITERION :: COMMAND' binds it to a line of -k.",
    )
    accept: list[str] = described(
        list,
        metavar="NAME",
        label="acceptance",
        see="checks.md",
        help="Held-out acceptance of your config that it must pass; may be given again.",
    )
    checkpoint: bool = described(
        False, see="board.md", help="No agent: only run the checks on what its --after landed."
    )
    epic: str = described("", metavar="NAME", label="epic", help="Follow it together with others of this name.")
    priority: int = described(
        0, metavar="N", least=-1000, most=1000, label="priority", help="Higher starts first; 0 if left out."
    )
    driver: str = described(
        "",
        metavar="NAME",
        needs=AgentNeed.AGENT,
        see="drivers.md",
        help="Which kind of agent program, as named in your config.",
    )
    team: str = described(
        "",
        metavar="NAME",
        needs=AgentNeed.AGENT,
        see="teams.md",
        help="The team that works on it, see `legion team list`; the project's default if left out.",
    )
    branch: str = described(
        "",
        metavar="NAME",
        most=250,
        needs=AgentNeed.AGENT,
        see="sessions.md",
        help="Start from this branch of yours, or of a remote; its work becomes part of the change.",
    )
    retires: list[int] = described(
        list,
        metavar="N,N",
        label="retires",
        see="coupled.md",
        help="Landed tickets whose proofs no longer hold with it.",
    )
    alone: bool = described(False, see="coupled.md", help="Start it while others change the same definition.")
    labels: list[str] = described(
        list,
        option="--label",
        metavar="NAME",
        most=20,
        item_fault=label_fault,
        label="labels",
        see="#labels",
        help="A label, which may have a ladder of models in your config; may be given again.",
    )
    on: list[str] = described(
        list,
        metavar="LABEL",
        most=8,
        item_fault=lambda label: machine.label_fault(label) or None,
        needs=AgentNeed.AGENT,
        label="on",
        see="machines.md",
        help="A label, or the name, of the machine that its agents work on; may be given again.",
    )
    command: str = described(
        "", metavar="CMD", needs=AgentNeed.AGENT, see="drivers.md", help="Any program as the agent, for this ticket."
    )
    model: str = described("", metavar="M", needs=AgentNeed.MODELS, help="The model the agent should use.")
    max_attempts: int | None = described(
        None, metavar="N", least=1, most=20, see="attempts.md", help="How often it may be tried in all."
    )
    ask: bool = described(
        False,
        needs=AgentNeed.ASKS,
        see="claude.md",
        help="Its agent may ask you for what it is not allowed to do: `legion inbox`.",
    )
    plan_first: bool = described(
        False,
        needs=AgentNeed.READS_ONLY,
        see="agents.md#plans",
        help="Its agent only reads until you approve its plan: `legion approve`.",
    )
    budget: float | None = described(
        None,
        metavar="USD",
        above=0,
        most=MOST_BUDGET,
        needs=AgentNeed.BUDGETS,
        see="rhythm.md",
        help="Dollars that all its runs may cost together.",
    )
    review: str = described(
        "",
        choices=tuple(policy.value for policy in ReviewPolicy),
        see="review.md",
        help="Whether an independent reviewer reads its change; as the project says if left out.",
    )
    gate: str = described(
        "",
        choices=tuple(gate.value for gate in LandingGate),
        label="gate",
        see="landing.md#your-gate",
        help="Whether its change waits for `legion land`; as its epic or the project says if left out.",
    )
    worker_id: int | None = described(
        None,
        argument="WORKER",
        least=0,
        most=1_000_000,
        see="tools.md",
        help="Accepted from callers of legion_cc and without effect: the next free agent takes the ticket.",
    )


TICKET_FIELDS = fields_of(NewTicket)
"""The described fields by name."""


@dataclass(kw_only=True)
class Dispatch:
    """Many tickets at once, all or none. `request` makes a repeated call answer with the first result."""

    cwd: str
    tickets: list[NewTicket]
    request: str = ""
    to: str = ""
    """The standing agent that works on it: only for one ticket that can start now."""
    dry_run: bool = False
    """Check everything and create nothing."""


@dataclass(kw_only=True)
class Dispatched:
    schema: str = "legion.dispatched/1"
    ids: list[int]
    keys: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Things a person should know now: not trusted yet, red baseline, no sandbox."""
    planned: list[str] = field(default_factory=list)
    """Of a dry run: the tickets that it would create, in the order in which they can start."""


@dataclass(kw_only=True)
class ImportTicket:
    origin: str
    """Its name in the source, which stays the same: a second import finds the ticket by it."""
    ticket: NewTicket
    after: list[str] = field(default_factory=list)
    """Origins of tickets of the same tool."""
    folder: str = ""
    """A checkout of the project's repository whose files, also uncommitted ones, it starts from."""
    branch: str = ""
    """A branch of the project's repository that it starts from."""


@dataclass(kw_only=True)
class ImportTickets:
    """Work of another tool. What was imported before stays as it is."""

    cwd: str
    tool: str
    source: str = ""
    """Which source of the tool it is, where the origins of two of them may be the same."""
    tickets: list[ImportTicket]
    start: bool = False
    """Start it at once; else each ticket is paused until `legion resume N`."""
    dry_run: bool = False


@dataclass(kw_only=True)
class ImportedTicket:
    origin: str
    id: int | None
    """Null in a dry run, for one that is new."""
    new: bool
    note: str = ""


@dataclass(kw_only=True)
class Imported:
    schema: str = "legion.imported/1"
    tickets: list[ImportedTicket]
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class ImportLine:
    """One thing of a source, and what became of it."""

    what: str
    kind: str
    """`ticket`, `role`, `team`, `provider`, `machine`, `setting` or `left out`."""
    becomes: str
    new: bool = False
    note: str = ""


@dataclass(kw_only=True)
class ImportSource:
    tool: str
    place: str
    lines: list[ImportLine]


@dataclass(kw_only=True)
class ImportReport:
    """`legion import --json`."""

    schema: str = "legion.import/1"
    dry_run: bool
    sources: list[ImportSource]
    faults: list[str] = field(default_factory=list)
    """Files that could not be read, one sentence each."""
    also_there: list[str] = field(default_factory=list)
    """Commands for sources that may belong to another project."""


PLAIN_TICKET = (
    "cwd tickets request dry_run title text context criteria plan key after after_keys checkpoint epic priority labels "
    "max_attempts plan_first budget"
)
"""The fields of a new ticket that choose no program: none that is run, nor what reads or proves its work."""


class DispatchRows(Table):
    @operation("POST", "/v1/tickets", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain=PLAIN_TICKET, created=True)
    def dispatch(self, wanted: Dispatch, /) -> Dispatched:
        """Create tickets, all or none"""

    @operation("POST", "/v1/import", open_to=OpenTo.BROWSER, waits=True)
    def import_tickets(self, wanted: ImportTickets, /) -> Imported:
        """Create tickets for work of another tool, each of them once"""
