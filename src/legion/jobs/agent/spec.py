"""Which program is the agent of a ticket, and the spec of its run: any command, or Claude Code."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.agents.agent import STANDING
from legion.domain.errors import LegionError, NotFound
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers.command import briefed
from legion.jobs.agent import claude, plan_approval, teams, tool_access
from legion.jobs.agent.briefing import RULES, briefing
from legion.jobs.agent.claude import RunInput, RunPaths
from legion.jobs.attempts import escalation
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import rewind_points, sandbox
from legion.jobs.workspace.environment import WorkspaceEnv
from legion.runner.spec import RunSpec
from legion.store.board import plan_approvals
from legion.store.work import rewinds, usage
from legion.system import files


class NoProgram(LegionError):
    """Nobody said which program is the agent."""


@dataclass(frozen=True)
class AgentProgram:
    """How the agent is started, and how long it may take. Without a command line it is Claude Code."""

    argv: tuple[str, ...] | None
    timeout: float


def agent(context: Context, config: ProjectConfig, command: str, driver: str) -> AgentProgram:
    """The ticket's own command, else the driver it names, else the default one."""
    if driver == STANDING and not command:
        return AgentProgram(None, config.agents.timeout)
    if command:
        return AgentProgram(("sh", "-c", command), config.agents.timeout)
    try:
        chosen = context.user.driver(driver, config.agents.driver)
    except NotFound as missing:
        raise NoProgram(f"{missing.message.rstrip('.')}, or pass --command to dispatch.") from missing
    if chosen is None:
        return AgentProgram(None, config.agents.timeout)
    return AgentProgram(chosen.argv, chosen.timeout or config.agents.timeout)


def spec(
    context: Context,
    project_context: ProjectContext,
    ticket: Ticket,
    this_run: Run,
    tree: Path,
    given: Path,
    around: WorkspaceEnv,
) -> RunSpec:
    """Everything the runner needs. What the agent is given to read lies in `given`."""
    chosen = agent(context, project_context.config, ticket.spec.command, ticket.spec.driver)
    where = place(context, project_context, this_run, chosen, tree, given, around, LEGION_URL=context.url)
    if chosen.argv is None:
        errand = replace(
            _errand(context, project_context, ticket, this_run),
            camera=rewind_points.camera(context, project_context, ticket, this_run, tree),
        )
        return claude.spec(context, this_run, errand, where, chosen.timeout)
    with context.store.read() as tx:
        advice = teams.advised(tx, ticket)
    told, role = teams.told(context, ticket), teams.of_ticket(context, ticket).builder.role
    return plain(
        this_run, chosen, where, briefing(ticket, project_context.config, advice=advice, told=told, role=role.prompt)
    )


def place(
    context: Context,
    project_context: ProjectContext,
    this_run: Run,
    chosen: AgentProgram,
    tree: Path,
    given: Path,
    around: WorkspaceEnv,
    **identity: str,
) -> RunPaths:
    """Where a run of a ticket works, whatever its part, and the variables that tell it so."""
    state = project_context.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = {"LEGION_TICKET": str(this_run.ticket), "LEGION_ATTEMPT": str(this_run.attempt), "LEGION_STATE": str(state)}
    env = sandbox.environment(context, {**own, **identity, **around.env})
    seen = (given, *_own_file(chosen))
    walls = sandbox.sandbox(context, project_context, writable=(tree, state, *around.writable), readable=seen)
    return RunPaths(tree=tree, state=state, given=given, env=env, walls=walls)


def plain(this_run: Run, chosen: AgentProgram, where: RunPaths, words: str) -> RunSpec:
    """A program of any kind, which finds the words in a file and on its stdin."""
    assert chosen.argv is not None, "Claude Code has a spec of its own"
    file = where.given / "briefing.md"
    files.write_whole(file, words, mode=0o644)
    program = briefed(chosen.argv, cwd=where.tree, env=where.env, briefing=file)
    return RunSpec(run=this_run.name, program=program, timeout=chosen.timeout, sandbox=where.walls)


def _errand(context: Context, project_context: ProjectContext, ticket: Ticket, this_run: Run) -> RunInput:
    crew = teams.of_ticket(context, ticket)
    stage = crew.builder
    with context.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
        tried, advice = escalation.tried(tx, ticket), teams.advised(tx, ticket)
        plan = plan_approvals.of_ticket(tx, ticket.id)
        rewound = rewinds.by_conversation(tx, this_run.conversation)
    tools, told = teams.tools(stage, ticket), teams.told(context, ticket)
    reads = plan is not None and plan.only_reads
    rules = f"{RULES}\n{plan_approval.RULE}" if reads else RULES
    return RunInput(
        prompt=plan_approval.told(
            context, plan, this_run, briefing(ticket, project_context.config, tried, advice, told), again=False
        ),
        again=plan_approval.told(
            context, plan, this_run, claude.again(context, project_context, ticket, this_run), again=True
        ),
        rules=f"{rules}\n\n{stage.role.prompt}".strip(),
        model=escalation.model(context, ticket),
        allowance=claude.allowance(context, ticket),
        spent=spent,
        tools=plan_approval.only_reading(tools) if reads else tools,
        provider=stage.role.provider,
        role=stage.role.name,
        team=crew.team,
        asks=ticket.spec.asks,
        desk=tool_access.of_ticket(context, ticket, this_run).desk,
        fork_of=rewound.source if rewound is not None else "",
        fork_at=rewound.point if rewound is not None else "",
    )


def _own_file(chosen: AgentProgram) -> tuple[Path, ...]:
    """The agent program itself, which may lie where no toolchain is."""
    found = shutil.which(chosen.argv[0]) if chosen.argv else None
    return (Path(found).absolute(), Path(found).resolve()) if found else ()
