"""Chooses the reply to a request: the script, the step, its expectation, and whether an error is due.

The only state is how often each step with an error was requested.

The same seed gives the same step of the same ticket the same error, in whatever order requests come.

A prefix of a request is its tools, system prompt and messages up to a block with `cache_control`. It is read from the
cache where an earlier request had the same one. Nothing expires.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from legion.domain.text import AnyJson, count
from legion.rehearsal.play.conversation import ScriptPosition, part, position
from legion.rehearsal.protocol import anthropic, request
from legion.rehearsal.protocol.anthropic import Json, tokens
from legion.rehearsal.protocol.log import LogLine, RequestKind
from legion.rehearsal.protocol.request import ApiPath, IncomingRequest
from legion.rehearsal.script import generic, parser
from legion.rehearsal.script.script import (
    BadScript,
    Drop,
    RehearsalError,
    Script,
    ScriptedCall,
    ScriptedLimit,
    ScriptedTrouble,
    Step,
    Unexpected,
)

_MARK = "cache_control"
_NOT_PART = "x-anthropic-billing-header"
"""A block of the system prompt that the provider takes out."""


@dataclass(frozen=True, kw_only=True)
class CachedTokens:
    read: int
    written: int
    new: int


class PromptCache:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def count(self, body: Mapping[str, Any]) -> CachedTokens:
        digest, size, read, last = hashlib.sha256(), 0, 0, 0
        marked: list[str] = []
        for block in _blocks(body):
            text = json.dumps({name: value for name, value in block.items() if name != _MARK}, sort_keys=True)
            digest.update(text.encode())
            size += len(text)
            prefix = digest.hexdigest()
            if prefix in self._known:
                read = size
            if _MARK in block:
                last = size
                marked.append(prefix)
        self._known.update(marked)
        written = max(0, last - read)
        return CachedTokens(read=_tokens(read), written=_tokens(written), new=_tokens(size - read - written))


def _blocks(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools") or ()
    for block in _listed(body.get("system") or ""):
        if not str(block.get("text", "")).startswith(_NOT_PART):
            yield {"part": "system", **block}
    for message in body.get("messages") or ():
        for block in _listed(message["content"]):
            yield {"part": message["role"], **block}


def _listed(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _tokens(size: int) -> int:
    return tokens(size) if size else 0


_SHARE = 0.25
"""Share of steps with an error."""
_RESETS_IN = 5.0
"""Seconds until a limit is over."""
_LIMIT = ScriptedTrouble(status=429, times=1, message="rehearsed chaos: the limit is reached")
_TROUBLES: tuple[tuple[ScriptedTrouble, Mapping[str, str]], ...] = (
    (_LIMIT, {}),
    # Claude Code itself waits for a limit that ends soon; it ends where it should wait longer than a minute.
    (_LIMIT, {"retry-after": "3600"}),
    (ScriptedTrouble(status=529, times=2, message="rehearsed chaos: overloaded"), {}),
    (ScriptedTrouble(drop=Drop.BEFORE, times=1), {}),
    (ScriptedTrouble(drop=Drop.MID, times=1), {}),
)


class ModelChaos:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def troubled(self, step: Step, ticket: str, attempt: int, number: int) -> Step:
        """The step, perhaps with an error the first one or two times that it is requested."""
        generator = random.Random(f"{self._seed} {ticket} {attempt} {number}")
        if step.trouble is not None or generator.random() >= _SHARE:
            return step
        trouble, headers = generator.choice(_TROUBLES)
        limit = ScriptedLimit(resets_in=_RESETS_IN) if trouble is _LIMIT else step.limit
        return replace(step, trouble=trouble, limit=limit, headers={**step.headers, **headers})


_NEVER = re.compile(r"(?!)")


def filled(step: Step, script: Script, where: ScriptPosition) -> Step:
    facts = {**where.facts, **_captured(script, where.briefing)}
    names = "|".join(re.escape(name) for name in (*script.fills, *script.captures))
    variable = re.compile(rf"\{{({names})\}}") if names else _NEVER

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in facts:
            raise Unexpected(f"Script {script.name} uses {found[0]}, which the conversation does not contain.")
        return facts[found[1]]

    def fill(value: AnyJson) -> AnyJson:
        match value:
            case str():
                return variable.sub(value_of, value)
            case Mapping():
                return {key: fill(inner) for key, inner in value.items()}
            case list():
                return [fill(inner) for inner in value]
            case _:
                return value

    calls = tuple(ScriptedCall(tool=call.tool, input=fill(call.input)) for call in step.calls)
    return dataclasses.replace(step, think=fill(step.think), say=fill(step.say), expect=step.expect, calls=calls)


def _captured(script: Script, briefing: str) -> dict[str, str]:
    found = {name: re.search(pattern, briefing, re.MULTILINE) for name, pattern in script.captures.items()}
    return {name: match[1] for name, match in found.items() if match is not None}


_SIDE_ANSWER = Step(say='{"title": "Rehearsal"}')
_SHOWN = 300


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """The reply to a request: its content and its timing."""

    line: LogLine
    status: int
    body: Json
    """In Anthropic's dialect, whatever the request uses."""
    stream: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    slow: float = 0.0
    drop: Drop | None = None


@dataclass(frozen=True, kw_only=True)
class _RequestedStep:
    """The step that a request asks for."""

    script: Script
    number: int
    step: Step
    where: ScriptPosition


class Play:
    def __init__(
        self, scripts: Path, default: str | None, chaos: ModelChaos | None = None, cache: PromptCache | None = None
    ) -> None:
        """`default` is the script for conversations without a marker; None: refuse them. With a `cache`, answers report
        what a provider with a prompt cache would count.
        """
        if (scripts / f"{generic.NAME}.toml").exists():
            raise BadScript(f"{generic.NAME}.toml: the name {generic.NAME} is reserved: rename the file.")
        if default not in (None, generic.NAME) and default not in parser.read_all(scripts):
            raise BadScript(f"There is no {default}.toml in {scripts}: name an existing script.")
        self._scripts = scripts
        self._default = default
        self._chaos = chaos
        self._cache = cache
        self._tries: Counter[tuple[str, ...]] = Counter()

    def reply(
        self, headers: Mapping[str, str], body: bytes, now: float, dialect: ApiPath = ApiPath.MESSAGES
    ) -> ScriptedReply:
        try:
            incoming = request.read(headers, body, dialect)
        except Unexpected as error:
            return _refusal(error, LogLine(at=now, kind=RequestKind.UNEXPECTED, status=400))
        line = LogLine(
            at=now,
            kind=RequestKind.SIDE,
            status=200,
            conversation=incoming.conversation,
            agent=incoming.agent,
            model=incoming.model,
            stream=incoming.stream,
        )
        if incoming.is_side_job:
            return _answer(incoming, _SIDE_ANSWER, line)
        try:
            requested = self._requested_step(incoming)
        except RehearsalError as error:
            return _refusal(error, line)
        if self._cache is not None and dialect is ApiPath.MESSAGES:
            requested = replace(requested, step=_counted(requested.step, self._cache.count(json.loads(body))))
        return self._play_step(incoming, requested, line, now)

    def _requested_step(self, incoming: IncomingRequest) -> _RequestedStep:
        where = part(incoming)
        script = self._script(where)
        steps = script.steps_of(where.attempt)
        number = position(where.since, steps)
        if number >= len(steps) and not script.endless:
            raise Unexpected(
                f"Script {script.name} has {count(len(steps), 'step')} for attempt {where.attempt} "
                f"and got a request for one more: {where.before[-_SHOWN:]}"
            )
        step = filled(steps[min(number, len(steps) - 1)], script, where)
        if re.search(step.expect, where.before) is None:
            raise Unexpected(
                f"Script {script.name}, step {number + 1} expects {step.expect!r} and got: {where.before[-_SHOWN:]}"
            )
        if self._chaos is not None:
            step = self._chaos.troubled(step, where.facts.get("ticket", ""), where.attempt, number)
        return _RequestedStep(script=script, number=number, step=step, where=where)

    def _script(self, where: ScriptPosition) -> Script:
        name = where.script or self._default
        if name is None:
            raise Unexpected(
                'No script is named: write "rehearsal: NAME" into the text of the ticket. It starts with: '
                f"{where.briefing[:_SHOWN]}"
            )
        if name == generic.NAME:
            return generic.script(where.ticket, where.facts)
        try:
            return parser.read(self._scripts / f"{name}.toml")
        except FileNotFoundError as missing:
            raise Unexpected(f"There is no script {name}: add {name}.toml to the scripts.") from missing

    def _play_step(
        self, incoming: IncomingRequest, requested: _RequestedStep, line: LogLine, now: float
    ) -> ScriptedReply:
        step, trouble = requested.step, requested.step.trouble
        line = replace(line, script=requested.script.name, step=requested.number + 1, attempt=requested.where.attempt)
        if trouble is None or not self._is_due(incoming, requested, trouble.times):
            limit = {} if step.limit is None else anthropic.limit_headers(step.limit, refused=False, now=now)
            headers = limit if trouble is not None else {**limit, **step.headers}
            return _answer(incoming, step, replace(line, kind=RequestKind.SCRIPTED), headers)
        if trouble.status is None:
            status = 0 if trouble.drop is Drop.BEFORE else 200
            return _answer(incoming, step, replace(line, kind=RequestKind.TROUBLE, status=status), drop=trouble.drop)
        limit = (
            {} if step.limit is None else anthropic.limit_headers(step.limit, refused=trouble.status == 429, now=now)
        )
        return ScriptedReply(
            line=replace(line, kind=RequestKind.TROUBLE, status=trouble.status),
            status=trouble.status,
            body=anthropic.error(trouble.status, trouble.message),
            headers={**limit, **step.headers},
            delay=step.delay,
        )

    def _is_due(self, incoming: IncomingRequest, requested: _RequestedStep, times: int | None) -> bool:
        """Whether an error comes now: repeated requests for the same step of the same conversation are counted."""
        if times is None:
            return True
        caller = incoming.conversation or hashlib.sha256(repr(incoming.turns).encode()).hexdigest()
        key = (caller, incoming.agent, requested.script.name, str(requested.where.attempt), str(requested.number))
        self._tries[key] += 1
        return self._tries[key] <= times


def _answer(
    incoming: IncomingRequest,
    step: Step,
    line: LogLine,
    headers: Mapping[str, str] | None = None,
    drop: Drop | None = None,
) -> ScriptedReply:
    return ScriptedReply(
        line=line,
        status=200,
        body=anthropic.message(step, model=incoming.model, size=incoming.size),
        stream=incoming.stream,
        headers=headers or {},
        delay=step.delay,
        slow=step.slow,
        drop=drop,
    )


def _counted(step: Step, seen: CachedTokens) -> Step:
    usage = replace(step.usage, input=seen.new, cache_read=seen.read, cache_write=seen.written)
    return replace(step, usage=usage)


def _refusal(error: RehearsalError, line: LogLine) -> ScriptedReply:
    """A 400, on which agent programs end and show the sentence."""
    return ScriptedReply(
        line=replace(line, kind=RequestKind.UNEXPECTED, status=400, note=str(error)),
        status=400,
        body=anthropic.error(400, f"rehearsal: {error}"),
    )
