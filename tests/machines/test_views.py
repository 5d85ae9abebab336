"""What people see of a run on a machine: its tree as it arrived, and the truth about its worktree."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.errors import NotFound, StateConflict
from legion.service.machines import steer
from legion.service.tickets.shell import shell
from legion.service.views import output
from legion.wire.terminal import OpenShell
from tests.machines.heads import Head


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    one.machine("desk")
    yield one
    one.close()


def test_the_change_of_a_run_on_a_machine_says_when_it_arrived(head: Head):
    run = head.taken(1, "desk")
    with pytest.raises(NotFound, match="works on machine desk, and nothing of its tree has arrived yet"):
        output.diff(head.board.context, 1)
    arrived = head.board.data.runs / run.name / "snapshot.json"
    arrived.write_text(json.dumps({"commit": head.board.change}))
    os.utime(arrived, (1000.0, 1000.0))
    found = output.diff(head.board.context, 1)
    assert (found.live, found.as_of, found.head) == (True, 1000.0, head.board.change)
    assert "+hello, world" in found.text


def test_a_shell_of_a_run_on_a_machine_is_refused_with_the_place_of_its_worktree(head: Head):
    head.taken(1, "desk")
    with pytest.raises(StateConflict, match="works on machine desk, and its worktree is there"):
        shell(head.board.context, 1, OpenShell(columns=80, rows=24))


@pytest.mark.parametrize("ask", [steer.pause, steer.drain])
def test_the_head_is_not_paused_and_the_sentence_says_what_keeps_it_free(head: Head, ask: object):
    assert callable(ask)
    with pytest.raises(StateConflict, match=r"daemon\.slots = 0"):
        ask(head.board.context, head.board.context.machine)
