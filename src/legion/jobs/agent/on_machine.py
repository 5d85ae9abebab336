"""Builds the spec of a run that the head has sent here: its program, found on this machine, in folders of this machine.

Keys stay on the head: a program with a model gets the address of this machine's relay and the pass of its run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.errors import LegionError
from legion.drivers import registry
from legion.drivers.profile import GatewayEndpoint, ModelSetup, RunInput
from legion.jobs.agent import model_run, spec
from legion.jobs.agent.model_run import AgentProgram
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machines.travel import MachineJob
from legion.jobs.workspace.environment import WorkspaceEnv
from legion.runner.spec import RunSpec


class DriverMissing(LegionError):
    """This release does not have the driver that the job needs."""


@dataclass(frozen=True, kw_only=True)
class RelayAddress:
    """Where agents of this machine reach the head: the gateway, and the record of the daemon's address."""

    gateway: str
    record: str


def run_spec(
    context: Context,
    project: ProjectContext,
    job: MachineJob,
    *,
    tree: Path,
    given: Path,
    env: WorkspaceEnv,
    relay: RelayAddress | None,
    lease: Path,
) -> RunSpec:
    driver = registry.find(job.driver)
    if driver is None:
        raise DriverMissing(f"This machine has no driver {job.driver}: update Legion on it.")
    chosen = AgentProgram(driver=driver, name=job.driver_name, argv=job.argv, timeout=job.timeout)
    paths = spec.run_paths(context, project, job.run, chosen, tree, given, env, **job.variables)
    model = None
    if job.model is not None and relay is not None:
        model = ModelSetup(
            program=model_run.find_program(context, driver),
            access=GatewayEndpoint(url=relay.gateway, token=job.model.token, oauth=job.model.oauth),
            settings=job.model.settings,
            conversation=job.run.conversation,
            budget_usd=job.model.budget_usd,
        )
    made = model_run.spec(context, job.run, chosen, _input(job.input, relay), paths, model=model)
    return replace(made, lease=lease)


def _input(given: RunInput, relay: RelayAddress | None) -> RunInput:
    """Legion's tools are reached through the relay."""
    if given.tool_link is None or relay is None:
        return replace(given, tool_link=None)
    return replace(given, tool_link=replace(given.tool_link, record=relay.record))
