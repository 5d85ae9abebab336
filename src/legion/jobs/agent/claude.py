"""A run of Claude Code: its conversation, what it is told, what it may do, and its pass for the gateway."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from legion.config.files import permission_rules
from legion.config.files.providers import ProviderAuth
from legion.domain.agents.tools import own_of_program
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.usage import total
from legion.domain.tickets.ticket import Ticket
from legion.drivers import Program
from legion.drivers.claude import program
from legion.drivers.claude.options import ClaudeOptions, PermissionMode, ToolLink
from legion.drivers.claude.program import ClaudeProgram, NoClaude
from legion.drivers.claude.tree_states import StateStore
from legion.drivers.registry import DriverName
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, grant, revoke
from legion.gateway.recording import tape
from legion.jobs.agent import model_access
from legion.jobs.agent.briefing import going_on
from legion.jobs.agent.model_access import Access, NoModelAccess, OwnLogin
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import safe_files
from legion.runner import toolchains
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunSpec
from legion.store.work import rewinds, runs, usage
from legion.system import files

_IN_A_SANDBOX = ("Bash", "WebFetch", "WebSearch", "NotebookEdit")
"""What needs no question where nothing outside can be harmed."""

SPOKE = frozenset({"said", "thought", "called", "begins"})
"""Events of a run in which the model has answered, and so has heard what that run told it."""

_ENVIRONMENT = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


_SHORT_NAME = re.compile(r"[a-z]+")
WORDS = ("CLAUDE.md", ".claude/CLAUDE.md")
"""What a repository tells every agent."""
_LONGEST_WORDS = 100_000
"""Bytes: it travels as one argument of a command line, of which the kernel takes 128 KB."""
_LEAST_BUDGET = 0.0001
"""Dollars: a budget of nothing could be taken for none."""
_BELOW = """\
Folders below may hold a CLAUDE.md of their own: read it before you work in them. A path with an @ before it stands for
what that file says: read it before you begin."""


@dataclass(frozen=True, kw_only=True)
class RunPaths:
    """Where the run works."""

    tree: Path
    state: Path
    given: Path
    env: Mapping[str, str]
    walls: Sandbox | None


@dataclass(frozen=True, kw_only=True)
class RunInput:
    """What the run is for, whoever sent it: a ticket, or a standing agent's mail."""

    prompt: str
    """The words that begin a conversation."""
    again: str
    """The words for a conversation that goes on."""
    rules: str
    model: str = ""
    tools: frozenset[str] | None = None
    """The only ones that it has, of those that the person's settings leave; None: all of them."""
    allowance: float | None = None
    """Dollars that whoever sent it may have spent in all when the run is stopped; None: no limit."""
    spent: float = 0.0
    """Dollars that were spent before this run."""
    role: str = ""
    team: str = ""
    """Routes may name both."""
    provider: str = ""
    """Empty: as the person's settings say."""
    asks: bool = False
    prompt_id: str = ""
    desk: ToolLink | None = None
    """Its way to Legion's own tools."""
    obeys: bool = True
    """Whether the words of the CLAUDE.md in its tree are among its rules."""
    fork_of: str = ""
    fork_at: str = ""
    """Where its conversation begins as a copy of another one, up to this entry or whole."""
    camera: StateStore | None = None
    """Keeps the tree from call to call."""


def spec(context: Context, this_run: Run, errand: RunInput, place: RunPaths, timeout: float) -> RunSpec:
    """Raises NoAccess where it could not work."""
    chosen = find_program(context)
    way = model_access.choose(context, errand.provider)
    config_dir = own_folder(place.state, "claude")
    files.write_whole(place.given / "briefing.md", errand.prompt, mode=0o644)
    files.write_whole(place.given / "again.md", errand.again, mode=0o644)
    env = {**place.env, **_ENVIRONMENT, "CLAUDE_CONFIG_DIR": str(config_dir)}
    env |= _way(context, this_run, errand, way, config_dir)
    if place.walls is not None:
        env["IS_SANDBOX"] = "1"
    else:
        # Its shell would read the person's own start files.
        env = {**toolchains.variables(Path.home()), **env, "HOME": str(own_folder(place.state, "home"))}
    with context.store.write() as tx:
        runs.note_access(tx, this_run.id, way.words)
        # Whoever keeps the gateway alive may have looked for passes just before this one was there.
        tx.tell()
    return RunSpec(
        run=this_run.name,
        program=Program(argv=(str(chosen.path),), cwd=place.tree, env=env),
        driver=DriverName.CLAUDE,
        # The gateway counts what it serves; without it only Claude Code itself can.
        options=_options(
            context, this_run, errand, place, config_dir, _left(errand) if isinstance(way, OwnLogin) else None
        ).to_json(),
        timeout=timeout,
        sandbox=_seeing(place.walls, chosen, way),
    )


def find_program(context: Context) -> ClaudeProgram:
    try:
        return program.find(context.user.claude.program)
    except NoClaude as missing:
        raise NoModelAccess(str(missing)) from missing


def revoke_pass(context: Context, this_run: Run) -> None:
    """The run has ended: its token opens nothing any more."""
    folder = GatewayFolder(context.data.gateway)
    if folder.passes.is_dir():
        revoke(folder, this_run.name)


def _options(
    context: Context, this_run: Run, errand: RunInput, place: RunPaths, config_dir: Path, budget: float | None
) -> ClaudeOptions:
    wanted = context.user.claude
    return ClaudeOptions(
        conversation=this_run.conversation,
        config_dir=config_dir,
        prompt=place.given / "briefing.md",
        again=place.given / "again.md",
        rules=_rules(errand.rules, place.tree) if errand.obeys else errand.rules,
        model=errand.model or wanted.model,
        fallback_model=wanted.fallback_model,
        permission_mode=PermissionMode(wanted.permission_mode.value),
        allowed_tools=(*wanted.allow, *permission_rules.load(), *(_IN_A_SANDBOX if place.walls is not None else ())),
        tools=_tools(wanted.tools, errand.tools),
        max_turns=wanted.max_turns or None,
        budget_usd=budget,
        asks=errand.asks,
        prompt_id=errand.prompt_id,
        patience=wanted.answer_within,
        desk=errand.desk,
        fork_of=errand.fork_of,
        fork_at=errand.fork_at,
        camera=errand.camera,
    )


def _left(errand: RunInput) -> float | None:
    """Claude Code tells what the whole conversation cost, but stops by what this run of it did."""
    return None if errand.allowance is None else max(_LEAST_BUDGET, errand.allowance - errand.spent)


def _tools(settings: tuple[str, ...], mine: frozenset[str] | None) -> tuple[str, ...] | None:
    """What both leave over."""
    if mine is None:
        return settings or None
    own = own_of_program(mine)
    return tuple(tool for tool in settings if tool in own) if settings else tuple(sorted(own))


def _way(context: Context, this_run: Run, errand: RunInput, way: Access, config_dir: Path) -> dict[str, str]:
    """The variables that lead Claude Code to its model."""
    login = config_dir / ".credentials.json"
    if isinstance(way, OwnLogin):
        if not (login.is_symlink() and login.readlink() == way.credentials):
            _put_aside(login)
            login.symlink_to(way.credentials)
        return {}
    if login.is_symlink():
        login.unlink()
    folder = model_access.tell_gateway(context)
    address = lifecycle.ensure(folder, context.user.daemon.gateway_port)
    token = grant(
        folder,
        Pass(
            run=this_run.name,
            ticket=this_run.ticket or 0,
            project=this_run.project,
            agent=this_run.conversation,
            provider=way.provider,
            models=_models(context, errand.model),
            budget_usd=errand.allowance,
            spent_usd=errand.spent,
            role=errand.role,
            team=errand.team,
            recorded=tape.is_recording(folder),
        ),
    )
    variable = "CLAUDE_CODE_OAUTH_TOKEN" if way.auth is ProviderAuth.OAUTH else "ANTHROPIC_AUTH_TOKEN"
    return {"ANTHROPIC_BASE_URL": address.url, variable: token}


def _models(context: Context, model: str) -> tuple[str, ...] | None:
    """What the run may ask for; None: anything. What its errand or the settings choose for it is always among it."""
    wanted = context.user.claude
    if not wanted.models:
        return None
    chosen = (model or wanted.model, wanted.fallback_model)
    return tuple(dict.fromkeys(map(pattern, (*wanted.models, *filter(None, chosen)))))


def pattern(name: str) -> str:
    """Claude Code's own short names (`opus`, `sonnet[1m]`) stand for whichever is the latest of its kind."""
    plain = name.partition("[")[0]
    return f"claude-{plain}-*" if _SHORT_NAME.fullmatch(plain) else plain


def own_folder(state: Path, name: str) -> Path:
    """A folder of Claude Code's own. The agent could put a link in its place, and we would work in the person's."""
    folder = state / name
    if folder.is_symlink() or not folder.is_dir():
        _put_aside(folder)
        folder.mkdir(mode=0o700)
    folder.chmod(0o700)
    return folder


def _put_aside(path: Path) -> None:
    """Whatever an agent left there, a link included, is renamed and never followed."""
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.{time.time_ns()}.unused"))


def allowance(context: Context, ticket: Ticket) -> float | None:
    """What all runs of the ticket may cost: its budget, counted anew from where a person last let it go on."""
    whole = ticket.spec.budget or context.user.claude.budget_usd or None
    if whole is None:
        return None
    with context.store.read() as tx:
        earlier = runs.of_ticket(tx, ticket.id)
        stops = [run.id for run in earlier if run.outcome is Outcome.OUT_OF_BUDGET]
        before = [run.id for run in earlier if stops and run.id <= stops[-1]]
        return whole + total(usage.of_runs(tx, before).values()).usd


def again(context: Context, project_context: ProjectContext, ticket: Ticket, this_run: Run) -> str:
    with context.store.read() as tx:
        since = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
        rewound = rewinds.by_conversation(tx, this_run.conversation)
    if rewound is not None:
        # What came after that moment is not in the conversation any more.
        since = [run for run in since if run.conversation == this_run.conversation]
    journals = {run.id: read_journal(context.data.runs / run.name) for run in since}
    spoke = [run for run in since if any(event.kind in SPOKE for event in journals[run.id])]
    if spoke:
        since = since[since.index(spoke[-1]) :]
    events = [event for run in since for event in journals[run.id]]
    return going_on(
        ticket,
        project_context.config,
        since,
        cut_off(events),
        _unheard(events),
        rewound=rewound is not None and not spoke,
    )


def cut_off(events: Iterable[JournalEvent]) -> tuple[str, ...]:
    """The calls that had begun and never returned."""
    open_calls: dict[object, str] = {}
    for event in events:
        if event.kind == "begins":
            open_calls[event.facts.get("call")] = f"{event.facts.get('tool')}: {event.facts.get('input')}"
        elif event.kind == "returned":
            open_calls.pop(event.facts.get("call"), None)
    return tuple(open_calls.values())


def _unheard(events: Iterable[JournalEvent]) -> tuple[str, ...]:
    """What a person told the agent and the model had not seen when the run ended, or had no time to act on."""
    told: dict[object, str] = {}
    heard: set[object] = set()
    for event in events:
        if event.kind == "told":
            told[event.facts.get("id")] = str(event.facts.get("text"))
        elif event.kind == "heard":
            heard.add(event.facts.get("id"))
        elif event.kind in SPOKE:
            told = {id: text for id, text in told.items() if id not in heard}
    return tuple(told.values())


def places_of_words(tree: Path) -> tuple[str, ...]:
    """Many repositories have their words in a file of another name, and a link to it."""
    return tuple(dict.fromkeys(safe_files.behind(tree, path) for path in WORDS))


def _rules(ours: str, tree: Path) -> str:
    """Ours, and the repository's own words. Its settings stay out: they could name endpoints and run commands."""
    places = places_of_words(tree)
    words = [content.decode("utf-8", "replace") for path in places if (content := safe_files.read(tree, path))]
    if not words:
        return ours
    # No argument can hold a NUL, and a letter that is cut in two is left out.
    theirs = "\n\n".join(words).replace("\0", "").encode()[:_LONGEST_WORDS].decode("utf-8", "ignore")
    return f"{ours}\n\n# The repository's CLAUDE.md\n\n{theirs}\n\n{_BELOW}"


def _seeing(walls: Sandbox | None, chosen: ClaudeProgram, way: Access) -> Sandbox | None:
    """Beside what every agent sees: the program itself, and the login where there is no other way."""
    if walls is None:
        return None
    files_seen = [chosen.path.absolute(), chosen.path.resolve()]
    if isinstance(way, OwnLogin):
        files_seen.append(way.credentials)
    return replace(walls, readable=(*walls.readable, *files_seen))
