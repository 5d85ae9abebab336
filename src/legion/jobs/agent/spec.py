"""Chooses the agent program of a ticket, and says what the run that works on it is asked and where it may look."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.agents.agent import STANDING
from legion.domain.agents.teams import RolePart
from legion.domain.errors import LegionError, NotFound
from legion.domain.events import EventKind
from legion.domain.notes import fitting, format_for_agent
from legion.domain.runs import Outcome, Run
from legion.domain.takeovers import TakeoverMode
from legion.domain.tickets.ticket import Ticket
from legion.drivers import registry
from legion.drivers.profile import DriverProfile, RunInput
from legion.jobs.agent import model_run, plan_approval, teams, tool_access
from legion.jobs.agent.briefing import ADOPTED_TEXT, RULES, briefing
from legion.jobs.agent.model_run import AgentProgram, PreparedInput, RunPaths
from legion.jobs.agent.resume_prompt import is_first, resume_prompt
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import adopted, environment, linked_projects, rewind_points, sandbox
from legion.jobs.workspace.environment import WorkspaceEnv
from legion.store import events
from legion.store.board import goals, notes, plan_approvals, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import adoptions, rewinds, runs, takeovers, usage


class NoProgram(LegionError):
    """No agent program was chosen."""


def choose_program(context: Board, config: ProjectConfig, command: str, driver: str) -> AgentProgram:
    """The ticket's own command, else the driver it names, else the default one."""
    timeout = config.agents.timeout
    if command:
        return AgentProgram(driver=_plain(), argv=("sh", "-c", command), timeout=timeout)
    if driver == STANDING:
        return AgentProgram(driver=registry.default(), timeout=timeout)
    try:
        name = context.user.driver_name(driver, config.agents.driver)
    except NotFound as missing:
        raise NoProgram(f"{missing.message.rstrip('.')}, or pass --command to dispatch.") from missing
    own = context.user.drivers.get(name)
    if own is None:
        built_in = registry.find(name)
        assert built_in is not None, "driver_name returns a driver that exists"
        return AgentProgram(driver=built_in, timeout=timeout)
    return AgentProgram(driver=registry.PROFILES[own.driver], name=name, argv=own.argv, timeout=own.timeout or timeout)


def of_ticket(context: Trees, project: ProjectContext, ticket: Ticket) -> AgentProgram:
    """The program of who makes its change."""
    role = teams.maker(context, project, ticket)
    own = role.role.driver if role.part is RolePart.RESOLVE else ""
    driver = own or escalation.driver(context, ticket) or ticket.spec.driver
    return choose_program(context, project.config, ticket.spec.command, driver)


def prepared_input(
    context: Trees, project: ProjectContext, ticket: Ticket, this_run: Run, paths: RunPaths | None
) -> PreparedInput:
    """`paths` is None for a run on another machine, where no person sits and no states of its tree are recorded."""
    chosen = of_ticket(context, project, ticket)
    if paths is None:
        return PreparedInput(program=chosen, input=_input(context, project, ticket, this_run, chosen, None))
    with context.store.read() as tx:
        attended = takeovers.of_ticket(tx, ticket.id)
        origin = adoptions.by_conversation(tx, this_run.conversation)
    if attended is not None and not attended.opens(this_run.id):
        attended = None
    if attended is not None and chosen.driver is _plain():
        chosen = replace(chosen, driver=registry.PROFILES[registry.TERMINAL])
    if origin is not None:
        adopted.hand_over(project, chosen.driver, origin.source, paths.state, paths.tree)
    adopted.take_back(chosen.driver, paths.state, this_run.conversation, paths.tree)
    input = _input(context, project, ticket, this_run, chosen, paths.tree)
    if attended is None:
        input = with_source(context, project, ticket, this_run, chosen, input, paths)
    elif attended.mode is TakeoverMode.PERSON and not ticket.spec.text and not ticket.feedback:
        # The person writes the first message.
        input = replace(input, prompt="")
    return PreparedInput(program=chosen, input=input, attended=attended)


def run_paths(
    context: Trees,
    project: ProjectContext,
    this_run: Run,
    chosen: AgentProgram,
    tree: Path,
    given: Path,
    env: WorkspaceEnv,
    **identity: str,
) -> RunPaths:
    """The folders, variables and sandbox of a run of a ticket, whatever its part."""
    state = project.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = {
        "LEGION_TICKET": environment.owner(this_run),
        "LEGION_ATTEMPT": str(this_run.attempt),
        "LEGION_STATE": str(state),
    }
    linked = linked_projects.write(context, project, given)
    if linked:
        own[linked_projects.VARIABLE] = str(given / linked_projects.FOLDER)
    variables = sandbox.environment(context, project, {**own, **identity, **env.env})
    readable = (given, *linked, *_own_file(chosen))
    box = sandbox.sandbox(context, project, writable=(tree, state, *env.writable), readable=readable)
    return RunPaths(tree=tree, state=state, given=given, env=variables, sandbox=box)


def _input(
    context: Trees, project: ProjectContext, ticket: Ticket, this_run: Run, chosen: AgentProgram, tree: Path | None
) -> RunInput:
    """`tree` is None for a run on another machine, where no states of it are recorded."""
    crew, stage = teams.of_ticket(context, ticket), teams.maker(context, project, ticket)
    own = stage.role.model if stage.part is RolePart.RESOLVE else ""
    with context.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
        tried, advice = escalation.tried(tx, ticket), teams.advice_for_builder(tx, ticket)
    known = recalled(context, ticket)
    messages = teams.messages_to_advisers(context, ticket)
    given = RunInput(
        prompt=briefing(
            ticket, project.config, advice=advice, messages=messages, role=stage.role.prompt, memories=known
        ),
        model=own or escalation.model(context, ticket),
        allowance=model_run.allowance(context, ticket),
        spent=spent,
        provider=stage.role.provider,
        role=stage.role.name,
        team=crew.team,
        shares_prompt=project.config.agents.warm,
    )
    if not chosen.capabilities.talks:
        return given
    rules = f"{RULES}\n\n{stage.role.prompt}".strip()
    prompt = briefing(ticket, project.config, tried, advice, messages, memories=known)
    given = replace(given, prompt=prompt, rules=rules)
    given = _with_conversation(context, project, ticket, this_run, given)
    if chosen.capabilities.rewinds and tree is not None:
        recorded = rewind_points.state_store(context, project, ticket, this_run, tree)
        given = replace(given, state_store=recorded)
    return given


def recalled(context: Board, ticket: Ticket) -> list[str]:
    """The notes that its briefing carries. For lessons that is recorded: `legion usage --lessons` compares them."""
    with context.store.read() as tx:
        carried = fitting(
            notes.for_agents(tx, ticket.project),
            ticket.spec.files,
            ticket.spec.labels,
            f"{ticket.spec.title} {ticket.spec.text}",
        )
    if any(one.is_lesson for one in carried):
        with context.store.write() as tx:
            notes.record_uses(tx, ticket.id, carried)
    return [format_for_agent(one) for one in carried]


def _with_conversation(
    context: Board, project: ProjectContext, ticket: Ticket, this_run: Run, given: RunInput
) -> RunInput:
    """Adds the resume prompt, the tools, and what the ticket's plan and a rewind change."""
    with context.store.read() as tx:
        plan = plan_approvals.of_ticket(tx, ticket.id)
        rewound = rewinds.by_conversation(tx, this_run.conversation)
        origin = adoptions.by_conversation(tx, this_run.conversation)
    tools = teams.tools(teams.maker(context, project, ticket), ticket)
    reads = plan is not None and plan.only_reads
    later = resume_prompt(context, project, ticket, this_run)
    if origin is not None and is_first(context, this_run):
        later = f"{ADOPTED_TEXT}\n\n{given.prompt}"
    return replace(
        given,
        prompt=plan_approval.with_plan(context, plan, this_run, given.prompt, resumes=False),
        resume_prompt=plan_approval.with_plan(context, plan, this_run, later, resumes=True),
        rules=given.rules.replace(RULES, f"{RULES}\n{plan_approval.RULE}") if reads else given.rules,
        tools=plan_approval.only_reading(tools) if reads else tools,
        asks=ticket.spec.asks,
        tool_link=tool_access.of_ticket(context, ticket, this_run).link,
        fork_of=rewound.source if rewound is not None else origin.source if origin is not None else "",
        fork_at=rewound.point if rewound is not None else "",
    )


def _plain() -> DriverProfile:
    return registry.PROFILES[registry.COMMAND]


def _own_file(chosen: AgentProgram) -> tuple[Path, ...]:
    """The agent program itself, which may be stored outside of all toolchains."""
    found = shutil.which(chosen.argv[0]) if chosen.argv else None
    return (Path(found).absolute(), Path(found).resolve()) if found else ()


# Warm conversations: a ticket of an epic starts as a copy of a conversation that has read the repository already.
#
# `[agents] warm` turns it on. Every problem means a fresh conversation: nothing waits for a warm one.

log = logging.getLogger(__name__)

MOST_TOKENS = 80_000
"""A longer conversation is not copied: each request of the ticket would carry it, and reading again is cheaper."""
_TEXT = """\
This conversation is a copy of that of another agent of this project, which {did}. That work is over; you are
the agent of the ticket below. Use what it has read. Your worktree is the current folder: a path of its folder means the
same file in yours, and files may have changed since, so read a file again before you change it."""


def with_source(
    context: Board,
    project: ProjectContext,
    ticket: Ticket,
    this_run: Run,
    chosen: AgentProgram,
    given: RunInput,
    paths: RunPaths,
) -> RunInput:
    """The input with the conversation that the run copies; unchanged where it starts a fresh one or continues."""
    if not (project.config.agents.warm and ticket.spec.epic and chosen.capabilities.rewinds) or given.fork_of:
        return given
    with context.store.read() as tx:
        before = [run for run in runs.of_ticket(tx, ticket.id, role="") if run.id < this_run.id]
        found = list(_sources(tx, ticket))
    if any(run.conversation != this_run.conversation for run in before) or not is_first(context, this_run):
        # After failures a fresh conversation is wanted for its fresh look.
        return given
    source = next((run for run in found if _is_usable(project, chosen, run)), None)
    if source is None:
        return given
    place = chosen.driver.transcript(project.agents / source.seat, source.conversation)
    try:
        if place is None:
            raise FileNotFoundError("its file is gone")
        chosen.driver.take_transcript(place, source.conversation, paths.state, paths.tree)
    except OSError as problem:
        log.warning(
            "ticket %s starts a fresh conversation: that of %s cannot be copied (%s)", ticket.id, source.name, problem
        )
        return given
    _record(context, ticket, source)
    did = "has planned your ticket" if source.plan is not None else f"has worked on ticket {source.ticket}"
    text = _TEXT.format(did=did)
    return replace(given, fork_of=source.conversation, resume_prompt=f"{text}\n\n{given.prompt}")


def _sources(tx: ReadTransaction, ticket: Ticket) -> Iterator[Run]:
    """The planner of the ticket, else of its epic, then the agents of the epic, first the one that finished first."""
    made = goals.origin_of(tx, ticket.id)
    plans = [made[0]] if made is not None else []
    plans += [plan.id for plan in goals.of_project(tx, ticket.project) if plan.epic == ticket.spec.epic]
    for plan in dict.fromkeys(plans):
        yield from runs.of_plan(tx, plan)[-1:]
    siblings = (other.id for other in tickets.of_epic(tx, ticket.project, ticket.spec.epic) if other.id != ticket.id)
    yield from sorted((run for one in siblings if (run := runs.latest(tx, one))), key=lambda run: run.ended_at or 0.0)


def _is_usable(project: ProjectContext, chosen: AgentProgram, source: Run) -> bool:
    if source.outcome is not Outcome.FINISHED:
        return False
    state = project.agents / source.seat
    if chosen.driver.transcript(state, source.conversation) is None:
        return False
    size = chosen.driver.conversation_size(state, source.conversation)
    return not size.compacted and size.tokens <= MOST_TOKENS


def _record(context: Board, ticket: Ticket, source: Run) -> None:
    data = {"source": source.conversation, "run": source.id, "seat": source.seat}
    with context.store.write() as tx:
        if not any(
            event.kind is EventKind.TICKET_FORKED and event.data == data for event in events.of_ticket(tx, ticket.id)
        ):
            tx.record(EventKind.TICKET_FORKED, project=ticket.project, ticket=ticket.id, data=data)
