"""The records and errors of a script: the answers of the scripted model, step by step. Independent of HTTP.

RehearsalError
├── BadScript              the file of a script cannot be used
├── Unexpected             no script expects this request
└── RehearsalNotStarted    the process does not listen
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Drop(enum.Enum):
    """Where the connection breaks."""

    BEFORE = "before"
    """Instead of an answer."""
    MID = "mid"
    """After half of it."""


class Window(enum.Enum):
    """A limit of the account; the value is its name in a header."""

    FIVE_HOURS = "5h"
    SEVEN_DAYS = "7d"


@dataclass(frozen=True, kw_only=True)
class ScriptedCall:
    """One call of a tool."""

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScriptedUsage:
    """Tokens that the answer reports; None: estimated from the sizes of request and answer."""

    input: int | None = None
    output: int | None = None
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, kw_only=True)
class ScriptedLimit:
    """Used share of the account's limit, as reported in headers."""

    resets_in: float
    utilization: float = 1.0
    window: Window = Window.FIVE_HOURS


@dataclass(frozen=True, kw_only=True)
class ScriptedTrouble:
    """An error instead of the answer, the first `times` times that the step is requested, or always."""

    status: int | None = None
    message: str = "rehearsed trouble"
    drop: Drop | None = None
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One turn of the model."""

    think: str = ""
    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: str = ""
    """The stop reason; empty: derived from the calls."""
    expect: str = ""
    """A regular expression that must match what came before this step."""
    trouble: ScriptedTrouble | None = None
    usage: ScriptedUsage = ScriptedUsage()
    limit: ScriptedLimit | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the answer starts."""
    slow: float = 0.0
    """Seconds between two events of a streamed answer."""
    attempt: int = 1
    """The first attempt for this step; its steps replace those of earlier attempts."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """Steps in order, and the patterns to search in the briefing."""

    name: str
    steps: tuple[Step, ...]
    captures: Mapping[str, str] = field(default_factory=dict)
    fills: tuple[str, ...] = ("cwd", "ticket", "title", "attempt")
    """The variables of its texts, in addition to its captures."""
    endless: bool = False
    """The last step answers everything that comes after it."""

    def steps_of(self, attempt: int) -> tuple[Step, ...]:
        """The steps written for this attempt, else those of the latest one before it."""
        known = [step.attempt for step in self.steps if step.attempt <= attempt]
        return tuple(step for step in self.steps if step.attempt == max(known, default=1))


class RehearsalError(Exception):
    """Base of all errors here; the message is one sentence for a person."""


class BadScript(RehearsalError):
    pass


class Unexpected(RehearsalError):
    pass


class RehearsalNotStarted(RehearsalError):
    pass
