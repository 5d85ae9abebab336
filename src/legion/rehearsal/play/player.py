"""Finds the reply to a request: the script, the step, what it expects, and whether it is time for trouble.

The only thing that is remembered is how often a step with trouble was asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.rehearsal.errors import BadScript, RehearsalError, Unexpected
from legion.rehearsal.play.chaos import ModelChaos
from legion.rehearsal.play.conversation import ScriptPosition, part, position
from legion.rehearsal.play.variables import filled
from legion.rehearsal.protocol import anthropic, request
from legion.rehearsal.protocol.anthropic import Json
from legion.rehearsal.protocol.log import LogLine, RequestKind
from legion.rehearsal.protocol.request import ApiPath, IncomingRequest
from legion.rehearsal.script import generic, parser
from legion.rehearsal.script.script import Drop, Script, Step

_SIDE_WORD = Step(say='{"title": "Rehearsal"}')
_SHOWN = 300


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """What goes back, and how."""

    line: LogLine
    status: int
    body: Json
    """In Anthropic's words, whatever was asked."""
    stream: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    slow: float = 0.0
    drop: Drop | None = None


@dataclass(frozen=True, kw_only=True)
class _Cue:
    """The step that is asked for."""

    script: Script
    number: int
    step: Step
    where: ScriptPosition


class Play:
    def __init__(self, scripts: Path, default: str | None, chaos: ModelChaos | None = None) -> None:
        """`default` is the script for conversations without a marker; None: they are unexpected."""
        if (scripts / f"{generic.NAME}.toml").exists():
            raise BadScript(f"{generic.NAME}.toml: the name {generic.NAME} is taken: rename the file.")
        if default not in (None, generic.NAME) and default not in parser.read_all(scripts):
            raise BadScript(f"There is no {default}.toml in {scripts}: name a script that is there.")
        self._scripts = scripts
        self._default = default
        self._chaos = chaos
        self._tries: Counter[tuple[str, ...]] = Counter()

    def reply(
        self, headers: Mapping[str, str], body: bytes, now: float, dialect: ApiPath = ApiPath.MESSAGES
    ) -> ScriptedReply:
        try:
            asked = request.read(headers, body, dialect)
        except Unexpected as no:
            return _refusal(no, LogLine(at=now, kind=RequestKind.UNEXPECTED, status=400))
        line = LogLine(
            at=now,
            kind=RequestKind.SIDE,
            status=200,
            conversation=asked.conversation,
            agent=asked.agent,
            model=asked.model,
            stream=asked.stream,
        )
        if asked.is_side_job:
            return _said(asked, _SIDE_WORD, line)
        try:
            cue = self._cue(asked)
        except RehearsalError as no:
            return _refusal(no, line)
        return self._played(asked, cue, line, now)

    def _cue(self, asked: IncomingRequest) -> _Cue:
        where = part(asked)
        script = self._script(where)
        steps = script.steps_of(where.attempt)
        number = position(where.since, steps)
        if number >= len(steps) and not script.endless:
            raise Unexpected(
                f"Script {script.name} has {len(steps)} steps for attempt {where.attempt} and is asked for one more: "
                f"{where.before[-_SHOWN:]}"
            )
        step = filled(steps[min(number, len(steps) - 1)], script, where)
        if re.search(step.expect, where.before) is None:
            raise Unexpected(
                f"Script {script.name}, step {number + 1} expects {step.expect!r} and got: {where.before[-_SHOWN:]}"
            )
        if self._chaos is not None:
            step = self._chaos.troubled(step, where.facts.get("ticket", ""), where.attempt, number)
        return _Cue(script=script, number=number, step=step, where=where)

    def _script(self, where: ScriptPosition) -> Script:
        name = where.script or self._default
        if name is None:
            raise Unexpected(
                'No script is named: write "rehearsal: NAME" into the text of the ticket. It began with: '
                f"{where.briefing[:_SHOWN]}"
            )
        if name == generic.NAME:
            return generic.script(where.ticket, where.facts)
        try:
            return parser.read(self._scripts / f"{name}.toml")
        except FileNotFoundError as missing:
            raise Unexpected(f"There is no script {name}: add {name}.toml to the scripts.") from missing

    def _played(self, asked: IncomingRequest, cue: _Cue, line: LogLine, now: float) -> ScriptedReply:
        step, trouble = cue.step, cue.step.trouble
        line = replace(line, script=cue.script.name, step=cue.number + 1, attempt=cue.where.attempt)
        if trouble is None or not self._is_due(asked, cue, trouble.times):
            limit = {} if step.limit is None else anthropic.limit_headers(step.limit, refused=False, now=now)
            headers = limit if trouble is not None else {**limit, **step.headers}
            return _said(asked, step, replace(line, kind=RequestKind.SCRIPTED), headers)
        if trouble.status is None:
            status = 0 if trouble.drop is Drop.BEFORE else 200
            return _said(asked, step, replace(line, kind=RequestKind.TROUBLE, status=status), drop=trouble.drop)
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

    def _is_due(self, asked: IncomingRequest, cue: _Cue, times: int | None) -> bool:
        """Whoever asks for the same step of the same conversation again is trying once more."""
        if times is None:
            return True
        who = asked.conversation or hashlib.sha256(repr(asked.turns).encode()).hexdigest()
        key = (who, asked.agent, cue.script.name, str(cue.where.attempt), str(cue.number))
        self._tries[key] += 1
        return self._tries[key] <= times


def _said(
    asked: IncomingRequest,
    step: Step,
    line: LogLine,
    headers: Mapping[str, str] | None = None,
    drop: Drop | None = None,
) -> ScriptedReply:
    return ScriptedReply(
        line=line,
        status=200,
        body=anthropic.message(step, model=asked.model, size=asked.size),
        stream=asked.stream,
        headers=headers or {},
        delay=step.delay,
        slow=step.slow,
        drop=drop,
    )


def _refusal(no: RehearsalError, line: LogLine) -> ScriptedReply:
    """Loud: an agent program ends on 400, and shows the sentence."""
    return ScriptedReply(
        line=replace(line, kind=RequestKind.UNEXPECTED, status=400, note=str(no)),
        status=400,
        body=anthropic.error(400, f"rehearsal: {no}"),
    )
