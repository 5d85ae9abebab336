"""The real Claude Code works with the rehearsal: as `claude -p`, over several processes, through every error."""

from __future__ import annotations

import os
import signal

import pytest

from legion.rehearsal.protocol.log import RequestKind
from tests.rehearsal.program import Claude, finish
from tests.support.sampling import sampled
from tests.support.stage import playing

WORK = """
    [capture]
    word = 'the word is (\\w+)'

    [[step]]
    think = "A word, {word}."
    say = "I write it down."
    call = {tool = "Write", input = {file_path = "{cwd}/word.txt", content = "{word}\\n"}}
    usage = {input = 1000, output = 50, cache_read = 200, cache_write = 100}

    [[step]]
    expect = "created"
    calls = [
        {tool = "Bash", input = {command = "cat word.txt"}},
        {tool = "Bash", input = {command = "echo two"}},
    ]
    usage = {input = 2000, output = 60}

    [[step]]
    expect = "two"
    say = "Done with {word}."
    usage = {input = 3000, output = 70}
"""


def steps(stage, conversation: str = "") -> list[tuple[str, int | None, int]]:
    lines = [line for line in stage.lines() if not conversation or line.conversation == conversation]
    return [(line.script, line.step, line.status) for line in lines]


def test_a_script_thinks_speaks_and_uses_tools_in_two_conversations_at_the_same_time(stage, write, tmp_path):
    write("work", WORK)
    agents = [Claude(folder=tmp_path / word, url=stage.url) for word in ("red", "green")]
    running = [agent.start(f"rehearsal: work, the word is {agent.folder.name}") for agent in agents]
    for agent, outcome in zip(agents, [finish(process) for process in running], strict=True):
        word = agent.folder.name
        assert (outcome.code, outcome.result["result"]) == (0, f"Done with {word}.")
        assert (agent.work / "word.txt").read_text() == f"{word}\n"
        assert [block["thinking"] for block in outcome.blocks("thinking")] == [f"A word, {word}."]
        assert {block["content"] for block in outcome.blocks("tool_result")} >= {word, "two"}
        assert steps(stage, agent.conversation) == [("work", 1, 200), ("work", 2, 200), ("work", 3, 200)]
        used = outcome.result["usage"]
        assert (used["input_tokens"], used["output_tokens"]) == (6000, 180)
        assert (used["cache_read_input_tokens"], used["cache_creation_input_tokens"]) == (200, 100)


LONG = """
    [[step]]
    say = "I wait."
    call = {tool = "Bash", input = {command = "cat gate"}}

    [[step]]
    expect = "go on"
    say = "I was cut off."
    call = {tool = "Bash", input = {command = "echo one"}}

    [[step]]
    status = 429
    times = 1
    limit = {resets_in = 3600}
    message = "Too much for this hour."
    expect = "one|go on"
    say = "The hour is over."

    [[step]]
    expect = "go on"
    say = "The play started again."
"""


@pytest.mark.parametrize("how", sampled([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], 1))
def test_a_conversation_goes_on_after_a_kill_in_a_tool_a_limit_and_a_restart_of_the_rehearsal(
    scripts, write, tmp_path, how
):
    """Four processes, one after the other: each plays on at the step at which the last one ended."""
    write("long", LONG)
    with playing(scripts, tmp_path) as first:
        claude = Claude(folder=tmp_path / "agent", url=first.url)
        os.mkfifo(claude.work / "gate")
        process = claude.start("rehearsal: long", "--allowedTools", "Bash")
        # This returns when the tool has opened the other end; closing it lets a tool go that outlived the program.
        gate = os.open(claude.work / "gate", os.O_WRONLY)
        claude.wait_until_written("tool_use")
        process.send_signal(how)
        process.communicate(timeout=60)
        os.close(gate)
        limited = claude.run("go on", "--allowedTools", "Bash")
        assert "I was cut off." in limited.texts
        assert (limited.result["api_error_status"], limited.retries) == (429, [])
        assert "Too much for this hour." in limited.result["result"]
        assert claude.run("go on").result["result"] == "The hour is over."
        assert steps(first) == [("long", 1, 200), ("long", 2, 200), ("long", 3, 429), ("long", 3, 200)]
    with playing(scripts, tmp_path) as second:
        claude.url = second.url
        assert claude.run("go on").result["result"] == "The play started again."


NINE = "One two three four five six seven eight nine."


@pytest.mark.parametrize("status", sampled([500, 529], 1))
def test_trouble_that_passes_is_waited_out(stage, write, claude, status):
    """An overloaded model, connections that drop before the answer, a short limit, streams that drop in the middle."""
    write(
        "busy",
        f"""
        [[step]]
        status = {status}
        times = 2
        say = "At last."
        call = {{tool = "Bash", input = {{command = "echo one"}}}}
        [[step]]
        drop = "before"
        times = 2
        expect = "one"
        say = "Here I am."
        call = {{tool = "Bash", input = {{command = "echo two"}}}}
        [[step]]
        status = 429
        times = 1
        limit = {{resets_in = 1}}
        expect = "two"
        say = "That was quick."
        call = {{tool = "Bash", input = {{command = "echo three"}}}}
        [[step]]
        drop = "mid"
        times = 3
        expect = "three"
        say = "{NINE}"
        """,
    )
    outcome = claude.run("rehearsal: busy")
    assert outcome.result["result"] == NINE
    retries = [(retry["error_status"], retry["retry_delay_ms"]) for retry in outcome.retries]
    assert [error for error, _ in retries[:5]] == [status, status, None, None, 429]
    assert retries[4][1] == 1000
    assert [step for step in steps(stage) if step[1] != 4] == [
        *[("busy", 1, status)] * 2, ("busy", 1, 200),
        *[("busy", 2, 0)] * 2, ("busy", 2, 200),
        ("busy", 3, 429), ("busy", 3, 200),
    ]  # fmt: skip
    # Streams that drop in the middle are followed by a request for the complete answer.
    assert [(line.kind, line.stream) for line in stage.lines() if line.step == 4] == [
        *[(RequestKind.TROUBLE, True)] * 3, (RequestKind.SCRIPTED, False),
    ]  # fmt: skip


FAILURES = [(400, 6, 0), (401, 3, 2), (403, 1, 0), (404, 2, 0), (529, 3, 2)]
"""A status, how many requests Claude Code makes then, and how many of them it calls retries."""


@pytest.mark.parametrize("failure", sampled(FAILURES, 1), ids=lambda one: str(one[0]))
def test_what_never_stops_failing_ends_the_run(stage, write, claude, failure):
    status, requests, retried = failure
    write("never", f'[[step]]\nstatus = {status}\nmessage = "rehearsed"')
    outcome = claude.run("rehearsal: never")
    assert (outcome.code, outcome.result["is_error"]) == (1, True)
    assert (outcome.result["terminal_reason"], outcome.result["api_error_status"]) == ("api_error", status)
    assert len(outcome.retries) == retried
    # On 400 the program leaves out one feature after the other and asks again at once.
    assert len(stage.lines()) == requests


def test_a_slow_stream_arrives_whole(write, claude):
    write("slow", '[[step]]\ndelay = 0.3\nslow = 0.05\nsay = "One two three four five six seven eight nine."')
    outcome = claude.run("rehearsal: slow", "--include-partial-messages")
    assert outcome.result["result"] == "One two three four five six seven eight nine."
    pieces = [event["event"] for event in outcome.events if event["type"] == "stream_event"]
    assert [piece["delta"]["text"] for piece in pieces if piece["type"] == "content_block_delta"] == [
        "One two three four ", "five six seven eight ", "nine.",
    ]  # fmt: skip


def test_a_subagent_plays_a_script_of_its_own(stage, write, claude):
    write(
        "lead",
        """
        [[step]]
        say = "I ask another."
        [step.call]
        tool = "Agent"
        [step.call.input]
        description = "Look"
        prompt = "Look around. rehearsal: scout"
        subagent_type = "general-purpose"
        run_in_background = false
        [[step]]
        expect = "Nothing there."
        say = "The scout is back."
        """,
    )
    write(
        "scout",
        """
        [[step]]
        say = "I look."
        call = {tool = "Bash", input = {command = "echo nothing"}}
        [[step]]
        say = "Nothing there."
        """,
    )
    outcome = claude.run("rehearsal: lead")
    assert outcome.result["result"] == "The scout is back."
    assert [(line.script, line.step, bool(line.agent)) for line in stage.lines()] == [
        ("lead", 1, False), ("scout", 1, True), ("scout", 2, True), ("lead", 2, False),
    ]  # fmt: skip


def test_a_request_that_no_script_expects_ends_the_run_and_says_why(stage, claude):
    outcome = claude.run("do something")
    assert (outcome.code, outcome.result["is_error"]) == (1, True)
    assert "rehearsal: No script is named" in outcome.result["result"]
    assert {line.kind for line in stage.lines()} == {RequestKind.UNEXPECTED}
