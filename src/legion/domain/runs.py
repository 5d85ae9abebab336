"""A run: one attempt at a ticket, or one turn of a standing agent, and how it ended.

A lost run starts again as the next generation of the same attempt.

A moment is named `12:34`, after line 34 of run 12's journal, or `12`, the end of run 12. The calls of one answer count
as one: a conversation cannot be resumed between them, so only the last of them is a moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from legion.domain.agents.teams import RolePart
from legion.domain.errors import BadInput


class Outcome(Enum):
    FINISHED = "finished"
    """The program ended by itself and reports that it is finished. Only a claim."""
    FAILED = "failed"
    """The program ended with an error."""
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    """Legion stopped it on request."""
    LOST = "lost"
    """Its runner died without a result (power cut, kill -9)."""
    NOT_STARTED = "not_started"
    """The program could not be started at all."""
    GAVE_UP = "gave_up"
    """The agent reports that it cannot do this, and why."""
    INTERRUPTED = "interrupted"
    """A person interrupted it; its conversation can be resumed."""
    LIMITED = "limited"
    """The provider's usage limit or overload. Never a failure."""
    OUT_OF_BUDGET = "out_of_budget"
    """Its budget is spent."""
    REFUSED = "refused"
    """The provider refused to serve it: key, model or access."""


_SEAT = re.compile(r"(ticket|agent|plan)-(\d+)(?:-([a-z][a-z0-9_-]*))?")
PLANNER = "planner"
"""The role of a plan's runs."""
MOST_GENERATIONS = 10
"""How often one attempt may be lost before a person is asked."""


@dataclass(frozen=True, kw_only=True)
class Run:
    id: int
    project: int
    ticket: int | None = None
    agent: int | None = None
    """The number of the standing agent whose turn it is; a run belongs to a ticket, an agent or a plan."""
    plan: int | None = None
    """The plan whose planner it is."""
    role: str = ""
    """The key of the run's stage; empty for the builder and for a standing agent."""
    part: RolePart = RolePart.BUILD
    attempt: int = 1
    generation: int = 1
    started_at: float
    ended_at: float | None = None
    outcome: Outcome | None = None
    detail: str = ""
    saved: str | None = None
    """The commit that holds what the run left in its tree."""
    conversation: str = ""
    """The agent program's resumable session, if it has one. Runs share it until fresh eyes start another."""
    access: str = ""
    """How it reaches its model, for people: the provider's name, or the person's own login."""
    driver: str = ""
    """The name of the driver, as tickets and settings name it; empty before the run is prepared."""
    machine: str = ""
    """The machine that it was placed on; empty: the head itself."""
    prompt: str = ""
    """The name of the prompt that starts an agent's turn: the transcript shows by it whether the prompt was delivered.
    """

    @property
    def seat(self) -> str:
        """The ticket, agent or plan that it works for: the name of its worktree, temp folder and state folder."""
        if self.plan is not None:
            return plan_seat(self.plan)
        return ticket_seat(self.ticket, self.role) if self.ticket is not None else agent_seat(self.agent or 0)

    @property
    def name(self) -> str:
        """The name of its folder; never reused."""
        return f"{self.seat}-run-{self.id}"


def ticket_seat(ticket: int, role: str = "") -> str:
    return f"ticket-{ticket}-{role}" if role else f"ticket-{ticket}"


def seated(seat: str) -> tuple[str, int, str] | None:
    """Parses a seat: `ticket`, `agent` or `plan`, its number, and the role; None for any other name."""
    found = _SEAT.fullmatch(seat)
    return (found[1], int(found[2]), found[3] or "") if found else None


def agent_seat(agent: int) -> str:
    return f"agent-{agent}"


def plan_seat(plan: int) -> str:
    return f"plan-{plan}"


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
