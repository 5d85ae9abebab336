"""The translations of the golden set: computed now, and as stored."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from legion.gateway.dialects.common import events_of
from legion.gateway.dialects.messages import RequestInfo
from legion.gateway.dialects.registry import (
    PROVIDER_DIALECTS,
    Dialect,
    read_request,
    write_answer,
    write_request,
    writer,
)
from legion.gateway.json_text import dumps
from tests.gateway.golden.answers import ANSWERS
from tests.gateway.golden.requests import REQUESTS

FOLDER = Path(__file__).parent
ASKED = RequestInfo(model="some-model", at=1_700_000_000)
_DRAWN = re.compile(r"\b[a-z]+_[0-9a-f]{16,}\b")
FROM_TO = [(source, target) for source in Dialect for target in PROVIDER_DIALECTS if source is not target]


def file(name: str) -> Path:
    return FOLDER / f"{name}.json"


def kept(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file(name).read_text("utf-8"))
    return found


def request(source: Dialect, target: Dialect, name: str) -> Any:
    return _plain(write_request(target, read_request(source, copy.deepcopy(REQUESTS[source][name]))))


def whole(target: Dialect, name: str) -> Any:
    return _plain(write_answer(target, ANSWERS[name], ASKED))


def stream(target: Dialect, name: str) -> list[str]:
    into = writer(target, ASKED)
    return _steady(b"".join(into.write(event) for event in events_of(ANSWERS[name])).decode()).split("\n\n")


def as_it_is() -> dict[str, dict[str, Any]]:
    """Every file of the set by its name."""
    files: dict[str, dict[str, Any]] = {}
    for source, target in FROM_TO:
        names = REQUESTS[source]
        files[f"{source.value}-to-{target.value}"] = {name: request(source, target, name) for name in names}
    for target in Dialect:
        files[f"answers-in-{target.value}"] = {name: whole(target, name) for name in ANSWERS}
        files[f"streams-in-{target.value}"] = {name: stream(target, name) for name in ANSWERS}
    return files


def _plain(facts: object) -> Any:
    return json.loads(_steady(dumps(facts).decode()))


def _steady(text: str) -> str:
    """Ids that are drawn, by the order in which they come."""
    drawn = {id: f"{id.partition('_')[0]}_{number}" for number, id in enumerate(dict.fromkeys(_DRAWN.findall(text)), 1)}
    return _DRAWN.sub(lambda found: drawn[found[0]], text)
