"""Whether the model of a working agent answers, by the end of its run's journal. Knows nothing of tickets."""

from __future__ import annotations

from pathlib import Path

from legion.runner.journal import JournalEvent, read_tail

_TAIL = 16 * 1024
"""Bytes: everybody who looks at the board reads this much of every run, and a retry takes a hundred."""
_ANSWERS = frozenset({"said", "thought", "called", "result"})


def silence(run_dir: Path) -> str:
    """In a few words, where the model was asked in vain since it last said something; else nothing."""
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
    """The status of the answer; a provider that cannot be reached has none."""
    status = retry.facts.get("status")
    return f" ({status})" if isinstance(status, int) else ""
