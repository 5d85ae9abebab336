"""Shapes of requests and answers about templates."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass
from legion.wire.plans import PlanFindingLine, PlanPage, PlanTicketLine


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
