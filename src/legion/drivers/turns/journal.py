"""Writes what an agent does as events of its run's journal and as lines of its log, in one form for all drivers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from legion.domain.text import to_json
from legion.domain.watchdog.activity import gist, tally_of
from legion.drivers import Host

LONGEST_TEXT = 8000
LONGEST_RESULT = 100_000
LONGEST_INPUT = 400
_LONGEST_HEAD = 200
_MOST_EVENTS = 200_000
"""Of one run. A program that floods its run with calls fills no disk."""
_SHOWN = ("command", "cmd", "file_path", "path", "filePath", "pattern", "url", "description", "prompt")
"""Inputs of tools that say most, in this order."""


class RunJournal:
    """One method per kind of event."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._left = _MOST_EVENTS
        self._streamed = ""
        """The part of the current text that was printed before the text was complete."""

    def print(self, line: str) -> None:
        self.end_stream()
        self._write(f"{line}\n")

    def stream_text(self, piece: str) -> None:
        """Print a piece of a text that is being written; `record_text` prints the rest of it."""
        self._streamed += piece
        self._write(piece)

    def end_stream(self) -> None:
        """End the line of a text that was cut off."""
        if self._streamed:
            self._streamed = ""
            self._write("\n")

    def record_text(self, text: str, parent: str | None = None) -> None:
        self._record("said", text=cut(text, LONGEST_TEXT), parent=parent)
        if self._streamed and parent is None and text.startswith(self._streamed):
            self._write(text[len(self._streamed) :])
            self.end_stream()
        else:
            self.print(text)

    def record_thought(self, thinking: str, parent: str | None = None) -> None:
        self._record("thought", length=len(thinking), parent=parent)

    def record_call(
        self, call: str, tool: str, input: object, *, parent: str | None = None, answer: str | None = None
    ) -> None:
        """The model wrote a call."""
        self._record("called", call=call, tool=tool, input=summary(input), parent=parent, answer=answer)
        self.print(f"> {tool}: {summary(input)}")

    def record_start(self, call: str, tool: str, input: object) -> None:
        """A call that starts here and never returns was cut off; the prompt that resumes the conversation lists it."""
        self._record("begins", call=call, tool=tool, input=summary(input), digest=digest_of(input))

    def record_return(self, call: str, text: str, *, failed: bool, **more: object) -> None:
        tests = tally_of(text)
        head = cut(text, _LONGEST_HEAD)
        self._record(
            "returned",
            call=call,
            failed=failed,
            length=len(text),
            digest=_digest(text),
            gist=_digest(gist(text)),
            tests=None if tests is None else [tests.failed, tests.passed],
            head=head,
            **more,
        )
        first = head.strip().splitlines()[:1]
        if failed:
            self.print(f"  failed: {first[0] if first else '(no output)'}")

    def record_denial(self, tool: str, call: str | None) -> None:
        self._record("denied", tool=tool, call=call)
        self.print(f"  denied: {tool}")

    def record_plan(self, steps: Sequence[Mapping[str, str]]) -> None:
        """The program's own list of what it intends to do."""
        self._record("planned", steps=[dict(step) for step in steps])

    def record_turn_end(
        self,
        *,
        reason: str,
        error: bool,
        text: str,
        status: int | None,
        usage: Mapping[str, Any],
        cost_usd: float | None,
        denials: Sequence[str],
        models: Mapping[str, Any] | None = None,
    ) -> None:
        """`models`: what the conversation has used in all, by model, where no gateway counts it."""
        self._host.record(
            "result",
            subtype="error_during_execution" if error else "success",
            error=error,
            reason=reason,
            text=cut(text, LONGEST_RESULT),
            status=status,
            turns=1,
            cost_usd=cost_usd,
            usage=dict(usage),
            models=dict(models or {}),
            denials=list(denials),
        )

    def _record(self, kind: str, **facts: object) -> None:
        self._left -= 1
        if self._left > 0:
            self._host.record(kind, **facts)
        elif self._left == 0:
            self.print(f"  {_MOST_EVENTS:,} events: no more of this run are recorded.")

    def _write(self, text: str) -> None:
        self._host.output.write(text.encode("utf-8", "replace"))


def summary(input: object) -> str:
    """A tool's input in one line: its command, its path, or as much of it as fits."""
    if isinstance(input, dict):
        for name in _SHOWN:
            if isinstance(input.get(name), str):
                return cut(" ".join(input[name].split()), LONGEST_INPUT)
    return cut(to_json(input, ensure_ascii=False, default=str), LONGEST_INPUT)


def digest_of(input: object) -> str:
    """Distinguishes inputs whose summaries are equal."""
    return _digest(to_json(input, sort_keys=True, default=str))


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
