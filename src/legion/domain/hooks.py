"""The person's blocking hooks: when each runs, and what its end means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BLOCKS = 2
"""The exit code of a hook that sends work back, as in Claude Code."""


class HookKind(Enum):
    """The value is the name of the setting; `event` the name that the hook reads."""

    TASK_CREATED = "task_created"
    """Before a ticket is created. Sent back: it is not."""
    TASK_COMPLETED = "task_completed"
    """An agent's change has passed its proofs. Sent back: its agent gets the text and tries again."""
    TEAMMATE_IDLE = "teammate_idle"
    """A standing agent has ended its turn. Sent back: it continues with the text."""
    BEFORE_LAND = "before_land"
    """A change has passed everything and would land now. Sent back: its agent gets the text and tries again."""

    @property
    def event(self) -> str:
        return "".join(part.capitalize() for part in self.value.split("_"))


@dataclass(frozen=True, kw_only=True)
class HookResult:
    blocks: bool = False
    text: str = ""
    """What it printed on stderr: the reason for the agent or the person."""
    trouble: str = ""
    """Why it decided nothing, although it ran: a crash or the time limit. It blocks nothing then."""


def judge(code: int, *, stderr: str, timed_out: bool, seconds: float) -> HookResult:
    if timed_out:
        return HookResult(trouble=f"it took longer than {seconds:g} s")
    if code == BLOCKS:
        return HookResult(blocks=True, text=stderr.strip() or "The hook gave no reason.")
    return HookResult(trouble="" if code == 0 else f"it ended with {code}: {stderr.strip()[-300:]}")
