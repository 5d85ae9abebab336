"""Reads claude-orchestra: the person's and the project's config.json, and state.json with its agents."""

from __future__ import annotations

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
    is_inside,
    json_of,
    table,
    text,
    texts,
    ticket,
    toml_text,
    with_texts,
)

TOOL = "claude-orchestra"
_WHY_NOT = {
    "claude_projects_dir": "Legion's agents have folders of their own; yours are in `~/.claude/projects` as before",
    "worktree_dir": "worktrees stay out of the repository; `worktrees.folder` of your own file moves them",
    "branch_prefix": "a change gets a branch of yours only when you want one",
    "heartbeat_interval": "a run is watched by its progress, not by heartbeats",
    "stale_threshold": "a run is watched by its progress, not by heartbeats",
    "dashboard_host": "`legion web` serves the page on this machine; its options open it to others",
    "dashboard_port": "`daemon.mcp_port` of your own file is the port of the page",
    "state_file": "Legion keeps its state in its database",
}


def places(home: Path, cwd: Path) -> list[Path]:
    folder = home / ".config/claude-orchestra"
    return [folder / "config.json", folder / "state.json", cwd / ".orchestra/config.json"]


def read(file: Path, root: Path) -> Findings:
    """Agents with a worktree outside of `root` are left out."""
    whole = json_of(file)
    if not isinstance(whole, Mapping):
        raise UnreadableSource(f"{file} holds no table, so it is neither config nor state of claude-orchestra.")
    return _state(file, whole, root) if "agents" in whole else _config(file, whole)


def _config(file: Path, whole: Mapping[str, Any]) -> Findings:
    settings: list[FoundSetting] = []
    left: list[LeftOut] = []
    for key, value in whole.items():
        if key == "default_parallel" and isinstance(value, int):
            line = f"parallel = {min(64, max(1, value))}"
            settings.append(FoundSetting(origin=f"{key} = {value}", file="legion.toml", table="agents", line=line))
        elif key == "max_parallel" and isinstance(value, int):
            line = f"slots = {min(1024, max(1, value))}"
            settings.append(FoundSetting(origin=f"{key} = {value}", file="config.toml", table="daemon", line=line))
        elif key == "bypass_permissions":
            listed = ", ".join(toml_text(one) for one in texts(value))
            settings.append(FoundSetting(origin=key, file="config.toml", table="claude", line=f"allow = [{listed}]"))
        else:
            left.append(LeftOut(what=f"{key} = {text(value)}", why=_WHY_NOT.get(key, "Legion has no such setting")))
    return Findings(tool=TOOL, place=str(file), settings=tuple(settings), left_out=tuple(left))


def _state(file: Path, whole: Mapping[str, Any], root: Path) -> Findings:
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for key, given in table(whole["agents"]).items():
        one = table(given)
        id, task = text(one.get("agent_id")) or str(key), text(one.get("task"))
        if one.get("status") == "completed":
            left.append(LeftOut(what=f"{id} {task[:60]}", why="it is completed; what it changed is on its branch"))
        elif not task:
            left.append(LeftOut(what=id, why="it has no task"))
        elif (tree := text(one.get("worktree_path"))) and not is_inside(tree, root):
            left.append(LeftOut(what=f"{id} {task[:60]}", why=f"its worktree {tree} is in another repository"))
        else:
            found.append(_ticket(id, task, one))
    return Findings(tool=TOOL, place=str(file), tickets=tuple(found), left_out=tuple(left))


def _ticket(id: str, task: str, one: Mapping[str, Any]) -> FoundTicket:
    words = {"error_message": "The last attempt failed", "current_activity": "It was doing", "progress": "Progress"}
    notes = [f"{says}: {text(one.get(key))}" for key, says in words.items() if text(one.get(key))]
    made = with_texts(ticket(origin=id, title=task, text=task), context="\n".join(notes))
    folder = text(one.get("worktree_path"))
    return replace(made, folder=folder if folder and Path(folder).is_dir() else "")
