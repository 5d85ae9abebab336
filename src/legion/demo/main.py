"""`legion demo`: prepares a repository, has a goal planned, kills one runner, collects, and has the goal read again."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.client.legion import Legion
from legion.demo.cost import play_cost
from legion.demo.scratch import ScratchLegion, claude_version, is_inside_a_tool, runner_of, running_scratch
from legion.demo.stage import SCRIPTS, DemoFolder, EventFollower, prepare
from legion.demo.story import Story, StoryLine, StoryPrinter
from legion.demo.summary import DemoResult, Summary, lines_of, summarise
from legion.demo.tickets import HALF_WRITTEN, KILLED, parts
from legion.wire.board import Graph, WaitState
from legion.wire.dispatch import Dispatch
from legion.wire.errors import LegionError
from legion.wire.plans import ApprovePlan, NewPlan, PlanPage
from legion.wire.projects import AddProject, CollectResult, Trust, Where
from legion.wire.tickets import EventLine

GOAL = "Invoices know tax and discounts, print and export."
SCRIPT = "goal"
"""The script of the planner's model: the goal names none, so it is the default one."""
_PLANNING = ("planning", "asking")


def plan_goal(
    legion: Callable[[], Legion],
    cwd: str,
    events: EventFollower,
    tell: Callable[[StoryLine], None],
    tick: float,
    over: Callable[[], bool],
) -> tuple[int, Mapping[str, int]]:
    """The number of the plan, and its tickets by key. Raises LegionError where no plan without findings comes."""
    tell(StoryLine(f"legion plan '{GOAL}'", "working"))
    page = legion().plan(NewPlan(cwd=cwd, goal=GOAL))
    number = int(page.plan.id.removeprefix("P"))
    while page.plan.state in _PLANNING and not over():
        for _ in events.wait(tick):
            pass
        page = legion().plan_page(number)
    if page.plan.state != "ready" or page.findings:
        why = page.findings[0].text if page.findings else page.plan.reason or page.plan.state
        raise LegionError(f"The plan could not be approved: {why}")
    for line in _shown(page):
        tell(line)
    approved = legion().approve_plan(number, ApprovePlan())
    tell(
        StoryLine(f"legion approve {approved.plan}: the plan becomes {count(len(approved.tickets), 'ticket')}", "done")
    )
    return number, approved.tickets


def _shown(page: PlanPage) -> list[StoryLine]:
    return [
        StoryLine(f"a planner that may only read proposes {count(len(page.tickets), 'ticket')}", "done"),
        StoryLine("order, files, proofs, overlaps and size are checked: no finding", "done"),
        *(StoryLine(f"  {one.key}: {one.title}{_after(one.after)}") for one in page.tickets),
        StoryLine(f"the longest chain: {' -> '.join(page.chain)}"),
    ]


def _after(keys: list[str]) -> str:
    return f" (after {', '.join(keys)})" if keys else ""


TICK = 0.2
"""Seconds between two polls of what sends no events: an agent's output, and the times on the board."""
PATIENCE = 240.0
"""Seconds after which the demo, which takes a quarter of a minute, is given up."""


def main(folder: Path | None, *, as_json: bool, screen: Screen) -> int:
    """Run the demo. Returns 0 where everything ended as it should."""
    stream = sys.stderr if as_json else sys.stdout
    printer = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=not as_json)
    stage = prepare(folder)
    stage.scratch.use()
    _introduce(stage, printer, screen)
    with running_scratch(stage.scratch, SCRIPTS, repository=stage.repository, default=SCRIPT) as running:
        summary, graph = _Demo(stage, running, printer).run()
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), indent=2 if screen.tty else None) + "\n")
    else:
        for line in lines_of(summary, graph, screen):
            printer.print_line(line)
    return 0 if summary.ok else LegionError.exit_code


def _introduce(stage: DemoFolder, printer: StoryPrinter, screen: Screen) -> None:
    printer.print_line(
        screen.bold("Legion demo: from a goal in one sentence to landed code, up to four agents at once")
    )
    printer.print_line("The agents are real Claude Code; what their model replies is scripted.")
    printer.print_line("So no model is used, no key and no network, and nothing is spent.")
    printer.print_line(screen.line(Cell(f"All files are in {stage.folder}", Colour.DIM)))
    printer.print_line()


class _Demo:
    def __init__(self, stage: DemoFolder, running: ScratchLegion, printer: StoryPrinter) -> None:
        self._stage = stage
        self._running = running
        self._legion = running.legion
        self._printer = printer
        self._story = Story()
        self._cwd = str(stage.repository)
        self._parts = parts()
        self._planned = 0
        """The number of the plan."""
        self._reader: PlanPage | None = None
        self._ids: dict[str, int] = {}
        self._claude = ""
        self._killed = False
        self._verdicts: list[str] = []
        self._problems: list[str] = []

    def run(self) -> tuple[Summary, Graph]:
        with self._printer.live():
            self._show_that_setup_matters()
            self._adopt()
            with EventFollower(self._stage.scratch.data) as events:
                self._plan(events)
                self._dispatch()
                self._follow(events)
                self._read(events)
            collected = self._collect()
            graph = self._legion.graph(self._cwd)
            return summarise(self._outcome(collected, graph)), graph

    def _show_that_setup_matters(self) -> None:
        missing = self._stage.check()
        if missing.code == 0:
            self._problems.append("The check passed without [setup]; it should not.")
            return
        output = missing.complaint.strip().splitlines()
        error = next((line for line in output if "No module" in line), output[-1]).partition("Error: ")[2]
        self._printer.print_event(StoryLine(f"without [setup] the check is red: {error}", "failed"))

    def _adopt(self) -> None:
        self._legion.add_project(AddProject(path=self._cwd))
        shown = self._legion.trustable(self._cwd)
        self._legion.trust(Trust(cwd=self._cwd, hashes=[text.hash for text in shown.texts]))
        self._printer.print_event(StoryLine("legion init, legion trust: the repository is a project", "done"))
        doctor = self._legion.doctor(None)
        self._claude = claude_version(doctor)
        self._printer.print_event(
            StoryLine(f"the agents are Claude Code {self._claude}; its model is a script", "done")
        )
        if all(finding.ok for finding in doctor.findings if finding.name == "sandbox"):
            self._printer.print_event(StoryLine("every agent and every check runs in a sandbox of its own", "done"))
        else:
            self._printer.print_event(StoryLine("no sandbox: install bubblewrap to confine agents", "parked"))

    def _plan(self, events: EventFollower) -> None:
        self._planned, made = plan_goal(
            lambda: self._legion,
            self._cwd,
            events,
            self._printer.print_event,
            TICK,
            lambda: self._printer.seconds > PATIENCE,
        )
        self._ids = dict(made)

    def _dispatch(self) -> None:
        """What the plan does not have, a person adds by hand."""
        for ticket in (part.ticket for part in self._parts if part.ticket.key not in self._ids):
            after = [self._ids[key] for key in ticket.after_keys]
            own = replace(ticket, after=after, after_keys=[])
            made = self._legion.dispatch(Dispatch(cwd=self._cwd, tickets=[own]))
            self._ids[ticket.key] = made.ids[0]
            text = f"legion dispatch --max-attempts {ticket.max_attempts}: {ticket.title}"
            self._printer.print_event(StoryLine(text, "queued", made.ids[0]))

    def _follow(self, events: EventFollower) -> None:
        """Follow the events until no ticket can change by itself."""
        state = self._state()
        while not (state.settled and events.caught_up(state.last_event)):
            tickets = {ticket.id: ticket for ticket in state.tickets}
            for event in events.wait(TICK):
                if event.kind == "check.receipt":
                    self._verdicts.append(str(event.data.get("verdict")))
                line = _with_setup(event) or self._story.of(event, tickets)
                if line is not None:
                    self._printer.print_event(line)
            self._kill_with_uncommitted_work()
            state = self._state()
            self._printer.show(state.tickets)
            if self._printer.seconds > PATIENCE:
                self._problems.append(f"The demo was given up after {PATIENCE:.0f} s.")
                return

    def _read(self, events: EventFollower) -> None:
        """Wait for what the last reader found; its plan for what is missing waits for a person."""
        while self._printer.seconds < PATIENCE:
            read = [one for one in self._legion.plans(self._cwd, all=True).plans if one.source == "read"]
            if read and read[0].state not in _PLANNING:
                self._reader = self._legion.plan_page(int(read[0].id.removeprefix("P")))
                text = f"the last reader held the goal against it: {self._reader.plan.reason}"
                self._printer.print_event(StoryLine(text, "done" if self._reader.points else "failed"))
                return
            for _ in events.wait(TICK):
                pass
        self._problems.append("No last reader held the goal against what landed.")

    def _state(self) -> WaitState:
        return self._legion.wait(None, sorted(self._ids.values()), timeout=0)

    def _kill_with_uncommitted_work(self) -> None:
        """kill -9, as soon as the agent has written something that is not committed."""
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
        self._printer.print_event(
            StoryLine(f"kill -9 {pid}: its runner and its Claude Code die, nothing is committed", "failed", number)
        )

    def _collect(self) -> CollectResult | None:
        try:
            collected = self._legion.collect(Where(cwd=self._cwd))
        except LegionError as error:
            self._problems.append(f"Collecting was refused: {error.message}")
            return None
        self._printer.print_event(StoryLine(f"legion collect: {sanitize(collected.message)}", "done"))
        self._printer.print_line()
        return collected

    def _outcome(self, collected: CollectResult | None, graph: Graph) -> DemoResult:
        pages = [(part, self._legion.ticket(self._ids[part.ticket.key])) for part in self._parts]
        return DemoResult(
            stage=self._stage,
            sandbox=self._legion.status(self._cwd).daemon.sandbox,
            claude=self._claude,
            spent=play_cost(
                self._running, self._ids.values(), [self._planned, *([self._planned + 1] * bool(self._reader))]
            ),
            points=self._reader.points if self._reader else [],
            seconds=self._printer.seconds,
            pages=pages,
            graph=graph,
            verdicts=self._verdicts,
            collected=collected,
            problems=self._problems,
        )


def _with_setup(event: EventLine) -> StoryLine | None:
    """The counterpart of `_show_that_setup_matters`."""
    if event.kind != "target.green":
        return None
    return StoryLine("with [setup] the check is green on the code as it is", "done")
