"""Templates: list, show, check and expand them, and make one of an epic."""

from __future__ import annotations

import re
from collections.abc import Collection

from legion.config.files import templates as files
from legion.config.files.teams import DefinitionKind
from legion.config.files.templates import Templates
from legion.domain.errors import BadInput, NotFound
from legion.domain.plans import expansion, toml_text
from legion.domain.plans.checks import findings
from legion.domain.plans.draft import KEY, LONGEST_KEY, PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import GoalPlan
from legion.domain.plans.template import Template, Value, Variable
from legion.domain.projects import Project
from legion.domain.review.path_patterns import matches
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Ticket
from legion.jobs.agent import teams
from legion.jobs.context import Context, ProjectContext
from legion.jobs.landing import upstream
from legion.jobs.plan import facts
from legion.service.plans import create, pages
from legion.service.projects import registry
from legion.store.board import tickets
from legion.wire.templates import (
    ExpandedTemplate,
    RunTemplate,
    TemplateLine,
    TemplateList,
    TemplatePage,
    TemplateText,
    VariableLine,
)


def template_list(context: Context, cwd: str) -> TemplateList:
    project = _project(context, registry.find(context, cwd))
    known = _known(context, project)
    untrusted = [one.file for one in teams.untrusted(context, project) if one.kind is DefinitionKind.TEMPLATE]
    names = sorted({*known.sources, *known.faults})
    return TemplateList(templates=[_line(known, name) for name in names], untrusted=untrusted)


def template_page(context: Context, cwd: str, name: str) -> TemplatePage:
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
        upstream.fetch(context, project)
        plan = GoalPlan(id=0, project=record.id, goal=goal, team=wanted.team, draft=draft)
        check = facts.checker(context, project, plan)
        with context.store.read() as tx:
            found = findings(draft, check(tx, plan))
        shown = [pages.ticket_line(project, one, {}, {}) for one in draft.tickets]
        lines = [pages.finding_line(one) for one in found]
        return ExpandedTemplate(goal=goal, tickets=shown, findings=lines, plan=None)
    page = create.from_draft(context, record, goal, draft, team=wanted.team, epic=wanted.epic)
    return ExpandedTemplate(goal=goal, tickets=page.tickets, findings=page.findings, plan=page)


def from_epic(context: Context, cwd: str, epic: str) -> TemplateText:
    """A template of what was done: the tickets of an epic as steps."""
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        mine = [one for one in tickets.of_epic(tx, project.id, epic) if one.spec.undoes is None] if epic else []
    if not mine:
        raise NotFound(f"There is no epic {epic[:60]!r}: see `legion usage --by epic`.")
    return TemplateText(text=_as_template(epic, mine))


def _as_template(epic: str, mine: list[Ticket]) -> str:
    keys: dict[int, str] = {}
    for ticket in mine:
        keys[ticket.id] = _key(ticket.spec.title, set(keys.values()))
    steps = tuple(
        PlanTicket(
            key=keys[ticket.id],
            title=ticket.spec.title,
            text=ticket.spec.text,
            context=ticket.spec.context,
            plan=ticket.spec.plan,
            criteria=tuple(
                PlanCriterion(
                    text=words,
                    proof=next((one.by for one in ticket.spec.bound if one.criterion == n), ""),
                )
                for n, words in enumerate(criteria_of(ticket.spec.criteria))
            ),
            files=ticket.spec.files,
            after=tuple(keys[other] for other in ticket.spec.after if other in keys),
            checkpoint=ticket.spec.checkpoint,
            labels=ticket.spec.labels,
        )
        for ticket in mine
    )
    text = toml_text.write(PlanDraft(tickets=steps))
    steps_text = text.replace("[[ticket]]", "[[step]]").replace("\nafter = ", "\nneeds = ")
    head = f'about = "Made of the epic {_plain(epic)}."\ngoal = "{_plain(epic)}"\n\n'
    hint = "# Put variables in place of what differs: [variables.name], then {{name}} in the texts.\n\n"
    return head + hint + steps_text


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:-]", " ", text)[:100]


def _key(title: str, taken: Collection[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[: LONGEST_KEY - 4].strip("-")
    base = base if KEY.fullmatch(base) else "step"
    return next(key for key in (base, *(f"{base}-{n}" for n in range(2, 10_000))) if key not in taken)


def _project(context: Context, project: Project) -> ProjectContext:
    return context.project_of(project)


def _known(context: Context, project: ProjectContext) -> Templates:
    return files.templates(teams.definitions(context, project))


def _finder(project: ProjectContext) -> expansion.Files:
    there = sorted(facts.all_files(project.hub.path, project.target))
    return lambda pattern: [file for file in there if matches(file, (pattern,))]


def _line(known: Templates, name: str) -> TemplateLine:
    source = known.sources.get(name)
    origin, file = (source.origin.value, source.file) if source else ("yours", "")
    try:
        template = known.get(name)
    except BadInput as wrong:
        own = known.parsed.get(name, Template(name=name))
        return TemplateLine(
            name=name, about=own.about, origin=origin, file=file, variables=[], steps=[], fault=wrong.message
        )
    return TemplateLine(
        name=name,
        about=template.about,
        origin=origin,
        file=file,
        variables=[_variable(one) for one in template.variables],
        steps=[step.key for step in template.steps],
    )


def _variable(one: Variable) -> VariableLine:
    default = None if one.default is None else _shown(one.default)
    return VariableLine(name=one.name, type=one.type.value, default=default, choices=list(one.choices), help=one.help)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)
