"""`legion demo --machines 3`: tickets on several machines, one of which is cut off in the middle and comes back."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from legion.cli.base.output import Cell, Colour, Screen, count
from legion.client.legion import Legion
from legion.demo.machines.crew import LABEL, DemoMachine, machines
from legion.demo.machines.postgres import private_postgres
from legion.demo.scratch import running_scratch
from legion.demo.stage import SCRIPTS, DemoFolder, prepare
from legion.demo.story import StoryLine, StoryPrinter
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import LegionError
from legion.wire.projects import AddProject, Trust

Seen = TypeVar("Seen")
_LEASE = 6.0
"""Seconds until the head gives runs away; 90 usually."""
_LOOK = 0.2
_PATIENCE = 180.0
_SLOTS = 2
_STEPS = 5
"""Seconds that each ticket works."""
_LATE = "refs/legion/late"


@dataclass(kw_only=True)
class MachineDemoSummary:
    """`legion demo --machines N --json`."""

    schema: str = "legion.demomachines/1"
    ok: bool
    problems: list[str] = field(default_factory=list)
    seconds: float
    folder: str
    tickets: int
    landed: int
    twice: int
    """Tickets that landed more than once."""
    runs: dict[str, int]
    """How many runs each machine finished."""
    lapsed: int
    """Runs that were taken from the machine that was cut off."""
    late: int
    """Trees of such runs that arrived later and were kept."""


def main(folder: Path | None, number: int, *, as_json: bool, screen: Screen) -> int:
    """Run the demo. Returns 0 where everything ended as it should."""
    stream = sys.stderr if as_json else sys.stdout
    printer = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=False)
    stage = prepare(folder)
    stage.scratch.use()
    printer.print_line(screen.bold(f"Legion demo: one head, {count(number, 'machine')}, and a cable that is pulled"))
    printer.print_line("The machines are processes with folders of their own; the agents are plain programs.")
    printer.print_line(screen.line(Cell(f"All files are in {stage.folder}", Colour.DIM)))
    names = [f"m{one}" for one in range(1, number + 1)]
    with private_postgres() as url:
        settings = stage.scratch.settings
        more = f'[daemon]\ndatabase = "{url}"\nmachine_lease = {_LEASE}\n'
        settings.write_text(settings.read_text().replace("[daemon]\n", more, 1))
        with (
            running_scratch(stage.scratch, SCRIPTS, repository=stage.repository) as running,
            machines(running.legion, stage.folder, names, slots=_SLOTS) as crew,
        ):
            summary = _MachineDemo(stage, running.legion, crew, printer).run()
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), indent=2 if screen.tty else None) + "\n")
    for problem in summary.problems:
        printer.print_line(problem)
    return 0 if summary.ok else LegionError.exit_code


class _MachineDemo:
    def __init__(self, stage: DemoFolder, head: Legion, crew: Mapping[str, DemoMachine], printer: StoryPrinter) -> None:
        self._stage = stage
        self._head = head
        self._crew = crew
        self._printer = printer
        self._cwd = str(stage.repository)
        self._hub = Path()
        self._tickets: list[int] = []

    def run(self) -> MachineDemoSummary:
        problems = []
        try:
            self._until(lambda: len(self._ready()) == len(self._crew), "all machines")
            self._play()
        except LegionError as stuck:
            problems.append(stuck.message)
        return self._summary(problems)

    def _play(self) -> None:
        self._say(f"legion machine invite, legion machine join: {', '.join(self._crew)} have joined", "done")
        self._hub = Path(self._head.add_project(AddProject(path=self._cwd)).hub)
        hashes = [text.hash for text in self._head.trustable(self._cwd).texts]
        self._head.trust(Trust(cwd=self._cwd, hashes=hashes))
        wanted = [_ticket(number) for number in range(1, 2 * len(self._crew) + 1)]
        self._tickets = self._head.dispatch(Dispatch(cwd=self._cwd, tickets=wanted)).ids
        self._say(f"legion dispatch --on {LABEL}: {count(len(wanted), 'ticket')}", "queued")
        victim = self._crew["m1"]
        self._until(self._counts_on_first, "a run on m1")
        self._say("every machine has work; the cable of m1 is pulled", "failed")
        victim.link.cut()
        self._until(lambda: self._states("m1").get("lapsed", 0) > 0, "the end of m1's lease")
        self._say(
            f"m1 stopped its agents by itself; after {_LEASE:.0f} s of silence its runs start elsewhere", "parked"
        )
        self._until(self._all_done, "the last landing")
        self._say("every ticket is checked and has landed, without m1", "done")
        victim.link.heal()
        self._say("the cable of m1 is plugged in again", "working")
        self._until(lambda: "m1" in self._ready(), "the return of m1")
        self._until(lambda: self._late() > 0, "the late work of m1")
        self._say("what m1 had in its trees arrives and is kept as late work; it lands nowhere", "done")

    def _ready(self) -> list[str]:
        return [one.name for one in self._head.machines().machines if not one.head and one.state == "open"]

    def _states(self, machine: str) -> Counter[str]:
        """How many of its runs are in which state; none where it could not join."""
        if machine not in {one.name for one in self._head.machines().machines}:
            return Counter()
        return Counter(one.state for one in self._head.machine_log(machine, limit=1000).runs)

    def _counts_on_first(self) -> bool:
        """An agent on m1 has written something."""
        there = [one.ticket for one in self._head.machine_log("m1").runs if one.state == "taken" and one.ticket]
        return any("tile" in self._head.log(ticket).text for ticket in there)

    def _all_done(self) -> bool:
        return all(self._head.ticket(one).ticket.state == "done" for one in self._tickets)

    def _late(self) -> int:
        return len(self._git("for-each-ref", _LATE).splitlines())

    def _git(self, *words: str) -> str:
        return self._stage.git(f"--git-dir={self._hub}", *words)

    def _say(self, text: str, state: str) -> None:
        self._printer.print_event(StoryLine(text, state))

    def _until(self, seen: Callable[[], Seen], what: str) -> Seen:
        """Look again and again. Raises LegionError where it takes too long."""
        while not (found := seen()):
            if self._printer.seconds > _PATIENCE:
                raise LegionError(f"The demo waited {_PATIENCE:.0f} s, and {what} did not come.")
            time.sleep(_LOOK)
        return found

    def _summary(self, problems: list[str]) -> MachineDemoSummary:
        subjects = Counter(self._git("log", "--format=%s", "refs/legion/target").splitlines()) if self._tickets else {}
        titles = [_title(number) for number in range(1, len(self._tickets) + 1)]
        landed = sum(1 for title in titles if subjects[title] > 0)
        twice = sum(1 for title in titles if subjects[title] > 1)
        runs = {name: self._states(name)["ended"] for name in self._crew}
        if self._tickets:
            shared = ", ".join(f"{name} finished {number}" for name, number in runs.items())
            self._say(f"{landed} of {len(titles)} tickets landed, {twice} of them twice; {shared}", "done")
        return MachineDemoSummary(
            ok=not problems and landed == len(titles) and not twice,
            problems=problems,
            seconds=self._printer.seconds,
            folder=str(self._stage.folder),
            tickets=len(titles),
            landed=landed,
            twice=twice,
            runs=runs,
            lapsed=self._states("m1")["lapsed"],
            late=self._late() if self._tickets else 0,
        )


def _title(number: int) -> str:
    return f"Count the tiles of room {number}"


def _ticket(number: int) -> NewTicket:
    work = f"for tile in $(seq {_STEPS}); do echo tile $tile | tee -a room-{number}.txt; sleep 1; done"
    return NewTicket(title=_title(number), command=work, on=[LABEL])
