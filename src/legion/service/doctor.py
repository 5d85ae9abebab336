"""Is everything there that Legion needs? Each finding says what is, and what to do where it is not well."""

from __future__ import annotations

import shutil
from pathlib import Path

from legion.config.machine import SandboxMode
from legion.config.user import CLAUDE
from legion.domain.conflicts import score
from legion.domain.errors import LegionError, NotFound
from legion.domain.runs import agent_seat, seated
from legion.gateway import process
from legion.gateway.folder import GatewayFolder
from legion.git import command as git
from legion.git.errors import GitProblem
from legion.jobs import access, claude
from legion.jobs.access import OwnLogin
from legion.jobs.saving import worktree_name
from legion.jobs.world import World
from legion.service import projects as project_cases
from legion.service import providers, views
from legion.service.lines import moment
from legion.store import agents, events, tickets
from legion.wire.projects import Doctor, Finding

_MOST_EVENTS = 20_000
_LOW_DISK = 2 * 2**30
_NOT_NEEDED = "not needed: your driver is another one"


def doctor(world: World, cwd: str | None) -> Doctor:
    findings = [_git(), _sandbox(world), _store(world), _settings(world), _disk("data folder", world.data.root)]
    findings += [_driver(name, driver.argv[0]) for name, driver in sorted(world.user.drivers.items())]
    findings += _replaced(world)
    project = project_cases.find_or_none(world, cwd) if cwd else None
    driver = world.workshop_of(project).config.agents.driver if project is not None else ""
    findings += _claude(world, needed=_is_claude(world, driver))
    if project is not None:
        findings += _project(world, project.id)
    return Doctor(ok=all(finding.ok for finding in findings), findings=findings)


def _git() -> Finding:
    try:
        found = ".".join(str(part) for part in git.version())
    except GitProblem as problem:
        return Finding(name="git", ok=False, detail=str(problem), advice="install or update git")
    return Finding(name="git", ok=True, detail=found)


def _sandbox(world: World) -> Finding:
    state, mode = world.sandbox, world.user.sandbox.mode
    if mode is SandboxMode.OFF:
        return Finding(
            name="sandbox", ok=True, detail="switched off in your settings: agents can reach all that you can"
        )
    if state.works:
        return Finding(name="sandbox", ok=True, detail=state.why)
    advice = "install bubblewrap (Debian: apt install bubblewrap)"
    return Finding(name="sandbox", ok=False, detail=f"none holds here: {state.why}", advice=advice)


def _store(world: World) -> Finding:
    with world.store.read() as tx:
        return Finding(name="store", ok=True, detail=f"{world.store.place}, {events.last(tx)} events")


def _settings(world: World) -> Finding:
    user = world.user
    if world.settings.complaint:
        return Finding(name="settings", ok=False, detail=world.settings.complaint, advice="mend the file")
    there = Path(user.origin).exists() if user.origin else False
    return Finding(name="settings", ok=True, detail=f"{user.origin}{'' if there else ' (not there; defaults)'}")


def _disk(name: str, place: Path) -> Finding:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    detail = f"{free / 2**30:.1f} GB free at {place}"
    return Finding(name=name, ok=free > _LOW_DISK, detail=detail, advice="" if free > _LOW_DISK else "free some room")


def _driver(name: str, program: str) -> Finding:
    found = shutil.which(program)
    detail = found or f"{program} is not on PATH"
    return Finding(
        name=f"driver {name}", ok=found is not None, detail=detail, advice="" if found else f"install {program}"
    )


def _replaced(world: World) -> list[Finding]:
    """A driver of the person's own under the name of the one that is always there: allowed, and easily unmeant."""
    if CLAUDE not in world.user.drivers:
        return []
    return [
        Finding(
            name="Claude Code replaced",
            ok=True,
            detail=f"your [drivers.{CLAUDE}] is a plain program: no gateway, no budget, no conversation, no questions",
            advice=f"rename it to use both, or remove it and set `default_driver` to `{CLAUDE}`",
        )
    ]


def _is_claude(world: World, driver: str) -> bool:
    """Whether tickets that name no driver get Claude Code."""
    try:
        return world.user.driver(driver) is None
    except NotFound:
        return False


def _claude(world: World, *, needed: bool) -> list[Finding]:
    """The program, its way to a model, and what lies on that way. Where nobody needs it, nothing of it is wrong."""
    return [_program(world, needed), _model(world, needed), _gateway(world), *_limits(world)]


def _program(world: World, needed: bool) -> Finding:
    try:
        found = claude.find_program(world)
    except LegionError as missing:
        if not needed:
            return Finding(name="Claude Code", ok=True, detail=f"none that can be used, and {_NOT_NEEDED}")
        return Finding(name="Claude Code", ok=False, detail="none that can be used", advice=missing.message)
    whose = "the one that Legion brings" if found.bundled else "yours"
    over = f"Yours is not used: {found.passed_over}" if found.passed_over else ""
    return Finding(name="Claude Code", ok=True, detail=f"{found.version}, {whose}, {found.path}", advice=over)


def _model(world: World, needed: bool) -> Finding:
    try:
        way = access.choose(world)
    except LegionError as missing:
        if not needed:
            return Finding(name="model", ok=True, detail=_NOT_NEEDED)
        return Finding(name="model", ok=False, detail="Claude Code has no way to one", advice=missing.message)
    if isinstance(way, OwnLogin):
        return Finding(
            name="model",
            ok=True,
            detail=f"by your own Claude login, which agents can read, {way.credentials}",
            advice="`legion provider add anthropic` gives them a way to it without the key",
        )
    (line,) = [line for line in providers.listed(world).providers if line.name == way.provider]
    missing_key = line.found is False
    return Finding(
        name="model",
        ok=not missing_key or not needed,
        detail=f"by provider {line.name} at {line.url}; its key: {line.key}{', which is not there' * missing_key}",
        advice=access.key_advice(line.name, providers.known(world, line.name)) if missing_key else "",
    )


def _gateway(world: World) -> Finding:
    found = process.address(GatewayFolder(world.data.gateway))
    detail = f"{found.url}, pid {found.pid}, version {found.release}" if found else "starts with the first agent"
    return Finding(name="gateway", ok=True, detail=detail)


def _limits(world: World) -> list[Finding]:
    """What providers said last; a limit is never a fault."""
    findings = []
    try:
        lines = providers.listed(world).providers
    except LegionError:
        # A file that cannot be read is told of above.
        return []
    for line in lines:
        if line.limit is not None:
            used = "" if line.limit.utilization is None else f"{line.limit.utilization:.0%} used "
            window = f"of {line.limit.window} " if line.limit.window else ""
            resets = moment(line.limit.resets_at, world.clock())
            said = f"{used}{window}".strip() or f"answered {line.limit.status}"
            detail = f"{said}{f', resets {resets}' if resets else ''}"
            findings.append(Finding(name=f"limit of {line.name}", ok=True, detail=detail))
    return findings


def _project(world: World, project_id: int) -> list[Finding]:
    shop = world.workshop(project_id)
    project = shop.project
    trusted = project_cases.is_trusted(world, project)
    checks = ", ".join(check.name for check in shop.config.checks)
    with world.store.read() as tx:
        known = {worktree_name(ticket.id) for ticket in tickets.live(tx, project=project_id)}
        ended = {worktree_name(ticket.id) for ticket in tickets.recent(tx, project_id, limit=1000)}
        staff = {agent_seat(agent.number) for agent in agents.standing(tx)} | agents.gone(tx, project_id)
        flaky = views.flaky(world, tx, project_id)
        away = tickets.landed(tx, project_id, noted=True)
        seen_early = score(events.newest(tx, project=project_id, limit=_MOST_EVENTS))
    # Who reads a change has a tree of its own beside the ticket's.
    readers = {
        name for name in shop.worktrees.names() if (found := seated(name)) and worktree_name(found[1]) in known | ended
    }
    strangers = shop.worktrees.orphans(known | ended | staff | readers)
    return [
        Finding(
            name="legion.toml",
            ok=trusted,
            detail=f"from the {project.config_origin.value}, {'trusted' if trusted else 'not trusted'}",
            advice="" if trusted else "read it and run `legion trust`",
        ),
        Finding(
            name="checks",
            ok=bool(checks),
            detail=checks or "none: landed tickets will show `unchecked`",
            advice="" if checks else "add [checks.test] to legion.toml",
        ),
        Finding(
            name="flaky checks",
            ok=not flaky,
            detail=", ".join(f"{command} ({times})" for command, times in flaky.items()) or "none",
            advice="mend them: each time they cost another run" if flaky else "",
        ),
        Finding(
            name="conflicts seen early",
            ok=True,
            detail=f"{seen_early.predicted}: {seen_early.came_true} came true, {seen_early.settled} settled in time; "
            f"{seen_early.unforeseen} came unforeseen",
        ),
        Finding(
            name="landed and gone",
            # The person may have meant it.
            ok=True,
            detail=", ".join(f"ticket {one.id} ({one.landed[:9] if one.landed else ''})" for one in away) or "none",
            advice="the target went back with your branch: merge their commits, dispatch again, or `legion drop`"
            if away
            else "",
        ),
        _disk("worktrees", Path(project.worktrees)),
        Finding(
            name="worktrees of no ticket",
            ok=not strangers,
            detail=", ".join(strangers) or "none",
            advice="look into them, then delete them yourself" if strangers else "",
        ),
    ]
