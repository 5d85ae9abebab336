"""Templates of plans, and routines, which start tickets by time or event."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.plans import PlanFindingLine, PlanPage, PlanTicketLine
from legion.wire.table import Folder, OpenTo, RoutineId, Table, operation

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
class TemplateLine:
    name: str
    about: str
    origin: str
    file: str
    variables: list[VariableLine]
    steps: list[str]
    fault: str = ""


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
    name: str
    values: dict[str, str] = field(default_factory=dict)
    team: str = ""
    epic: str = ""
    dry_run: bool = False


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
    starts: str
    """`every weekday 07:00`, `every 2 hours`, `on target-red`, `on failed-twice` or `on tag v*`."""
    what: str
    """The name of a template, or the text of one ticket."""
    values: dict[str, str] = field(default_factory=dict)
    """Variables of the template."""
    team: str = ""
    budget: float | None = None
    """Dollars of the ticket; of each one that a template has."""


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
        """Make a plan of a template, or only show it"""

    @operation("GET", "/v1/templates/from", open_to=OpenTo.LOOKS)
    def template_from(self, cwd: Folder, epic: str) -> TemplateText:
        """A template made of the tickets of an epic"""

    @operation("POST", "/v1/routines", open_to=OpenTo.BROWSER, created=True)
    def add_routine(self, wanted: AddRoutine, /) -> Routines:
        """Dispatch a ticket or a template by time or by event from now on"""

    @operation("GET", "/v1/routines", open_to=OpenTo.LOOKS)
    def routines(self, cwd: Folder) -> Routines:
        """The routines of a project, and their last starts"""

    @operation("POST", "/v1/routines/{id}/remove", open_to=OpenTo.BROWSER, asks="End {what}? Its tickets stay.")
    def remove_routine(self, id: RoutineId, wanted: wire.projects.Where, /) -> wire.projects.Done:
        """End a routine; its tickets stay"""

    @operation("POST", "/v1/routines/{id}/run", open_to=OpenTo.BROWSER)
    def run_routine(self, id: RoutineId, wanted: wire.projects.Where, /) -> Routines:
        """Start a routine now"""
