"""The rehearsal as a server, asked by a plain client."""

from __future__ import annotations

import http.client
import select
import subprocess
import sys
import time

import pytest

from legion.rehearsal.process import start
from legion.rehearsal.protocol.log import RequestKind
from legion.rehearsal.script.script import RehearsalNotStarted
from tests.rehearsal.program import ask, model, result, text_block, use, user
from tests.support.codebase import ROOT

TWO_STEPS = """
    [[step]]
    think = "Let me see."
    say = "I look at the folder."
    call = {tool = "Bash", input = {command = "ls {attempt} {not_a_name}"}}
    usage = {input = 11, output = 12, cache_read = 13, cache_write = 14}

    [[step]]
    expect = "README"
    say = "Done."
"""


def test_a_stream_and_a_whole_message_say_the_same(stage, write):
    write("two", TWO_STEPS)
    whole = ask(stage.url, user("rehearsal: two")).json
    events = ask(stage.url, user("rehearsal: two"), stream=True).events
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    assert whole["content"][2]["input"] == {"command": "ls 1 {not_a_name}"}
    assert whole["stop_reason"] == "tool_use"
    assert whole["usage"] == {
        "input_tokens": 11, "output_tokens": 12, "cache_read_input_tokens": 13, "cache_creation_input_tokens": 14,
    }  # fmt: skip
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == "Let me see."
    assert "".join(delta.get("text", "") for delta in deltas) == "I look at the folder."
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"command": "ls 1 {not_a_name}"}'
    assert [event["type"] for event in events][:2] == ["message_start", "ping"]
    assert events[-2] == {
        "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 12},
    }  # fmt: skip
    assert events[-1] == {"type": "message_stop"}


BEGUN = [user("rehearsal: two"), model(text_block("x"), use("Bash"))]


@pytest.mark.parametrize(
    ("talk", "says"),
    [
        ([user("hello")], "No script is named"),
        ([user("rehearsal: nobody")], "There is no script nobody"),
        ([*BEGUN, result("empty")], "step 2 expects 'README' and got: empty"),
        (
            [*BEGUN, result("README"), model(text_block("Done.")), user("more")],
            "has 2 steps for attempt 1 and got a request for one more: more",
        ),
        ([{"role": "user"}], "not one of the Messages API"),
    ],
)  # fmt: skip
def test_a_request_that_no_script_expects_fails_loudly(stage, write, talk, says, tmp_path):
    write("two", TWO_STEPS)
    answer = ask(stage.url, *talk)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert says in answer.json["error"]["message"]
    (line,) = stage.lines()
    assert (line.kind, line.status) == (RequestKind.UNEXPECTED, 400)
    assert says in line.note
    assert "rehearsal: unexpected: " in (tmp_path / "rehearsal.out").read_text()


def test_a_broken_script_is_told_to_whoever_asks_for_it(stage, write):
    write("broken", "[[step]]\nsays = 3")
    assert (
        "broken.toml, step 1: says is not known here"
        in ask(stage.url, user("rehearsal: broken")).json["error"]["message"]
    )


def test_a_broken_script_is_told_at_the_start(scripts, write, tmp_path):
    write("broken", "[[step]]\nsays = 3")
    with pytest.raises(RehearsalNotStarted, match=r"broken\.toml, step 1: says is not known here"):
        start(scripts, tmp_path)


def test_a_default_that_does_not_exist_is_told_at_the_start(scripts, tmp_path):
    with pytest.raises(RehearsalNotStarted, match=r"There is no nobody\.toml"):
        start(scripts, tmp_path, default="nobody")


def test_a_busy_port_is_told_at_the_start(scripts, stage):
    port = stage.url.rpartition(":")[2]
    argv = [sys.executable, "-P", "-m", "legion.rehearsal", str(scripts), "--port", port]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    reply = f"The rehearsal cannot listen on port {port} (Address already in use): choose another with --port.\n"
    assert (ended.returncode, ended.stderr) == (1, reply)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"),
                         (500, "api_error"), (529, "overloaded_error")],
)  # fmt: skip
def test_a_step_fails_as_often_as_it_says_and_then_answers(stage, write, status, kind):
    write("flaky", f'[[step]]\nstatus = {status}\ntimes = 2\nmessage = "M"\nheaders = {{x-y = "z"}}\nsay = "At last."')
    answers = [ask(stage.url, user("rehearsal: flaky")) for _ in range(3)]
    assert [answer.status for answer in answers] == [status, status, 200]
    assert answers[0].json["error"] == {"type": kind, "message": "M"}
    assert [answer.headers.get("x-y") for answer in answers] == ["z", "z", None]
    assert [line.kind for line in stage.lines()] == [RequestKind.TROUBLE, RequestKind.TROUBLE, RequestKind.SCRIPTED]


def test_the_tries_of_one_conversation_are_not_those_of_another(stage, write):
    write("flaky", '[[step]]\nstatus = 529\ntimes = 1\nsay = "At last."')
    asked = [
        ask(stage.url, user("rehearsal: flaky"), tools=[{}], headers={"x-claude-code-session-id": who}).status
        for who in ("one", "two", "one", "two")
    ]
    assert asked == [529, 529, 200, 200]


def test_a_limit_is_told_in_headers_with_its_reset(stage, write):
    write("limit", '[[step]]\nstatus = 429\ntimes = 1\nlimit = {resets_in = 3600}\nsay = "On."')
    write("near", '[[step]]\nlimit = {resets_in = 60, utilization = 0.91, window = "7d"}\nsay = "On."')
    refused, near = ask(stage.url, user("rehearsal: limit")), ask(stage.url, user("rehearsal: near"))
    prefix = "anthropic-ratelimit-unified"
    assert refused.status == 429
    assert refused.headers["retry-after"] == "3600"
    assert refused.headers[f"{prefix}-status"] == "rejected"
    assert refused.headers[f"{prefix}-representative-claim"] == "five_hour"
    assert abs(int(refused.headers[f"{prefix}-5h-reset"]) - time.time() - 3600) < 60
    assert near.status == 200
    assert (near.headers[f"{prefix}-status"], near.headers[f"{prefix}-7d-utilization"]) == ("allowed_warning", "0.91")
    assert "retry-after" not in near.headers


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_is_dropped_before_the_answer(stage, write, stream):
    write("drop", '[[step]]\ndrop = "before"\ntimes = 1\nsay = "Here."')
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        ask(stage.url, user("rehearsal: drop"), stream=stream)
    assert ask(stage.url, user("rehearsal: drop"), stream=stream).status == 200
    assert [line.status for line in stage.lines()] == [0, 200]


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_is_dropped_in_the_middle_of_the_answer(stage, write, stream):
    write("drop", '[[step]]\ndrop = "mid"\nsay = "One two three four five six seven eight nine."')
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        ask(stage.url, user("rehearsal: drop"), stream=stream)


def test_a_side_job_of_the_program_gets_a_word_and_no_step(stage, write):
    write("two", TWO_STEPS)
    answer = ask(stage.url, user("Give a title to: rehearsal: two"), headers={"x-claude-code-session-id": "one"})
    assert answer.json["stop_reason"] == "end_turn"
    assert [line.kind for line in stage.lines()] == [RequestKind.SIDE]


def test_the_other_questions_of_the_api_are_answered(stage):
    assert ask(stage.url, method="HEAD", path="/").status == 200
    assert ask(stage.url, user("x" * 400), path="/v1/messages/count_tokens?beta=true").json["input_tokens"] > 100
    models = ask(stage.url, method="GET", path="/v1/models?limit=5").json["data"]
    assert all(ask(stage.url, method="GET", path=f"/v1/models/{each['id']}").json == each for each in models)
    unknown = ask(stage.url, path="/v1/complete")
    assert (unknown.status, unknown.json["error"]["type"]) == (404, "not_found_error")
    assert [line.kind for line in stage.lines()] == [RequestKind.COUNT, RequestKind.UNEXPECTED]


def test_it_ends_when_it_is_told_to_even_while_an_answer_hangs(scripts, write, tmp_path):
    write("hang", '[[step]]\ndelay = 100000\nsay = "Never."')
    process, running = start(scripts, tmp_path)
    code = f"from tests.rehearsal.program import *; ask({running.url!r}, user('rehearsal: hang'))"
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not running.lines():
            assert time.monotonic() < deadline
            select.select([], [], [], 0.02)
        process.terminate()
        assert process.wait(60) is not None
        assert caller.wait(60) != 0
    finally:
        caller.kill()
        process.kill()
        caller.wait()
        process.wait()
