"""Prepares a run of an agent in its tree: dependencies, environment, input, spec. Every host does it in this way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.domain.agents.agent import Agent
from legion.domain.errors import LegionError
from legion.domain.runs import Run
from legion.drivers import registry
from legion.drivers.profile import Capabilities, DriverProfile, GatewayEndpoint, ModelSetup
from legion.jobs.agent import model_run, spec
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.model_run import AgentProgram, PreparedInput, RunPaths
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machines.travel import MachineJob
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import environment, setup
from legion.runner.spec import write_spec
from legion.system import safe_files


class DriverMissing(LegionError):
    """This release does not have the driver that the job needs."""


@dataclass(frozen=True, kw_only=True)
class RelayAddress:
    """Where agents of this machine reach the head: the gateway, and the record of the daemon's address."""

    gateway: str
    record: str


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """What a run finds. A run whose tree is no change has a checkout, which is thrown away at the end."""

    program: AgentProgram
    title: str
    """Of its ticket."""
    base: str
    """The commit that the tree is based on."""
    start: str | None = None
    """The commit whose files it shows at the start; None: those of the base."""
    plant: str | None = None
    """A tree that it shows instead."""
    previous: str = ""
    """The run before this one, which left a tree that may be there."""
    saves: bool = False
    """Whether its tree is a change."""
    has_setup: bool = True
    """Whether the project's [setup] runs there first."""
    has_environment: bool = True
    """Whether it gets the project's [environment]."""
    shows: str = ""
    """The commit whose files are exactly those of the tree, if setup has to know it."""
    landed: str = ""
    """The landed commit whose files are in the tree, if no program of a change has worked there."""
    filters_of: str = ""
    """The commit from which the work in the tree started, if its git filters count there."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of its environment."""
    own_variables: Mapping[str, str] = field(default_factory=dict)
    """The same, on the head's own host alone."""


def prepare(
    context: Context,
    project: ProjectContext,
    this_run: Run,
    place: Workplace,
    tree: Path,
    prepared: Callable[[RunPaths], PreparedInput],
    *,
    model: ModelSetup | None = None,
    lease: Path | None = None,
) -> None:
    """`model`: set up already. `lease`: the file without which the program ends. Each step may be repeated."""
    if place.has_setup:
        setup.ensure(context, project, tree, shows=place.shows, landed=place.landed, base=place.filters_of)
    if place.has_environment:
        env = environment.prepare(context, project, this_run, tree)
    else:
        # Nothing of a change is executed, so it cannot show its reader other files than its own.
        env = environment.bare(context, this_run)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    paths = spec.run_paths(context, project, this_run, place.program, tree, given, env, **place.variables)
    asked = prepared(paths)
    for path, text in asked.files.items():
        safe_files.write(tree, path, text.encode())
    made = model_run.spec(context, this_run, asked.program, asked.input, paths, asked.attended, model)
    write_spec(folder, replace(made, lease=lease))


def prepare_job(
    context: Context, project: ProjectContext, job: MachineJob, tree: Path, *, relay: RelayAddress | None, lease: Path
) -> None:
    """A run that the head has sent here, in folders of this machine. Raises DriverMissing."""
    model = _model(context, job, relay)
    prepare(context, project, job.run, _place(job), tree, lambda _: _input(job, relay), model=model, lease=lease)


def _place(job: MachineJob) -> Workplace:
    """Raises DriverMissing."""
    shows = "" if job.saves or job.plant else job.start or job.base
    return Workplace(
        program=_program(job),
        title=job.title,
        base=job.base,
        start=job.start,
        plant=job.plant,
        previous=job.previous,
        saves=job.saves,
        has_setup=job.has_setup,
        has_environment=job.has_environment,
        shows=shows,
        landed=_landed(job, shows),
        variables=job.variables,
    )


def _program(job: MachineJob) -> AgentProgram:
    driver = registry.find(job.driver)
    if driver is None:
        raise DriverMissing(f"This machine has no driver {job.driver}: update Legion on it.")
    return AgentProgram(driver=driver, name=job.driver_name, argv=job.argv, timeout=job.timeout)


def _landed(job: MachineJob, shows: str) -> str:
    """The landed commit whose files are in the tree, if nothing of a change is."""
    if shows:
        return shows if shows == job.target else ""
    return "" if job.previous or job.start or job.plant else job.base


def _input(job: MachineJob, relay: RelayAddress | None) -> PreparedInput:
    """Legion's tools are reached through the relay."""
    link = job.input.tool_link
    link = replace(link, record=relay.record) if link is not None and relay is not None else None
    return PreparedInput(program=_program(job), input=replace(job.input, tool_link=link), files=job.files)


def _model(context: Board, job: MachineJob, relay: RelayAddress | None) -> ModelSetup | None:
    """Keys stay on the head: a program gets the address of this machine's relay and the pass of its run."""
    if job.model is None or relay is None:
        return None
    return ModelSetup(
        program=model_run.find_program(context, _program(job).driver),
        access=GatewayEndpoint(url=relay.gateway, token=job.model.token, oauth=job.model.oauth),
        settings=job.model.settings,
        conversation=job.run.conversation,
        budget_usd=job.model.budget_usd,
    )


# The agent program of a standing agent: its driver, and why a driver cannot be one.


def profile(agent: Agent) -> DriverProfile:
    """Raises NoModelAccess where the description of its program is gone."""
    found = registry.find(agent.driver or registry.DEFAULT)
    if found is None:
        raise NoModelAccess(
            f"{agent.name} works with {agent.driver}, which is described no more: `legion driver add {agent.driver}`."
        )
    return found


def can_limit_tools(agent: Agent) -> bool:
    """Whether its program keeps to the tools that it is given."""
    found = registry.find(agent.driver or registry.DEFAULT)
    return found is not None and found.capabilities.reads_only


def missing_ability(can: Capabilities) -> str:
    """What a driver lacks to run a standing agent, whose conversation lasts from turn to turn; empty: nothing."""
    if not can.talks:
        return "it has no conversation"
    if not can.resumes:
        return "a later turn cannot continue its conversation"
    return "" if can.transcript else "its conversation does not show which messages arrived"
