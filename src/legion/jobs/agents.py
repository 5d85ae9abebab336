"""Which program is the agent of a ticket, and the spec of its run: any command, or Claude Code."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from legion.config.project import ProjectConfig
from legion.domain.agents import STANDING
from legion.domain.errors import LegionError, NotFound
from legion.domain.runs import Run
from legion.domain.tickets import Ticket
from legion.drivers.command import briefed
from legion.jobs import claude, climbing, desk, places, teams
from legion.jobs.briefing import RULES, briefing
from legion.jobs.claude import Errand
from legion.jobs.environment import Surroundings
from legion.jobs.saving import worktree_name
from legion.jobs.world import Workshop, World
from legion.runner.spec import Spec
from legion.store import usage
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
    state = shop.agents / worktree_name(ticket.id)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen = agent(world, shop.config, ticket.wish.command, ticket.wish.driver)
    identity = {
        "LEGION_TICKET": str(ticket.id),
        "LEGION_ATTEMPT": str(ticket.attempt),
        "LEGION_STATE": str(state),
        "LEGION_URL": world.url,
    }
    env = places.environment(world, {**identity, **around.env})
    walls = places.sandbox(world, shop, writable=(tree, state, *around.writable), readable=(given, *own_file(chosen)))
    if chosen.argv is None:
        place = claude.Place(tree=tree, state=state, given=given, env=env, walls=walls)
        return claude.spec(world, this_run, _errand(world, shop, ticket, this_run), place, chosen.timeout)
    with world.store.read() as tx:
        advice = teams.advised(tx, ticket)
    role = teams.of_ticket(world, ticket).builder.role
    files.write_whole(given / "briefing.md", briefing(ticket, shop.config, advice=advice, role=role.prompt), mode=0o644)
    return Spec(
        run=this_run.name,
        program=briefed(chosen.argv, cwd=tree, env=env, briefing=given / "briefing.md"),
        timeout=chosen.timeout,
        sandbox=walls,
    )


def _errand(world: World, shop: Workshop, ticket: Ticket, this_run: Run) -> Errand:
    crew = teams.of_ticket(world, ticket)
    stage = crew.builder
    with world.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
        tried, advice = climbing.tried(tx, ticket), teams.advised(tx, ticket)
    return Errand(
        prompt=briefing(ticket, shop.config, tried, advice),
        again=claude.again(world, shop, ticket, this_run),
        rules=f"{RULES}\n\n{stage.role.prompt}".strip(),
        model=climbing.model(world, ticket),
        allowance=claude.allowance(world, ticket),
        spent=spent,
        tools=teams.tools(stage, ticket),
        provider=stage.role.provider,
        role=stage.role.name,
        team=crew.team,
        asks=ticket.wish.asks,
        desk=desk.of_ticket(world, ticket, this_run).desk,
    )


def own_file(chosen: Agent) -> tuple[Path, ...]:
    """The agent program itself, which may lie where no toolchain is."""
    found = shutil.which(chosen.argv[0]) if chosen.argv else None
    return (Path(found).absolute(), Path(found).resolve()) if found else ()
