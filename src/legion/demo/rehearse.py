"""`legion plan rehearse`: runs the person's plan on a clone, with the real Claude Code and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.cli.base.output import Cell, Colour, Screen, count
from legion.client.legion import Legion
from legion.demo.chaos import Kill, KillChaos
from legion.demo.cost import play_cost
from legion.demo.report import RehearsalRecord, Rehearsed, lines_of, report
from legion.demo.scratch import DRIVER, Scratch, ScratchLegion, claude_version, running_scratch
from legion.demo.stage import EventFollower
from legion.demo.story import Story, StoryLine, StoryPrinter
from legion.system import process
from legion.system.paths import user_config_file
from legion.system.process import ProgramMissing
from legion.wire.board import Graph, WaitState
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, LegionError, NotAllowed, Retryable
from legion.wire.projects import AddProject, Trust
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import EventLine, TicketLine

_GREEN = "green"


@dataclass(frozen=True, kw_only=True)
class LandedFacts:
    hub: Path
    target: str
    """The target's commit at the end."""
    events: Sequence[EventLine]
    pages: Sequence[TicketPage]


def losses(evidence: LandedFacts) -> list[str]:
    """A sentence for every loss; empty where nothing was lost."""
    return [*_unended(evidence), *_untested(evidence), *_not_landed(evidence)]


def _unended(evidence: LandedFacts) -> Iterator[str]:
    for page in evidence.pages:
        if page.ticket.state not in ("done", "failed"):
            yield f"Ticket {page.ticket.id} has not ended: {page.ticket.reason or page.ticket.state}."


def _untested(evidence: LandedFacts) -> Iterator[str]:
    """Moves of the target to a tree whose checks were not green."""
    moves = [str(event.data["commit"]) for event in evidence.events if event.kind == "target.moved"]
    receipts = [event.data for event in evidence.events if event.kind == "check.receipt" and event.ticket is None]
    trees = trees_of(evidence.hub, {*moves, *(str(receipt["commit"]) for receipt in receipts)})
    green: dict[str, set[object]] = defaultdict(set)
    for receipt in receipts:
        if receipt["verdict"] == _GREEN:
            green[trees[str(receipt["commit"])]].add(receipt["name"])
    wanted = {receipt["name"] for receipt in receipts}
    for commit in moves:
        if missing := sorted(str(name) for name in wanted - green[trees[commit]]):
            yield f"The target moved to {commit[:8]} without a green {', '.join(missing)}."
    if moves and moves[-1] != evidence.target:
        yield f"The target is at {evidence.target[:8]}, and the last landing left it at {moves[-1][:8]}."


def _not_landed(evidence: LandedFacts) -> Iterator[str]:
    landings = Counter(event.ticket for event in evidence.events if event.kind == "landing.landed")
    for page in evidence.pages:
        number = page.ticket.id
        if landings[number] > 1:
            yield f"Ticket {number} landed {landings[number]} times."
        if page.ticket.state != "done" or page.ticket.checkpoint:
            continue
        if page.landed is None or not contains(evidence.hub, evidence.target, page.landed):
            yield f"Ticket {number} is done, but its change is not in the target."


TICK = 0.2
"""Seconds between two polls of what sends no events: the times on the board, and the chaos."""
_SCRIPT = "generic"
_NO_ANSWER = 300.0
"""Seconds without an answer after which the rehearsal ends: a killed daemon starts again within a few."""


@dataclass(frozen=True, kw_only=True)
class RehearsalRequest:
    tickets: Sequence[NewTicket]
    source: RehearsalSource
    agents: int | None = None
    """Agents in parallel; None: as many as the project allows."""
    seed: int | None = None
    """Seed of the chaos; None: no chaos."""
    keep: bool = False
    cassette: Path | None = None
    """Script of the model; None: the generic one."""
    base: str = ""
    """The commit to start from; empty: the current one."""


def main(wanted: RehearsalRequest, *, as_json: bool, screen: Screen) -> int:
    """Run the rehearsal. Returns 0 where every ticket is done and nothing was lost."""
    stream = sys.stderr if as_json else sys.stdout
    printer = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=not as_json)
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="legion-rehearse-")))
    keep = wanted.keep
    try:
        _introduce(wanted, scratch, printer, screen)
        rehearsed, graph = _play(wanted, scratch, printer)
    except (BadInput, NotAllowed):
        raise
    except LegionError:
        # The start failed, and the error may name a file there.
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(scratch.folder, ignore_errors=True)
    if as_json:
        sys.stdout.write(json.dumps(asdict(rehearsed), indent=2 if screen.tty else None) + "\n")
    else:
        for line in lines_of(rehearsed, graph, screen):
            printer.print_line(line)
    return 0 if rehearsed.ok else LegionError.exit_code


def playable(ticket: NewTicket) -> NewTicket:
    """The ticket without what needs a real model; its agent is Claude Code."""
    plain = replace(ticket, driver="", command="", after=[], prove=[], accept=[], budget=None, ask=False)
    if ticket.checkpoint:
        return plain
    # Advice, reviews and plans need text that no script has.
    return replace(plain, driver=DRIVER, plan_first=False, team="solo", review="off")


def _introduce(wanted: RehearsalRequest, scratch: Scratch, printer: StoryPrinter, screen: Screen) -> None:
    tickets = count(len(wanted.tickets), "ticket")
    printer.print_line(screen.bold(f"Rehearsing {tickets} on a copy of {wanted.source.root.name}"))
    printer.print_line("The agents are real Claude Code; what their model replies is scripted.")
    if wanted.cassette is None:
        printer.print_line("So nothing is spent, and each change is small and meaningless.")
    else:
        printer.print_line(f"Its replies come from {wanted.cassette.name}, so nothing is spent.")
    printer.print_line("Your [setup] and your checks run for real, but only on the copy.")
    perhaps = [
        ("proofs of tickets", any(ticket.prove for ticket in wanted.tickets)),
        ("held-out acceptance", any(ticket.accept for ticket in wanted.tickets)),
        ("budgets", any(ticket.budget is not None for ticket in wanted.tickets)),
        ("questions to you", any(ticket.ask for ticket in wanted.tickets)),
        ("tickets of your board that these come after", any(ticket.after for ticket in wanted.tickets)),
        ("uncommitted changes", wanted.source.is_dirty),
    ]
    left_out = ["review, advice and plans", *(what for what, applies in perhaps if applies)]
    printer.print_line(f"Left out: {', '.join(left_out)}.")
    if wanted.seed is not None:
        printer.print_line(f"Chaos with seed {wanted.seed}: processes are killed, limits are met, connections break.")
    if wanted.keep:
        printer.print_line(screen.line(Cell(f"All files are in {scratch.folder}", Colour.DIM)))
    printer.print_line()


def _play(wanted: RehearsalRequest, scratch: Scratch, printer: StoryPrinter) -> tuple[Rehearsed, Graph]:
    repository = clone(wanted.source, scratch.folder, wanted.base)
    scripts = scratch.folder / "scripts"
    scripts.mkdir()
    tape = wanted.cassette
    for one in tape.parent.glob(f"{tape.stem}*.toml") if tape is not None else ():
        shutil.copyfile(one, scripts / one.name)
    scratch.prepare(wanted.source.settings, slots=wanted.agents)
    scratch.use()
    with running_scratch(
        scratch, scripts, repository=repository, default=_SCRIPT if tape is None else tape.stem, chaos=wanted.seed
    ) as running:
        return _Rehearsal(wanted, running, repository, printer).run()


class _Rehearsal:
    def __init__(
        self, wanted: RehearsalRequest, running: ScratchLegion, repository: Path, printer: StoryPrinter
    ) -> None:
        self._wanted = wanted
        self._running = running
        self._cwd = str(repository)
        self._printer = printer
        self._story = Story()
        self._keys: dict[int, str] = {}
        self._events: list[EventLine] = []
        self._kills: list[Kill] = []

    def run(self) -> tuple[Rehearsed, Graph]:
        legion = self._running.legion
        hub = adopt(legion, self._wanted.source, Path(self._cwd))
        claude = claude_version(legion.doctor(None))
        tickets = [playable(ticket) for ticket in self._wanted.tickets]
        made = legion.dispatch(Dispatch(cwd=self._cwd, tickets=tickets))
        self._keys = {number: key for key, number in made.keys.items()}
        began = self._printer.seconds
        with self._printer.live(), EventFollower(self._running.scratch.data) as events:
            self._watch(events, made.ids)
            seconds = self._printer.seconds - began
            self._printer.print_line()
        legion = self._running.legion
        pages = [legion.ticket(number) for number in made.ids]
        graph = legion.graph(self._cwd)
        project = legion.status(self._cwd).project
        assert project is not None, "the clone is a project"
        evidence = LandedFacts(hub=hub, target=project.target, events=self._events, pages=pages)
        record = RehearsalRecord(
            keys=self._keys,
            pages=pages,
            graph=graph,
            events=self._events,
            kills=self._kills,
            asked=self._running.stage.lines(),
            spent=play_cost(self._running, made.ids),
            seconds=seconds,
            claude=claude,
            seed=self._wanted.seed,
            problems=losses(evidence),
            folder=str(self._running.scratch.folder) if self._wanted.keep else None,
        )
        return report(record), graph

    def _watch(self, events: EventFollower, ids: list[int]) -> None:
        """Follow the events until no ticket can change by itself. The chaos may kill the daemon meanwhile."""
        seed = self._wanted.seed
        chaos = None if seed is None else KillChaos(self._running.scratch, seed, len(ids))
        tickets: dict[int, TicketLine] = {}
        answered = self._printer.seconds
        while True:
            for event in events.wait(TICK):
                self._events.append(event)
                line = self._story.of(event, tickets)
                if line is not None:
                    self._printer.print_event(line)
            try:
                state = self._step(ids, chaos)
            except Retryable:
                # A killed daemon, or one on a busy machine that answers too late: the next step asks again.
                if self._printer.seconds - answered > _NO_ANSWER:
                    raise
                continue
            answered = self._printer.seconds
            tickets = {ticket.id: ticket for ticket in state.tickets}
            self._printer.show(state.tickets)
            if state.settled and events.caught_up(state.last_event):
                return

    def _step(self, ids: list[int], chaos: KillChaos | None) -> WaitState:
        legion = self._running.legion
        state = legion.wait(None, ids, timeout=0)
        kill = None if chaos is None else chaos.strike(legion, state.tickets, self._printer.seconds)
        if kill is not None:
            self._kills.append(kill)
            self._printer.print_event(StoryLine(kill.text, "failed", kill.ticket))
        return state


# Clones the person's repository at its committed state into a scratch folder. The original is only read.

_FILE = "legion.toml"
_SHARED = "sandbox"
"""The table of the person's settings that checks may need."""


@dataclass(frozen=True, kw_only=True)
class RehearsalSource:
    """The person's repository, trust and settings for a rehearsal."""

    root: Path
    branch: str
    trusted: frozenset[str]
    """Hashes of every trusted legion.toml."""
    settings: str
    """The person's settings for checks, as TOML."""

    @property
    def is_dirty(self) -> bool:
        # Otherwise git rewrites its index to be faster the next time.
        return bool(_git("--no-optional-locks", "status", "--porcelain", cwd=self.root))


def source(legion: Legion, cwd: str) -> RehearsalSource:
    """Ask the person's own daemon. Raises NotFound outside of a project, NotAllowed where nothing is trusted."""
    texts = legion.trustable(cwd).texts
    project = legion.status(cwd).project
    if project is None:
        raise BadInput("This folder belongs to no project: run `legion init` in your repository first.")
    trusted = frozenset(text.hash for text in texts if text.trusted)
    if not trusted:
        raise _untrusted()
    return RehearsalSource(root=Path(project.root), branch=project.branch, trusted=trusted, settings=_own_settings())


def clone(wanted: RehearsalSource, folder: Path, base: str = "") -> Path:
    """Clone the committed state of the branch, or of `base`, without a remote."""
    place = folder / wanted.root.name
    # Copies instead of hard links, which would change the times of the original files.
    options = ("clone", "--quiet", "--no-hardlinks", "--single-branch", "--branch", wanted.branch)
    _git(*options, str(wanted.root), str(place), cwd=folder)
    _git("remote", "remove", "origin", cwd=place)
    if base:
        try:
            _git("reset", "--quiet", "--hard", base, cwd=place)
        except LegionError:
            raise BadInput(
                f"The commit {base[:12]} that this was recorded on is not in {wanted.branch}: try `legion collect`."
            ) from None
    own = wanted.root / _FILE
    if not (place / _FILE).exists() and own.exists():
        # The uncommitted one is in force already.
        shutil.copyfile(own, place / _FILE)
    return place


def adopt(legion: Legion, wanted: RehearsalSource, place: Path) -> Path:
    """`legion init` and `legion trust` for the clone, if the original is trusted. Returns the hub."""
    if not (place / _FILE).exists():
        raise _untrusted()
    hub = legion.add_project(AddProject(path=str(place))).hub
    shown = legion.trustable(str(place)).texts
    if not all(text.hash in wanted.trusted for text in shown):
        raise _untrusted()
    legion.trust(Trust(cwd=str(place), hashes=[text.hash for text in shown]))
    return Path(hub)


def contains(hub: Path, target: str, commit: str) -> bool:
    command = ["git", f"--git-dir={hub}", "merge-base", "--is-ancestor", commit, target]
    return process.run(command, env=_environment()).code == 0


def trees_of(hub: Path, commits: Collection[str]) -> dict[str, str]:
    """The tree of each commit: a receipt counts for every commit with the same tree."""
    return {commit: _git(f"--git-dir={hub}", "rev-parse", f"{commit}^{{tree}}", cwd=hub) for commit in commits}


def _untrusted() -> NotAllowed:
    return NotAllowed(
        f"The committed {_FILE} is not trusted, and its checks would run for real: read it, then run `legion trust`."
    )


def _own_settings() -> str:
    try:
        table = tomllib.loads(user_config_file().read_text("utf-8")).get(_SHARED, {})
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as fault:
        raise BadInput(f"{user_config_file()} cannot be read ({fault}): fix it first.") from None
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]
    return "\n".join([f"[{_SHARED}]", *lines, ""])


def _git(*arguments: str, cwd: Path) -> str:
    try:
        done = process.run(["git", *arguments], cwd=cwd, env=_environment())
    except ProgramMissing:
        raise LegionError("git is not installed: install it and try again.") from None
    if done.code != 0:
        raise LegionError(f"`git {arguments[0]}` failed: {done.complaint}")
    return done.text.strip()


def _environment() -> dict[str, str]:
    """The environment without GIT_ variables, which would point git elsewhere inside a git hook."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
