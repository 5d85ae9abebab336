"""Detects from a run's journal that its model does not answer."""

from __future__ import annotations

from pathlib import Path

from legion.runner.journal import JournalEvent, read_tail

_TAIL = 16 * 1024
"""Bytes. Every request for the board reads this much of every run; a journal entry about a retry takes a hundred."""
_ANSWERS = frozenset({"said", "thought", "called", "result"})


def silence(run_dir: Path) -> str:
    """A short text if the model failed to answer since its last reply; else an empty one."""
    asked, why = 0, ""
    for event in reversed(read_tail(run_dir, _TAIL)):
        if event.kind in _ANSWERS:
            break
        if event.kind == "retry":
            asked += 1
            why = why or _why(event)
    if not asked:
        return ""
    times = "once" if asked == 1 else f"{asked} times"
    return f"the model does not answer{why}, asked {times}"


def _why(retry: JournalEvent) -> str:
    """The HTTP status, if there was an answer at all."""
    status = retry.facts.get("status")
    return f" ({status})" if isinstance(status, int) else ""
