"""Random kills, again and again, while a board with dependencies is worked off: it ends, and each change lands once."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import psutil
import pytest

from legion.wire.dispatch import NewTicket
from tests.crash.board import CLASHES, MENDS
from tests.crash.squads import Site, site
from tests.support.legion import Project, new

WORK = """
echo {name} > {name}.txt
sleep 0.2
git init --quiet nested && echo kept > nested/kept.txt
echo more >> {name}.txt
sort -u -o {name}.txt {name}.txt
"""
"""Takes a moment, and whoever does it again after a kill comes to the same end."""


class Chaos:
    """A hand that kills whatever it likes."""

    def __init__(self, here: Site, draw: random.Random) -> None:
        self.here = here
        self.draw = draw
        self.killed: list[str] = []

    def strike(self) -> None:
        kinds = ("daemon", "daemon", "runner", "program", "git", "fork server", "everything")
        kind = self.draw.choice(kinds)
        if kind == "daemon":
            self.here.squad.kill()
        elif kind == "everything":
            self.here.cut_the_power()
        else:
            self._kill_one(kind)
        self.killed.append(kind)
        assert self.here.squad.process is not None
        if self.here.squad.process.poll() is not None:
            self.here.squad.start()

    def _kill_one(self, kind: str) -> None:
        there = [process for process in self.here.everything() if self._is(process, kind)]
        if there:
            with contextlib.suppress(psutil.Error):
                self.draw.choice(there).kill()

    def _is(self, process: psutil.Process, kind: str) -> bool:
        try:
            words, parent = process.cmdline(), process.ppid()
        except psutil.Error:
            return False
        assert self.here.squad.process is not None
        server = "legion.runner.forkserver" in words
        match kind:
            case "fork server":
                return server and parent == self.here.squad.process.pid
            case "runner":
                return server and parent != self.here.squad.process.pid
            case "git":
                return words[:1] != [] and Path(words[0]).name == "git"
            case _:
                return words[:2] == ["sh", "-c"]


def board(here: Site, draw: random.Random, count: int) -> list[NewTicket]:
    tickets = []
    for number in range(count):
        script = {0: MENDS, 1: CLASHES, 2: CLASHES}.get(number, WORK.format(name=f"t{number}"))
        after = draw.sample(range(number), k=min(number, draw.randrange(3))) if number > 2 else []
        tickets.append(
            new(
                f"ticket {number}",
                here.agent(script),
                key=f"k{number}",
                after_keys=[f"k{other}" for other in after],
                max_attempts=20,
            )
        )
    return tickets


def struck_while_working(project: Project, chaos: Chaos, strikes: int) -> None:
    """Strike after some events or a moment, until the board is done or the strikes are."""
    last = 0
    for _ in range(strikes):
        for _ in range(chaos.draw.randrange(1, 12)):
            state = project.squad.client.wait(project.cwd, [], after_event=last, timeout=chaos.draw.uniform(0.1, 1.0))
            last = state.last_event
            if state.settled:
                return
        chaos.strike()


@pytest.mark.parametrize(("count", "strikes"), [(8, 4), pytest.param(48, 60, marks=pytest.mark.soak)])
@pytest.mark.timeout(900)
def test_whatever_is_killed_everything_lands_exactly_once(tmp_path: Path, seed: int, count: int, strikes: int):
    draw = random.Random(seed)
    with site(tmp_path) as here:
        project = here.open()
        ids = project.dispatch_all(board(here, draw, count))
        chaos = Chaos(here, draw)
        struck_while_working(project, chaos, strikes)
        project.until_settled(patience=300)
        assert [project.state(ticket) for ticket in ids] == ["done"] * count, chaos.killed
        for number in range(3, count):
            assert project.landed(f"t{number}.txt") == f"more\nt{number}\n"
        assert sorted((project.landed("README.txt") or "").splitlines()) == [f"{n} was here" for n in ids[1:3]]
        here.is_sound()
