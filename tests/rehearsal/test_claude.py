"""The real Claude Code works with the rehearsal: as `claude -p`, over several processes, through every error."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from legion.rehearsal.process import Playing
from legion.rehearsal.protocol.log import LogLine, RequestKind
from tests.rehearsal.program import Claude, Talk, finish
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
    """Three processes, one after the other: each plays on at the step at which the last one ended."""
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
        with claude.talk("--allowedTools", "Bash") as talk:
            limited, later = talk.say("go on"), talk.say("go on")
        assert "I was cut off." in limited.texts
        assert (limited.result["api_error_status"], limited.retries) == (429, [])
        assert "Too much for this hour." in limited.result["result"]
        assert later.result["result"] == "The hour is over."
        assert steps(first) == [("long", 1, 200), ("long", 2, 200), ("long", 3, 429), ("long", 3, 200)]
    with playing(scripts, tmp_path) as second:
        claude.url = second.url
        assert claude.run("go on").result["result"] == "The play started again."


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Shared]:
    """A Claude Code whose conversation several tests share, each with a script of its own."""
    folder = tmp_path_factory.mktemp("shared")
    scripts = folder / "scripts"
    scripts.mkdir()
    with playing(scripts, folder) as stage:
        claude = Claude(folder=folder / "agent", url=stage.url)
        with claude.talk("--include-partial-messages") as talk:
            yield Shared(scripts, stage, talk)


@dataclass(frozen=True)
class Shared:
    scripts: Path
    stage: Playing
    talk: Talk

    def write(self, name: str, text: str) -> None:
        (self.scripts / f"{name}.toml").write_text(dedent(text))

    def lines(self, *scripts: str) -> list[LogLine]:
        return [line for line in self.stage.lines() if line.script in scripts]


NINE = "One two three four five six seven eight nine."


@pytest.mark.parametrize("status", sampled([500, 529], 1))
def test_trouble_that_passes_is_waited_out(shared, status):
    """An overloaded model, connections that drop before the answer, a short limit, streams that drop in the middle."""
    busy = f"busy-{status}"
    shared.write(
        busy,
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
    outcome = shared.talk.say(f"rehearsal: {busy}")
    assert outcome.result["result"] == NINE
    retries = [(retry["error_status"], retry["retry_delay_ms"]) for retry in outcome.retries]
    assert [error for error, _ in retries[:5]] == [status, status, None, None, 429]
    assert retries[4][1] == 1000
    lines = shared.lines(busy)
    assert [(line.step, line.status) for line in lines if line.step != 4] == [
        *[(1, status)] * 2, (1, 200),
        *[(2, 0)] * 2, (2, 200),
        (3, 429), (3, 200),
    ]  # fmt: skip
    # Streams that drop in the middle are followed by a request for the complete answer.
    assert [(line.kind, line.stream) for line in lines if line.step == 4] == [
        *[(RequestKind.TROUBLE, True)] * 3, (RequestKind.SCRIPTED, False),
    ]  # fmt: skip


FAILURES = [(400, 6, 0), (401, 3, 2), (403, 1, 0), (404, 2, 0), (529, 3, 2)]
"""A status, how many requests Claude Code makes then, and how many of them it calls retries."""


@pytest.mark.parametrize("failure", sampled(FAILURES, 1), ids=lambda one: str(one[0]))
def test_what_no_script_expects_says_why_and_what_never_stops_failing_ends_the_run(stage, write, claude, failure):
    status, requests, retried = failure
    write("never", f'[[step]]\nstatus = {status}\nmessage = "rehearsed"')
    with claude.talk() as talk:
        unexpected = talk.say("do something")
        before = stage.lines()
        never = talk.say("rehearsal: never")
    assert unexpected.result["is_error"] is True
    assert "rehearsal: No script is named" in unexpected.result["result"]
    assert {line.kind for line in before} == {RequestKind.UNEXPECTED}
    assert (talk.end(), never.result["is_error"]) == (1, True)
    assert (never.result["terminal_reason"], never.result["api_error_status"]) == ("api_error", status)
    assert len(never.retries) == retried
    # On 400 the program leaves out one feature after the other and asks again at once.
    assert len(stage.lines()[len(before) :]) == requests


def test_a_slow_stream_arrives_whole(shared):
    shared.write("slow", '[[step]]\ndelay = 0.3\nslow = 0.05\nsay = "One two three four five six seven eight nine."')
    outcome = shared.talk.say("rehearsal: slow")
    assert outcome.result["result"] == "One two three four five six seven eight nine."
    pieces = [event["event"] for event in outcome.events if event["type"] == "stream_event"]
    assert [piece["delta"]["text"] for piece in pieces if piece["type"] == "content_block_delta"] == [
        "One two three four ", "five six seven eight ", "nine.",
    ]  # fmt: skip


def test_a_subagent_plays_a_script_of_its_own(shared):
    shared.write(
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
    shared.write(
        "scout",
        """
        [[step]]
        say = "I look."
        call = {tool = "Bash", input = {command = "echo nothing"}}
        [[step]]
        say = "Nothing there."
        """,
    )
    outcome = shared.talk.say("rehearsal: lead")
    assert outcome.result["result"] == "The scout is back."
    assert [(line.script, line.step, bool(line.agent)) for line in shared.lines("lead", "scout")] == [
        ("lead", 1, False), ("scout", 1, True), ("scout", 2, True), ("lead", 2, False),
    ]  # fmt: skip
