"""Templates of plans, and routines, which start tickets by time or event."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.bases import DefinitionLine
from legion.wire.lazy import dataclass
from legion.wire.plans import PlanFindingLine, PlanPage, PlanTicketLine
from legion.wire.table import Folder, OpenTo, RoutineId, Table, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class VariableLine:
    name: str
    type: str
    """text, number, flag, list or files."""
    default: str | None
    """As it would be given; null: it must be given."""
    choices: list[str]
    help: str


@dataclass(kw_only=True)
class TemplateLine(DefinitionLine):
    variables: list[VariableLine]
    steps: list[str]


@dataclass(kw_only=True)
class TemplateList:
    schema: str = "legion.templates/1"
    templates: list[TemplateLine]
    untrusted: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class TemplatePage:
    schema: str = "legion.template/1"
    template: TemplateLine
    text: str


@dataclass(kw_only=True)
class RunTemplate:
    cwd: str
    name: str = described(REQUIRED, argument="NAME", help="The template.")
    values: dict[str, str] = described(
        dict, option="--var", metavar="K=V", help="A value for a variable; may be given again."
    )
    team: str = described("", metavar="NAME", help="The team of the tickets.")
    epic: str = described("", metavar="NAME", help="The epic of the tickets; the plan's name if left out.")
    dry_run: bool = described(False, help="Show the tickets; no plan is stored.")


@dataclass(kw_only=True)
class ExpandedTemplate:
    schema: str = "legion.expanded/1"
    goal: str
    tickets: list[PlanTicketLine]
    findings: list[PlanFindingLine]
    plan: PlanPage | None
    """The plan that it became; null for a dry run."""


@dataclass(kw_only=True)
class TemplateText:
    schema: str = "legion.templatetext/1"
    text: str
    """TOML, for a file in `.legion/templates` or in your own folder of templates."""


@dataclass(kw_only=True)
class AddRoutine:
    cwd: str
    starts: str = described(REQUIRED, argument="WHEN", help="`every weekday 07:00`, `on failed-twice` or `on tag v*`.")
    what: str = described(REQUIRED, argument="TEMPLATE|TEXT", help="A template's name, or the text of one ticket.")
    values: dict[str, str] = described(
        dict, option="--var", metavar="K=V", help="A value for a variable of its template."
    )
    team: str = described("", metavar="NAME", help="The team of the tickets.")
    budget: float | None = described(None, metavar="USD", help="Dollars that each ticket may cost.")


@dataclass(kw_only=True)
class RoutineLine:
    id: int
    starts: str
    template: str
    """Empty: it dispatches one ticket with `text`."""
    text: str
    values: dict[str, str]
    team: str
    budget: float | None
    due_at: float | None
    """The next start; null where an event starts it."""
    last_at: float | None
    last_result: str
    last_tickets: list[int]
    runs: int


@dataclass(kw_only=True)
class Routines:
    schema: str = "legion.routines/1"
    routines: list[RoutineLine]


class TemplateRows(Table):
    """Routines dispatch with the person's own rights."""

    @operation("GET", "/v1/templates", open_to=OpenTo.LOOKS)
    def templates(self, cwd: Folder) -> TemplateList:
        """All templates, and where each is defined"""

    @operation("GET", "/v1/templates/page", open_to=OpenTo.LOOKS)
    def template(self, cwd: Folder, name: str) -> TemplatePage:
        """A template with its variables and its text"""

    @operation("POST", "/v1/templates/run", open_to=OpenTo.BROWSER, created=True)
    def run_template(self, wanted: RunTemplate, /) -> ExpandedTemplate:
        """Make a plan of a template. Nothing starts until you approve it: `legion approve P3`"""

    @operation("GET", "/v1/templates/from", open_to=OpenTo.LOOKS)
    def template_from(self, cwd: Folder, epic: str) -> TemplateText:
        """Print a template of what was done: the tickets of an epic as steps. Put variables into it by hand"""

    @operation("POST", "/v1/routines", open_to=OpenTo.BROWSER, created=True)
    def add_routine(self, wanted: AddRoutine, /) -> Routines:
        """Dispatch a ticket, or a template, by time or by event from now on. TEXT may be - for stdin

        WHEN is a time of this machine's zone (`every day 07:00`, `every weekday 07:00`, `every monday,thursday 9:30`,
        `every 2 hours`) or an event (`on target-red`, `on failed-twice`, `on tag 'v*'`). Times that were missed are
        one start. While a ticket of the last start is open, it does not start again. A template's plan is approved if
        it has no findings.
        """

    @operation("GET", "/v1/routines", open_to=OpenTo.LOOKS)
    def routines(self, cwd: Folder) -> Routines:
        """The routines of this project: when each starts next, and what its last start led to"""

    @operation("POST", "/v1/routines/{id}/remove", open_to=OpenTo.BROWSER, asks="End {what}? Its tickets stay.")
    def remove_routine(self, id: RoutineId, wanted: wire.projects.Where, /) -> wire.projects.Done:
        """End a routine. Its tickets stay"""

    @operation("POST", "/v1/routines/{id}/run", open_to=OpenTo.BROWSER)
    def run_routine(self, id: RoutineId, wanted: wire.projects.Where, /) -> Routines:
        """Start a routine now. Its next start by time stays as it is"""
