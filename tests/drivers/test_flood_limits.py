"""What a hostile program can make its runner keep in memory and in its journal."""

from __future__ import annotations

import asyncio
import json
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest
from acp import schema
from acp.connection import Connection

from legion.drivers import Host
from legion.drivers.acp.driver import PipeTransport
from legion.drivers.acp.updates import Updates
from legion.drivers.json_lines.driver import JsonLinesAgent
from legion.drivers.turns.journal import RunJournal
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.process import AgentProcess
from legion.drivers.turns.run import TurnActivity

_MB = 1 << 20


class _Recorder:
    """Keeps what a driver records, as a `Host` does."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.output = SimpleNamespace(write=lambda data: None)

    def record(self, kind: str, **facts: object) -> None:
        self.events.append((kind, facts))

    def count(self, kind: str) -> int:
        return [one for one, _ in self.events].count(kind)


def _updates() -> tuple[Updates, _Recorder]:
    recorder = _Recorder()
    return Updates(RunJournal(cast(Host, recorder)), TurnActivity()), recorder


def _message(text: str) -> schema.AgentMessageChunk:
    return schema.AgentMessageChunk(
        session_update="agent_message_chunk", content=schema.TextContentBlock(type="text", text=text)
    )


def _call(id: str, text: str, status: str = "in_progress") -> schema.ToolCallStart:
    return schema.ToolCallStart(
        session_update="tool_call",
        tool_call_id=id,
        title=id,
        status=cast(Any, status),
        raw_input={"command": text},
        locations=[schema.ToolCallLocation(path=id)],
    )


def test_a_message_without_an_end_is_kept_up_to_a_size():
    updates, _ = _updates()
    for _ in range(3):
        updates.take(_message("x" * _MB))
    updates.end_turn()
    assert len(updates.last_text) == _MB
    updates.take(_message("The next one."))
    updates.end_turn()
    assert updates.last_text == "The next one."


def test_the_oldest_of_very_many_open_calls_is_forgotten():
    updates, _ = _updates()
    for number in range(300):
        updates.take(_call(f"call-{number}", "make"))
    assert updates.places_of("call-0") == []
    assert updates.places_of("call-299") == ["call-299"]


@pytest.mark.slow
def test_the_inputs_of_open_calls_are_kept_up_to_a_size_and_each_one_complete():
    updates, _ = _updates()
    for number in range(4):
        updates.take(_call(f"call-{number}", "x" * (10 * _MB)))
    assert [bool(updates.places_of(f"call-{number}")) for number in range(4)] == [False, True, True, True]
    _, _, input = updates.begin(schema.ToolCallUpdate(tool_call_id="call-3"))
    assert input == {"command": "x" * (10 * _MB)}, "permission is decided by the complete command"


def test_a_long_result_keeps_its_start_and_its_end():
    updates, recorder = _updates()
    done = _call("long", "make", "completed")
    text = f"start{'x' * (2 * _MB)}\n3 failed, 4 passed in 1.0s"
    done.content = [
        schema.ContentToolCallContent(type="content", content=schema.TextContentBlock(type="text", text=text))
    ]
    updates.take(done)
    (returned,) = [facts for kind, facts in recorder.events if kind == "returned"]
    assert (returned["tests"], returned["length"] < 2 * _MB) == ([3, 4], True)
    assert returned["head"].startswith("start")


def test_calls_of_json_lines_that_never_return_are_recorded_up_to_a_number():
    recorder = _Recorder()
    options = SimpleNamespace(program=SimpleNamespace(json=SimpleNamespace(reader="codex")))
    agent = JsonLinesAgent(cast(Host, recorder), cast(TurnOptions, options), TurnActivity())
    for number in range(300):
        agent.start_call(f"{number}{'x' * 1000}", "shell", {"command": "make"})
    assert recorder.count("called") == 200
    assert all(len(facts["call"]) < 400 for _, facts in recorder.events)


def test_answers_that_the_program_does_not_read_stop_the_reading_of_its_requests():
    answered = 0

    async def answer(method: str, params: object, notification: bool) -> dict[str, str]:
        nonlocal answered
        answered += 1
        return {"content": "x" * (15 * _MB)}

    async def play() -> int:
        loop = asyncio.get_running_loop()
        to_program, from_us = os.pipe()
        with os.fdopen(from_us, "wb", 0) as file, os.fdopen(to_program, "rb", 0):
            transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
            process = SimpleNamespace(
                stdin=asyncio.StreamWriter(transport, protocol, None, loop), stdout=asyncio.StreamReader()
            )
            for number in range(40):
                process.stdout.feed_data(json.dumps({"jsonrpc": "2.0", "id": number, "method": "x"}).encode() + b"\n")
            connection = Connection(answer, PipeTransport(cast(AgentProcess, process)))
            for _ in range(1000):
                await asyncio.sleep(0)
            unread = transport.get_write_buffer_size()
            transport.abort()
            await connection.close()
        return unread

    assert asyncio.run(play()) < 64 * _MB
    assert answered < 5
