"""Providers in trouble, and conversations whose transcripts are damaged: no attempt is lost, and work goes on.

It goes on in the same conversation where that can be read; else a new one gets the whole briefing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.gateway import lifecycle
from legion.gateway.files.folder import GatewayFolder
from tests.gateway.gateways import forked
from tests.gateway.upstream import Exchange, Upstream, start, text
from tests.support.models import Company, company
from tests.support.sampling import sampled_together

IDLE = 3.0
"""Seconds of silence after which this gateway gives a provider up."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("transcripts")) as one:
        # The daemon finds a gateway that has less patience than its own would have.
        with forked():
            lifecycle.ensure(GatewayFolder(one.squad.data.gateway), 0, idle=IDLE)
        yield one


def writing(here: Company, name: str, trouble: str = "") -> None:
    """A script that makes a file; its second step may meet trouble first."""
    command = json.dumps(f"echo $LEGION_TICKET > {name}.txt")
    here.script(
        name,
        f"""
        [[step]]
        say = "I write it."
        call = {{tool = "Bash", input = {{command = {command}}}}}

        [[step]]
        {trouble or 'say = "Done."'}
        """,
    )


TOO_LONG = """
    status = 400
    message = "prompt is too long: 210000 tokens > 200000 maximum"

    [[step]]
    attempt = 2
    say = "I am through."
"""


@contextlib.contextmanager
def provider_at(here: Company, url: str) -> Iterator[None]:
    """The person's provider lives elsewhere for a while, by their own file."""
    file = here.squad.folder / "providers.toml"
    before = file.read_text()
    assert here.stage.url in before
    file.write_text(before.replace(here.stage.url, url))
    try:
        yield
    finally:
        file.write_text(before)


def says_nothing(exchange: Exchange) -> None:
    exchange.wait_until_closed()


def says_half(exchange: Exchange) -> None:
    exchange.begin(start(input_tokens=10, output_tokens=1), text("I beg"))
    exchange.wait_until_closed()


Meeting = Callable[[Company, str], contextlib.AbstractContextManager[None]]
"""The provider of the ticket that plays this script is in trouble for a while."""


def answers(trouble: str) -> Meeting:
    @contextlib.contextmanager
    def meeting(here: Company, script: str) -> Iterator[None]:
        writing(here, script, trouble)
        yield
        writing(here, script)

    return meeting


@contextlib.contextmanager
def is_dead(here: Company, _: str) -> Iterator[None]:
    with provider_at(here, "http://127.0.0.1:9"):
        yield


def hangs(behaviour: Callable[[Exchange], None]) -> Meeting:
    @contextlib.contextmanager
    def meeting(here: Company, _: str) -> Iterator[None]:
        upstream = Upstream(behaviour)
        try:
            with provider_at(here, upstream.url):
                yield
        finally:
            upstream.close()

    return meeting


KEY_REFUSED = "see `legion provider test`: fix it, then `legion resume"
TROUBLES: dict[str, tuple[Meeting, str, str]] = {
    "storm": (answers("status = 529"), "limited", "does not serve for now: API Error: 529"),
    "broken": (answers("status = 500"), "limited", "does not serve for now: API Error: 500"),
    "dropped": (answers('drop = "before"'), "limited", "does not serve for now: API Error: 502 legion: provider"),
    "key": (answers("status = 401"), "refused", KEY_REFUSED),
    "access": (answers("status = 403"), "refused", KEY_REFUSED),
    "model": (answers("status = 404"), "refused", "issue with the selected model"),
    "dead": (is_dead, "limited", "legion: provider rehearsal unreachable: Cannot connect"),
    "hangs-at-first": (hangs(says_nothing), "limited", "legion: provider rehearsal did not answer in time"),
    "hangs-mid-stream": (hangs(says_half), "limited", "API Error"),
}
"""What happens, how the run ends, and what the ticket says."""
ANSWERS = [name for name in TROUBLES if name != "dead" and not name.startswith("hangs")]
"""After these there is something in the transcript that can be damaged."""


def kind_of_trouble(name: str) -> str:
    return "refused" if TROUBLES[name][1] == "refused" else "answers" if name in ANSWERS else "silent"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-150])


def cut_to_nothing_useful(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def put_garbage_into(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(len(lines) // 2, os.urandom(5000) + b'\n[]\nnull\n{"type": "assistant", "message": 5}\n')
    path.write_bytes(b"".join(lines))


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def fill_with_zeros(path: Path) -> None:
    """As a power cut may leave it."""
    path.write_bytes(bytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_endless(path: Path) -> None:
    """A file with one line that would take hours to read."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def shut(path: Path) -> None:
    path.chmod(0)


def make_a_folder_of(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_a_pipe_of(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_a_link_of(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES: dict[str, tuple[Callable[[Path], None], bool]] = {
    "cut": (cut, True),
    "garbage-inside": (put_garbage_into, True),
    "cut-short": (cut_to_nothing_useful, False),
    "garbage": (fill_with_garbage, False),
    "zeros": (fill_with_zeros, False),
    "empty": (empty, False),
    "gone": (Path.unlink, False),
    "endless": (make_endless, False),
    "shut": (shut, False),
    "folder": (make_a_folder_of, False),
    "pipe": (make_a_pipe_of, False),
    "link": (make_a_link_of, False),
}
"""What is done to the transcript, and whether the conversation can go on."""


MEETINGS = [
    pytest.param(*troubles.values, *damages.values, id=troubles.id, marks=troubles.marks)
    for troubles, damages in zip(
        sampled_together(TROUBLES, 3, kind_of_trouble),
        sampled_together(DAMAGES, 2, lambda name: DAMAGES[name][1]),
        strict=True,
    )
]


@pytest.mark.parametrize(("names", "damages"), MEETINGS)
def test_trouble_and_damage_cost_no_attempt_and_what_has_become_too_long_is_followed_by_a_new_conversation(
    here: Company, names: list[str], damages: list[str]
):
    """One ticket meets all of it, one run after the other: each Claude Code takes a second or more."""
    answered = [name for name in names if name in ANSWERS]
    answered += ["key"] * (len(damages) - len(answered))
    # The last damage leaves nothing to read: else Claude Code would sum up what has become too long.
    rounds = [*((name, "") for name in names if name not in ANSWERS), *zip(answered, damages, strict=True)]
    script = f"trouble-{len(rounds)}"
    outcomes, ticket = [], 0
    writing(here, script)
    for name, damage in rounds:
        meeting, outcome, said = TROUBLES[name]
        outcomes.append(outcome)
        with meeting(here, script):
            if ticket:
                here.told("resume", str(ticket))
            else:
                ticket = here.dispatch(script)
            page = here.project.until(ticket, "parked")
            assert ([run.outcome for run in page.runs], page.ticket.attempt) == (outcomes, 1), page.ticket.reason
            assert said in page.ticket.reason, name
            # What a person has to mend waits for them; the rest goes on by itself.
            assert (page.ticket.parked_until is not None) == (outcome == "limited"), name
        if damage:
            found = here.squad.data.root.glob(f"projects/*/agents/*/claude/projects/*/{page.conversation}.jsonl")
            DAMAGES[damage][0](*found)
    writing(here, script, TOO_LONG)
    here.told("resume", str(ticket))
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == [*outcomes, "failed", "finished"]
    resumed = [damage == "" or DAMAGES[damage][1] for _, damage in rounds]
    begun = [event.facts["resumed"] for event in here.journal(ticket) if event.kind == "conversation"]
    assert begun == [False, *resumed, False]
    # A new conversation begins with the briefing, so it plays its script from the first step of its attempt on.
    played = [line.step for line in here.stage.lines() if line.script == script and line.status == 200]
    assert played == [1] * begun.count(False)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_an_endpoint_that_hangs_at_every_request_is_given_up_before_claude_code_would(tmp_path: Path):
    upstream = Upstream(says_nothing)
    with company(tmp_path, retries=10) as one:
        lifecycle.ensure(GatewayFolder(one.squad.data.gateway), 0, idle=130.0)
        writing(one, "hangs")
        with provider_at(one, upstream.url):
            page = one.project.until(one.dispatch("hangs"), "parked", patience=800)
        upstream.close()
        assert "has not answered for minutes" in page.ticket.reason
        assert len(upstream.seen) <= 4
