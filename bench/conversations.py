"""Conversations of other programs: the first index, an index that is up to date, and searches, over generated files.

`python -m bench conversations 10000` makes ten thousand files with 5 GB in all.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.report import Report, say
from legion.conversations.index import Index, expression
from legion.conversations.places import ConversationPlaces
from legion.conversations.refresh import Refresher

SESSIONS = 1_000
_BYTES = 500_000
"""Of one file."""
_TEXTS = 200
"""Different files; the others are copies, which takes less time to make and as much to read."""
_NOW = 1_800_000_000
_WORDS = 20_000
_SEARCHES = 20
_LIMIT = 0.2
"""Seconds of a search."""


def run(folder: Path, report: Report, sessions: int = SESSIONS) -> None:
    random.seed(1)
    words = [f"{random.choice('bcdfglmnprst')}{random.choice('aeiou')}{number:x}" for number in range(_WORDS)]
    texts = [b"".join(_lines(number, words)) for number in range(min(sessions, _TEXTS))]
    size = sum(_write(folder / ".claude" / "projects", number, texts) for number in range(sessions))
    say(f"{sessions:,} conversations, {size / 1e9:.2f} GB")
    places = ConversationPlaces.of_person({"HOME": str(folder)})
    data = folder / "data"
    data.mkdir()
    refresher = Refresher(data, lambda: places)
    began = time.perf_counter()
    first = refresher.refresh()
    report.value("first answer, while nothing is read yet", time.perf_counter() - began, "s", aim=_LIMIT * 5)
    say(f"{first.bytes_done / 1e6:.0f} of {first.bytes / 1e6:.0f} MB then")
    while refresher.reading:
        refresher.refresh(wait=5)
    report.value(f"first index of {size / 1e9:.1f} GB, in its own process", time.perf_counter() - began, "s")
    report.value("index", (data / "conversations.db").stat().st_size / 1e6, "MB")
    _measure("a word that is everywhere", "the", refresher, report)
    _measure("a word that is in a few", words[-1], refresher, report)
    _measure("two words", f"{words[0]} the", refresher, report)
    _measure("a phrase", f'"the {words[1]}"', refresher, report)
    _measure("the start of words", "ba1*", refresher, report)
    _measure("no hit", "unicorn", refresher, report)
    report.value("memory of this process", psutil.Process().memory_info().rss / 1e6, "MB")


def _measure(what: str, query: str, refresher: Refresher, report: Report) -> None:
    times = []
    for _ in range(_SEARCHES):
        began = time.perf_counter()
        refresher.refresh(hurry=True)
        with contextlib.closing(Index(refresher.index)) as index:
            hits = index.search(expression(query), since=0.0, most=20)
        times.append(time.perf_counter() - began)
    times.sort()
    say(f"{what}: {len(hits)} conversations, slowest {times[-1] * 1000:.0f} ms")
    report.value(f"search, {what}", times[len(times) // 2], "s", aim=_LIMIT)


def _write(projects: Path, number: int, texts: list[bytes]) -> int:
    path = projects / f"-work-p{number % 50}" / f"{uuid.UUID(int=number + (1 << 100))}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(texts[number % len(texts)])
    return path.stat().st_size


def _lines(number: int, words: list[str]) -> Iterator[bytes]:
    """Most of a real file is results of tools and records of requests; texts are a tenth of it."""
    at, size = _NOW - number * 600, 0
    while size < _BYTES:
        at += 20
        for line in (_prompt(at, words), _answer(at, words), _result(at, words), _request(at)):
            yield line
            size += len(line)


def _text(words: list[str], count: int) -> str:
    return " ".join("the" if place % 7 == 0 else random.choice(words) for place in range(count))


def _line(at: int, **facts: object) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
    return json.dumps({**facts, "timestamp": stamp, "cwd": "/home/ada/shop"}, separators=(",", ":")).encode() + b"\n"


def _prompt(at: int, words: list[str]) -> bytes:
    return _line(at, type="user", message={"role": "user", "content": _text(words, 30)})


def _answer(at: int, words: list[str]) -> bytes:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    blocks = [
        {"type": "text", "text": _text(words, 100)},
        {"type": "tool_use", "name": "Bash", "input": {"command": _text(words, 10)}},
    ]
    message = {"id": f"m{at}", "model": "claude-sonnet-4-5", "content": blocks, "usage": usage}
    return _line(at, type="assistant", message=message)


def _result(at: int, words: list[str]) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": "t", "content": _text(words, 600)}]
    return _line(at, type="user", message={"role": "user", "content": content})


def _request(at: int) -> bytes:
    return (
        json.dumps({"type": "api-request", "id": str(at), "tail": ["x" * 4000]}, separators=(",", ":")).encode() + b"\n"
    )
