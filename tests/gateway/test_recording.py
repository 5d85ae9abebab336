"""Requests and answers of a recorded run are on its tape, in every dialect and direction, without keys and tokens."""

from __future__ import annotations

import json
import os
import time

import pytest

from legion.gateway.access.provider import KeyFrom, KeySource
from legion.gateway.recording import tape
from legion.gateway.recording.recorder import redact
from legion.gateway.recording.tape import RecordedExchange
from tests.gateway.gateways import Running, eventually
from tests.gateway.test_translate import PAIRS, PATHS, STREAMS, ask, streaming
from tests.gateway.upstream import Upstream

KEY = "plain-key-that-looks-like-nothing"


def taken(gateway: Running, run: str, number: int = 1) -> list[RecordedExchange]:
    return eventually(lambda: list(tape.exchanges(gateway.folder, run)), lambda found: len(found) >= number)


@pytest.mark.parametrize(("caller", "kind"), PAIRS)
def test_a_recorded_answer_is_on_tape_whichever_way_it_went(
    gateway: Running, upstream: Upstream, caller, kind, tmp_path
):
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    gateway.provide(upstream.url, KeySource(origin=KeyFrom.FILE, where=str(file)), kind=kind)
    upstream.script = streaming(STREAMS[kind])
    run, token = gateway.grant(recorded=True)
    ask(gateway, token, caller, metadata={"user_id": f"{token} {KEY}"})
    (take,) = taken(gateway, run)
    assert (take.path, take.text, take.stop) == (PATHS[caller], "Grüße, Ada 🙂", "tool_use")
    assert [(call.tool, json.loads(call.input)) for call in take.calls] == [
        ("Read", {"file_path": "a"}), ("Bash", {"command": "ls"}),
    ]  # fmt: skip
    assert take.output == 42
    written = (gateway.folder.tapes / f"{run}.jsonl").read_text()
    assert token not in written
    assert KEY not in written
    assert (gateway.folder.tapes / f"{run}.jsonl").stat().st_mode & 0o077 == 0


def test_nobody_else_is_recorded_and_nothing_that_broke_off(gateway: Running, upstream: Upstream):
    run, token = gateway.grant()
    gateway.ask(token)
    broken, token = gateway.grant(recorded=True)

    def drops(exchange):
        exchange.begin(STREAMS_BEGIN)
        exchange.drop()

    upstream.script = drops
    with pytest.raises(Exception, match=r"."):  # http.client has many words for it
        gateway.ask(token)
    assert gateway.entry(run).status == 200
    assert gateway.entry(broken).cut
    assert [list(tape.exchanges(gateway.folder, one)) for one in (run, broken)] == [[], []]


STREAMS_BEGIN = b'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'


@pytest.mark.parametrize(
    "secret",
    ["sk-ant-api03-0123456789abcdefghij", "ghp_0123456789abcdefghij", "legion-" + "x" * 43, "AKIA0123456789ABCDEF"],
)
def test_what_looks_like_a_key_is_taken_out(secret):
    assert redact(json.dumps({"a": f"key={secret}."}), ()) == '{"a": "key=REDACTED."}'


def test_old_tapes_go_when_recording_begins(gateway: Running):
    tape.start(gateway.folder)
    old, new = gateway.folder.tapes / "old.jsonl", gateway.folder.tapes / "new.jsonl"
    for one in (old, new):
        one.touch()
    os.utime(old, (time.time() - 40 * 86_400,) * 2)
    tape.start(gateway.folder)
    assert (old.exists(), new.exists(), tape.is_recording(gateway.folder)) == (False, True, True)
    tape.stop(gateway.folder)
    assert not tape.is_recording(gateway.folder)
