"""Builds the spec of one run, whatever its driver: prompt, tools, budget, access to a model, sandbox.

Everything that only one kind of program needs is in its driver's profile; here only capabilities are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.config.files import permission_rules
from legion.config.files.providers import ProviderAuth
from legion.domain.agents.tools import own_of_program
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.usage import total
from legion.domain.takeovers import Takeover, TakeoverMode
from legion.domain.tickets.ticket import Ticket
from legion.drivers import registry
from legion.drivers.profile import (
    Capabilities,
    DriverProfile,
    GatewayEndpoint,
    LoginLink,
    ModelSetup,
    ProgramFile,
    ProgramSettings,
    ProgramUnusable,
    RunInput,
    RunRequest,
)
from legion.drivers.state_folder import own_folder
from legion.drivers.terminal_options import TerminalOptions
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, grant, revoke
from legion.gateway.recording import tape
from legion.jobs.agent import model_access
from legion.jobs.agent.model_access import Access, NoModelAccess, OwnLogin
from legion.jobs.board import Board
from legion.jobs.machines.travel import TravellingModel
from legion.jobs.trees import Trees
from legion.jobs.workspace.sandbox import limits, with_reach
from legion.runner import toolchains
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunSpec
from legion.store.work import runs, usage
from legion.system import safe_files

_MOST_INSTRUCTIONS = 100_000
"""Bytes: they are passed as one argument of a command line, which the kernel limits to 128 KB."""
_LEAST_BUDGET = 0.0001
"""Dollars: a budget of zero could be taken for no budget."""
_WHEEL_LEFT = 600.0
"""Seconds without a viewer after which an agent works alone again: the person's connection may be gone for good."""
_MORE_INSTRUCTIONS = """\
Folders below may hold a {file} of their own: read it before you work in them. A path with an @ before it stands for
what that file says: read it before you begin."""


@dataclass(frozen=True, kw_only=True)
class AgentProgram:
    """The program of an agent: its driver, the command line where the driver takes one, and its time limit."""

    driver: DriverProfile
    name: str = ""
    """As tickets and settings name it; empty: the driver's own name."""
    argv: tuple[str, ...] = ()
    timeout: float

    @property
    def capabilities(self) -> Capabilities:
        return self.driver.capabilities


@dataclass(frozen=True, kw_only=True)
class PreparedInput:
    """The question to a run, and its program. It is written as late as possible: a person may still add to it."""

    program: AgentProgram
    input: RunInput
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that its tree shows in addition, by path."""
    attended: Takeover | None = None
    """The person at its side."""


@dataclass(frozen=True, kw_only=True)
class RunPaths:
    """The folders of a run, its environment and its sandbox."""

    tree: Path
    state: Path
    given: Path
    env: Mapping[str, str]
    sandbox: Sandbox | None


def spec(
    context: Trees,
    this_run: Run,
    chosen: AgentProgram,
    given: RunInput,
    paths: RunPaths,
    attended: Takeover | None = None,
    model: ModelSetup | None = None,
) -> RunSpec:
    """In a terminal where a person attends it; with a `model` that is set up already. Raises NoModelAccess where a
    driver that needs a model could not reach one.
    """
    with context.store.write() as tx:
        runs.note_driver(tx, this_run.id, chosen.name or chosen.driver.name)
    request = RunRequest(
        input=given,
        tree=paths.tree,
        state=paths.state,
        given=paths.given,
        env=paths.env,
        sandboxed=paths.sandbox is not None,
        argv=chosen.argv,
    )
    if chosen.capabilities.models or chosen.driver.own_home:
        rules = with_instructions(chosen.driver, given.rules, paths.tree) if given.reads_instructions else given.rules
        request = replace(
            request,
            input=replace(given, rules=rules),
            env=_with_own_home(paths) if chosen.driver.own_home or not request.sandboxed else paths.env,
            model=model or _model_setup(context, this_run, chosen.driver, given),
        )
    if attended is not None and not chosen.capabilities.interactive:
        raise NoModelAccess(f"{chosen.driver.title} has no interactive form: stop the ticket, or use `legion tell`.")
    prepared = chosen.driver.prepare(request) if attended is None else chosen.driver.interactive(request)
    access = request.model.access if request.model is not None else None
    sandbox = with_reach(paths.sandbox, paths.env, access.url if isinstance(access, GatewayEndpoint) else "")
    if sandbox is not None:
        sandbox = replace(sandbox, readable=(*sandbox.readable, *prepared.readable))
    made = RunSpec(
        run=this_run.name,
        program=prepared.program,
        driver=chosen.driver.name,
        kind=chosen.driver.kind,
        options=prepared.options,
        timeout=chosen.timeout,
        limits=limits(context),
        sandbox=sandbox,
    )
    if attended is not None:
        return _in_terminal(made, attended)
    # No person asked for it, so nothing is accepted in their name.
    return replace(made, options={**made.options, "accept": ()}) if made.program.terminal else made


def _in_terminal(made: RunSpec, attended: Takeover) -> RunSpec:
    """A person has all the time that they want; a conversation without a viewer is given back after a while."""
    shown = TerminalOptions.from_json(made.options)
    wheel = attended.mode is TakeoverMode.WHEEL
    shown = replace(
        shown, wheel=wheel, leave_after=_WHEEL_LEFT if wheel else None, accept=shown.accept if attended.accepts else ()
    )
    return replace(made, driver=registry.TERMINAL, kind="", options=shown.to_json(), timeout=None)


def _model_setup(context: Trees, this_run: Run, driver: DriverProfile, given: RunInput) -> ModelSetup:
    program = find_program(context, driver)
    if not driver.capabilities.models:
        with context.store.write() as tx:
            runs.note_access(tx, this_run.id, model_access.OWN_ACCOUNT)
        return ModelSetup(
            program=program,
            access=None,
            settings=_settings(context, given),
            conversation=this_run.conversation,
            budget_usd=None,
        )
    access = model_access.choose(context, given.provider, takes_login=driver.login_file() is not None)
    refuse_login(access, driver)
    endpoint = _open_access(context, this_run, driver, given, access)
    with context.store.write() as tx:
        runs.note_access(tx, this_run.id, access.label)
        # The gateway's supervisor may have looked for passes just before this one was there.
        tx.tell()
    return ModelSetup(
        program=program,
        access=endpoint,
        settings=_settings(context, given),
        conversation=this_run.conversation,
        # The gateway counts what it serves; without it only the program itself can.
        budget_usd=_budget_left(given) if isinstance(access, OwnLogin) else None,
    )


def refuse_login(access: Access, driver: DriverProfile) -> None:
    """Raises NoModelAccess where the program would need a login that it does not have."""
    if isinstance(access, OwnLogin) and driver.login_file() is None:
        raise NoModelAccess(
            f"{driver.title} reaches a model only through a provider: run `legion provider add anthropic`."
        )


def for_machine(context: Trees, this_run: Run, chosen: AgentProgram, given: RunInput) -> TravellingModel:
    """A pass for the head's gateway, which the machine forwards to. The person's own login stays on the head.

    Raises NoModelAccess.
    """
    access = model_access.choose(context, given.provider)
    if isinstance(access, OwnLogin):
        raise NoModelAccess(
            f"On a machine {chosen.driver.title} needs a provider, since your own login stays here: "
            "run `legion provider add anthropic`."
        )
    endpoint = _open_access(context, this_run, chosen.driver, given, access)
    assert isinstance(endpoint, GatewayEndpoint), "only a login has no endpoint"
    with context.store.write() as tx:
        runs.note_access(tx, this_run.id, access.label)
        # The gateway's supervisor may have looked for passes just before this one was there.
        tx.tell()
    return TravellingModel(token=endpoint.token, oauth=endpoint.oauth, settings=_settings(context, given))


def find_program(context: Board, driver: DriverProfile | None = None) -> ProgramFile:
    chosen = driver or registry.default()
    wanted = context.user.claude.program if chosen is registry.default() else ""
    try:
        return chosen.find_program(wanted)
    except ProgramUnusable as missing:
        raise NoModelAccess(str(missing)) from missing


def revoke_pass(context: Board, this_run: Run) -> None:
    """The run has ended, so its token must no longer open the gateway."""
    folder = GatewayFolder(context.data.gateway)
    if folder.passes.is_dir():
        revoke(folder, this_run.name)


def allowance(context: Board, ticket: Ticket) -> float | None:
    """What all runs of the ticket may cost: its budget, counted from where a person last let it continue."""
    budget = ticket.spec.budget or context.user.claude.budget_usd or None
    if budget is None:
        return None
    with context.store.read() as tx:
        earlier = runs.of_ticket(tx, ticket.id)
        stops = [run.id for run in earlier if run.outcome is Outcome.OUT_OF_BUDGET]
        before = [run.id for run in earlier if stops and run.id <= stops[-1]]
        return budget + total(usage.of_runs(tx, before).values()).usd


def instruction_files(tree: Path, driver: DriverProfile) -> tuple[str, ...]:
    """The files that hold the repository's instructions. Many repositories link them to a file of another name."""
    return tuple(dict.fromkeys(safe_files.behind(tree, path) for path in driver.instruction_files))


def _with_own_home(paths: RunPaths) -> dict[str, str]:
    """With the person's HOME its shell would read their own start files."""
    home = own_folder(paths.state, "home")
    return {**toolchains.variables(Path.home()), **paths.env, "HOME": str(home)}


def _settings(context: Board, given: RunInput) -> ProgramSettings:
    wanted = context.user.claude
    return ProgramSettings(
        model=wanted.model,
        fallback_model=wanted.fallback_model,
        permission_mode=wanted.permission_mode.value,
        allowed_tools=(*wanted.allow, *permission_rules.load()),
        tools=_tools(wanted.tools, given.tools),
        max_turns=wanted.max_turns or None,
        answer_within=wanted.answer_within,
    )


def _budget_left(given: RunInput) -> float | None:
    """For this run alone: a program reports the cost of the conversation, but stops by the cost of the run."""
    return None if given.allowance is None else max(_LEAST_BUDGET, given.allowance - given.spent)


def _tools(settings: tuple[str, ...], mine: frozenset[str] | None) -> tuple[str, ...] | None:
    """The tools that both the settings and the run's own list allow."""
    if mine is None:
        return settings or None
    own = own_of_program(mine)
    return tuple(tool for tool in settings if tool in own) if settings else tuple(sorted(own))


def _open_access(
    context: Board, this_run: Run, driver: DriverProfile, given: RunInput, access: Access
) -> GatewayEndpoint | LoginLink:
    """A pass for the gateway, or the person's own login."""
    if isinstance(access, OwnLogin):
        return LoginLink(credentials=access.credentials)
    folder = model_access.write_gateway_files(context)
    address = lifecycle.ensure(folder, context.user.daemon.gateway_port)
    token = grant(
        folder,
        Pass(
            run=this_run.name,
            ticket=this_run.ticket or 0,
            project=this_run.project,
            agent=this_run.conversation,
            provider=access.provider,
            models=_models(context, driver, given.model),
            budget_usd=given.allowance,
            spent_usd=given.spent,
            role=given.role,
            team=given.team,
            recorded=tape.is_recording(folder),
        ),
    )
    return GatewayEndpoint(url=address.url, token=token, oauth=access.auth is ProviderAuth.OAUTH)


def _models(context: Board, driver: DriverProfile, model: str) -> tuple[str, ...] | None:
    """The models that the run may request, its own and those of the settings included; None: any."""
    wanted = context.user.claude
    if not wanted.models:
        return None
    chosen = (model or wanted.model, driver.default_model, wanted.fallback_model)
    return tuple(dict.fromkeys(map(driver.model_pattern, (*wanted.models, *filter(None, chosen)))))


def with_instructions(driver: DriverProfile, rules: str, tree: Path) -> str:
    """Adds the repository's instructions. Its settings stay out: they could name endpoints and run commands."""
    found = [
        content.decode("utf-8", "replace")
        for path in instruction_files(tree, driver)
        if (content := safe_files.read(tree, path, most=_MOST_INSTRUCTIONS))
    ]
    if not found:
        return rules
    # No argument can hold a NUL, and a character that is cut in two is left out.
    text = "\n\n".join(found).replace("\0", "").encode()[:_MOST_INSTRUCTIONS].decode("utf-8", "ignore")
    file = driver.instruction_files[0]
    return f"{rules}\n\n# The repository's {file}\n\n{text}\n\n{_MORE_INSTRUCTIONS.format(file=file)}"
