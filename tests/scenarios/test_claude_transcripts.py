"""A conversation whose transcript is damaged goes on where it can be read; else a new one gets the whole briefing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.models import Company, company
from tests.support.sampling import sampled_together


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("transcripts")) as one:
        yield one


WRITES = """
    [[step]]
    say = "I write it."
    call = {tool = "Bash", input = {command = "echo $LEGION_TICKET > damaged.txt"}}
"""
REFUSED = f"""{WRITES}
    [[step]]
    status = 401
"""
TOO_LONG = f"""{WRITES}
    [[step]]
    status = 400
    message = "prompt is too long: 210000 tokens > 200000 maximum"

    [[step]]
    attempt = 2
    say = "I am through."
"""


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


@pytest.mark.parametrize("names", sampled_together(DAMAGES, 2, lambda name: DAMAGES[name][1]))
def test_damage_costs_no_attempt_and_what_has_become_too_long_is_followed_by_a_new_conversation(
    here: Company, names: list[str]
):
    """One ticket meets all of it, one run after the other: each Claude Code takes a second or more."""
    script = f"damaged-{len(names)}"
    here.script(script, REFUSED)
    ticket = here.dispatch(script)
    for count, name in enumerate(names, 1):
        page = here.project.until(ticket, "parked")
        assert (page.ticket.attempt, [run.outcome for run in page.runs]) == (1, ["refused"] * count)
        (transcript,) = here.squad.data.root.glob(f"projects/*/agents/*/claude/projects/*/{page.conversation}.jsonl")
        DAMAGES[name][0](transcript)
        if count == len(names):
            here.script(script, TOO_LONG)
        here.told("resume", str(ticket))
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == [*["refused"] * len(names), "failed", "finished"]
    resumed = [DAMAGES[name][1] for name in names]
    begun = [event.facts["resumed"] for event in here.journal(ticket) if event.kind == "conversation"]
    assert begun == [False, *resumed, False]
    # A new conversation begins with the briefing, so it plays its script from the first step of its attempt on.
    played = [line.step for line in here.stage.lines() if line.script == script and line.status == 200]
    assert played == [1] * begun.count(False)
