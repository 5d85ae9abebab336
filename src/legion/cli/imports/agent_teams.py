"""Reads Claude Code's Agent Teams (`~/.claude/teams`, `~/.claude/tasks`) and its agents (`.claude/agents/*.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundDefinition,
    FoundTicket,
    LeftOut,
    UnreadableSource,
    is_inside,
    items,
    json_of,
    name_of,
    table,
    text,
    text_of,
    texts,
    ticket,
    toml_text,
    with_texts,
    without_cycles,
    yaml_of,
)

TOOL = "agent-teams"
AGENTS = "claude-agents"
_ENDED = {"completed": "it is completed", "deleted": "it was deleted"}
_READING = {"Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "Bash", "TodoWrite"}
_LONGEST_PROMPT = 8000


@dataclass(frozen=True, kw_only=True)
class NativeTask:
    id: str
    subject: str
    status: str
    owner: str
    blocked_by: tuple[str, ...]
    description: str


@dataclass(frozen=True, kw_only=True)
class NativeTeam:
    """A team of Claude Code as its files show it."""

    name: str
    about: str
    members: tuple[tuple[str, str], ...]
    """Name and kind."""
    folders: tuple[str, ...]
    """Where its members work."""
    tasks: tuple[NativeTask, ...]
    broken: tuple[str, ...] = ()


def folders(home: Path) -> list[Path]:
    """The folders of teams; a team without a config has only tasks."""
    names = {folder.name for kind in ("teams", "tasks") for folder in _folders(home / ".claude" / kind)}
    return [home / ".claude/teams" / name for name in sorted(names)]


def _folders(place: Path) -> list[Path]:
    try:
        return [folder for folder in place.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    except OSError:
        return []


def team(place: Path) -> NativeTeam:
    """`place` is ~/.claude/teams/NAME; its tasks are in ~/.claude/tasks/NAME."""
    broken: list[str] = []
    config: Mapping[str, Any] = {}
    if (place / "config.json").is_file():
        try:
            config = table(json_of(place / "config.json"))
        except UnreadableSource as wrong:
            broken.append(str(wrong))
    listed = [table(one) for one in items(config.get("members"))]
    members = tuple((text(one.get("name")), text(one.get("agentType"))) for one in listed)
    where = tuple(dict.fromkeys(text(one.get("cwd")) for one in listed if text(one.get("cwd"))))
    tasks = []
    files = (place.parent.parent / "tasks" / place.name).glob("*.json")
    for file in sorted(files, key=lambda one: (len(one.stem), one.stem)):
        try:
            tasks.append(_task(file.stem, table(json_of(file))))
        except UnreadableSource as wrong:
            broken.append(str(wrong))
    about = text(config.get("description"))
    return NativeTeam(
        name=place.name, about=about, members=members, folders=where, tasks=tuple(tasks), broken=tuple(broken)
    )


def _task(stem: str, one: Mapping[str, Any]) -> NativeTask:
    return NativeTask(
        id=text(one.get("id")) or stem,
        subject=text(one.get("subject")),
        status=text(one.get("status")) or "pending",
        owner=text(one.get("owner")),
        blocked_by=tuple(texts(one.get("blockedBy"))),
        description=text(one.get("description")),
    )


def belongs_to(place: Path, root: Path) -> bool:
    """Whether a member of the team works in this repository. A team whose files do not say it has to be named."""
    return any(is_inside(folder, root) for folder in team(place).folders)


def read(place: Path) -> Findings:
    seen = team(place)
    left = [LeftOut(what=seen.name, why=why) for why in seen.broken]
    found: list[FoundTicket] = []
    for one in seen.tasks:
        if one.status in _ENDED or not (one.subject or one.description):
            why = _ENDED.get(one.status, "it has neither subject nor description")
            left.append(LeftOut(what=f"task {one.id} {one.subject}".strip(), why=why))
            continue
        made = ticket(origin=f"{seen.name}/{one.id}", title=one.subject, text=one.description or one.subject)
        if one.status == "in_progress" and one.owner:
            made = with_texts(made, context=f"The teammate {one.owner} had begun with it in Claude Code.")
        after = tuple(f"{seen.name}/{other}" for other in one.blocked_by)
        found.append(replace(made, after=after, epic=seen.name))
    for name, kind in seen.members:
        left.append(
            LeftOut(what=f"teammate {name}", why=f"hire one: legion agents hire TASK --name {name_of(name)} ({kind})")
        )
    ordered, cut = without_cycles(found)
    return Findings(tool=TOOL, place=str(place), tickets=ordered, left_out=(*left, *cut))


def agent_files(folder: Path) -> list[Path]:
    """The agents that Claude Code finds below a folder `.claude/agents`."""
    return sorted(folder.glob("*.md")) if folder.is_dir() else []


def read_agents(folder: Path) -> Findings:
    """Every agent becomes a role: one that may write builds, one that only reads reviews."""
    roles: list[FoundDefinition] = []
    left: list[LeftOut] = []
    for file in agent_files(folder):
        for one in _role(file):
            (roles if isinstance(one, FoundDefinition) else left).append(one)  # type: ignore[arg-type]
    return Findings(tool=AGENTS, place=str(folder), definitions=tuple(roles), left_out=tuple(left))


def _role(file: Path) -> Iterator[FoundDefinition | LeftOut]:
    try:
        head, prompt = _parts(file)
    except UnreadableSource as wrong:
        yield LeftOut(what=file.name, why=str(wrong))
        return
    if not prompt:
        yield LeftOut(what=file.name, why="it has no prompt below its head")
        return
    name = name_of(text(head.get("name")) or file.stem)
    if not name[0].isalpha():
        name = f"agent_{name}"
    given = head.get("tools")
    tools = [one.strip() for one in given.split(",")] if isinstance(given, str) else texts(given)
    tools = [one for one in tools if one and not any(letter.isspace() for letter in one)]
    part = "read" if tools and set(tools) <= _READING else "build"
    about = " ".join(text(head.get("description")).split())[:200] or f"From {file.name}."
    lines = [f"about = {toml_text(about)}", f'part = "{part}"']
    if (model := text(head.get("model"))) and model != "inherit":
        lines.append(f"model = {toml_text(model)}")
    if tools:
        lines.append(f"tools = [{', '.join(toml_text(one) for one in tools)}]")
    lines.append(f"prompt = {toml_text(prompt[:_LONGEST_PROMPT])}")
    if len(prompt) > _LONGEST_PROMPT:
        yield LeftOut(what=f"{file.name}: the end of its prompt", why=f"a prompt has {_LONGEST_PROMPT} characters here")
    yield FoundDefinition(kind="role", name=name, text="\n".join(lines) + "\n")


def _parts(file: Path) -> tuple[Mapping[str, Any], str]:
    """The YAML between the first two lines of dashes, and the text below."""
    whole = text_of(file)
    if not whole.startswith("---"):
        return {}, whole.strip()
    head, dashes, body = whole[3:].partition("\n---")
    if not dashes:
        raise UnreadableSource(f"{file} has no end of its head: a second line `---`.")
    return table(yaml_of(head, str(file))), body.lstrip("-").strip()
