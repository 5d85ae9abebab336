"""Describes the run of a planner, or of an epic's last reader: its own checkout of the target, program and prompt.

It gets no token.
"""

from __future__ import annotations

import json
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import median

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING, Role
from legion.domain.leader.briefing import epic_lines, within
from legion.domain.leader.digest import one_line
from legion.domain.notes import fitting, format_for_agent, format_note, in_order
from legion.domain.plans import draft
from legion.domain.plans.checks import words_of
from legion.domain.plans.plan import LEAST, GoalPlan, PlanSource
from legion.domain.plans.specification import SpecStage, last_of, next_stage
from legion.domain.questions import Question
from legion.domain.runs import PLANNER
from legion.domain.tickets.ticket import State, Ticket
from legion.drivers.profile import RunInput
from legion.jobs.agent import spec, teams
from legion.jobs.agent.mail_prompt import quoted
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.board import Board
from legion.jobs.leader import facts as leader
from legion.jobs.trees import ProjectContext
from legion.store.board import goals, notes, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage


@dataclass(frozen=True, kw_only=True)
class PlannerPrompts:
    first: str
    again: str
    """For a conversation that resumes."""
    rules: str


def place(context: Board, project: ProjectContext, plan: GoalPlan) -> Workplace:
    """A checkout of the target. Dependencies only for a program that could run something."""
    chosen = _program(context, project, plan)
    runs_something = not chosen.capabilities.reads_only
    return Workplace(
        program=chosen,
        title=plan.name,
        base=project.target,
        has_setup=runs_something,
        has_environment=runs_something,
        variables={"LEGION_ROLE": PLANNER, "LEGION_PLAN": plan.name, "LEGION_ROUND": str(plan.rounds + 1)},
    )


def _program(context: Board, project: ProjectContext, plan: GoalPlan) -> AgentProgram:
    role = _role(context, project, plan)
    driver = (role.driver or context.user.reviewer.driver) if role else ""
    return spec.choose_program(context, project.config, "", driver or context.user.planner.driver or CLAUDE)


def _role(context: Board, project: ProjectContext, plan: GoalPlan) -> Role | None:
    """That of reviewers for a last reader; a planner has none."""
    return teams.reviewer(context, project).role if plan.source is PlanSource.READ else None


def prepared_input(context: Board, project: ProjectContext, plan: GoalPlan) -> PreparedInput:
    with context.store.read() as tx:
        asked = prompts(project, tx, plan)
        spent = usage.of_plan(tx, plan.id).usd
    role, own = _role(context, project, plan), context.user.planner.model
    given = RunInput(
        prompt=asked.first,
        resume_prompt=asked.again,
        rules=f"{asked.rules}\n\n{role.prompt}".strip() if role else asked.rules,
        model=plan.model or (role.model or context.user.reviewer.model if role else "") or own,
        provider=role.provider if role else "",
        allowance=plan.budget,
        spent=spent,
        tools=READING,
        role=PLANNER,
    )
    return PreparedInput(program=_program(context, project, plan), input=given)


def stage_of(tx: ReadTransaction, plan: GoalPlan) -> SpecStage | None:
    """The document that is written next; None: the plan itself is made."""
    return next_stage(goals.documents_of(tx, plan.id), short=plan.short) if plan.spec else None


def prompts(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> PlannerPrompts:
    material = _material(project, tx, plan)
    stage = stage_of(tx, plan)
    if plan.source is PlanSource.READ:
        text = read_prompt(material, _specifications(tx, plan))
        return PlannerPrompts(first=text, again=text, rules=_PROMPTS["read_rules"])
    if stage is None:
        return PlannerPrompts(first=first(material), again=again(material), rules=_PROMPTS["rules"])
    documents = goals.documents_of(tx, plan.id)
    text = first_spec(plan, stage, documents, material.answers, material.complaint)
    if not documents or stage is SpecStage.RESEARCH:
        text = f"{text}\n{material.known}\n"
    return PlannerPrompts(first=text, again=text, rules=_PROMPTS["spec_rules"])


def _material(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> PlanMaterial:
    limits, rounds = project.config.plans, goals.rounds(tx, plan.id)
    asked = [questions.by_key(tx, key) for key in plan.asked]
    last = rounds[-1] if rounds and plan.tries else None
    return PlanMaterial(
        specification=material(goals.documents_of(tx, plan.id)) if plan.spec else "",
        plan=plan,
        checks=[(check.name, check.command) for check in project.config.checks],
        most_files=limits.most_files,
        most_lines=limits.most_lines,
        approved=tuple(goals.dispatched(tx, plan.id)),
        answers=[one for one in asked if one is not None],
        complaint=last.message if last is not None and not last.usable else "",
        tickets=_tickets(tx, plan),
        known=_known(project, tx, plan),
    )


_FOR_TICKETS, _FOR_EPICS, _FOR_NOTES = 4500, 1200, 1200
"""Characters. With the memories it is less than 3,000 tokens, however large the board is."""
_PAST = 10


def _known(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> str:
    """Open tickets, those that share words with the goal first; epics; memories and lessons; the leader's notes."""
    live, said = tickets.live(tx, project=plan.project), words_of(plan.goal)
    near = sorted(live, key=lambda one: (-len(words_of(one.spec.title) & said), -one.id))
    epics = epic_lines(leader.open_epics(tx, plan.project, live), _FOR_EPICS)
    memories = fitting(notes.for_agents(tx, plan.project), ["**"], [], plan.goal)
    leaders = [f"- {format_note(one)}" for one in in_order(notes.for_leaders(tx, plan.project))]
    parts = {
        "Open tickets. What they do is no part of your plan; what needs it names their number in `after`": within(
            [_open_ticket(one) for one in near], _FOR_TICKETS
        ),
        "Epics that are not complete": epics,
        "What the agents of this project should know": [f"- {format_for_agent(one)}" for one in memories],
        "Decisions, promises and threads": within(leaders, _FOR_NOTES),
    }
    text = "\n".join(line for title, lines in parts.items() if lines for line in (f"{title}:", *lines))
    quoted_text = _quote(text, "the board and notes") if text else ""
    return "\n\n".join(part for part in (_sizes(project, tx, plan), quoted_text) if part)


def _open_ticket(one: Ticket) -> str:
    files = f"; files {', '.join(one.spec.files[:6])}" if one.spec.files else ""
    after = f"; after {', '.join(map(str, one.spec.after))}" if one.spec.after else ""
    return f"- {one.id} ({one.state.value}) {one_line(one.spec.title, 100)}{files[:200]}{after[:60]}"


def _sizes(project: ProjectContext, tx: ReadTransaction, plan: GoalPlan) -> str:
    landed = goals.landed(tx, plan.project)
    if len(landed) < LEAST:
        return ""
    last = [one.change for one in tickets.recent(tx, plan.project, _PAST, state=State.DONE) if one.change is not None]
    files = [len(project.hub.changed_files(one.base, one.commit)) for one in last]
    usd, minutes = median(one.usd for one in landed), median(one.seconds for one in landed) / 60
    changed = f" and changed {median(files):.0f} files, at most {max(files)}" if files else ""
    return f"## Size\nTickets that landed here usually took {minutes:.0f} minutes and ${usd:.2f}{changed}."


def _tickets(tx: ReadTransaction, plan: GoalPlan) -> tuple[Ticket, ...]:
    if plan.source is PlanSource.SPLIT and plan.about is not None:
        return (tickets.get(tx, plan.about),)
    if plan.source in (PlanSource.EPIC, PlanSource.READ):
        return tickets.of_epic(tx, plan.project, plan.epic)
    return ()


def _specifications(tx: ReadTransaction, plan: GoalPlan) -> str:
    """Those that the plans of its epic were made from."""
    branches = projects.sessions_of(tx, projects.get(tx, plan.project).common_dir)
    of_epic = [one for branch in branches for one in goals.of_epic(tx, branch.id, plan.epic) if one.spec]
    return "\n\n".join(material(goals.documents_of(tx, one.id), also=()) for one in of_epic)


# Builds a planner's prompt: its rules, the goal, what was answered, found and asked for, and the form of its answer.
#
# Texts of tickets and repositories are wrapped in random markers that their authors could not have guessed.

_LONGEST_TEXT = 6000
_MOST_TICKETS = 60
_PROMPTS = tomllib.loads(files("legion.jobs.plan").joinpath("prompts.toml").read_text("utf-8"))


@dataclass(frozen=True, kw_only=True)
class PlanMaterial:
    """Everything that a planner's prompt is built from."""

    plan: GoalPlan
    checks: Sequence[tuple[str, str]]
    """Names and commands of the project's checks."""
    most_files: int
    most_lines: int
    approved: Sequence[str] = ()
    """Keys that were dispatched."""
    answers: Sequence[Question] = ()
    """What the planner asked, settled."""
    complaint: str = ""
    """Why its last answer could not be used."""
    tickets: Sequence[Ticket] = ()
    """Of a split: the ticket. Of an epic: its tickets."""
    specification: str = ""
    """What was written before, as material; empty where there is none."""
    known: str = ""
    """What is on the board, and what the project knows."""


def first(material: PlanMaterial) -> str:
    """For a conversation that starts: everything."""
    plan = material.plan
    parts = [_heading(plan), plan.goal.strip()]
    parts += [_board(material)] if material.tickets else []
    parts += [f"## The specification\n{material.specification}"] if material.specification else []
    listed = "\n".join(f"- [{name}]: `{command}`" for name, command in material.checks)
    parts.append(f"## The project's checks\n{listed or 'There are none.'}")
    most = f"at most {material.most_files} files and {material.most_lines} lines"
    parts.append(f"## Limits\nA plan has at most {draft.MOST_TICKETS} tickets, and each is expected to change {most}.")
    parts += [material.known] if material.known else []
    if plan.draft is not None:
        last = json.dumps(draft.record(plan.draft), indent=1, ensure_ascii=False)
        parts.append(f"## The last plan\n{_quote(last, 'plan')}")
    parts += _news(material)
    return _with_form(parts, material)


def again(material: PlanMaterial) -> str:
    """For a conversation that resumes: what is new."""
    news = _news(material)
    if not news:
        return f"You were cut off, through no fault of yours. This is what is asked of you.\n\n{first(material)}"
    return _with_form(news, material)


def _heading(plan: GoalPlan) -> str:
    match plan.source:
        case PlanSource.SPLIT:
            return f"# Split ticket {plan.about} into several smaller ones that together do the same"
        case PlanSource.EPIC:
            return f"# Plan what is left of the epic {plan.epic}\n{_PROMPTS['only_changes']}"
        case _:
            return "# Make a plan for this goal"


def _board(material: PlanMaterial) -> str:
    shown = []
    for ticket in material.tickets[:_MOST_TICKETS]:
        spec = ticket.spec
        lines = [f"{ticket.state.value}, attempt {ticket.attempt}", spec.text, spec.context, spec.criteria]
        lines += [f"Why: {ticket.reason}" if ticket.reason else "", ticket.feedback]
        text = "\n".join(line for line in lines if line.strip())[:_LONGEST_TEXT]
        shown.append(_quote(text, f"ticket {ticket.id}, {spec.title}"))
    return "\n\n".join(shown)


def _news(material: PlanMaterial) -> list[str]:
    """What the planner does not know yet, the latest last."""
    plan, parts = material.plan, []
    if material.answers and not plan.rounds:
        parts.append(f"## Your questions were answered\n{_answered(material.answers)}")
    if plan.guidance and not plan.tries:
        parts.append(f"## The person sends the plan back\n{plan.guidance}")
        if material.approved:
            parts.append(f"These tickets are approved and stay as they are: {', '.join(material.approved)}.")
    if material.complaint:
        parts.append(f"Your last answer cannot be used, because {material.complaint}. Answer once more.")
    elif plan.findings:
        lines = [f"- {f'`{one.ticket}`: ' if one.ticket else ''}{one.text}" for one in plan.findings]
        parts.append("## Your plan was checked\nAnswer once more with the complete plan, without these faults:")
        parts.append("\n".join(lines))
    return parts


def _answered(questions: Sequence[Question]) -> str:
    return "\n".join(f"- {one.words}\n  {one.choice}{f' ({one.why})' if one.why else ''}" for one in questions)


def _with_form(parts: Sequence[str], material: PlanMaterial) -> str:
    ask = [_PROMPTS["ask_form"]] if material.plan.may_ask else []
    return "\n\n".join([*parts, f"## Your answer\n{_PROMPTS['form']}", *ask]) + "\n"


def _quote(text: str, about: str) -> str:
    return quoted(text, source="the board", id=secrets.token_hex(6), about=about)


# Builds the prompt of one stage of a specification: its task, the goal, and the documents before it.


_TITLES = {
    SpecStage.GATHER: "requirements",
    SpecStage.RESEARCH: "research",
    SpecStage.WRITE: "specification",
    SpecStage.CRITICISE: "corrected specification",
}


def first_spec(
    plan: GoalPlan, stage: SpecStage, documents: Mapping[SpecStage, str], answers: Sequence[Question], complaint: str
) -> str:
    parts = [
        _PROMPTS["tasks"][stage.value],
        plan.goal.strip(),
        *(_document(one, text) for one, text in documents.items()),
    ]
    if answers:
        parts.append(f"## Questions that the person answered\n{_answered(answers)}")
    if plan.guidance:
        parts.append(f"## The person sends the specification back\n{plan.guidance}")
    if complaint:
        parts.append(f"Your last answer cannot be used, because {complaint}. Answer once more.")
    return "\n\n".join([*parts, *([_PROMPTS["ask_form"]] if plan.may_ask else [])]) + "\n"


def material(documents: Mapping[SpecStage, str], also: Sequence[SpecStage] = (SpecStage.RESEARCH,)) -> str:
    """For the planner: what its plan has to reach. Empty where there is no specification."""
    if not documents:
        return ""
    kept = [stage for stage in (*also, last_of(documents)) if stage in documents]
    return "\n\n".join(_document(stage, documents[stage]) for stage in kept)


def _document(stage: SpecStage, text: str) -> str:
    return quoted(text, source="the planner", id=secrets.token_hex(6), about=_TITLES[stage])


# Builds the prompt of an epic's last reader: what was asked for, what became of it, and the form of its answer.


def read_prompt(material: PlanMaterial, specifications: str) -> str:
    plan = material.plan
    parts = [f"# What became of this goal?\n{plan.goal.strip()}"]
    parts += [f"## The specification\n{specifications}"] if specifications else []
    parts += [f"## The tickets that it became\n{_board(material)}"] if material.tickets else []
    listed = "\n".join(f"- [{name}]: `{command}`" for name, command in material.checks)
    parts.append(f"## The project's checks, which pass\n{listed or 'There are none.'}")
    parts += _news(material)
    ticket = _PROMPTS["form"].partition('"tickets": [')[2].removesuffix("]}")
    return "\n\n".join([*parts, f"## Your answer\n{_PROMPTS['read_form']}{ticket}"]) + "\n"
