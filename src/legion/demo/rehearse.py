"""Rehearses a person's plan: a clone, a Legion of its own, the real Claude Code, a model that only plays along."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.cli.base.output import Cell, Colour, Screen, count
from legion.client.http import NotRunning
from legion.demo.chaos import Blow, KillChaos
from legion.demo.clone import RehearsalSource, adopt, clone
from legion.demo.cost import spent
from legion.demo.events import EventFollower
from legion.demo.proof import LandedFacts, losses
from legion.demo.report import RehearsalRecord, Rehearsed, lines_of, report
from legion.demo.scratch import DRIVER, Scratch, ScratchLegion, claude_version, company
from legion.demo.story import Story, StoryLine, StoryPrinter
from legion.wire.errors import BadInput, LegionError, NotAllowed
from legion.wire.projects import Graph, WaitState
from legion.wire.tickets import Dispatch, EventLine, NewTicket, TicketLine

TICK = 0.2
"""Seconds between two looks where nothing is told: the times on the board, and the chaos."""
_SCRIPT = "generic"


@dataclass(frozen=True, kw_only=True)
class RehearsalRequest:
    tickets: Sequence[NewTicket]
    source: RehearsalSource
    agents: int | None = None
    """At once; None: as many as the project says."""
    seed: int | None = None
    """Of the chaos; None: without."""
    keep: bool = False
    cassette: Path | None = None
    """What their model says; None: something that fits any ticket."""
    base: str = ""
    """The commit to begin from; empty: what is committed now."""


def main(wanted: RehearsalRequest, *, as_json: bool, screen: Screen) -> int:
    """0 where every ticket ended well and nothing was lost."""
    stream = sys.stderr if as_json else sys.stdout
    teller = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=not as_json)
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="legion-rehearse-")))
    keep = wanted.keep
    try:
        _introduce(wanted, scratch, teller, screen)
        rehearsed, graph = _play(wanted, scratch, teller)
    except (BadInput, NotAllowed):
        raise
    except LegionError:
        # It did not even run, and the sentence about it may name a file there.
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(scratch.folder, ignore_errors=True)
    if as_json:
        sys.stdout.write(json.dumps(asdict(rehearsed), indent=2 if screen.tty else None) + "\n")
    else:
        for line in lines_of(rehearsed, graph, screen):
            teller.say(line)
    return 0 if rehearsed.ok else LegionError.exit_code


def playable(ticket: NewTicket) -> NewTicket:
    """As it can be rehearsed: its agent is Claude Code, and nothing hangs on what a real model would write."""
    plain = replace(ticket, driver="", command="", after=[], prove=[], accept=[], budget=None, ask=False)
    if ticket.checkpoint:
        return plain
    # Who advises, who reads and who plans needs words that no script has.
    return replace(plain, driver=DRIVER, plan_first=False, team="solo", review="off")


def _introduce(wanted: RehearsalRequest, scratch: Scratch, teller: StoryPrinter, screen: Screen) -> None:
    tickets = count(len(wanted.tickets), "ticket")
    teller.say(screen.bold(f"Rehearsing {tickets} on a copy of {wanted.source.root.name}"))
    teller.say("The agents are real Claude Code; what their model replies is scripted.")
    if wanted.cassette is None:
        teller.say("So nothing is spent, and each change is a small one of no meaning.")
    else:
        teller.say(f"It says what {wanted.cassette.name} has on tape, so nothing is spent.")
    teller.say("Your [setup] and your checks run for real, on the copy alone.")
    perhaps = [
        ("proofs of tickets", any(ticket.prove for ticket in wanted.tickets)),
        ("held-out acceptance", any(ticket.accept for ticket in wanted.tickets)),
        ("budgets", any(ticket.budget is not None for ticket in wanted.tickets)),
        ("questions to you", any(ticket.ask for ticket in wanted.tickets)),
        ("tickets of your board that they come after", any(ticket.after for ticket in wanted.tickets)),
        ("what you have not committed", wanted.source.is_dirty),
    ]
    left_out = ["review, advice and plans", *(what for what, is_so in perhaps if is_so)]
    teller.say(f"Left out: {', '.join(left_out)}.")
    if wanted.seed is not None:
        teller.say(f"Chaos with seed {wanted.seed}: processes are killed, limits are met, connections break.")
    if wanted.keep:
        teller.say(screen.line(Cell(f"All of it lies in {scratch.folder}", Colour.DIM)))
    teller.say()


def _play(wanted: RehearsalRequest, scratch: Scratch, teller: StoryPrinter) -> tuple[Rehearsed, Graph]:
    repository = clone(wanted.source, scratch.folder, wanted.base)
    scripts = scratch.folder / "scripts"
    scripts.mkdir()
    tape = wanted.cassette
    for one in tape.parent.glob(f"{tape.stem}*.toml") if tape is not None else ():
        shutil.copyfile(one, scripts / one.name)
    scratch.prepare(wanted.source.settings, slots=wanted.agents)
    scratch.use()
    with company(
        scratch, scripts, repository=repository, default=_SCRIPT if tape is None else tape.stem, chaos=wanted.seed
    ) as running:
        return _Rehearsing(wanted, running, repository, teller).run()


class _Rehearsing:
    def __init__(
        self, wanted: RehearsalRequest, running: ScratchLegion, repository: Path, teller: StoryPrinter
    ) -> None:
        self._wanted = wanted
        self._company = running
        self._cwd = str(repository)
        self._teller = teller
        self._story = Story()
        self._keys: dict[int, str] = {}
        self._events: list[EventLine] = []
        self._blows: list[Blow] = []

    def run(self) -> tuple[Rehearsed, Graph]:
        legion = self._company.legion
        hub = adopt(legion, self._wanted.source, Path(self._cwd))
        claude = claude_version(legion.doctor(None))
        tickets = [playable(ticket) for ticket in self._wanted.tickets]
        made = legion.dispatch(Dispatch(cwd=self._cwd, tickets=tickets))
        self._keys = {number: key for key, number in made.keys.items()}
        began = self._teller.seconds
        with self._teller.on_stage(), EventFollower(self._company.scratch.data) as news:
            self._watch(news, made.ids)
            seconds = self._teller.seconds - began
            self._teller.say()
        legion = self._company.legion
        pages = [legion.ticket(number) for number in made.ids]
        graph = legion.graph(self._cwd)
        project = legion.status(self._cwd).project
        assert project is not None, "the clone is a project"
        evidence = LandedFacts(hub=hub, target=project.target, events=self._events, pages=pages)
        course = RehearsalRecord(
            keys=self._keys,
            pages=pages,
            graph=graph,
            events=self._events,
            blows=self._blows,
            asked=self._company.stage.lines(),
            spent=spent(self._company, made.ids),
            seconds=seconds,
            claude=claude,
            seed=self._wanted.seed,
            problems=losses(evidence),
            folder=str(self._company.scratch.folder) if self._wanted.keep else None,
        )
        return report(course), graph

    def _watch(self, news: EventFollower, ids: list[int]) -> None:
        """Until nothing more happens to any ticket by itself. The daemon may be killed meanwhile, also by us."""
        seed = self._wanted.seed
        chaos = None if seed is None else KillChaos(self._company.scratch, seed, len(ids))
        told: dict[int, TicketLine] = {}
        while True:
            for event in news.wait(TICK):
                self._events.append(event)
                happening = self._story.of(event, told)
                if happening is not None:
                    self._teller.tell(happening)
            try:
                state = self._look(ids, chaos)
            except NotRunning:
                continue
            told = {ticket.id: ticket for ticket in state.tickets}
            self._teller.show(state.tickets)
            if state.settled and news.caught_up(state.last_event):
                return

    def _look(self, ids: list[int], chaos: KillChaos | None) -> WaitState:
        legion = self._company.legion
        state = legion.wait(None, ids, timeout=0)
        blow = None if chaos is None else chaos.strike(legion, state.tickets, self._teller.seconds)
        if blow is not None:
            self._blows.append(blow)
            self._teller.tell(StoryLine(blow.words, "failed", blow.ticket))
        return state
