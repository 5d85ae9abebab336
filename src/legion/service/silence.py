"""Whether the model of a working agent answers, by the end of its run's journal. Knows nothing of tickets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from legion.runner.spec import RunFolder

_TAIL = 16 * 1024
"""Bytes: everybody who looks at the board reads this much of every run, and a retry takes a hundred."""
_ANSWERS = frozenset({"said", "thought", "called", "result"})


def silence(run_dir: Path) -> str:
    """In a few words, where the model was asked in vain since it last said something; else nothing."""
    asked, why = 0, ""
    for event in _backwards(run_dir):
        if event.get("kind") in _ANSWERS:
            break
        if event.get("kind") == "retry":
            asked += 1
            why = why or _why(event)
    if not asked:
        return ""
    times = "once" if asked == 1 else f"{asked} times"
    return f"the model does not answer{why}, asked {times}"


def _why(retry: Mapping[str, Any]) -> str:
    """The status of the answer; a provider that cannot be reached has none."""
    status = retry.get("status")
    return f" ({status})" if isinstance(status, int) else ""


def _backwards(run_dir: Path) -> Iterator[dict[str, Any]]:
    """The last events, newest first. The first line of the tail may be half of one, and is passed over then."""
    try:
        with RunFolder(run_dir).journal.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read(_TAIL).split(b"\n")
    except FileNotFoundError:
        return
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
