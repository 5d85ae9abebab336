"""Reads beads: `.beads/issues.jsonl`, one issue a line. Open issues become tickets, epics become epics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundTicket,
    LeftOut,
    items,
    table,
    text,
    text_of,
    texts,
    ticket,
    with_texts,
    without_cycles,
)

TOOL = "beads"
NAMES = ("issues.jsonl", "beads.jsonl")
_ENDED = {"closed": "it is closed", "tombstone": "it was deleted", "deferred": "it is deferred: reopen it first"}
_NO_WORK = ("message", "merge-request", "molecule", "gate", "agent", "role", "event", "convoy")
_BLOCKS = ("blocks", "conditional-blocks")


def read(place: Path) -> Findings:
    """`place` is the folder `.beads` or a file of issues."""
    file = next((place / name for name in NAMES if (place / name).is_file()), place / NAMES[0])
    file = file if place.is_dir() else place
    issues, broken = _issues(file)
    found: list[FoundTicket] = []
    left = list(broken)
    epics = {id: text(one.get("title")) for id, one in issues.items() if _kind(one) == "epic"}
    for id, one in issues.items():
        if why := _why_not(one):
            left.append(LeftOut(what=f"{id} {text(one.get('title'))}".strip(), why=why))
        else:
            found.append(_ticket(id, one, epics))
    if place.is_dir() and (place / "routes.jsonl").is_file():
        left.append(LeftOut(what="routes.jsonl", why="Legion finds a project by its folder, so prefixes need no route"))
    ordered, cut = without_cycles(found)
    return Findings(tool=TOOL, place=str(file), tickets=ordered, left_out=(*left, *cut))


def _issues(file: Path) -> tuple[dict[str, Mapping[str, Any]], list[LeftOut]]:
    """By id; the last line of an id counts, as in beads."""
    issues: dict[str, Mapping[str, Any]] = {}
    broken: list[LeftOut] = []
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            broken.append(LeftOut(what=f"line {number}", why="it is not valid JSON; a merge may have broken it"))
            continue
        id = text(table(one).get("id"))
        if not id:
            broken.append(LeftOut(what=f"line {number}", why="it has no id"))
            continue
        issues[id] = one
    return issues, broken


def _kind(one: Mapping[str, Any]) -> str:
    return text(one.get("issue_type") or one.get("type")) or "task"


def _why_not(one: Mapping[str, Any]) -> str:
    status = text(one.get("status")) or "open"
    if status in _ENDED:
        return _ENDED[status]
    kind = _kind(one)
    if kind == "epic":
        return "an epic has no work of its own; its children carry its name"
    if kind in _NO_WORK:
        return f"a {kind} is no work for an agent"
    if status == "pinned":
        return "it is context, not work: `legion note remember` keeps it"
    return ""


def _ticket(id: str, one: Mapping[str, Any], epics: Mapping[str, str]) -> FoundTicket:
    made = ticket(
        origin=id,
        title=text(one.get("title")),
        text=text(one.get("description")),
        labels=[*texts(one.get("labels")), _kind(one)],
    )
    notes = [text(one.get("notes")), *(_comment(table(other)) for other in items(one.get("comments")))]
    made = with_texts(
        made,
        context="\n\n".join(note for note in notes if note),
        criteria=text(one.get("acceptance_criteria")),
        plan=text(one.get("design")),
    )
    edges = [table(edge) for edge in items(one.get("dependencies"))]
    parents = [text(edge.get("depends_on_id")) for edge in edges if edge.get("type") == "parent-child"]
    after = tuple(text(edge.get("depends_on_id")) for edge in edges if (edge.get("type") or "blocks") in _BLOCKS)
    epic = next((epics[parent] for parent in parents if parent in epics), "")
    return replace(made, after=after, epic=" ".join(epic.split())[:200], priority=_priority(one.get("priority")))


def _comment(one: Mapping[str, Any]) -> str:
    words = text(one.get("text"))
    return f"{text(one.get('author')) or 'A comment'}: {words}" if words else ""


def _priority(given: object) -> int:
    """0 is the most urgent there and 4 the least; here more is more urgent, and 0 is usual."""
    return 2 - given if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= 4 else 0
