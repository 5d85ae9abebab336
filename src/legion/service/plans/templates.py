"""Templates: list, show, check and expand them, and make one of an epic."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from legion.config.files import templates
from legion.config.files.teams import DefinitionKind
from legion.config.files.templates import Templates
from legion.domain.errors import BadInput, NotFound
from legion.domain.plans import expansion, toml_text
from legion.domain.plans.checks import findings
from legion.domain.plans.conditions import ResultCondition
from legion.domain.plans.draft import KEY, LONGEST_KEY, PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import GoalPlan
from legion.domain.plans.template import Template, Value, Variable
from legion.domain.projects import Project
from legion.domain.review.path_patterns import matches
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Ticket
from legion.jobs.agent import teams
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.landing import target
from legion.jobs.plan import facts
from legion.jobs.trees import ProjectContext, Trees
from legion.service.plans import conversion, create, pages
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.store.board import goals, tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.templates import (
    ExpandedTemplate,
    RunTemplate,
    TemplateLine,
    TemplateList,
    TemplatePage,
    TemplateText,
    VariableLine,
)


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


@dataclass(frozen=True, kw_only=True)
class _Origin:
    """The proposal that became a ticket."""

    plan: GoalPlan
    proposal: PlanTicket
    numbers: Mapping[str, int]
    """The tickets of that plan, by key."""

    @property
    def when(self) -> ResultCondition | None:
        return self.proposal.when

    @property
    def conditional(self) -> list[int]:
        """Tickets that it comes after and that have a condition: the board forgets those that were not needed."""
        proposals = self.plan.draft.tickets if self.plan.draft else ()
        named = [one.key for one in proposals if one.when is not None and one.key in self.proposal.after]
        return [self.numbers[key] for key in named if key in self.numbers]


def from_epic(context: Trees, cwd: str, epic: str) -> TemplateText:
    """A template of what was done: the tickets of an epic as steps."""
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        mine = [one for one in tickets.of_epic(tx, project.id, epic) if one.spec.undoes is None] if epic else []
        origins = {one.id: origin for one in mine if (origin := _origin(tx, one.id)) is not None}
    if not mine:
        raise NotFound(f"There is no epic {epic[:60]!r}: see `legion usage --by epic`.")
    landed = context.project_of(project)
    there = facts.all_files(landed.hub.path, landed.target)
    return TemplateText(text=_as_template(epic, mine, origins, there))


def _origin(tx: ReadTransaction, ticket: int) -> _Origin | None:
    found = goals.origin_of(tx, ticket)
    if found is None:
        return None
    plan = goals.get(tx, found[0])
    proposal = next((one for one in (plan.draft.tickets if plan.draft else ()) if one.key == found[1]), None)
    return None if proposal is None else _Origin(plan=plan, proposal=proposal, numbers=goals.dispatched(tx, plan.id))


def _as_template(epic: str, mine: Sequence[Ticket], origins: Mapping[int, _Origin], there: Collection[str]) -> str:
    keys: dict[int, str] = {}
    for ticket in mine:
        keys[ticket.id] = _key(ticket.spec.title, set(keys.values()))
    steps = tuple(_step(ticket, origins.get(ticket.id), keys, there) for ticket in mine)
    text = toml_text.write(PlanDraft(tickets=steps))
    steps_text = text.replace("[[ticket]]", "[[step]]").replace("\nafter = ", "\nneeds = ")
    head = f'about = "Made of the epic {_plain(epic)}."\ngoal = "{_plain(epic)}"\n\n'
    hint = "# Put variables in place of what differs: [variables.name], then {{name}} in the texts.\n\n"
    return head + hint + steps_text


def _step(ticket: Ticket, origin: _Origin | None, keys: Mapping[int, str], there: Collection[str]) -> PlanTicket:
    spec = ticket.spec
    after = dict.fromkeys([*spec.after, *(origin.conditional if origin else ())])
    made = PlanTicket(
        key=keys[ticket.id],
        title=spec.title,
        text=spec.text,
        context=spec.context,
        plan=spec.plan,
        criteria=tuple(
            PlanCriterion(text=words, proof=next((one.by for one in spec.bound if one.criterion == n), ""))
            for n, words in enumerate(criteria_of(spec.criteria))
        ),
        files=spec.files,
        after=tuple(keys[other] for other in after if other in keys),
        checkpoint=spec.checkpoint,
        labels=spec.labels,
    )
    if origin is None:
        return made
    # The ticket does not declare the protected files of its proposal.
    files = dict.fromkeys([*spec.files, *origin.proposal.touches])
    new = tuple(path for path in files if path in origin.proposal.new_files and path not in there)
    made = replace(made, files=tuple(path for path in files if path not in new), new_files=new)
    return _with_proposal(made, ticket, origin, keys)


def _with_proposal(made: PlanTicket, ticket: Ticket, origin: _Origin, keys: Mapping[int, str]) -> PlanTicket:
    """With what only the proposal holds: the condition, and why a criterion has no proof."""
    reasons = {one.text: one.why_not for one in origin.proposal.criteria}
    when = origin.when
    about = [origin.numbers[key] for key in when.steps if key in origin.numbers] if when else []
    steps = tuple(keys[number] for number in about if number in keys)
    unchanged = ticket.spec.text == conversion.ticket_text(origin.plan, origin.proposal)
    return replace(
        made,
        # The request for a result is added again when the template becomes tickets.
        text=origin.proposal.text if unchanged else made.text,
        criteria=tuple(one if one.proof else replace(one, why_not=reasons.get(one.text, "")) for one in made.criteria),
        after=tuple(key for key in made.after if key not in steps),
        when=replace(when, steps=steps) if when and steps else None,
    )


def _plain(text: str) -> str:
    return re.sub(r"[^\w .,:-]", " ", text)[:100]


def _key(title: str, taken: Collection[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[: LONGEST_KEY - 4].strip("-")
    base = base if KEY.fullmatch(base) else "step"
    return next(key for key in (base, *(f"{base}-{n}" for n in range(2, 10_000))) if key not in taken)
