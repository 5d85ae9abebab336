"""The checks of `legion doctor`: what works on this machine, and how to fix what does not."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from legion.config.files.user import CLAUDE
from legion.config.sections.machine import NetworkMode
from legion.domain.errors import LegionError, NotFound
from legion.domain.landing.conflicts import score
from legion.domain.landing.filter_rules import filter_sentence
from legion.domain.runs import agent_seat, seated
from legion.drivers.profile import ProgramUnusable
from legion.drivers.programs.catalog import programs
from legion.drivers.programs.locate import path_of
from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from legion.git.core.command import version
from legion.git.core.errors import GitProblem
from legion.jobs.agent import model_access, model_run
from legion.jobs.agent.model_access import OwnLogin
from legion.jobs.board import Board
from legion.jobs.checks import red_checks
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import attack, command, sandbox, shell_variables
from legion.jobs.workspace.attack import AttackResult
from legion.jobs.workspace.save import worktree_name
from legion.service.machines import listing
from legion.service.projects import registry, trials
from legion.service.projects.trust import unreadable_settings
from legion.service.providers import catalog
from legion.service.providers.probe import unreachable
from legion.service.shared.fragments import moment
from legion.service.tickets import try_tree
from legion.service.views.status import flaky as flaky_checks
from legion.store import events
from legion.store.board import tickets
from legion.store.staff import agents
from legion.system import cgroups, read_marks
from legion.wire.projects import Doctor, DoctorFinding, Where

_MOST_EVENTS = 20_000
_LOCAL_PATIENCE = 2.0
_ATTACK_PATIENCE = 300.0
_LOW_DISK = 2 * 2**30
_FIX_TARGET = "fix that on your branch and commit; tickets that wait for it then continue by themselves"
_NOT_NEEDED = "not needed: you use another driver"


def doctor(context: Context, cwd: str | None) -> Doctor:
    findings = [
        _git(),
        _sandbox(context),
        *_local_services(context),
        _run_limits(context),
        _store(context),
        _settings(context),
        _disk("data folder", context.data.root),
    ]
    findings += [_driver(name, driver.argv[0]) for name, driver in sorted(context.user.drivers.items())]
    findings += _replaced(context)
    findings += _loops(context)
    findings += listing.findings(context)
    project = registry.find_or_none(context, cwd) if cwd else None
    unreadable = unreadable_settings(project) if project is not None else ""
    readable = project if not unreadable else None
    driver = context.project_of(readable).config.agents.driver if readable is not None else ""
    findings += _described(context, driver)
    findings += _claude(context, needed=_is_claude(context, driver))
    if unreadable:
        findings.append(DoctorFinding(name="legion.toml", ok=False, detail="nothing runs by it", advice=unreadable))
    if readable is not None:
        findings += _project(context, readable.id)
    trial = trials.page(context, cwd) if readable is not None and cwd else None
    return Doctor(ok=all(finding.ok for finding in findings), findings=findings, trial=trial)


def attacked(context: Context, where: Where) -> Doctor:
    """What hostile commands reach from this project's sandbox."""
    project, through = context.project_of(registry.find(context, where.cwd)), AttackResult.THROUGH

    def run(script: str, tree: Path) -> str:
        return command.run(context, project, name="attack", command=script, tree=tree, timeout=_ATTACK_PATIENCE).tail

    held = attack.attack(context, project, run)
    findings = [
        DoctorFinding(name=name, ok=end is not through, detail=end.value, known=end is not AttackResult.UNTRIED)
        for name, end in held.items()
    ]
    return Doctor(ok=through not in held.values(), findings=findings)


def _git() -> DoctorFinding:
    try:
        found = ".".join(str(part) for part in version())
    except GitProblem as problem:
        return DoctorFinding(name="git", ok=False, detail=str(problem), advice="install or update git")
    return DoctorFinding(name="git", ok=True, detail=found)


def _sandbox(context: Trees) -> DoctorFinding:
    state = context.sandbox
    if context.user.sandbox.is_off:
        return DoctorFinding(
            name="sandbox", ok=True, detail="switched off in your settings: agents can reach everything that you can"
        )
    if state.works:
        open_network = context.user.sandbox.network is NetworkMode.HOST
        advice = 'agents reach all services of this machine: leave `network = "host"` out of [sandbox]'
        return DoctorFinding(name="sandbox", ok=True, detail=state.why, advice=advice if open_network else "")
    advice = 'install bubblewrap; where it cannot work: podman, and `kind = "container"` under [sandbox]'
    return DoctorFinding(name="sandbox", ok=False, detail=f"none works here: {state.why}", advice=advice)


def _local_services(context: Trees) -> list[DoctorFinding]:
    """What `sandbox.local` leads to: tests that need one fail as long as it does not answer."""
    answers = {str(one): _answers(one) for one in context.user.sandbox.local}
    silent = [name for name, well in answers.items() if not well]
    detail = ", ".join(f"{name} {'answers' if well else 'does not answer'}" for name, well in answers.items())
    advice = f"start what listens at {', '.join(silent)}, or take it out of `local` under [sandbox]" if silent else ""
    return [DoctorFinding(name="local services", ok=not silent, detail=detail, advice=advice)] if answers else []


def _answers(service: int | Path) -> bool:
    place = ("127.0.0.1", service) if isinstance(service, int) else str(service)
    with socket.socket(socket.AF_INET if isinstance(service, int) else socket.AF_UNIX) as tried:
        tried.settimeout(_LOCAL_PATIENCE)
        return tried.connect_ex(place) == 0


def _run_limits(context: Board) -> DoctorFinding:
    """What one run may use. A machine where this user can make no cgroups is no fault."""
    limits = sandbox.limits(context)
    if limits.is_empty:
        return DoctorFinding(name="limits of a run", ok=True, detail="switched off in your settings")
    if cgroups.find() is None:
        return DoctorFinding(
            name="limits of a run",
            ok=True,
            detail="none: this user can make no cgroups here, so one run can use all memory",
        )
    memory = "no limit of memory" if limits.memory is None else f"{limits.memory / 2**30:.1f} GB of memory"
    processes = "no limit of processes" if limits.processes is None else f"{limits.processes} processes"
    return DoctorFinding(name="limits of a run", ok=True, detail=f"{memory}, {processes}")


def _store(context: Board) -> DoctorFinding:
    with context.store.read() as tx:
        return DoctorFinding(name="store", ok=True, detail=f"{context.store.place}, {events.last(tx)} events")


def _settings(context: Board) -> DoctorFinding:
    user = context.user
    if context.settings.complaint:
        return DoctorFinding(name="settings", ok=False, detail=context.settings.complaint, advice="fix the file")
    there = Path(user.origin).exists() if user.origin else False
    return DoctorFinding(
        name="settings", ok=True, detail=f"{user.origin}{'' if there else ' (missing; defaults apply)'}"
    )


def _disk(name: str, place: Path) -> DoctorFinding:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    detail = f"{free / 2**30:.1f} GB free at {place}"
    return DoctorFinding(
        name=name, ok=free > _LOW_DISK, detail=detail, advice="" if free > _LOW_DISK else "free some space"
    )


def _driver(name: str, program: str) -> DoctorFinding:
    found = shutil.which(program)
    detail = found or f"{program} is not on PATH"
    return DoctorFinding(
        name=f"driver {name}", ok=found is not None, detail=detail, advice="" if found else f"install {program}"
    )


def _described(context: Board, of_project: str) -> list[DoctorFinding]:
    """The described programs that the settings or the project name."""
    named = {of_project, *(name for _, name in context.user.named_drivers())} - context.user.drivers.keys()
    findings = []
    for name, program in programs().found.items():
        if name in named:
            try:
                ok, detail = True, str(path_of(program))
            except ProgramUnusable as missing:
                ok, detail = False, str(missing)
            findings.append(DoctorFinding(name=f"driver {name}", ok=ok, detail=detail))
    return findings


def _replaced(context: Board) -> list[DoctorFinding]:
    """A driver of the person's own named like the built-in one: allowed, but easily a mistake."""
    if CLAUDE not in context.user.drivers:
        return []
    return [
        DoctorFinding(
            name="Claude Code replaced",
            ok=True,
            detail=f"your [drivers.{CLAUDE}] is a plain program: no gateway, no budget, no conversation, no questions",
            advice=f"rename it to use both, or remove it and set `default_driver` to `{CLAUDE}`",
        )
    ]


def _loops(context: Board) -> list[DoctorFinding]:
    """Work in the background that met an error which its code does not expect."""
    advice = f"it is tried again by itself; {context.data.daemon_log} shows where it failed"
    return [
        DoctorFinding(
            name=name,
            ok=False,
            detail=f"failed {max(0, int(context.clock() - at)) // 60} min ago: {error}",
            advice=advice,
        )
        for name, (at, error) in context.live.recent_failures(context.clock()).items()
    ]


def _is_claude(context: Board, driver: str) -> bool:
    """Whether tickets that name no driver get Claude Code."""
    try:
        return context.user.driver(driver) is None
    except NotFound:
        return False


def _claude(context: Trees, *, needed: bool) -> list[DoctorFinding]:
    """The program, its access to a model, the gateway, limits. Nothing is wrong if no ticket needs Claude Code."""
    return [_program(context, needed), _model(context, needed), _gateway(context), *_limits(context)]


def _program(context: Board, needed: bool) -> DoctorFinding:
    try:
        found = model_run.find_program(context)
    except LegionError as missing:
        if not needed:
            return DoctorFinding(name="Claude Code", ok=True, detail=f"none that can be used, and {_NOT_NEEDED}")
        return DoctorFinding(name="Claude Code", ok=False, detail="none that can be used", advice=missing.message)
    whose = "bundled with Legion" if found.bundled else "yours"
    over = f"Yours is not used: {found.passed_over}" if found.passed_over else ""
    return DoctorFinding(name="Claude Code", ok=True, detail=f"{found.version}, {whose}, {found.path}", advice=over)


def _model(context: Trees, needed: bool) -> DoctorFinding:
    try:
        way = model_access.choose(context)
    except LegionError as missing:
        if not needed:
            return DoctorFinding(name="model", ok=True, detail=_NOT_NEEDED)
        return DoctorFinding(name="model", ok=False, detail="Claude Code has no access to one", advice=missing.message)
    if isinstance(way, OwnLogin):
        return DoctorFinding(
            name="model",
            ok=True,
            detail=f"by your own Claude login, which agents can read, {way.credentials}",
            advice=f"`legion provider add anthropic --key-file {way.credentials}` leaves it to the gateway alone",
        )
    (line,) = [line for line in catalog.listed(context).providers if line.name == way.provider]
    missing_key = line.found is False
    if needed and not missing_key and (dead := unreachable(line.url)):
        return DoctorFinding(
            name="model",
            ok=False,
            detail=f"by provider {line.name}, which cannot be reached at {line.url} ({dead})",
            advice=f"check its URL and your network; `legion provider test {line.name}` sends it a request",
        )
    return DoctorFinding(
        name="model",
        ok=not missing_key or not needed,
        detail=f"by provider {line.name} at {line.url}; its key: {line.key}{', which is missing' * missing_key}",
        advice=model_access.key_advice(line.name, catalog.known(context, line.name)) if missing_key else "",
    )


def _gateway(context: Board) -> DoctorFinding:
    found = lifecycle.address(GatewayFolder(context.data.gateway))
    detail = f"{found.url}, pid {found.pid}, version {found.release}" if found else "starts with the first agent"
    return DoctorFinding(name="gateway", ok=True, detail=detail)


def _limits(context: Trees) -> list[DoctorFinding]:
    """The limits that providers reported last. A limit is never a fault."""
    findings = []
    try:
        lines = catalog.listed(context).providers
    except LegionError:
        # The finding about the model reports a file that cannot be read.
        return []
    for line in lines:
        if line.limit is not None:
            used = "" if line.limit.utilization is None else f"{line.limit.utilization:.0%} used "
            window = f"of {line.limit.window} " if line.limit.window else ""
            resets = moment(line.limit.resets_at, context.clock())
            state = f"{used}{window}".strip() or f"answered {line.limit.status}"
            detail = f"{state}{f', resets {resets}' if resets else ''}"
            findings.append(DoctorFinding(name=f"limit of {line.name}", ok=True, detail=detail))
    return findings


def _hub(project: ProjectContext) -> DoctorFinding:
    place = project.hub.path
    if place.is_dir():
        return DoctorFinding(name="hub", ok=True, detail=str(place))
    advice = "put it back; if it is lost, `legion init` makes a new one from your branch, without uncollected work"
    return DoctorFinding(name="hub", ok=False, detail=f"{place} is gone, so nothing can start or land", advice=advice)


def _setup_reads(project: ProjectContext) -> list[DoctorFinding]:
    """Whether Legion can see which files [setup] reads. If not, checks are as reliable and cost more."""
    if not project.config.setup.run or not project.folder.is_dir():
        return []
    if read_marks.are_recorded(project.folder):
        return [DoctorFinding(name="reads of [setup]", ok=True, detail="seen, by the times of access")]
    return [
        DoctorFinding(
            name="reads of [setup]",
            ok=True,
            detail="not seen: the file system records no times of access (noatime), or none where a copy shares blocks "
            "(btrfs, XFS), so setup runs for every change",
            advice=f"keep {project.folder} on a file system that is mounted with relatime, such as ext4",
        )
    ]


def _trial(context: Board, project: ProjectContext) -> list[DoctorFinding]:
    """Whether the target passes its checks, and whether they notice broken code."""
    if not project.config.checks:
        return []
    target, name = project.record.target, "checks see the code"
    with context.store.read() as tx:
        found = trials.page_of(context, tx, project)
        red = red_checks.on_commit(tx, project.id, target) if project.record.baseline_red else ()
    findings = [
        DoctorFinding(name="the target passes", ok=False, detail=sentence, advice=found.remedy or _FIX_TARGET)
        for sentence in red_checks.sentences(context, red)
    ]
    if found.setup_fault and not findings:
        findings = [DoctorFinding(name="setup", ok=False, detail=found.setup_fault, advice=found.remedy)]
    if not findings and found.state == "done":
        ok, detail = all(one.ok for one in found.checks), "; ".join(found.lines[:-1])
        advice = "" if ok else found.remedy
        findings = [DoctorFinding(name="the target passes", ok=ok, detail=detail, advice=advice)]
    if found.sees == "no" or (found.doubts and not found.trusted):
        advice = "you trust them all the same, and every receipt says so" if found.trusted else found.remedy
        detail = "; ".join(found.doubts)
        return [*findings, DoctorFinding(name=name, ok=found.trusted, detail=detail, advice=advice, known=False)]
    known = found.sees == "yes"
    detail = "they fail when the code is broken" if known else found.lines[-1].removeprefix("sees the code: ")
    advice = "`legion doctor --try` tries them now" if found.state == "due" else ""
    return [*findings, DoctorFinding(name=name, ok=found.state != "failed", detail=detail, advice=advice, known=known)]


def _shell(context: Board, project: ProjectContext) -> DoctorFinding:
    """Which variables programs get that the daemon has otherwise."""
    record = project.record
    names = shell_variables.unlike_daemon(context, Path(record.common_dir), Path(record.root))
    detail = f"{', '.join(names)} as in your shell, unlike the daemon's" if names else "the same as the daemon's"
    advice = "`legion up`, run in the repository, takes them from your present shell" if names else ""
    if hidden := shell_variables.without_password(context, Path(record.common_dir)):
        detail = f"{detail}; {', '.join(hidden)} without user and password"
        advice = "; ".join(filter(None, (advice, "`sandbox.env` passes a proxy to agents with its password")))
    return DoctorFinding(name="shell variables", ok=True, detail=detail, advice=advice)


def _filters(project: ProjectContext) -> list[DoctorFinding]:
    filters = project.hub.filters(project.target) if project.hub.path.is_dir() else None
    refused = {} if filters is None else {name: filters.refused.get(name) for name in filters.names}
    return [
        DoctorFinding(name=f"git filter {name}", ok=why is None, detail=filter_sentence(name, why))
        for name, why in refused.items()
    ]


def _project(context: Trees, project_id: int) -> list[DoctorFinding]:
    project = context.project(project_id)
    record = project.record
    trusted = registry.is_trusted(context, record)
    checks = ", ".join(check.name for check in project.config.checks)
    with context.store.read() as tx:
        known = {worktree_name(ticket.id) for ticket in tickets.live(tx, project=project_id)}
        ended = {worktree_name(ticket.id) for ticket in tickets.recent(tx, project_id, limit=1000)}
        staff = {agent_seat(agent.number) for agent in agents.standing(tx)} | agents.gone(tx, project_id)
        flaky = flaky_checks(context, tx, project_id)
        removed = tickets.landed(tx, project_id, noted=True)
        predicted = score(events.newest(tx, project=project_id, limit=_MOST_EVENTS))
    # A reviewer has its own tree next to the ticket's.
    reviewers = {
        name
        for name in project.worktrees.names()
        if (found := seated(name)) and worktree_name(found[1]) in known | ended
    }
    tried = {name for name in project.worktrees.names() if name.startswith(try_tree.PREFIX)}
    unknown = project.worktrees.orphans(known | ended | staff | reviewers | tried)
    return [
        _hub(project),
        DoctorFinding(
            name="legion.toml",
            ok=trusted,
            detail=f"from the {record.config_origin.value}, {'trusted' if trusted else 'not trusted'}",
            advice="" if trusted else "read it and run `legion trust`",
        ),
        DoctorFinding(
            name="checks",
            ok=bool(checks),
            detail=checks or "none: landed tickets will show `unchecked`",
            advice="" if checks else "add [checks.test] to legion.toml",
        ),
        *_setup_reads(project),
        *_trial(context, project),
        _shell(context, project),
        *_filters(project),
        DoctorFinding(
            name="flaky checks",
            ok=not flaky,
            detail=", ".join(f"{command} ({times})" for command, times in flaky.items()) or "none",
            advice="fix them: every flaky result costs another run" if flaky else "",
        ),
        DoctorFinding(
            name="conflicts seen early",
            ok=True,
            detail=f"{predicted.predicted}: {predicted.came_true} happened, {predicted.settled} were resolved in time; "
            f"{predicted.unforeseen} came without a prediction",
        ),
        DoctorFinding(
            name="landed and gone",
            # The person may have removed it on purpose.
            ok=True,
            detail=", ".join(f"ticket {one.id} ({one.landed[:9] if one.landed else ''})" for one in removed) or "none",
            advice="the target went back with your branch: merge their commits, dispatch again, or `legion drop`"
            if removed
            else "",
        ),
        _disk("worktrees", Path(record.worktrees)),
        DoctorFinding(
            name="worktrees of no ticket",
            ok=not unknown,
            detail=", ".join(unknown) or "none",
            advice="check their contents, then delete them yourself" if unknown else "",
        ),
    ]
