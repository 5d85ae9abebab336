"""Cassettes: recorded answers of a real model, converted into scripts. Pure: recorded requests in, TOML out.

The place of an answer is found from its request, in the same way as a step for a request.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from legion.domain.text import AnyJson
from legion.rehearsal.play.conversation import part, position
from legion.rehearsal.protocol import request
from legion.rehearsal.protocol.request import ApiPath, IncomingRequest
from legion.rehearsal.script.script import ScriptedCall, ScriptedUsage, Step, Unexpected

_MARKER = re.compile(r"\s*rehearsal: [a-z0-9][a-z0-9_-]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NO_TEXT = "(It said nothing.)"
_NEUTRAL_HOME = "/home/ada"
_USUAL_STOPS = ("end_turn", "tool_use")
_FILLED = ("cwd",)


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request of an agent program, and the model's answer."""

    dialect: ApiPath
    conversation: str
    agent: str
    """Id of a subagent; empty for the main agent."""
    body: bytes
    step: Step


@dataclass
class _Conversation:
    """One conversation: its steps by attempt and by the turn at which that attempt, or its resumption, started."""

    opening: str
    parts: dict[tuple[int, int], list[Step]] = field(default_factory=lambda: defaultdict(list))

    def steps(self) -> list[Step]:
        return [step for (attempt, _), part in sorted(self.parts.items()) for step in _of(attempt, part)]


def cassette(name: str, recorded: Iterable[RecordedRequest], *, home: str, ticket: Mapping[str, Any]) -> dict[str, str]:
    """The scripts by name: one for the ticket's agent and one for each subagent. Empty without recorded answers."""
    conversations: dict[str, _Conversation] = {}
    for one in recorded:
        _place(conversations, one, home)
    if "" not in conversations:
        return {}
    names = {agent: f"{name}-agent-{number}" for number, agent in enumerate(filter(None, conversations), 1)}
    openings = {conversations[agent].opening: script for agent, script in names.items()}
    written = {names[agent]: _marked(conversations[agent].steps(), openings) for agent in names}
    return {
        name: to_toml(_marked(conversations[""].steps(), openings), _ticket(ticket, home)),
        **{script: to_toml(steps) for script, steps in written.items()},
    }


def to_toml(steps: Iterable[Step], ticket: Mapping[str, Any] | None = None) -> str:
    """The script as the text of its file."""
    lines = [f"fill = {_value(list(_FILLED))}"]
    if ticket is not None:
        lines += ["", "[ticket]", *(f"{key} = {_value(value)}" for key, value in ticket.items() if value)]
    for step in steps:
        lines += ["", "[[step]]", *(f"{key} = {_value(value)}" for key, value in _table(step).items())]
    return "\n".join(lines) + "\n"


def _place(conversations: dict[str, _Conversation], one: RecordedRequest, home: str) -> None:
    headers = {"x-claude-code-session-id": one.conversation, "x-claude-code-agent-id": one.agent}
    try:
        incoming = request.read(headers, one.body, one.dialect)
    except Unexpected:
        return
    if incoming.is_side_job:
        return
    where = part(incoming)
    conversation = conversations.setdefault(incoming.agent, _Conversation(opening=_opening(incoming)))
    steps = conversation.parts[where.attempt, len(incoming.turns) - len(where.since)]
    number = position(where.since, tuple(steps))
    # If the same turn is requested again, the first answer was lost or not used.
    del steps[number:]
    steps.append(_plain(one.step, where.facts.get("cwd", ""), home))


def _opening(incoming: IncomingRequest) -> str:
    return incoming.turns[0].text if incoming.turns else ""


def _of(attempt: int, part: list[Step]) -> list[Step]:
    return [replace(step, attempt=attempt) for step in part]


def _plain(step: Step, cwd: str, home: str) -> Step:
    """The step without paths of the machine on which it was recorded."""

    def replaced(value: AnyJson) -> AnyJson:
        match value:
            case str():
                return _without_home(value.replace(cwd, "{cwd}") if cwd else value, home)
            case dict():
                return {key: replaced(inner) for key, inner in value.items()}
            case list():
                return [replaced(inner) for inner in value]
            case _:
                return value

    calls = tuple(ScriptedCall(tool=call.tool, input=replaced(dict(call.input))) for call in step.calls)
    say = replaced(step.say) or ("" if step.think or calls else _NO_TEXT)
    return replace(step, think=replaced(step.think), say=say, calls=calls)


def _without_home(text: str, home: str) -> str:
    return re.sub(rf"{re.escape(home)}(?![\w.-])", _NEUTRAL_HOME, text) if len(home) > 1 else text


def _marked(steps: list[Step], openings: Mapping[str, str]) -> list[Step]:
    """The steps, with the name of the subagent's script in each call that started one."""
    return [replace(step, calls=tuple(_marked_call(call, openings) for call in step.calls)) for step in steps]


def _marked_call(call: ScriptedCall, openings: Mapping[str, str]) -> ScriptedCall:
    prompt = call.input.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return call
    for opening, script in openings.items():
        if prompt.strip() in opening.replace("\r\n", "\n"):
            return replace(call, input={**call.input, "prompt": f"{prompt}\n\nrehearsal: {script}"})
    return call


def _ticket(ticket: Mapping[str, Any], home: str) -> dict[str, Any]:
    """The ticket for a replay, without markers of an earlier rehearsal, which would select another script."""
    return {
        key: _without_home(_MARKER.sub("", value), home) if isinstance(value, str) else value
        for key, value in ticket.items()
    }


def _table(step: Step) -> dict[str, Any]:
    usage = _used(step.usage)
    table: dict[str, Any] = {
        "attempt": step.attempt if step.attempt > 1 else None,
        "think": step.think,
        "say": step.say,
        "calls": [{"tool": call.tool, "input": dict(call.input)} for call in step.calls],
        "stop": "" if step.stop in _USUAL_STOPS else step.stop,
        "usage": usage,
    }
    return {key: value for key, value in table.items() if value}


def _used(usage: ScriptedUsage) -> dict[str, int]:
    return {key: value for key, value in vars(usage).items() if value is not None}


def _value(value: AnyJson) -> str:
    """The value in TOML, without nulls, which TOML does not have."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case dict():
            inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None)
            return f"{{{inner}}}"
        case list():
            return f"[{', '.join(_value(one) for one in value if one is not None)}]"
        case _:
            return str(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A JSON string is a TOML string too, except for one character and lone surrogates."""
    valid = value.encode("utf-8", "replace").decode()
    return json.dumps(valid, ensure_ascii=False).replace("\x7f", "\\u007f")
