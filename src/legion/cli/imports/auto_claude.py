"""Reads Auto-Claude's specs: `.auto-claude/specs/NNN-name` with spec.md, requirements.json and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.cli.imports.files import items, json_of, table, text, text_of, texts
from legion.cli.imports.findings import Findings, FoundTicket, LeftOut, UnreadableSource, ticket, with_texts

TOOL = "auto-claude"
_ENDED = ("done", "completed", "complete", "merged")
_DONE_PARTS = ("completed", "complete", "done", "skipped")


def places(home: Path, cwd: Path) -> list[Path]:
    return [cwd / ".auto-claude/specs"]


def read(folder: Path) -> Findings:
    """`folder` is that of all specs, or one spec."""
    specs = [folder] if (folder / "spec.md").is_file() else sorted(one for one in folder.iterdir() if one.is_dir())
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for spec in specs:
        try:
            one = _ticket(spec)
        except UnreadableSource as wrong:
            left.append(LeftOut(what=spec.name, why=str(wrong)))
            continue
        (found if isinstance(one, FoundTicket) else left).append(one)  # type: ignore[arg-type]
    return Findings(tool=TOOL, place=str(folder), tickets=tuple(found), left_out=tuple(left))


def _ticket(spec: Path) -> FoundTicket | LeftOut:
    plan = _optional(spec / "implementation_plan.json")
    asked = _optional(spec / "requirements.json")
    if text(plan.get("status")) in _ENDED:
        return LeftOut(what=spec.name, why="it is done; what it changed is on its branch")
    written = text_of(spec / "spec.md") if (spec / "spec.md").is_file() else ""
    wanted = text(asked.get("task_description"))
    if not (written or wanted):
        return LeftOut(what=spec.name, why="it has neither spec.md nor a task in requirements.json")
    title = text(plan.get("feature")) or wanted.partition("\n")[0] or spec.name.partition("-")[2].replace("-", " ")
    made = with_texts(
        ticket(origin=spec.name, title=title, text=written or wanted),
        context=wanted if written else "",
        criteria="\n".join([*texts(plan.get("final_acceptance")), *texts(asked.get("acceptance_criteria"))]),
        plan=_steps(plan),
    )
    tree = spec.parent.parent / "worktrees" / "tasks" / spec.name
    branch = f"auto-claude/{spec.name}"
    return replace(made, folder=str(tree)) if tree.is_dir() else replace(made, branch=branch if _started(plan) else "")


def _optional(file: Path) -> Mapping[str, Any]:
    return table(json_of(file)) if file.is_file() else {}


def _parts(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    phases = map(table, items(plan.get("phases")))
    return [table(one) for phase in phases for one in items(phase.get("subtasks") or phase.get("chunks"))]


def _started(plan: Mapping[str, Any]) -> bool:
    return any(text(one.get("status")) in (*_DONE_PARTS, "in_progress") for one in _parts(plan))


def _steps(plan: Mapping[str, Any]) -> str:
    """The subtasks as a list, those that are done marked."""
    lines = []
    for one in _parts(plan):
        mark = "x" if text(one.get("status")) in _DONE_PARTS else " "
        files = [*texts(one.get("files_to_modify")), *texts(one.get("files_to_create"))]
        where = f" ({', '.join(files)})" if files else ""
        lines.append(f"- [{mark}] {text(one.get('description')) or text(one.get('id'))}{where}")
    return "\n".join(lines)
