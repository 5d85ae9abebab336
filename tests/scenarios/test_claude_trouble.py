"""Bad endpoints, bad programs, too much of everything, no room: runs of Claude Code end clearly and leave nothing."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.scenarios.test_bad_ground import fill, small_disk
from tests.support.gates import Gate
from tests.support.looking import until_seen
from tests.support.models import Company, company
from tests.support.sampling import sampled


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("trouble")) as one:
        yield one
        assert [process.cmdline() for process in agents(one)] == []


def agents(here: Company) -> list[psutil.Process]:
    """Whatever lives inside a sandbox of this company."""
    return [process for process in here.squad.processes() if "bwrap" in process.name()]


def program(here: Company, name: str, body: str) -> Path:
    """A Claude Code of sorts that the settings name."""
    file = here.squad.folder / f"claude-{name}"
    file.write_text(body)
    file.chmod(0o755)
    return file


NEW_ENOUGH = '#!/bin/sh\n[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit\n'
UNUSABLE = {
    "missing": ("", "There is no program"),
    "old": ("#!/bin/sh\necho '1.0.5 (Claude Code)'\n", "is version 1.0.5, and 2.1.248 is needed: update it with"),
    "mute": ("#!/bin/sh\nexit 3\n", "does not report its version: install Claude Code again"),
}


def test_a_program_that_cannot_be_used_parks_the_ticket_until_it_is_mended(here: Company):
    """One ticket meets each of them. Its first run that starts is the one that prints much."""
    here.script("flood", FLOOD)
    ticket = 0
    for count, (name, (body, said)) in enumerate(UNUSABLE.items(), 1):
        with here.using(program(here, name, body) if body else Path("/nowhere/claude")):
            if ticket:
                here.told("resume", str(ticket))
            else:
                ticket = here.dispatch("flood")
            page = here.project.until(ticket, "parked")
            assert ([run.outcome for run in page.runs], page.ticket.attempt) == (["refused"] * count, 1), name
            assert said in page.ticket.reason
            found = here.cli("doctor").stdout
            assert "none that can be used" in found
            assert said in " ".join(found.split())
    here.told("resume", str(ticket))
    page = here.project.until(ticket, "done")
    assert page.ticket.attempt == 1
    _much_output_reaches_neither_the_model_nor_the_journal(here, ticket, page.runs[-1].id)


FLOOD = r"""
    [[step]]
    say = "I print a lot."
    call = {tool = "Bash", input = {command = "head -c 20000000 /dev/zero | tr '\\0' x; echo hi > flood.txt"}}

    [[step]]
    expect = "xxx"
    say = "Done."
"""
"""Twenty megabytes."""


def _much_output_reaches_neither_the_model_nor_the_journal(here: Company, ticket: int, run: int) -> None:
    assert here.project.landed("flood.txt") == "hi\n"
    (returned,) = [event for event in here.journal(ticket) if event.kind == "returned"]
    assert int(str(returned.facts["length"])) < 100_000
    assert size_of(here.squad.data.runs / f"ticket-{ticket}-run-{run}") < 1_000_000


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


SPEAKS = """\
#!/usr/bin/env python3
import json, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.325 (Claude Code)"))
asked = json.loads(sys.stdin.readline())
answer = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
print(json.dumps({"type": "control_response", "response": answer}), flush=True)
sys.stdin.readline()
"""
NOISE = "ended without a result (exit code 0)"
STRANGE = {
    "nothing": (f"{NEW_ENOUGH}exit 0", f"{NOISE}: Claude Code exited before the conversation started"),
    "at-once": (
        f"{NEW_ENOUGH}echo 'libfoo is missing' >&2; exit 7",
        "without a result (exit code 7): libfoo is missing; ",
    ),
    "garbage": (f"{NEW_ENOUGH}head -c 3000000 /dev/urandom", f"{NOISE}"),
    "half-json": (f"""{NEW_ENOUGH}printf '{{"type":"resu'""", f'{NOISE}: {{"type":"resu; '),
    "half-later": (SPEAKS + """print('{"type": "assistant", "mess', end="", flush=True)""", f'{NOISE}: {{"type": "ass'),
    "no-shape": (SPEAKS + """print('{"type": "assistant"}', flush=True)""", "ended without a result"),
    "too-deep": (SPEAKS + """print('{"a":' * 200_000, flush=True)""", NOISE),
    "long-line": (SPEAKS + """print("x" * 150_000_000, flush=True)""", NOISE),
}


@pytest.mark.parametrize("name", sampled(STRANGE, 2))
def test_a_program_that_talks_nonsense_fails_with_a_sentence_that_can_be_read(here: Company, name: str):
    body, said = STRANGE[name]
    with here.using(program(here, name, body)):
        ticket = here.dispatch("nonsense", max_attempts=1)
        page = here.project.until(ticket, "failed")
    assert [run.outcome for run in page.runs] == ["failed"]
    assert said in page.ticket.reason
    assert page.ticket.reason.isprintable()
    assert len(page.ticket.reason) < 600
    assert agents(here) == []


def test_a_program_that_never_says_a_word_is_ended_by_a_stop(here: Company):
    with here.using(program(here, "silent", f"{NEW_ENOUGH}trap '' INT TERM; while :; do sleep 60; done")):
        ticket = here.dispatch("silent")
        until_seen(here.squad, lambda: any(one.kind == "started" for one in here.journal(ticket)), "its start")
        here.told("stop", str(ticket))
        here.project.until_idle(ticket)
    assert here.project.state(ticket) == "stopped"
    assert agents(here) == []


@pytest.mark.soak
def test_a_program_that_never_says_a_word_is_given_up(here: Company):
    with here.using(program(here, "dumb", f"{NEW_ENOUGH}exec sleep 1000")):
        ticket = here.dispatch("dumb", max_attempts=1)
        page = here.project.until(ticket, "failed")
    assert "Claude Code did not answer" in page.ticket.reason
    assert agents(here) == []


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_what_never_ends_in_the_background_does_not_keep_a_run_that_is_through(here: Company):
    here.script(
        "server",
        """
        [[step]]
        say = "I start a server."
        call = {tool = "Bash", input = {command = "while :; do sleep 60; done", run_in_background = true}}

        [[step]]
        say = "I write."
        call = {tool = "Bash", input = {command = "echo hi > server.txt"}}

        [[step]]
        say = "Done."
        """,
    )
    ticket = here.dispatch("server")
    page = here.project.until(ticket, "done", patience=800)
    assert [run.outcome for run in page.runs] == ["finished"]
    assert agents(here) == []


@pytest.mark.soak
def test_twenty_megabytes_from_the_model_are_heard_and_cut_in_the_journal(tmp_path: Path):
    with company(tmp_path) as here:
        # The model says that it was little, or Claude Code would sum up the conversation first.
        usage = "usage = {input = 100, output = 100, cache_read = 0, cache_write = 0}"
        here.script(
            "speech",
            f"""
            [[step]]
            say = "{"word " * 4_000_000}"
            {usage}
            call = {{tool = "Bash", input = {{command = "echo hi > speech.txt"}}}}

            [[step]]
            {usage}
            say = "Done."
            """,
        )
        ticket = here.dispatch("speech")
        # Claude Code reads them one by one: minutes, where other tests run.
        here.project.until(ticket, "done", patience=600)
        assert here.project.landed("speech.txt") == "hi\n"
        said = [event for event in here.journal(ticket) if event.kind == "said"]
        assert len(str(said[0].facts["text"])) < 10_000


def test_a_full_disk_under_the_conversation_loses_nothing_and_work_goes_on_when_there_is_room(tmp_path: Path):
    settings = "[environment]\nfree_mb = 0\n"
    with small_disk(tmp_path / "data", 96) as disk, company(tmp_path, settings=settings) as one:
        gate = Gate(tmp_path / "gates", "gate")
        command = json.dumps(f"echo 1 > full.txt; {gate.pause}")
        one.script(
            "full",
            f"""
            [[step]]
            say = "I wait."
            call = {{tool = "Bash", input = {{command = {command}}}}}

            [[step]]
            say = "I go on."
            call = {{tool = "Bash", input = {{command = "echo 2 >> full.txt"}}}}

            [[step]]
            say = "Done."
            """,
        )
        ticket = one.dispatch("full")
        gate.arrived()
        filler = fill(disk)
        gate.open()
        _until_asked(one, 3)
        filler.unlink()
        one.project.until(ticket, "done")
        assert one.project.landed("full.txt") == "1\n2\n"
        gate.close()


def _until_asked(here: Company, steps: int) -> None:
    """The log of the scripted model is no event of ours; its process tells by the size of its log."""
    rehearsal = psutil.Process(here.stage.pid)
    for _ in range(1200):
        if len(here.stage.lines()) >= steps:
            return
        with contextlib.suppress(psutil.TimeoutExpired):
            rehearsal.wait(0.1)
    raise AssertionError(f"only {here.stage.lines()} of {os.fspath(here.stage.log)}")
