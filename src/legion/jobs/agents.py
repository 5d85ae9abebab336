"""Which program is the agent of a ticket, and the spec of its run: any command, or Claude Code."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from legion.config.project import ProjectConfig
from legion.domain.agents import STANDING
from legion.domain.errors import LegionError, NotFound
from legion.domain.runs import Run
from legion.domain.tickets import Ticket
from legion.drivers.command import briefed
from legion.jobs import claude, climbing, desk, places, planning, rewinding, teams
from legion.jobs.briefing import RULES, briefing
from legion.jobs.claude import Errand, Place
from legion.jobs.environment import Surroundings
from legion.jobs.world import Workshop, World
from legion.runner.spec import Spec
from legion.store import plans, rewinds, usage
from legion.system import files


class NoProgram(LegionError):
    """Nobody said which program is the agent."""


@dataclass(frozen=True)
class Agent:
    """How the agent is started, and how long it may take. Without a command line it is Claude Code."""

    argv: tuple[str, ...] | None
    timeout: float


def agent(world: World, config: ProjectConfig, command: str, driver: str) -> Agent:
    """The ticket's own command, else the driver it names, else the default one."""
    if driver == STANDING and not command:
        return Agent(None, config.agents.timeout)
    if command:
        return Agent(("sh", "-c", command), config.agents.timeout)
    try:
        chosen = world.user.driver(driver, config.agents.driver)
    except NotFound as missing:
        raise NoProgram(f"{missing.message.rstrip('.')}, or pass --command to dispatch.") from missing
    if chosen is None:
        return Agent(None, config.agents.timeout)
    return Agent(chosen.argv, chosen.timeout or config.agents.timeout)


def spec(
    world: World, shop: Workshop, ticket: Ticket, this_run: Run, tree: Path, given: Path, around: Surroundings
) -> Spec:
    """Everything the runner needs. What the agent is given to read lies in `given`."""
    chosen = agent(world, shop.config, ticket.wish.command, ticket.wish.driver)
    where = place(world, shop, this_run, chosen, tree, given, around, LEGION_URL=world.url)
    if chosen.argv is None:
        errand = replace(
            _errand(world, shop, ticket, this_run), camera=rewinding.camera(world, shop, ticket, this_run, tree)
        )
        return claude.spec(world, this_run, errand, where, chosen.timeout)
    with world.store.read() as tx:
        advice = teams.advised(tx, ticket)
    told, role = teams.told(world, ticket), teams.of_ticket(world, ticket).builder.role
    return plain(this_run, chosen, where, briefing(ticket, shop.config, advice=advice, told=told, role=role.prompt))


def place(
    world: World,
    shop: Workshop,
    this_run: Run,
    chosen: Agent,
    tree: Path,
    given: Path,
    around: Surroundings,
    **identity: str,
) -> Place:
    """Where a run of a ticket works, whatever its part, and the variables that tell it so."""
    state = shop.agents / this_run.seat
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = {"LEGION_TICKET": str(this_run.ticket), "LEGION_ATTEMPT": str(this_run.attempt), "LEGION_STATE": str(state)}
    env = places.environment(world, {**own, **identity, **around.env})
    seen = (given, *_own_file(chosen))
    walls = places.sandbox(world, shop, writable=(tree, state, *around.writable), readable=seen)
    return Place(tree=tree, state=state, given=given, env=env, walls=walls)


def plain(this_run: Run, chosen: Agent, where: Place, words: str) -> Spec:
    """A program of any kind, which finds the words in a file and on its stdin."""
    assert chosen.argv is not None, "Claude Code has a spec of its own"
    file = where.given / "briefing.md"
    files.write_whole(file, words, mode=0o644)
    program = briefed(chosen.argv, cwd=where.tree, env=where.env, briefing=file)
    return Spec(run=this_run.name, program=program, timeout=chosen.timeout, sandbox=where.walls)


def _errand(world: World, shop: Workshop, ticket: Ticket, this_run: Run) -> Errand:
    crew = teams.of_ticket(world, ticket)
    stage = crew.builder
    with world.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
        tried, advice = climbing.tried(tx, ticket), teams.advised(tx, ticket)
        plan = plans.of_ticket(tx, ticket.id)
        rewound = rewinds.by_conversation(tx, this_run.conversation)
    tools, told = teams.tools(stage, ticket), teams.told(world, ticket)
    reads = plan is not None and plan.only_reads
    rules = f"{RULES}\n{planning.RULE}" if reads else RULES
    return Errand(
        prompt=planning.told(world, plan, this_run, briefing(ticket, shop.config, tried, advice, told), again=False),
        again=planning.told(world, plan, this_run, claude.again(world, shop, ticket, this_run), again=True),
        rules=f"{rules}\n\n{stage.role.prompt}".strip(),
        model=climbing.model(world, ticket),
        allowance=claude.allowance(world, ticket),
        spent=spent,
        tools=planning.only_reading(tools) if reads else tools,
        provider=stage.role.provider,
        role=stage.role.name,
        team=crew.team,
        asks=ticket.wish.asks,
        desk=desk.of_ticket(world, ticket, this_run).desk,
        fork_of=rewound.source if rewound is not None else "",
        fork_at=rewound.point if rewound is not None else "",
    )


def _own_file(chosen: Agent) -> tuple[Path, ...]:
    """The agent program itself, which may lie where no toolchain is."""
    found = shutil.which(chosen.argv[0]) if chosen.argv else None
    return (Path(found).absolute(), Path(found).resolve()) if found else ()
