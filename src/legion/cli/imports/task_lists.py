"""Reads plain lists of tasks: Markdown with boxes or bullets, CSV with a head, and `gh issue list --json`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundTicket,
    LeftOut,
    UnreadableSource,
    items,
    json_of,
    table,
    text,
    text_of,
    texts,
    ticket,
    with_texts,
    without_cycles,
)

MARKDOWN = "markdown"
CSV = "csv"
GITHUB = "github-issues"
_ITEM = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+]|\d+[.)])[ \t]+(?:\[(?P<box>[ xX])\][ \t]+)?(?P<title>\S.*)$")
_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<title>.*?)[ \t]*#*$")
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_TITLES = ("title", "task", "name", "summary", "subject", "ticket")
_COLUMNS = {
    "text": ("text", "description", "body", "details", "prompt"),
    "context": ("context", "notes"),
    "criteria": ("criteria", "acceptance", "acceptance criteria", "acceptance_criteria", "done when"),
    "plan": ("plan", "design"),
}
_DONE = ("done", "closed", "completed", "complete", "yes", "x", "true", "1", "merged")


def read_markdown(file: Path) -> Findings:
    """Boxes if there are any, else the bullets of the outermost level. Indented lines below are the text."""
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for one in _items(text_of(file)):
        if one.done:
            left.append(LeftOut(what=one.title[:80], why="its box is ticked"))
            continue
        made = ticket(origin=one.title, title=one.title, text="\n".join(one.below).strip() or one.title)
        found.append(replace(made, epic=one.heading[:200]))
    twice = _repeated(found)
    left += [LeftOut(what=one.title, why="it is in the list twice") for one in twice]
    if not found and not left:
        raise UnreadableSource(f"{file} has no list: write tasks as `- [ ] Title`, with more text indented below.")
    kept = tuple({one.origin: one for one in reversed(found)}.values())[::-1]
    return Findings(tool=MARKDOWN, place=str(file), tickets=kept, left_out=tuple(left))


class _Item:
    def __init__(self, title: str, heading: str, *, indent: int, box: str | None) -> None:
        self.title, self.heading, self.indent = title, heading, indent
        self.box, self.done = box is not None, (box or "").lower() == "x"
        self.below: list[str] = []


def _items(whole: str) -> list[_Item]:
    found: list[_Item] = []
    heading, fenced = "", False
    for line in whole.splitlines():
        fenced ^= bool(_FENCE.match(line))
        mark = None if fenced else _ITEM.match(line)
        head = None if fenced else _HEADING.match(line)
        current = found[-1] if found else None
        indent = len(line) - len(line.lstrip())
        if head:
            heading = " ".join(head["title"].split())
        elif mark and (current is None or indent <= current.indent):
            title = mark["title"].strip().strip("*_ ")
            found.append(_Item(title, heading, indent=indent, box=mark["box"]))
        elif current is not None and (not line.strip() or indent > current.indent or fenced):
            current.below.append(line.strip() if not fenced else line)
    boxes = [one for one in found if one.box]
    outer = min((one.indent for one in found), default=0)
    return boxes or [one for one in found if one.indent == outer]


def _repeated(found: list[FoundTicket]) -> list[FoundTicket]:
    seen: set[str] = set()
    return [one for one in found if one.origin in seen or seen.add(one.origin)]  # type: ignore[func-returns-value]


def read_csv(file: Path) -> Findings:
    whole = text_of(file)
    try:
        dialect: Any = csv.Sniffer().sniff(whole[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = list(csv.DictReader(io.StringIO(whole), dialect=dialect))
    except csv.Error as wrong:
        raise UnreadableSource(f"{file} is not valid CSV: {wrong}.") from None
    named = [{(name or "").strip().lower(): text(value) for name, value in row.items()} for row in rows]
    if not named or not any(name in named[0] for name in _TITLES):
        listed = ", ".join(_TITLES)
        raise UnreadableSource(f"{file} has no column for titles: name one of its first line {listed}.")
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for number, row in enumerate(named, 2):
        title = next((row[name] for name in _TITLES if row.get(name)), "")
        if not title:
            left.append(LeftOut(what=f"line {number}", why="it has no title"))
        elif (row.get("status") or row.get("done") or "").lower() in _DONE:
            left.append(LeftOut(what=title, why="it is done"))
        else:
            found.append(_row(title, row))
    ordered, cut = without_cycles({one.origin: one for one in found}.values())
    return Findings(tool=CSV, place=str(file), tickets=ordered, left_out=(*left, *cut))


def _row(title: str, row: Mapping[str, str]) -> FoundTicket:
    texts = {key: next((row[name] for name in names if row.get(name)), "") for key, names in _COLUMNS.items()}
    labels = re.split(r"[,;|]", row.get("labels") or row.get("tags") or "")
    made = ticket(origin=row.get("id") or title, title=title, text=texts.pop("text") or title, labels=labels)
    made = with_texts(made, **texts)
    after = tuple(one.strip() for one in re.split(r"[,; ]", row.get("after") or row.get("depends_on") or ""))
    priority = row.get("priority") or ""
    number = int(priority) if re.fullmatch(r"-?\d{1,3}", priority) else 0
    return replace(made, after=tuple(one for one in after if one), epic=row.get("epic") or "", priority=number)


def read_github(file: Path) -> Findings:
    """`gh issue list --json number,title,body,labels,state,milestone,url`. An issue's text is data for the agent."""
    whole = json_of(file)
    if not isinstance(whole, list):
        raise UnreadableSource(f"{file} holds no list, so it is not what `gh issue list --json` prints.")
    found: list[FoundTicket] = []
    left: list[LeftOut] = []
    for number, one in enumerate(map(table, whole), 1):
        id, title = text(one.get("number")), text(one.get("title"))
        if not (id and title):
            left.append(LeftOut(what=f"entry {number}", why="it has no number or no title: add both to --json"))
        elif text(one.get("state")).lower() == "closed":
            left.append(LeftOut(what=f"#{id} {title}", why="it is closed"))
        else:
            found.append(_issue(id, title, one))
    return Findings(tool=GITHUB, place=str(file), tickets=tuple(found), left_out=tuple(left))


def _issue(id: str, title: str, one: Mapping[str, Any]) -> FoundTicket:
    labels = [text(table(label).get("name")) or text(label) for label in items(one.get("labels"))]
    url = text(one.get("url"))
    made = ticket(origin=url or f"#{id}", title=title, text=text(one.get("body")) or title, labels=labels)
    said = [_comment(table(other)) for other in items(one.get("comments"))]
    made = with_texts(made, context="\n\n".join([f"Issue #{id}{f', {url}' if url else ''}", *said]))
    return replace(made, epic=text(table(one.get("milestone")).get("title"))[:200])


def _comment(one: Mapping[str, Any]) -> str:
    return f"{text(table(one.get('author')).get('login'))}: {text(one.get('body'))}"


# Reads Auto-Claude's specs: `.auto-claude/specs/NNN-name` with spec.md, requirements.json and the plan.

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
