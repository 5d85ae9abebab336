"""Finds the sources of an import: by the name of a tool, by a path, or everything that belongs to this project."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from legion.cli.imports import agent_teams, beads, claude_squad, coordinator, legion_cc, orchestra, task_lists
from legion.cli.imports.findings import Findings, UnreadableSource, text_of
from legion.wire.errors import BadInput, NotFound


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Where sources are looked for."""

    home: Path
    cwd: Path
    root: Path
    """The top of the person's checkout; the current folder where there is none."""


@dataclass(kw_only=True)
class Search:
    found: list[Findings] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Files that could not be read, one sentence each."""
    unnamed: list[str] = field(default_factory=list)
    """Commands for sources that are there and may belong to another project."""


def surroundings(home: Path, cwd: Path) -> Surroundings:
    root = next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)
    return Surroundings(home=home, cwd=cwd, root=root)


Reader = Callable[[], Findings]


def _of_tool(tool: str, at: Surroundings) -> Iterator[Reader]:
    """Readers of all files of a tool that exist."""
    match tool:
        case coordinator.TOOL:
            # The first that exists counts, as in coord.
            there = [file for file in coordinator.places(at.home, at.root) if file.is_file()]
            yield from (partial(coordinator.read, file, at.root) for file in there[:1])
        case orchestra.TOOL:
            there = [file for file in orchestra.places(at.home, at.root) if file.is_file()]
            yield from (partial(orchestra.read, file, at.root) for file in there)
        case claude_squad.TOOL:
            there = [file for file in claude_squad.places(at.home, at.root) if file.is_file()]
            yield from (partial(claude_squad.read, file, at.root) for file in there)
        case legion_cc.TOOL:
            there = legion_cc.places(at.home, at.root)
            yield from (partial(legion_cc.read, file, at.root) for file in there)
        case beads.TOOL:
            if any((at.root / ".beads" / name).is_file() for name in beads.NAMES):
                yield partial(beads.read, at.root / ".beads")
        case agent_teams.TOOL:
            yield from (partial(agent_teams.read, team) for team in agent_teams.folders(at.home))
        case agent_teams.AGENTS:
            folders = dict.fromkeys([at.root / ".claude/agents", at.home / ".claude/agents"])
            there = [folder for folder in folders if agent_teams.agent_files(folder)]
            yield from (partial(agent_teams.read_agents, folder) for folder in there)
        case task_lists.TOOL:
            there = [folder for folder in task_lists.places(at.home, at.root) if folder.is_dir()]
            yield from (partial(task_lists.read, folder) for folder in there)


TOOLS = (
    *(legion_cc.TOOL, coordinator.TOOL, orchestra.TOOL, claude_squad.TOOL, beads.TOOL),
    *(agent_teams.TOOL, agent_teams.AGENTS, task_lists.TOOL),
)


def everything(at: Surroundings) -> Search:
    """Everything that belongs to this project, or to the person in general."""
    search = Search()
    for tool in TOOLS:
        if tool == agent_teams.TOOL:
            teams = agent_teams.folders(at.home)
            mine = [team for team in teams if agent_teams.belongs_to(team, at.root)]
            _read(search, [partial(agent_teams.read, team) for team in mine])
            search.unnamed += [f"legion import {team}" for team in teams if team not in mine]
        else:
            _read(search, list(_of_tool(tool, at)))
    return search


def named(source: str, at: Surroundings) -> Search:
    """What a tool's name or a path leads to. Raises NotFound where there is nothing."""
    search = Search()
    tool = _tool(source)
    if tool is not None and not (at.cwd / source).exists():
        readers = list(_of_tool(tool, at))
        if not readers:
            raise NotFound(f"There are no files of {tool} here or in your home folder; pass their path.")
        _read(search, readers)
        return search
    path = at.cwd / Path(source).expanduser()
    if not path.exists():
        listed = ", ".join(TOOLS)
        raise NotFound(f"{source[:200]} is neither a file nor one of the tools {listed}.")
    _read(search, [_reader(path, at)])
    return search


def named_with_path(source: str, path: str, at: Surroundings) -> Search:
    """The same for a tool and one of its files. Raises BadInput where the file is not of that tool."""
    tool = _tool(source)
    if tool is None:
        raise BadInput(f"{source[:200]} is none of the tools {', '.join(TOOLS)}: leave it out, the file is enough.")
    search = named(path, at)
    other = next((one.tool for one in search.found if one.tool != tool), None)
    if other is not None:
        raise BadInput(f"{path[:200]} is of {other}, not of {tool}: `legion import {path[:200]}` imports it.")
    return search


def _tool(name: str) -> str | None:
    known = {one.replace("_", "-"): one for one in TOOLS} | _OTHER_NAMES
    return known.get(name.lower().replace("_", "-"))


_OTHER_NAMES = {
    "coord": coordinator.TOOL,
    "coordinator": coordinator.TOOL,
    "orchestra": orchestra.TOOL,
    "cs": claude_squad.TOOL,
    "squad": claude_squad.TOOL,
    "bd": beads.TOOL,
    "teams": agent_teams.TOOL,
    "agents": agent_teams.AGENTS,
}


def from_stdin(at: Surroundings) -> Search:
    """What another program prints: issues as JSON, beads as lines of JSON, or a list in Markdown."""
    given = sys.stdin.buffer.read()
    start = given.lstrip()[:1]
    suffix = {b"[": ".json", b"{": ".jsonl"}.get(start, ".md")
    search = Search()
    with tempfile.NamedTemporaryFile(prefix="legion-import-", suffix=suffix) as file:
        file.write(given)
        file.flush()
        _read(search, [_reader(Path(file.name), at)])
    search.found = [replace(one, place="standard input") for one in search.found]
    return search


def _read(search: Search, readers: list[Reader]) -> None:
    for reader in readers:
        try:
            found = reader()
        except UnreadableSource as wrong:
            search.faults.append(str(wrong))
            continue
        if not found.empty:
            search.found.append(found)


def _reader(path: Path, at: Surroundings) -> Reader:
    """The reader for a path, by its name first and its content second."""
    if path.is_dir():
        return _reader_of_folder(path, at)
    name, kind = path.name, path.suffix.lower()
    if kind in (".yml", ".yaml"):
        return partial(coordinator.read, path, at.root)
    if kind in (".db", ".sqlite", ".sqlite3"):
        return partial(legion_cc.read, path, at.root)
    if kind == ".jsonl":
        return partial(beads.read, path)
    if kind == ".csv":
        return partial(task_lists.read_csv, path)
    if kind in (".md", ".markdown", ".txt"):
        return partial(task_lists.read_markdown, path)
    if kind == ".json":
        return _reader_of_json(path, at)
    raise BadInput(f"{name} is of no kind that Legion reads: .yml, .json, .jsonl, .db, .csv or .md.")


def _reader_of_folder(path: Path, at: Surroundings) -> Reader:
    if any((path / name).is_file() for name in beads.NAMES):
        return partial(beads.read, path)
    if any((path / ".beads" / name).is_file() for name in beads.NAMES):
        return partial(beads.read, path / ".beads")
    if path.parent.name == "tasks" and path.parent.parent.name == ".claude":
        return partial(agent_teams.read, path.parent.parent / "teams" / path.name)
    if path.parent.name == "teams" and path.parent.parent.name == ".claude":
        return partial(agent_teams.read, path)
    if path.name == "agents" and agent_teams.agent_files(path):
        return partial(agent_teams.read_agents, path)
    if path.name == "specs" or (path / "spec.md").is_file():
        return partial(task_lists.read, path)
    raise BadInput(f"{path} holds nothing that Legion reads; pass a file, or a folder such as .beads.")


def _reader_of_json(path: Path, at: Surroundings) -> Reader:
    def read() -> Findings:
        if text_of(path).lstrip().startswith("["):
            return task_lists.read_github(path)
        if ".claude-squad" in path.parts or '"instances"' in text_of(path) or '"default_program"' in text_of(path):
            return claude_squad.read(path, at.root)
        return orchestra.read(path, at.root)

    return read
