"""A rewind: a ticket's tree and conversation go back together to a moment of an earlier run.

A moment is named `12:34`, after line 34 of run 12's journal, or `12`, the end of run 12. The calls of one answer count
as one: a conversation cannot be resumed between them, so only the last of them is a moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from legion.domain.errors import BadInput

_NAME = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


@dataclass(frozen=True, kw_only=True)
class RewindMoment:
    run: int
    line: int | None = None
    """None: the end of the run."""

    def __str__(self) -> str:
        return str(self.run) if self.line is None else f"{self.run}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class RewindRecord:
    """The record of a rewind."""

    id: int
    ticket: int
    at: float
    moment: str
    run: int
    """The ticket's latest run at that time; the next one starts the new conversation."""
    conversation: str
    """The new one."""
    source: str
    """The conversation that the new one starts as a copy of."""
    point: str
    """The last entry that is copied; empty: all of them."""


def moment(text: str) -> RewindMoment:
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"{text[:40]!r} names no moment: use RUN:LINE or RUN as `legion status events N` shows them.")
    return RewindMoment(run=int(found[1]), line=int(found[2]) if found[2] else None)


@dataclass(frozen=True, kw_only=True)
class KeptState:
    """A state of the tree, as recorded in its run's journal."""

    line: int
    call: str
    tool: str
    tree: str
    base: str
    roll: int


KEPT_BY = ("called", "not-kept", "kept")
"""The kinds of lines in a journal that say which moments are kept."""


def kept(events: Iterable[tuple[int, str, Mapping[str, object]]]) -> tuple[KeptState, ...]:
    """The moments in a run's journal, given as (line, kind, facts), oldest first."""
    answers: dict[str, str] = {}
    last: dict[str, KeptState] = {}
    for line, kind, facts in events:
        call = str(facts.get("call"))
        if kind == "called":
            answers[call] = str(facts.get("answer") or call)
        elif kind == "not-kept":
            # A state from the middle of the answer lacks what the conversation contains about this call.
            last.pop(answers.get(call, call), None)
        elif kind == "kept":
            roll = facts.get("roll")
            answer = answers.get(call, call)
            last.pop(answer, None)
            last[answer] = KeptState(
                line=line,
                call=call,
                tool=str(facts.get("tool")),
                tree=str(facts.get("tree")),
                base=str(facts.get("base")),
                roll=roll if isinstance(roll, int) else 0,
            )
    return tuple(last.values())
