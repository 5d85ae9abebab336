"""Reads legion_cc's SQLite file: open tickets, roles and teams of the person's own, providers with their keys."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundDefinition,
    FoundProvider,
    FoundTicket,
    LeftOut,
    UnreadableSource,
    name_of,
    same_folder,
    text,
    ticket,
    toml_text,
    with_texts,
    without_cycles,
)
from legion.system.paths import default_data_dir

TOOL = "legion_cc"
_SHIPPED_ROLES = ("tech_lead", "engineer", "qa", "pm", "architect", "devops")
_SHIPPED_TEAMS = ("tech_lead_team", "fullstack_team", "backend_team", "qa_team", "solo")
_FORMATS = {
    "anthropic": ("anthropic", "x-api-key"),
    "anthropic_bearer": ("anthropic", "bearer"),
    "openai_chat": ("openai_chat", "bearer"),
    "openai_responses": ("openai_responses", "bearer"),
}
_OTHER_TABLES = {
    "pane_configs": "an agent's provider and model come from `legion provider route`, roles and tickets",
    "squad_sessions": "a session is bound to a branch: `legion session new` on that branch makes one",
    "sessions": "the conversations stay in `~/.claude/projects`",
    "workers": "workers are started as tickets need them",
    "pending_questions": "they are questions of agents that have ended",
    "ticket_logs": "the output of old attempts stays where it is",
    "ticket_diffs": "the changes are on the branches of the old workers",
}
Row = Mapping[str, Any]


def places(home: Path, cwd: Path) -> list[Path]:
    # Its folder has the name of ours.
    shared = [home / ".local/share/legion", home / "Library/Application Support/legion", default_data_dir()]
    folders = dict.fromkeys([cwd / ".legion", *shared])
    return [file for folder in folders for file in sorted(folder.glob("*.db")) if is_one(file)]


def is_one(file: Path) -> bool:
    """Whether a file is a database of legion_cc. Legion's own has the same name."""
    try:
        return "pane_configs" in _tables(file) or "squad_sessions" in _tables(file)
    except UnreadableSource:
        return False


def read(file: Path, root: Path) -> Findings:
    """Tickets of sessions of other projects than `root` are left out."""
    tables = _tables(file)
    if not tables & {"tickets", "providers", "roles", "teams"}:
        raise UnreadableSource(f"{file} is a database, but not one of legion_cc.")
    left: list[LeftOut] = []
    sessions = {text(row.get("name")): text(row.get("project_path")) for row in _rows(file, tables, "squad_sessions")}
    elsewhere = {name: path for name, path in sessions.items() if path and not same_folder(path, root)}
    tickets, cut = without_cycles(_tickets(_rows(file, tables, "tickets"), elsewhere, left))
    roles = _roles(_rows(file, tables, "roles"), left)
    teams = _teams(_rows(file, tables, "teams"), left)
    providers = _providers(_rows(file, tables, "providers"), left)
    for name, why in _OTHER_TABLES.items():
        if count := len(_rows(file, tables, name)):
            left.append(LeftOut(what=f"{name} ({count})", why=why))
    return Findings(
        tool=TOOL,
        place=str(file),
        source=hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:12],
        tickets=tickets,
        definitions=(*roles, *teams),
        providers=providers,
        left_out=(*left, *cut),
    )


def _connected(file: Path) -> sqlite3.Connection:
    # Without a write-ahead log the file is complete, and SQLite takes no lock and makes no file next to it.
    more = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    made = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro{more}", uri=True)
    made.row_factory = sqlite3.Row
    made.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return made


def _tables(file: Path) -> set[str]:
    try:
        with closing(_connected(file)) as database:
            return {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, OSError, ValueError) as wrong:
        raise UnreadableSource(f"{file} cannot be read as an SQLite database ({wrong}).") from None


def _rows(file: Path, tables: set[str], name: str) -> list[Row]:
    if name not in tables:
        return []
    try:
        with closing(_connected(file)) as database:
            # The name is one of ours.
            return [dict(row) for row in database.execute(f'SELECT * FROM "{name}"')]
    except sqlite3.Error as wrong:
        raise UnreadableSource(f"{file}: the table {name} cannot be read ({wrong}).") from None


def _tickets(rows: list[Row], elsewhere: Mapping[str, str], left: list[LeftOut]) -> list[FoundTicket]:
    found = []
    for row in rows:
        session, id, title = text(row.get("session_name")), text(row.get("id")), text(row.get("title"))
        if session in elsewhere:
            why = f"its session {session} belongs to {elsewhere[session]}: run `legion import` there"
            left.append(LeftOut(what=f"ticket {id} {title}", why=why))
            continue
        if row.get("status") == "done":
            merged = text(row.get("merge_status"))
            also = "" if merged in ("merged", "skipped", "") else f"; its change is not merged there ({merged})"
            left.append(LeftOut(what=f"ticket {id} {title}", why=f"it is done{also}"))
            continue
        made = with_texts(
            ticket(origin=f"{session}/{id}", title=title, text=text(row.get("prompt"))),
            context=_context(row),
            criteria=text(row.get("criteria")),
            plan=text(row.get("structure_plan")),
        )
        after = tuple(f"{session}/{number}" for number in _numbers(row.get("blocked_by")))
        team = "" if row.get("is_checkpoint") else _team_mode(row.get("team_mode"))
        epic = session if session not in ("", "default") else ""
        found.append(replace(made, after=after, team=team, epic=epic, checkpoint=bool(row.get("is_checkpoint"))))
    return found


def _context(row: Row) -> str:
    said = text(row.get("feedback"))
    parts = (text(row.get("context")), f"Of an earlier attempt: {said}" if said else "")
    return "\n\n".join(part for part in parts if part)


def _numbers(given: object) -> list[int]:
    try:
        listed = json.loads(given) if isinstance(given, str) and given else []
    except json.JSONDecodeError:
        return []
    return [one for one in listed if isinstance(one, int)] if isinstance(listed, list) else []


def _team_mode(given: object) -> str:
    """A name, or {"custom": NAME} as JSON."""
    name = text(given)
    if name.startswith("{"):
        try:
            name = text(json.loads(name).get("custom"))
        except (json.JSONDecodeError, AttributeError):
            name = ""
    return name_of(name) if name else ""


def _roles(rows: list[Row], left: list[LeftOut]) -> list[FoundDefinition]:
    found = []
    for row in rows:
        shown = text(row.get("name")) or text(row.get("id"))
        name, prompt = name_of(text(row.get("id")) or shown), text(row.get("prompt_template") or row.get("prompt"))
        if name in _SHIPPED_ROLES:
            why = f"Legion ships a role of this name; `legion team role edit {name}` changes it"
            left.append(LeftOut(what=f"role {shown}", why=why))
        elif not prompt:
            left.append(LeftOut(what=f"role {shown}", why="it has no prompt"))
        else:
            about = f"about = {toml_text(f'{shown}, from legion_cc')}"
            body = f'{about}\npart = "advise"\nprompt = {toml_text(prompt[:8000])}\n'
            found.append(FoundDefinition(kind="role", name=name, text=body))
    return found


def _teams(rows: list[Row], left: list[LeftOut]) -> list[FoundDefinition]:
    found = []
    for row in rows:
        name = name_of(text(row.get("id")) or text(row.get("name")))
        if name in _SHIPPED_TEAMS:
            left.append(LeftOut(what=f"team {name}", why="Legion ships a team of this name"))
            continue
        roles = [name_of(one) for one in _names(row.get("roles") or row.get("role_ids"))]
        advisors = [one for one in roles if one not in ("engineer", "qa")]
        readers = [one for one in roles if one == "qa"]
        listed = ", ".join(toml_text(one) for one in (*advisors, "engineer", *readers))
        about = toml_text(f"{text(row.get('name')) or name}, from legion_cc")
        found.append(FoundDefinition(kind="team", name=name, text=f"about = {about}\nroles = [{listed}]\n"))
        if text(row.get("team_prompt")):
            left.append(LeftOut(what=f"team {name}: team_prompt", why="each role has a prompt of its own here"))
    return found


def _names(given: object) -> list[str]:
    words = text(given)
    try:
        listed = json.loads(words)
    except json.JSONDecodeError:
        listed = words.split(",")
    return [text(one) for one in listed if text(one)] if isinstance(listed, list) else []


def _providers(rows: list[Row], left: list[LeftOut]) -> tuple[FoundProvider, ...]:
    found = []
    for row in rows:
        name, format = text(row.get("name")), text(row.get("api_format")) or "anthropic"
        url = text(row.get("base_url"))
        if format == "github_copilot":
            left.append(LeftOut(what=f"provider {name}", why="log in again: `legion provider login copilot`"))
        elif format not in _FORMATS or not url.startswith(("http://", "https://")):
            left.append(LeftOut(what=f"provider {name}", why=f"its format {format} or its address is unknown here"))
        else:
            kind, auth = _FORMATS[format]
            safe = name_of(name).replace("_", "-")
            key = text(row.get("api_key"))
            found.append(FoundProvider(name=safe, url=url, kind=kind, auth=auth, key=key))
    return tuple(found)
