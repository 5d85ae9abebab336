"""Makes a template of an epic: its tickets as steps, with the conditions of the plans that they come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from legion.domain.errors import NotFound
from legion.domain.plans import toml_text
from legion.domain.plans.conditions import ResultCondition
from legion.domain.plans.draft import KEY, LONGEST_KEY, PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import GoalPlan
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Ticket
from legion.jobs.plan import facts
from legion.jobs.trees import Trees
from legion.service.plans import conversion
from legion.service.projects import registry
from legion.store.board import goals, tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.templates import TemplateText


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
