"""Lists as rows: projects, teams, roles, sessions, numbers of workers, settings, worktrees, findings of doctor."""

from __future__ import annotations

import json
from collections.abc import Iterable

from legion.client.text.rows import BLANK, Column, Columns, Row, flow, head, listing, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, clock, count, sanitize, size
from legion.client.text.tickets import style_of
from legion.wire.board import ProjectLine, ProjectList
from legion.wire.projects import Config, Doctor, Numbers, SettingLine, WorktreeLine, WorktreeList
from legion.wire.sessions import SessionLine, SessionList
from legion.wire.teams import RoleLine, RolePage, Roles, TeamLine, TeamPage, Teams
from legion.wire.ticket_pages import AdviceLine, CrewLine, StageLine

ENDED = "ended "
"""In front of the keys of sessions that ended."""
PARTS = {"advise": "advises", "build": "builds", "read": "reads", "resolve": "resolves"}
_BROKEN = "cannot be used, see below"
_SHORT = 5
"""Lines of an advice, unless everything is asked for."""


def _state(one: ProjectLine) -> str:
    known = (("paused", one.paused), ("not trusted", not one.trusted), (count(len(one.notes), "note"), bool(one.notes)))
    return ", ".join(text for text, holds in known if holds)


_PROJECT: Columns[ProjectLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("branch", lambda one: one.branch, Colour.DIM, keeps=True),
    Column("open", lambda one: f"{one.open} open", keeps=True),
    Column("collect", lambda one: f"{one.ahead} to collect" if one.ahead else "", keeps=True),
    Column("state", _state, Colour.YELLOW, keeps=True),
    Column("folder", lambda one: one.root),
)


def project_rows(found: ProjectList, width: int) -> list[Row]:
    rows = listing(_PROJECT, found.projects, width)
    return rows or [row("No project yet: run `legion init` in a git repository.")]


def _about(one: TeamLine | RoleLine) -> str:
    return _BROKEN if one.fault else one.about


def _about_colour(one: TeamLine | RoleLine) -> Colour:
    return Colour.RED if one.fault else Colour.DIM


def _place(one: TeamLine) -> str:
    return f"{one.origin}, default" if one.default else one.origin


_TEAM: Columns[TeamLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("roles", lambda one: ", ".join(one.roles)),
    Column("origin", _place, Colour.DIM),
    Column("about", _about, _about_colour),
)
_ROLE: Columns[RoleLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("part", lambda one: PARTS.get(one.part, one.part), keeps=True),
    Column("model", lambda one: " ".join(part for part in (one.provider, one.model) if part), Colour.CYAN),
    Column("origin", lambda one: one.origin, Colour.DIM),
    Column("about", _about, _about_colour),
)
_MEANS: Columns[RoleLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("part", lambda one: PARTS.get(one.part, one.part), keeps=True),
    Column("tools", lambda one: "all tools of your settings" if one.tools is None else f"only {', '.join(one.tools)}"),
    Column(
        "by",
        lambda one: ", ".join(
            f"{name} {value}"
            for name, value in (("model", one.model), ("provider", one.provider), ("driver", one.driver))
            if value
        ),
        Colour.DIM,
    ),
)


def _faults(lines: Iterable[TeamLine | RoleLine], untrusted: list[str], width: int) -> list[Row]:
    """Complete, because they say what to do."""
    made = [line for fault in dict.fromkeys(one.fault for one in lines) for line in paragraph(fault, width)]
    if untrusted:
        text = f"Not trusted yet, so without effect: {', '.join(untrusted)} (`legion trust`)"
        made += paragraph(text, width, colour=Colour.YELLOW)
    return made


def team_rows(found: Teams, width: int) -> list[Row]:
    return [
        *listing(_TEAM, found.teams, width, key=lambda one: one.name),
        *_faults(found.teams, found.untrusted, width),
    ]


def role_rows(found: Roles, width: int) -> list[Row]:
    return [
        *listing(_ROLE, found.roles, width, key=lambda one: one.name),
        *_faults(found.roles, found.untrusted, width),
    ]


def team_page_rows(page: TeamPage, width: int) -> list[Row]:
    one = page.team
    made = [head(sanitize(one.name)), *paragraph(one.about, width), *listing(_MEANS, page.stages, width, indent=2)]
    if any(stage.part == "read" for stage in page.stages):
        made += paragraph(f"After {one.rounds} rounds of requested changes, you are asked.", width)
    return [*made, *paragraph(f"in {one.file} ({_place(one)})", width, colour=Colour.DIM)]


def role_page_rows(page: RolePage, width: int) -> list[Row]:
    one = page.role
    made = [head(sanitize(one.name)), *paragraph(one.about, width), *listing(_MEANS[1:], [one], width, indent=2)]
    made += [row(f"  {sanitize(line)}".rstrip()) for line in page.prompt.splitlines()]
    made += [row(f"In {sanitize(', '.join(page.teams))}.")] if page.teams else []
    return [*made, *paragraph(f"in {one.file} ({one.origin})", width, colour=Colour.DIM)]


_STAGE: Columns[StageLine] = (
    Column("role", lambda one: one.role, keeps=True),
    Column("part", lambda one: PARTS.get(one.part, one.part), keeps=True),
    Column("model", lambda one: one.model, Colour.DIM),
    Column(
        "did",
        lambda one: f"run{'s' if len(one.runs) > 1 else ''} {', '.join(map(str, one.runs))}" if one.runs else "not yet",
        Colour.DIM,
    ),
)


def crew_rows(crew: CrewLine | None, width: int, *, full: bool) -> list[Row]:
    """The section of a ticket's page about its team. Empty for a ticket with one agent: the rest is about that one."""
    if crew is None or (len(crew.stages) == 1 and not crew.changed):
        return []
    made = [BLANK, head(f"Team {sanitize(crew.team)}"), *listing(_STAGE, crew.stages, width, indent=2)]
    made += paragraph(crew.changed, width, indent=2)
    return [*made, *(line for one in crew.advice for line in _advice(one, width, full=full))]


def _advice(one: AdviceLine, width: int, *, full: bool) -> list[Row]:
    again = ", for fresh eyes" if one.turn else ""
    title = note(f"{sanitize(one.role)} advised{again}", indent=2)
    return [title, *paragraph(one.text, width, indent=4, most=None if full else _SHORT)]


def _open(one: SessionLine) -> str:
    if one.ended_at is not None:
        return f"ended {clock(one.ended_at)}"
    ahead = f", {count(one.ahead, 'landed commit')} to collect" if one.ahead else ""
    return f"{count(one.open, 'open ticket')}{ahead}"


_SESSION: Columns[SessionLine] = (
    Column(
        "name",
        lambda one: one.name,
        lambda one: Colour.DIM if one.ended_at else Colour.BOLD,
        keeps=True,
        branches=lambda one: "● " if one.acting else "  ",
    ),
    Column("branch", lambda one: f"{one.branch} at {one.target[:9]}"),
    Column("state", _open, lambda one: Colour.YELLOW if one.ahead else Colour.DIM),
)


def session_rows(found: SessionList, width: int) -> list[Row]:
    def notes(one: SessionLine) -> list[Row]:
        texts = [f"{one.name}: {text}" for text in one.notes]
        return [line for text in texts for line in paragraph(text, width, colour=Colour.YELLOW, key=key_of(one))]

    here = (
        f"Your checkout is on {sanitize(found.checkout)}." if found.checkout else "HEAD of your checkout is detached."
    )
    return [*listing(_SESSION, found.sessions, width, key=key_of, below=notes), BLANK, note(here)]


def key_of(session: SessionLine) -> str:
    """An ended session may have the name of an open one."""
    return f"{ENDED if session.ended_at else ''}{session.name}"


def number_rows(numbers: Numbers, width: int) -> list[Row]:
    pairs = (("workers", numbers.workers, numbers.workers_set), ("retries", numbers.retries, numbers.retries_set))
    columns: Columns[tuple[str, int, bool]] = (
        Column("name", lambda one: one[0], Colour.BOLD, keeps=True),
        Column("number", lambda one: str(one[1]), Colour.CYAN, keeps=True),
        Column("origin", lambda one: "set by you" if one[2] else "legion.toml", Colour.DIM),
    )
    return [*listing(columns, pairs, width, key=lambda one: one[0]), BLANK, note(f"{numbers.at_work} at work now.")]


_SETTING: Columns[SettingLine] = (
    Column("setting", lambda one: one.key, keeps=True),
    Column("origin", lambda one: one.origin, Colour.DIM, keeps=True),
    Column("value", lambda one: json.dumps(one.value, ensure_ascii=False), Colour.CYAN),
)


def setting_rows(found: Config, width: int, *, explain: bool = True) -> list[Row]:
    """`explain`: also where each comes from."""
    wrong = paragraph(f"Not in force: {found.complaint}", width, colour=Colour.YELLOW) if found.complaint else []
    if not explain:
        return [*wrong, *listing((_SETTING[0], _SETTING[2]), found.settings, width)]
    state = "trusted" if found.trusted else "not trusted yet: legion trust"
    files = [f"yours      {found.user_file}"]
    files += [f"project's  {found.project_file} ({state})"] if found.project_file else []
    return [
        *wrong,
        *listing(_SETTING, found.settings, width),
        BLANK,
        *(line for one in files for line in paragraph(one, width)),
    ]


_WORKTREE: Columns[WorktreeLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column(
        "state", lambda one: one.state, lambda one: Colour.CYAN if one.state == "in use" else Colour.DIM, keeps=True
    ),
    Column("ticket", lambda one: f"#{one.ticket}" if one.ticket is not None else "", keeps=True),
    Column("size", lambda one: size(one.bytes), keeps=True),
    Column("folder", lambda one: one.path, Colour.DIM),
)


def worktree_rows(found: WorktreeList, width: int) -> list[Row]:
    rows = listing(_WORKTREE, found.worktrees, width, key=lambda one: one.path) or [note("No worktrees.")]
    total = size(sum(one.bytes for one in found.worktrees))
    text = f"{total} in worktrees, {size(found.trash_bytes)} in the trash"
    return [*paragraph(found.root, width, colour=Colour.BOLD), *rows, BLANK, note(text)]


def doctor_rows(found: Doctor, width: int) -> list[Row]:
    made: list[Row] = []
    for one in found.findings:
        state, word = ("failed", "no") if not one.ok else ("done", "ok") if one.known else ("parked", "?")
        style = style_of(state)
        mark = Cell(f"{style.symbol} {word:<3} ", style.colour)
        made += flow((mark, Cell(f"{sanitize(one.name)}: ", Colour.BOLD), Cell(sanitize(one.detail))), width, indent=6)
        made += paragraph(one.advice, width, indent=6)
    return made
