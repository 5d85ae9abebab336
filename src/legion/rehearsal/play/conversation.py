"""Finds the position of a conversation in its script, from the request alone.

Nothing is stored between requests, so resumed, repeated and forked conversations get the right step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from legion.rehearsal.protocol.request import IncomingRequest, Speaker, Turn
from legion.rehearsal.script.script import Step

# A pattern that starts with plain letters is fast in the long texts around a conversation.
_MARKER = re.compile(r"rehearsal: ([a-z0-9][a-z0-9_-]*)")
_HEADING = re.compile(r"^# Ticket (\d+): (.*)$", re.MULTILINE)
_READS, LAST_READER = "# What became of this goal?", "last-reader"
"""Its prompt quotes tickets, which name scripts of their own, so it has one by this name."""
_ATTEMPT = re.compile(r"This is attempt (\d+)")
_FILLER = "No response requested."
"""Inserted by Claude Code as the model's turn when it resumes a conversation that was cut off in a tool."""
_FOLDER = re.compile(r"Primary working directory: (.+?)(?: \(was .*\))?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ScriptPosition:
    """The facts of a request that select its script and step."""

    script: str | None
    """The name after the last marker."""
    briefing: str
    ticket: str
    """The last complete briefing of a ticket; later attempts get only what went wrong."""
    attempt: int
    facts: Mapping[str, str]
    """Values for the variables of a script: cwd, ticket, title, attempt."""
    since: tuple[Turn, ...]
    """The turns after the one that started this part."""

    @property
    def before(self) -> str:
        """The last turn of the other side: text and results of tools."""
        last = self.since[-1] if self.since else None
        if last is None or last.side is Speaker.MODEL:
            return self.briefing
        return f"{last.text}\n{last.results}".strip()


def part(request: IncomingRequest) -> ScriptPosition:
    """A marker, a briefing or the number of a new attempt starts a part; the last of them counts."""
    texts = [(-1, request.system)]
    texts += [(number, turn.text) for number, turn in enumerate(request.turns) if turn.side is Speaker.OTHERS]
    starts = [(number, text) for number, text in texts if _starts_part(text)] or texts[1:2] or texts
    number, briefing = starts[-1]
    everything = "\n".join(text for _, text in texts)
    attempt = (_ATTEMPT.findall(briefing) or ["1"])[-1]
    facts = {"attempt": attempt}
    if headings := _headings(everything):
        facts["ticket"], facts["title"] = headings[-1]
    if folders := _FOLDER.findall(f"{request.system}\n{request.surroundings}"):
        # A copy of a conversation says where it works now.
        facts["cwd"] = folders[-1].strip()
    return ScriptPosition(
        script=LAST_READER if _READS in briefing else (_MARKER.findall(everything) or [None])[-1],
        briefing=briefing,
        ticket=next((text for _, text in reversed(texts) if _headings(text)), ""),
        attempt=int(attempt),
        facts=facts,
        since=request.turns[number + 1 :],
    )


def position(turns: tuple[Turn, ...], steps: tuple[Step, ...]) -> int:
    """The number of finished steps. A turn that was cut off before its call or its text is repeated."""
    played = 0
    for turn in turns:
        if turn.side is Speaker.OTHERS or (turn.text == _FILLER and not turn.calls):
            continue
        step = steps[played] if played < len(steps) else None
        if step is None or (turn.calls >= len(step.calls) and (turn.text or not step.say)):
            played += 1
    return played


def _starts_part(text: str) -> bool:
    return bool(_MARKER.search(text) or _ATTEMPT.search(text) or _headings(text))


def _headings(text: str) -> list[tuple[str, str]]:
    return _HEADING.findall(text) if "# Ticket " in text else []
