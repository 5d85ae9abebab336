"""Reads Claude Squad: `config.json` with its programs, and `state.json` with its instances and their worktrees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundSetting,
    FoundTicket,
    LeftOut,
    UnreadableSource,
    items,
    json_of,
    name_of,
    same_folder,
    table,
    text,
    ticket,
    toml_text,
    with_texts,
)

TOOL = "claude-squad"
_WHY_NOT = {
    "auto_yes": "agents in the sandbox need no confirmation; `claude.permission_mode` of your own file says more",
    "daemon_poll_interval": "nothing is polled",
    "branch_prefix": "a change gets a branch of yours only when you want one",
}
_ADOPTED = "Work on this was started in Claude Squad{where}. The worktree holds it, uncommitted files too: continue."


def places(home: Path, cwd: Path) -> list[Path]:
    return [home / ".claude-squad/config.json", home / ".claude-squad/state.json"]


def read(file: Path, root: Path) -> Findings:
    """Instances of other repositories than `root` are left out."""
    whole = json_of(file)
    if not isinstance(whole, Mapping):
        raise UnreadableSource(f"{file} holds no table, so it is neither config nor state of Claude Squad.")
    return _state(file, whole, root) if "instances" in whole else _config(file, whole)


def _config(file: Path, whole: Mapping[str, Any]) -> Findings:
    settings: list[FoundSetting] = []
    left: list[LeftOut] = []
    for key, value in whole.items():
        if key == "default_program":
            settings += _default(text(value))
        elif key == "profiles":
            settings += [one for profile in items(value) for one in _profile(table(profile))]
        else:
            left.append(LeftOut(what=f"{key} = {value}", why=_WHY_NOT.get(key, "Legion has no such setting")))
    return Findings(tool=TOOL, place=str(file), settings=tuple(settings), left_out=tuple(left))


def _default(program: str) -> list[FoundSetting]:
    name = Path(program.split()[0]).name if program.split() else ""
    if not name:
        return []
    line = f"default_driver = {toml_text(name_of(name).replace('_', '-'))}"
    return [FoundSetting(origin=f"default_program = {program}", file="config.toml", table="", line=line)]


def _profile(one: Mapping[str, Any]) -> list[FoundSetting]:
    name, program = name_of(text(one.get("name"))), text(one.get("program"))
    if not program:
        return []
    lines = {f"profile {name}": f"run = {toml_text(program)}", f"profile {name}, interactive": 'driver = "terminal"'}
    return [
        FoundSetting(origin=origin, file="config.toml", table=f"drivers.{name}", line=line)
        for origin, line in lines.items()
    ]


def _state(file: Path, whole: Mapping[str, Any], root: Path) -> Findings:
    given = whole["instances"]
    if isinstance(given, str):
        # Some versions keep the list as a text inside the file.
        try:
            given = json.loads(given)
        except json.JSONDecodeError:
            raise UnreadableSource(f"{file}: `instances` is not valid JSON.") from None
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for number, one in enumerate(map(table, items(given)), 1):
        title = text(one.get("title"))
        if not title:
            left.append(LeftOut(what=f"instance {number}", why="it has no title"))
        elif (home := _repository(one)) and not same_folder(home, root):
            left.append(LeftOut(what=title, why=f"it belongs to {home}: run `legion import` there"))
        else:
            found.append(_ticket(title, one))
    left += [LeftOut(what=key, why="it is about Claude Squad's own screens") for key in whole if key != "instances"]
    return Findings(tool=TOOL, place=str(file), tickets=tuple(found), left_out=tuple(left))


def _repository(one: Mapping[str, Any]) -> str:
    return text(table(one.get("worktree")).get("repo_path")) or text(one.get("path"))


def _ticket(title: str, one: Mapping[str, Any]) -> FoundTicket:
    tree = table(one.get("worktree"))
    branch = text(tree.get("branch_name")) or text(one.get("branch"))
    folder = text(tree.get("worktree_path"))
    there = bool(folder) and Path(folder).is_dir()
    origin = f"{title}@{text(one.get('created_at')) or branch}"
    where = f", by `{text(one.get('program'))}`" if text(one.get("program")) else ""
    made = with_texts(ticket(origin=origin, title=title, text=title), context=_ADOPTED.format(where=where))
    # A paused instance has no worktree; its branch has its work.
    return replace(made, folder=folder if there else "", branch="" if there else branch)
