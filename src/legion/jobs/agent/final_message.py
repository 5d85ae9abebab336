"""Reads the final message of a run: a verdict, an advice, a plan, or the report of a turn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from legion.runner.journal import JournalEvent, read_journal
from legion.runner.spec import RunFolder, read_spec

_LONGEST_OUTPUT = 400_000


def final_message(run_dir: Path) -> str:
    """The last message of a conversation, or all that another program printed. Never a file of its tree."""
    if not read_spec(run_dir).profile.capabilities.talks:
        return output_end(RunFolder(run_dir).output, _LONGEST_OUTPUT)
    texts = [event.facts.get("text") for event in read_journal(run_dir) if event.kind == "result"]
    return str(texts[-1] or "") if texts else ""


def final_messages(events: Iterable[JournalEvent]) -> str:
    """The final messages of all answers; a run has several where messages reached it on the way."""
    texts = [str(event.facts.get("text") or "").strip() for event in events if event.kind == "result"]
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def output_end(output: Path, most: int) -> str:
    try:
        with output.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - most))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
