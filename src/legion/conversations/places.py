"""Finds the files in which agent programs keep their conversations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.conversations.conversation import ConversationProgram
from legion.conversations.formats import claude, codex, gemini, legion_run
from legion.conversations.formats.lines import LineFormat

FORMATS: dict[ConversationProgram, LineFormat] = {
    one.program: one for one in (claude.FORMAT, codex.FORMAT, gemini.FORMAT, legion_run.FORMAT)
}
_LINES = ".jsonl"
_RUN = "-run-"


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A file of JSON lines that holds one conversation, or opencode's database."""

    program: ConversationProgram
    path: str
    size: int
    mtime: int
    """Nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class ConversationPlaces:
    claude: Path
    codex: Path
    gemini: Path
    opencode: Path
    """The database itself."""
    runs: Path | None = None
    """The folders of Legion's runs."""

    @staticmethod
    def of_person(environ: Mapping[str, str], runs: Path | None = None) -> ConversationPlaces:
        """As the programs themselves find them."""
        home = Path(environ.get("HOME") or Path.home())
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
        return ConversationPlaces(
            claude=Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
            codex=Path(environ.get("CODEX_HOME") or home / ".codex"),
            gemini=home / ".gemini",
            opencode=data / "opencode" / "opencode.db",
            runs=runs,
        )

    def found(self) -> Iterator[FoundFile]:
        yield from _files(ConversationProgram.CLAUDE, self.claude / "projects", depth=4)
        yield from _files(ConversationProgram.CODEX, self.codex / "sessions", depth=4)
        yield from _files(ConversationProgram.CODEX, self.codex / "archived_sessions", depth=1)
        for project in _folders(self.gemini / "tmp"):
            yield from _files(ConversationProgram.GEMINI, f"{project}/chats", depth=1)
        if self.runs is not None:
            # Setups and checks have folders, too, and no conversation.
            for run in _folders(self.runs, _RUN):
                yield from _files(ConversationProgram.LEGION, run, depth=1)
        yield from _database(self.opencode)


def _files(program: ConversationProgram, folder: Path | str, *, depth: int) -> Iterator[FoundFile]:
    """Regular files of JSON lines. A folder that cannot be read is passed over."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.name.endswith(_LINES) and entry.is_file():
                        about = entry.stat()
                        yield FoundFile(program=program, path=entry.path, size=about.st_size, mtime=about.st_mtime_ns)
                    elif depth > 1 and entry.is_dir(follow_symlinks=False):
                        yield from _files(program, entry.path, depth=depth - 1)
                except OSError:
                    continue
    except OSError:
        return


def _folders(folder: Path, part: str = "") -> list[str]:
    """Those with this part in their names."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if part in entry.name and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _database(path: Path) -> Iterator[FoundFile]:
    """What was written last may still be in the write-ahead log."""
    sizes, times = 0, 0
    for part in (path, path.with_name(f"{path.name}-wal")):
        try:
            about = part.stat()
        except OSError:
            if part == path:
                return
            continue
        sizes, times = sizes + about.st_size, max(times, about.st_mtime_ns)
    yield FoundFile(program=ConversationProgram.OPENCODE, path=str(path), size=sizes, mtime=times)
