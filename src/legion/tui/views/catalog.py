"""Lists of the menu as rows: providers, teams, roles, workers, sessions, settings, worktrees."""

from __future__ import annotations

from legion.client.text.terminal import Cell, Colour, clock, size
from legion.tui.views.rows import BLANK, Row, clean, note, paragraph, table
from legion.tui.views.status_line import describe_limit
from legion.wire.controls import Numbers
from legion.wire.projects import Config, WorktreeList
from legion.wire.providers import Providers
from legion.wire.sessions import SessionLine, SessionList
from legion.wire.teams import Roles, Teams

ENDED = "ended "
"""In front of the keys of sessions that ended."""


def _dim(text: str, width: int) -> list[Row]:
    return paragraph(text, width, colour=Colour.DIM)


def provider_rows(providers: Providers, width: int) -> list[Row]:
    lines = []
    for one in providers.providers:
        found = {
            True: Cell("key found", Colour.GREEN),
            False: Cell("no key", Colour.RED),
            None: Cell("key in the keyring"),
        }
        limit = describe_limit(one.limit) if one.limit is not None else ""
        cells = [
            Cell(f"{'● ' if one.default else '  '}{clean(one.name)}", Colour.BOLD),
            Cell(clean(one.kind), Colour.DIM),
            found[one.found],
            Cell(clean(one.key), Colour.DIM),
            Cell(limit, Colour.YELLOW),
        ]
        lines.append((one.name, cells))
    made = table(lines, width, keep=1) or [note("No provider yet: a adds one.")]
    made += [BLANK, *_dim(f"● is the default. The file: {providers.file}", width)]
    return [*made, *(row for text in providers.notes for row in paragraph(text, width, colour=Colour.YELLOW))]


def team_rows(teams: Teams, width: int) -> list[Row]:
    lines = [
        (
            one.name,
            [
                Cell(f"{'● ' if one.default else '  '}{clean(one.name)}", Colour.BOLD),
                Cell(clean(" → ".join(one.roles)) or "one plain agent"),
                Cell(clean(one.origin), Colour.DIM),
                Cell(clean(one.fault or one.about), Colour.RED if one.fault else Colour.DIM),
            ],
        )
        for one in teams.teams
    ]
    return [
        *table(lines, width, keep=1),
        BLANK,
        *_dim("● is the project's default. Enter edits; a shipped one becomes yours.", width),
    ]


def role_rows(roles: Roles, width: int) -> list[Row]:
    lines = [
        (
            one.name,
            [
                Cell(clean(one.name), Colour.BOLD),
                Cell(clean(one.part)),
                Cell(clean(" ".join(part for part in (one.provider, one.model) if part)), Colour.CYAN),
                Cell(clean(one.origin), Colour.DIM),
                Cell(clean(one.fault or one.about), Colour.RED if one.fault else Colour.DIM),
            ],
        )
        for one in roles.roles
    ]
    return [*table(lines, width, keep=1), BLANK, *_dim("Enter edits; a shipped one becomes yours.", width)]


def number_rows(numbers: Numbers, width: int) -> list[Row]:
    lines = [
        (name, [Cell(name, Colour.BOLD), Cell(str(value), Colour.CYAN), Cell(origin, Colour.DIM)])
        for name, value, origin in (
            ("workers", numbers.workers, "set by you" if numbers.workers_set else "legion.toml"),
            ("retries", numbers.retries, "set by you" if numbers.retries_set else "legion.toml"),
        )
    ]
    now = f"{numbers.at_work} at work now. Enter changes these numbers at once, without a commit."
    return [*table(lines, width, keep=1), BLANK, *_dim(now, width)]


def session_rows(found: SessionList, width: int) -> list[Row]:
    lines = [
        (
            key_of(one),
            [
                Cell(f"{'● ' if one.acting else '  '}{clean(one.name)}", Colour.DIM if one.ended_at else Colour.BOLD),
                Cell(clean(one.branch), Colour.DIM if one.ended_at else Colour.NONE),
                Cell(f"ended {clock(one.ended_at)}" if one.ended_at else f"{one.open} open", Colour.DIM),
                Cell(f"{one.ahead} to collect" if one.ahead else "", Colour.YELLOW),
            ],
        )
        for one in found.sessions
    ]
    here = f"Your checkout is on {clean(found.checkout)}." if found.checkout else "HEAD of your checkout is detached."
    notes = [
        row for one in found.sessions for text in one.notes for row in paragraph(text, width, colour=Colour.YELLOW)
    ]
    text = f"● gets your tickets; Enter switches, Esc continues with it. {here}"
    return [*table(lines, width, keep=2), BLANK, *_dim(text, width), *notes]


def key_of(session: SessionLine) -> str:
    """An ended session may have the name of an open one."""
    return f"{ENDED if session.ended_at else ''}{session.name}"


def setting_rows(config: Config, width: int) -> list[Row]:
    lines = [
        ("", [Cell(clean(one.key)), Cell(clean(str(one.value)), Colour.CYAN), Cell(clean(one.origin), Colour.DIM)])
        for one in config.settings
    ]
    files = [f"Yours: {config.user_file}", *([f"The project's: {config.project_file}"] if config.project_file else [])]
    above = [*files, "Edit a file; changes count without a restart. `agents.parallel` is the number of workers."]
    return [*(row for text in above for row in _dim(text, width)), BLANK, *table(lines, width, keep=1)]


def worktree_rows(found: WorktreeList, width: int) -> list[Row]:
    lines = [
        (
            one.path,
            [
                Cell(clean(one.name), Colour.BOLD),
                Cell(one.state),
                Cell(size(one.bytes)),
                Cell(clean(one.path), Colour.DIM),
            ],
        )
        for one in found.worktrees
    ]
    return [
        *(table(lines, width, keep=1) or [note("No worktree yet.")]),
        BLANK,
        note(f"trash: {size(found.trash_bytes)}"),
    ]
