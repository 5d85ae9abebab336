"""The tools with which agents use Legion: names, descriptions, and which agent sees which.

Every word here is sent with every turn of every agent that sees the tool, so there are few of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from legion.domain.agents.agent import Agent, ExtraRight, is_leader

SERVER = "legion"
"""The name of the server that offers them."""
PREFIX = "legion-"


class Tool(Enum):
    DISPATCH = "legion-dispatch"
    CHECK = "legion-check"
    STATUS = "legion-status"
    STOP = "legion-stop"
    REPORT = "legion-report"
    DEPS = "legion-deps"
    HIRE = "legion-hire"
    TELL = "legion-tell"
    BROADCAST = "legion-broadcast"
    INTERRUPT = "legion-interrupt"
    FIRE = "legion-fire"
    AGENTS = "legion-agents"
    MAIL = "legion-mail"
    CLAIM = "legion-claim"
    PLAN = "legion-plan"
    ASK = "legion-ask"
    ANSWER = "legion-answer"
    NOTE = "legion-note"
    GOAL = "legion-goal"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    kind: str
    """As JSON Schema has it; `strings` and `integers` are lists."""
    words: str = ""
    needed: bool = False
    one_of: tuple[str, ...] = ()
    unlisted: bool = False
    """Accepted, and not described to models: it costs no tokens."""

    def schema(self) -> dict[str, Any]:
        if self.kind in ("strings", "integers"):
            made: dict[str, Any] = {"type": "array", "items": {"type": self.kind.removesuffix("s")}}
        else:
            made = {"type": self.kind}
        if self.one_of:
            made["enum"] = list(self.one_of)
        if self.words:
            made["description"] = self.words
        return made


@dataclass(frozen=True, kw_only=True)
class Description:
    words: str
    takes: Mapping[str, Parameter] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """What it takes, as JSON Schema."""
        made: dict[str, Any] = {
            "type": "object",
            "properties": {
                name: parameter.schema() for name, parameter in self.takes.items() if not parameter.unlisted
            },
        }
        needed = [name for name, parameter in self.takes.items() if parameter.needed]
        return {**made, "required": needed} if needed else made


def _text(words: str = "", *, needed: bool = False) -> Parameter:
    return Parameter(kind="string", words=words, needed=needed)


_AGENT = _text("id or name", needed=True)

DESCRIPTIONS: Mapping[Tool, Description] = {
    Tool.DISPATCH: Description(
        words="Create a ticket. An agent does it in its own worktree; what passes the checks lands.",
        takes={
            "title": _text(needed=True),
            "text": _text("what to change, self-contained", needed=True),
            "context": _text(),
            "criteria": _text("when it is right"),
            "plan": _text(),
            "after": Parameter(kind="integers", words="tickets that must land first"),
            "epic": _text(),
            "files": Parameter(
                kind="strings",
                words="patterns of the files it will change; protected ones among them then need no approval",
            ),
            "prove": Parameter(kind="strings", words="commands that must pass"),
            "checkpoint": Parameter(kind="boolean", words="only checks; no agent"),
            "model": _text(),
            "team": _text(),
            "budget": Parameter(kind="number", words="dollars"),
            "plan_first": Parameter(kind="boolean", words="you approve its plan first"),
            "worker_id": Parameter(kind="integer", unlisted=True),
        },
    ),
    Tool.CHECK: Description(
        words="State, result and feedback of a ticket; without one, all tickets by state.",
        takes={"ticket": Parameter(kind="integer")},
    ),
    Tool.STATUS: Description(words="You, your unread mail, your reports, the board in one line."),
    Tool.STOP: Description(
        words="Stop a ticket of yours, the turn of an agent below you, or all of both.",
        takes={"what": _text("ticket number, agent id or name, or all", needed=True)},
    ),
    Tool.REPORT: Description(
        words="Report to the agent or person that gave you the work.",
        takes={
            "status": Parameter(kind="string", one_of=("working", "done", "error"), needed=True),
            "summary": _text(needed=True),
        },
    ),
    Tool.DEPS: Description(
        words="What a ticket comes after: state, changed files, end of the log.",
        takes={"ticket": Parameter(kind="integer")},
    ),
    Tool.HIRE: Description(
        words="Hire an agent under you; it starts at once, and its results come to you as mail.",
        takes={
            "task": _text("self-contained", needed=True),
            "name": _text(),
            "role": _text(),
            "model": _text(),
            "tools": Parameter(kind="strings", words="only these"),
            "budget": Parameter(kind="number", words="dollars, from yours"),
            "headcount": Parameter(kind="integer", words="most below it"),
            "depth": Parameter(kind="integer", words="levels below it"),
            "plan": Parameter(kind="boolean", words="it only reads until you approve its plan"),
            "delegate": Parameter(kind="boolean", words="it only leads"),
        },
    ),
    Tool.TELL: Description(
        words="Write to an agent, to parent or to root (the person). It reads it in its next turn.",
        takes={
            "to": _AGENT,
            "message": _text(needed=True),
            "now": Parameter(kind="boolean", words="in its present turn"),
        },
    ),
    Tool.BROADCAST: Description(
        words="Write to all below you, or below one of them.",
        takes={"message": _text(needed=True), "subtree": _text("id or name")},
    ),
    Tool.INTERRUPT: Description(
        words="Interrupt an agent below you; with a message it continues with that.",
        takes={"agent": _AGENT, "message": _text()},
    ),
    Tool.FIRE: Description(
        words="Fire an agent below you. Its work is saved; its reports become its parent's.",
        takes={
            "agent": _AGENT,
            "subtree": Parameter(kind="boolean", words="and all below it"),
            "ask": Parameter(kind="boolean", words="it may finish, or refuse"),
        },
    ),
    Tool.AGENTS: Description(words="Agents as a tree, and what each does."),
    Tool.MAIL: Description(
        words="Your mail, read and unread.",
        takes={"dead": Parameter(kind="boolean", words="what came back undelivered")},
    ),
    Tool.CLAIM: Description(
        words="Take the next ready ticket from the board, or a certain one; submit the one you hold, or release it.",
        takes={
            "ticket": Parameter(kind="integer"),
            "submit": Parameter(kind="boolean", words="your folder is its change"),
            "let_go": Parameter(kind="boolean"),
            "why": _text(),
        },
    ),
    Tool.PLAN: Description(
        words="Propose your plan, or decide about one below you or of your ticket.",
        takes={
            "text": _text("your plan"),
            "agent": _text("id, name or ticket"),
            "approve": Parameter(kind="boolean"),
            "why": _text(),
        },
    ),
    Tool.ASK: Description(
        words="Ask the person what only a person can decide. Waits for the answer.",
        takes={
            "question": _text("with all facts needed", needed=True),
            "choices": Parameter(kind="strings"),
            "default": _text("used when no answer comes"),
            "minutes": Parameter(kind="number", words="to wait, at most 60"),
        },
    ),
    Tool.ANSWER: Description(
        words="Questions that wait for an answer; with one of them and a choice, answer it.",
        takes={
            "question": Parameter(kind="integer"),
            "choice": _text("one of its choices, or free text"),
            "text": _text("goes with the choice"),
        },
    ),
    Tool.NOTE: Description(
        words="Record what must not be forgotten; or close a note; without both, list the open ones.",
        takes={
            "kind": Parameter(kind="string", one_of=("decision", "promise", "thread", "fact")),
            "text": _text("one sentence"),
            "ticket": Parameter(kind="integer"),
            "close": Parameter(kind="integer", words="its number"),
            "outcome": _text("how it ended"),
            "accept": Parameter(kind="integer", words="a proposed lesson"),
        },
    ),
    Tool.GOAL: Description(
        words="Have a goal planned as tickets; or show a plan, approve it, or send it back with why.",
        takes={
            "goal": _text("what is wanted, self-contained"),
            "budget": Parameter(kind="number", words="dollars for the planner"),
            "epic": _text(),
            "plan": _text("P3"),
            "approve": Parameter(kind="boolean"),
            "tickets": Parameter(kind="strings", words="only these keys"),
            "why": _text(),
        },
    ),
}

_LEADING = frozenset({Tool.HIRE, Tool.BROADCAST, Tool.INTERRUPT, Tool.FIRE})
"""Useful only to an agent that may have reports."""
OF_TICKETS = (Tool.REPORT, Tool.ASK)
"""For the agent of a ticket that may ask. More would cost tokens in every turn, and one that dispatches has no end."""


OF_THE_PERSON = tuple(tool for tool in Tool if tool not in (Tool.REPORT, Tool.ASK, Tool.CLAIM))
"""The person has no parent and works on no ticket."""
_OPENED = {Tool.INTERRUPT: ExtraRight.INTERRUPT, Tool.FIRE: ExtraRight.FIRE}
"""Also useful to an agent without reports, where the person has granted it."""
_OF_LEADERS = frozenset({Tool.NOTE, Tool.GOAL})
_NOT_OF_LEADERS = frozenset({Tool.CLAIM})
"""A leader does no ticket itself."""
_DRIVERS = {Tool.DISPATCH: "standing, or one of the person's", Tool.HIRE: "its program, such as codex"}
"""What the parameter `driver` may be, where the person has opened it."""
_ACTING = frozenset({*_LEADING, Tool.DISPATCH, Tool.STOP, Tool.CLAIM, Tool.ANSWER, Tool.GOAL})
"""Not for an agent whose plan is not approved yet."""


def of_agent(agent: Agent, *, answers: bool = False, opened: Collection[ExtraRight] = ()) -> tuple[Tool, ...]:
    """The tools that a standing agent sees: none for hiring where it cannot hire.

    Where its tools name some of Legion's, it has only those; otherwise all of them. `answers`: may leading agents
    answer the questions of those below them; `opened`: the extra rights that the person has granted.
    """
    rights = agent.rights
    hires = rights.headcount != 0 and rights.depth != 0
    leads = hires or is_leader(agent)
    useless = _LEADING - {tool for tool, right in _OPENED.items() if right in opened}
    hidden = {*(() if hires else useless), *(() if leads and answers else (Tool.ANSWER,))}
    hidden |= _ACTING if agent.only_reads else set()
    hidden |= _NOT_OF_LEADERS if is_leader(agent) else _OF_LEADERS
    seen = [tool for tool in Tool if tool not in hidden]
    named = {name for name in rights.tools or () if name.startswith(PREFIX)}
    return tuple(tool for tool in seen if not named or tool.value in named)


def described(tool: Tool, opened: Collection[ExtraRight] = ()) -> Description:
    """The description for an agent with these extra rights."""
    known = DESCRIPTIONS[tool]
    if tool not in _DRIVERS or ExtraRight.DRIVER not in opened:
        return known
    return replace(known, takes={**known.takes, "driver": _text(_DRIVERS[tool])})


def own_of_program(tools: Iterable[str]) -> frozenset[str]:
    """The tools that are not Legion's: an agent program knows only these."""
    return frozenset(tool for tool in tools if not tool.startswith(PREFIX))
