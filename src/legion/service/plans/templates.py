"""Templates: list, show, check and expand them."""

from __future__ import annotations

from legion.config.files import templates
from legion.config.files.teams import DefinitionKind
from legion.config.files.templates import Templates
from legion.domain.errors import BadInput
from legion.domain.plans import expansion
from legion.domain.plans.checks import findings
from legion.domain.plans.plan import GoalPlan
from legion.domain.plans.template import Template, Value, Variable
from legion.domain.projects import Project
from legion.domain.review.path_patterns import matches
from legion.jobs.agent import teams
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.landing import target
from legion.jobs.plan import facts
from legion.jobs.trees import ProjectContext, Trees
from legion.service.plans import create, pages
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.wire.templates import ExpandedTemplate, RunTemplate, TemplateLine, TemplateList, TemplatePage, VariableLine


def template_list(context: Trees, cwd: str) -> TemplateList:
    project = _project(context, registry.find(context, cwd))
    known = _known(context, project)
    untrusted = [one.file for one in teams.untrusted(context, project) if one.kind is DefinitionKind.TEMPLATE]
    names = sorted({*known.sources, *known.faults})
    return TemplateList(templates=[_line(known, name) for name in names], untrusted=untrusted)


def template_page(context: Trees, cwd: str, name: str) -> TemplatePage:
    """Raises BadInput for an unknown one. A broken one is shown with its fault."""
    known = _known(context, _project(context, registry.find(context, cwd)))
    if name not in known.sources:
        known.get(name)
    return TemplatePage(template=_line(known, name), text=known.sources[name].text)


def run(context: Context, wanted: RunTemplate) -> ExpandedTemplate:
    """Expand a template to a plan, which goes the way of every plan; with `dry_run` nothing is stored."""
    record = registry.find(context, wanted.cwd)
    project = _project(context, record)
    template = _known(context, project).get(wanted.name)
    draft = expansion.expand(template, wanted.values, _finder(project))
    goal = draft.summary
    if wanted.dry_run:
        target.fetch(context, project)
        plan = GoalPlan(id=0, project=record.id, goal=goal, team=wanted.team, draft=draft)
        check = facts.checker(context, project, plan, draft)
        with context.store.read() as tx:
            known = check(tx, plan)
        found = findings(draft, known)
        shown = [pages.ticket_line(project, one, {}, {}, known.trials) for one in draft.tickets]
        lines = [pages.finding_line(one) for one in found]
        return ExpandedTemplate(goal=goal, tickets=shown, findings=lines, plan=None)
    page = create.from_draft(context, record, goal, draft, team=wanted.team, epic=wanted.epic)
    return ExpandedTemplate(goal=goal, tickets=page.tickets, findings=page.findings, plan=page)


def _project(context: Trees, project: Project) -> ProjectContext:
    return context.project_of(project)


def _known(context: Board, project: ProjectContext) -> Templates:
    return templates.templates(teams.definitions(context, project))


def _finder(project: ProjectContext) -> expansion.Files:
    there = sorted(facts.all_files(project.hub.path, project.target))
    return lambda pattern: [file for file in there if matches(file, (pattern,))]


def _line(known: Templates, name: str) -> TemplateLine:
    source, fault = known.sources.get(name), ""
    origin, file = (source.origin.value, source.file) if source else ("yours", "")
    try:
        template = known.get(name)
    except BadInput as wrong:
        fault, template = wrong.message, Template(name=name, about=known.parsed.get(name, Template(name=name)).about)
    return TemplateLine(
        name=name,
        about=template.about,
        origin=origin,
        file=file,
        variables=[_variable(one) for one in template.variables],
        steps=[step.key for step in template.steps],
        fault=fault,
    )


def _variable(one: Variable) -> VariableLine:
    default = None if one.default is None else _shown(one.default)
    return shaped(VariableLine, one, default=default)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)
