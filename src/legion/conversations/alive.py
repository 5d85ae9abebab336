"""Which conversations a program has open now, by its processes. Where there is no /proc, none is known to be."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.conversations.conversation import ConversationProgram
from legion.conversations.index import Indexed

_NAMED = {
    "codex": ConversationProgram.CODEX,
    "gemini": ConversationProgram.GEMINI,
    "opencode": ConversationProgram.OPENCODE,
}
_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class _Process:
    program: ConversationProgram
    folder: str
    started_at: float


def alive(conversations: Iterable[Indexed], claude: Path) -> frozenset[str]:
    """The paths of those that are open.

    Claude Code records its process for each conversation. Of another program in a folder, the conversation that was
    written last there counts, if that was after the program's start.
    """
    every = sorted(conversations, key=lambda one: one.mtime, reverse=True)
    open_in_claude = frozenset(_claude_sessions(claude / "sessions"))
    # Looking at every process of the machine takes a while.
    processes = list(_processes()) if {one.facts.program for one in every} & set(_NAMED.values()) else []
    taken: set[_Process] = set()
    found = set()
    for one in every:
        facts = one.facts
        if facts.program is ConversationProgram.CLAUDE:
            if facts.id in open_in_claude:
                found.add(one.path)
            continue
        for process in processes:
            fits = process.program is facts.program and process.folder == facts.folder and process not in taken
            if fits and facts.ended_at >= process.started_at:
                taken.add(process)
                found.add(one.path)
                break
    return frozenset(found)


def _claude_sessions(folder: Path) -> Iterator[str]:
    """The conversations of running processes; a record stays behind when a process is killed."""
    for record in folder.glob("*.json") if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            facts = json.loads(record.read_bytes())
            if str(_start_ticks(int(facts["pid"]))) == str(facts["procStart"]):
                yield str(facts["sessionId"])


def _start_ticks(pid: int) -> int:
    """Raises OSError where there is no such process."""
    about = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    return int(about.rpartition(")")[2].split()[19])


def _processes() -> Iterator[_Process]:
    for place in _PROC.iterdir() if _PROC.is_dir() else ():
        if not place.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):
            words = (place / "cmdline").read_bytes().split(b"\0")[:2]
            names = {Path(word.decode("utf-8", "replace")).name for word in words if word}
            for name in names & set(_NAMED):
                folder = str((place / "cwd").readlink())
                yield _Process(program=_NAMED[name], folder=folder, started_at=place.stat().st_mtime)
