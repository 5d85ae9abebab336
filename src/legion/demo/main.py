"""Plays the demo from beginning to end: sets the stage, dispatches, watches, kills one runner, collects, sums up."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

from legion.cli.base.output import Cell, Colour, Screen, harmless
from legion.demo.cost import spent
from legion.demo.events import EventFollower
from legion.demo.scratch import ScratchLegion, claude_version, company, is_inside_a_tool, runner_of
from legion.demo.stage import SCRIPTS, DemoFolder, prepare
from legion.demo.story import Story, StoryLine, StoryPrinter
from legion.demo.summary import DemoResult, Summary, lines_of, summarise
from legion.demo.tickets import HALF_WRITTEN, KILLED, parts
from legion.wire.errors import LegionError
from legion.wire.projects import AddProject, CollectResult, Graph, Trust, WaitState, Where
from legion.wire.tickets import Dispatch, EventLine

TICK = 0.2
"""Seconds between two looks where nothing is told: an agent's output, and the times on the board."""
PATIENCE = 240.0
"""Seconds after which a demo that takes a quarter of a minute is given up."""


def main(folder: Path | None, *, as_json: bool, screen: Screen) -> int:
    """0 where everything ended as it should."""
    stream = sys.stderr if as_json else sys.stdout
    teller = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=not as_json)
    stage = prepare(folder)
    stage.scratch.use()
    _introduce(stage, teller, screen)
    with company(stage.scratch, SCRIPTS, repository=stage.repository) as running:
        summary, graph = _Play(stage, running, teller).run()
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), indent=2 if screen.tty else None) + "\n")
    else:
        for line in lines_of(summary, graph, screen):
            teller.say(line)
    return 0 if summary.ok else LegionError.exit_code


def _introduce(stage: DemoFolder, teller: StoryPrinter, screen: Screen) -> None:
    teller.say(screen.bold("Legion demo: seven tickets for a small library, up to four agents at once"))
    teller.say("The agents are real Claude Code; what their model replies is scripted.")
    teller.say("So no model is used, no key and no network, and nothing is spent.")
    teller.say(screen.line(Cell(f"All of it lies in {stage.folder}", Colour.DIM)))
    teller.say()


class _Play:
    def __init__(self, stage: DemoFolder, running: ScratchLegion, teller: StoryPrinter) -> None:
        self._stage = stage
        self._company = running
        self._legion = running.legion
        self._teller = teller
        self._story = Story()
        self._cwd = str(stage.repository)
        self._parts = parts()
        self._ids: dict[str, int] = {}
        self._claude = ""
        self._killed = False
        self._verdicts: list[str] = []
        self._problems: list[str] = []

    def run(self) -> tuple[Summary, Graph]:
        with self._teller.on_stage():
            self._show_that_setup_matters()
            self._adopt()
            self._dispatch()
            self._watch()
            collected = self._collect()
            graph = self._legion.graph(self._cwd)
            return summarise(self._outcome(collected, graph)), graph

    def _show_that_setup_matters(self) -> None:
        missing = self._stage.check()
        if missing.code == 0:
            self._problems.append("The check passed without [setup]; it should not.")
            return
        said = missing.complaint.strip().splitlines()
        error = next((line for line in said if "No module" in line), said[-1]).partition("Error: ")[2]
        self._teller.tell(StoryLine(f"without [setup] the check is red: {error}", "failed"))

    def _adopt(self) -> None:
        self._legion.add_project(AddProject(path=self._cwd))
        shown = self._legion.trustable(self._cwd)
        self._legion.trust(Trust(cwd=self._cwd, hashes=[text.hash for text in shown.texts]))
        self._teller.tell(StoryLine("legion init, legion trust: the repository is a project", "done"))
        doctor = self._legion.doctor(None)
        self._claude = claude_version(doctor)
        self._teller.tell(StoryLine(f"the agents are Claude Code {self._claude}; its model is a script", "done"))
        if all(finding.ok for finding in doctor.findings if finding.name == "sandbox"):
            self._teller.tell(StoryLine("every agent and every check runs in a sandbox of its own", "done"))
        else:
            self._teller.tell(StoryLine("no sandbox: install bubblewrap to have agents held in", "parked"))

    def _dispatch(self) -> None:
        tickets = [part.ticket for part in self._parts]
        self._ids = self._legion.dispatch(Dispatch(cwd=self._cwd, tickets=tickets)).keys
        edges = sum(len(ticket.after_keys) for ticket in tickets)
        said = f"legion dispatch: {len(tickets)} tickets, {edges} edges between them"
        self._teller.tell(StoryLine(said, "queued"))

    def _watch(self) -> None:
        """Until nothing more happens to any ticket by itself."""
        with EventFollower(self._stage.scratch.data) as news:
            self._follow(news)

    def _follow(self, news: EventFollower) -> None:
        state = self._look()
        while not (state.settled and news.caught_up(state.last_event)):
            told = {ticket.id: ticket for ticket in state.tickets}
            for event in news.wait(TICK):
                if event.kind == "check.receipt":
                    self._verdicts.append(str(event.data.get("verdict")))
                happening = _with_setup(event) or self._story.of(event, told)
                if happening is not None:
                    self._teller.tell(happening)
            self._kill_when_it_hurts_most()
            state = self._look()
            self._teller.show(state.tickets)
            if self._teller.seconds > PATIENCE:
                self._problems.append(f"It was given up after {PATIENCE:.0f} s.")
                return

    def _look(self) -> WaitState:
        return self._legion.wait(None, sorted(self._ids.values()), timeout=0)

    def _kill_when_it_hurts_most(self) -> None:
        """kill -9, as soon as the agent has written something that nobody has committed."""
        if self._killed:
            return
        number = self._ids[KILLED]
        run = self._legion.log(number).run
        scratch = self._stage.scratch
        if run is None or not is_inside_a_tool(scratch, number, run, HALF_WRITTEN):
            return
        pid = runner_of(scratch, number, run)
        if pid is None:
            return
        self._killed = True
        os.kill(pid, signal.SIGKILL)
        self._teller.tell(
            StoryLine(f"kill -9 {pid}: its runner and its Claude Code die, nothing committed", "failed", number)
        )

    def _collect(self) -> CollectResult | None:
        try:
            collected = self._legion.collect(Where(cwd=self._cwd))
        except LegionError as error:
            self._problems.append(f"Collecting was refused: {error.message}")
            return None
        self._teller.tell(StoryLine(f"legion collect: {harmless(collected.message)}", "done"))
        self._teller.say()
        return collected

    def _outcome(self, collected: CollectResult | None, graph: Graph) -> DemoResult:
        pages = [(part, self._legion.ticket(self._ids[part.ticket.key])) for part in self._parts]
        return DemoResult(
            stage=self._stage,
            sandbox=self._legion.status(self._cwd).daemon.sandbox,
            claude=self._claude,
            spent=spent(self._company, self._ids.values()),
            seconds=self._teller.seconds,
            pages=pages,
            graph=graph,
            verdicts=self._verdicts,
            collected=collected,
            problems=self._problems,
        )


def _with_setup(event: EventLine) -> StoryLine | None:
    """The other half of what `_show_that_setup_matters` began."""
    if event.kind != "target.green":
        return None
    return StoryLine("with [setup] the check is green on the code as it is", "done")
