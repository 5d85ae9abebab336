"""Fills the variables of a script, such as {cwd}, from the facts of a conversation. Other braces stay."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from legion.rehearsal.errors import Unexpected
from legion.rehearsal.play.conversation import ScriptPosition
from legion.rehearsal.script.script import Script, ScriptedCall, Step

_NEVER = re.compile(r"(?!)")


def filled(step: Step, script: Script, where: ScriptPosition) -> Step:
    facts = {**where.facts, **_captured(script, where.briefing)}
    names = "|".join(re.escape(name) for name in (*script.fills, *script.captures))
    variable = re.compile(rf"\{{({names})\}}") if names else _NEVER

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in facts:
            raise Unexpected(f"Script {script.name} uses {found[0]}, which the conversation does not contain.")
        return facts[found[1]]

    def fill(value: Any) -> Any:  # noqa: ANN401, what a tool takes is any JSON
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
