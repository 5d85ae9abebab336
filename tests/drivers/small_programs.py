"""Runs of small programs that stand for agent programs, in a real runner and sandbox."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

from legion.drivers import EndKind, Program
from legion.drivers.programs.description import ProgramDescription, described
from legion.drivers.turns.options import TurnOptions
from legion.runner import launch
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.sandbox import Sandbox
from tests.runner.runs import ENV, Workbench, within

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else shutil.which("python3")


class Stage:
    """Runs of the small program, all with one conversation."""

    def __init__(self, bench: Workbench, folder: Path, kind: str) -> None:
        self.bench = bench
        self.kind = kind
        self.file = HERE / f"{kind}_program.py"
        self.home = folder / "home"
        self.home.mkdir()
        self.given = folder / "given"
        self.given.mkdir()
        self.conversation = str(uuid.uuid4())

    def start(self, prompt: str, *words: str, again: str = "say resumed", **changes: Any) -> Path:
        (self.given / "briefing.md").write_text(prompt)
        (self.given / "again.md").write_text(again)
        acp = {"files": changes.pop("files", False)}
        lines = {"reader": "codex", "resume": [str(self.file), "resume", "{session}"]}
        table = {"title": "Small", "driver": self.kind, "program": {"run": ["small"]}, "acp": acp, "json": lines}
        program: ProgramDescription = described("small", table, "f")
        options = TurnOptions(
            program=program,
            conversation=self.conversation,
            home=self.home,
            prompt=self.given / "briefing.md",
            again=self.given / "again.md",
            **{"sandboxed": True, "permission_mode": "acceptEdits", **changes},
        )
        assert PYTHON is not None
        tree = self.bench.worktree
        spec = Program(argv=(PYTHON, str(self.file), *words), cwd=tree, env=ENV)
        box = Sandbox(home=Path("/home/ada"), writable=(tree, self.home), readable=(self.file,))
        return self.bench.start(
            (), program=spec, driver="small", kind=self.kind, options=options.to_json(), sandbox=box, grace=2.0
        )

    def play(self, prompt: str, *words: str, **changes: Any) -> tuple[EndKind, list[JournalEvent]]:
        run = self.start(prompt, *words, **changes)
        return self.bench.result(run).outcome, read_journal(run)


def texts(events: list[JournalEvent]) -> list[str]:
    return [str(one.facts["text"]) for one in events if one.kind == "said"]


def facts(events: list[JournalEvent], kind: str) -> list[dict[str, Any]]:
    return [dict(one.facts) for one in events if one.kind == kind]


def seen(run: Path, kind: str, **wanted: object) -> None:
    """Return when the journal has such an event."""

    def look() -> None:
        for _ in launch.bells(run):
            if any(wanted.items() <= one.items() for one in facts(read_journal(run), kind)):
                return
        assert any(wanted.items() <= one.items() for one in facts(read_journal(run), kind)), read_journal(run)

    within(look)
