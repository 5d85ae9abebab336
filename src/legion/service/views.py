"""What people look at: the board, a ticket's page, the graph. Read only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from legion.config.project import parse
from legion.config.user import SandboxMode
from legion.domain import board, ladder
from legion.domain.agents import STANDING
from legion.domain.checks import Receipt
from legion.domain.conflicts import AT_WORK, Clash, Overlap, overlapping
from legion.domain.decide import JobKind
from legion.domain.events import Event, Kind
from legion.domain.projects import Project
from legion.domain.questions import Matter, Question
from legion.domain.rhythm import Hold
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.teams import Part
from legion.domain.tickets import Parked, ParkReason, State, Ticket
from legion.domain.usage import total
from legion.jobs.run import run_dir
from legion.jobs.saving import worktree_name
from legion.jobs.world import Rest, World
from legion.service import asking, crews, evidence, reviewing, trusting
from legion.service import projects as project_cases
from legion.service.health import environment_line
from legion.service.lines import moment, run_line, usage_line
from legion.service.silence import silence
from legion.store import agents, events, holdings, projects, questions, receipts, runs, tickets, usage, verdicts
from legion.store.database import ReadTransaction
from legion.wire.projects import DaemonLine, Graph, ProjectLine, Status
from legion.wire.tickets import ClashLine, EventLine, ReceiptLine, TicketLine, TicketPage

_RECENT = 50
"""Ended tickets that a plain status lists."""


class Lines:
    """Turns tickets into lines, looking up once what several lines need."""

    def __init__(self, world: World, tx: ReadTransaction, shown: Collection[Ticket]) -> None:
        self._world = world
        self._now = world.clock()
        self._rests = _resting(world)
        self._projects = {project.id: project for project in projects.all(tx)}
        self._trusted = {
            project.id: projects.is_trusted(tx, project.id, project.config_hash) for project in self._projects.values()
        }
        self._active = {run.ticket: run for run in runs.active(tx)}
        self._asking = {question.ticket: question for question in questions.open_ones(tx)}
        names = agents.names(tx)
        self._holders = {ticket: names.get(id, id) for ticket, id in holdings.holders(tx).items()}
        waited_for = {other for ticket in shown for other in ticket.wish.after if not ticket.ended}
        self._states = tickets.states_of(tx, sorted(waited_for))
        declared = any(ticket.wish.files and ticket.state is State.QUEUED for ticket in shown)
        self._at_work = [one for one in tickets.live(tx) if one.state in AT_WORK] if declared else []

    def line(self, ticket: Ticket) -> TicketLine:
        wish = ticket.wish
        held_up = board.held_up_by(wish.after, self._states) if not ticket.ended else ()
        project = self._projects.get(ticket.project)
        return TicketLine(
            id=ticket.id,
            project=project.name if project else "",
            title=wish.title,
            state=ticket.state.value,
            after=list(wish.after),
            attempt=ticket.attempt,
            max_attempts=ticket.spared + wish.max_attempts * (1 + ladder.place(ticket)),
            checkpoint=wish.checkpoint,
            epic=wish.epic,
            priority=wish.priority,
            reason=ticket.reason,
            unchecked=ticket.unchecked,
            held_up_by=list(held_up),
            created_at=ticket.created_at,
            moved_at=ticket.moved_at,
            doing=self._doing(ticket, held_up),
            parked_until=ticket.parked.until if ticket.parked else None,
            question=self._asking[ticket.id].id if ticket.id in self._asking else None,
            undoes=wish.undoes,
            conflicts_with=[clash.theirs for clash in clashes_of(self._world, ticket)],
        )

    def _doing(self, ticket: Ticket, held_up: tuple[int, ...]) -> str:
        job = _JOBS.get(ticket.state)
        if job is not None and (rest := self._rests.get((job, ticket.id))) is not None:
            return _told(rest, self._now)
        match ticket.state:
            case State.QUEUED:
                return self._waiting(ticket, held_up)
            case State.WORKING if ticket.id in self._asking:
                return _asks(self._asking[ticket.id])
            case State.WORKING if ticket.id in self._holders:
                return f"held by {self._holders[ticket.id]}"
            case State.WORKING:
                return self._working(self._active.get(ticket.id))
            case State.CHECKING:
                return "checks of the landed code" if ticket.wish.checkpoint else "its proofs run"
            case State.REVIEWING:
                return self._reading(self._active.get(ticket.id))
            case State.LANDING:
                return "in the merge queue"
            case State.DONE if ticket.unchecked:
                return "landed unchecked"
            case State.PARKED if ticket.parked is not None:
                return self._parked(ticket.id, ticket.parked)
            case _:
                return ""

    def _parked(self, ticket: int, parked: Parked) -> str:
        if parked.reason is ParkReason.LIMIT:
            return f"waits for the provider, goes on by itself {moment(parked.until, self._now)}".rstrip()
        if parked.reason is ParkReason.QUESTION and ticket in self._asking:
            first, *others = self._asking[ticket].choices or ("'your words'",)
            return f"asks you: `legion answer {self._asking[ticket].id} {first}`{_or(others)}"
        return ""

    def _working(self, run: Run | None) -> str:
        if run is None:
            return "agent starts"
        # Only an agent with a way to a model tells of it in its journal.
        quiet = silence(run_dir(self._world, run)) if run.access else ""
        who = f"{run.role} advises" if run.part is Part.ADVISE else "agent at work"
        return quiet or f"{who} for {self._now - run.started_at:.0f} s"

    def _reading(self, run: Run | None) -> str:
        if run is None or not run.role:
            return "waits for somebody to read it"
        return f"{run.role} reads it for {self._now - run.started_at:.0f} s"

    def _waiting(self, ticket: Ticket, held_up: tuple[int, ...]) -> str:
        project = self._projects.get(ticket.project)
        if held_up:
            return f"held up by {_numbers(held_up)}"
        waits = [other for other in ticket.wish.after if self._states.get(other, State.DONE) is not State.DONE]
        if waits:
            return f"waits for {_numbers(waits)}"
        if project and not self._trusted[project.id]:
            return "waits for `legion trust`"
        if project and project.paused:
            return "waits for `legion resume`"
        if project and project.person_waiting:
            return "waits while your own commits are checked"
        if project and (same := self._same_files(project, ticket)):
            return f"waits for {_numbers(same)}, at work on the same files"
        if (hold := self._world.held.get(ticket.id)) is not None:
            return f"{hold.why}{self._goes_on(hold)}"
        if ticket.id in self._active:
            return "its last run is being stopped"
        if ticket.wish.driver == STANDING:
            return "waits until a standing agent claims it"
        return "waits for a free slot"

    def _goes_on(self, hold: Hold) -> str:
        when = moment(hold.until, self._now) if hold.rule is not Rule.ONE_BY_ONE else ""
        return f"; goes on {when}" if when else ""

    def _same_files(self, project: Project, ticket: Ticket) -> tuple[int, ...]:
        if parse(project.config_text, origin=project.name).conflicts.overlap is not Overlap.RULE:
            return ()
        return overlapping(ticket, [one for one in self._at_work if one.project == project.id])


def _asks(question: Question) -> str:
    if question.kind is Matter.PERMISSION:
        return f"its agent asks you: `legion answer {question.id} yes` or no"
    return f"its agent asks you: `legion inbox` has question {question.id}"


_JOBS = {State.WORKING: JobKind.RUN, State.CHECKING: JobKind.CHECK, State.REVIEWING: JobKind.REVIEW}


def _or(choices: Sequence[str]) -> str:
    *before, last = choices or ("",)
    return f", {', '.join(before)} or {last}" if before else f" or {last}" if last else ""


def _resting(world: World) -> dict[tuple[JobKind, int], Rest]:
    """The jobs that would go on if they could."""
    return {job: rest for job, rest in list(world.rests.items()) if rest.until > world.clock()}


def _told(rest: Rest, now: float) -> str:
    return f"tried again in {rest.until - now:.0f} s: {rest.why}"


def status(world: World, daemon: DaemonLine, cwd: str | None, everything: bool) -> Status:
    here = project_cases.find_or_none(world, cwd) if cwd else None
    with world.store.read() as tx:
        known = projects.all(tx)
        wanted = here.id if here else None
        live = tickets.live(tx, project=wanted)
        counts = tickets.counts(tx, wanted)
        ended_count = sum(count for state, count in counts.items() if state in _ENDED)
        ended = tickets.recent(tx, wanted, limit=ended_count if everything else _RECENT)
        shown = sorted([*live, *ended], key=lambda ticket: ticket.id)
        lines = Lines(world, tx, shown)
        return Status(
            daemon=_walled(world, daemon),
            project=_project_line(world, tx, here) if here else None,
            projects=[_project_line(world, tx, project) for project in known],
            counts={state.value: count for state, count in counts.items()},
            tickets=[lines.line(ticket) for ticket in shown],
            omitted=max(0, ended_count - len(ended)),
            last_event=events.last(tx),
            questions=len(questions.open_ones(tx)),
            usage=usage_line(total(usage.of_ticket(tx, ticket.id) for ticket in shown if ticket.attempt)),
        )


def _walled(world: World, daemon: DaemonLine) -> DaemonLine:
    """With what is in force: settings may switch off at any time what works."""
    if world.user.sandbox.mode is SandboxMode.OFF:
        return replace(daemon, sandbox="off, by your settings")
    return daemon


_ENDED = (State.DONE, State.FAILED, State.STOPPED)


def _project_line(world: World, tx: ReadTransaction, project: Project) -> ProjectLine:
    trusted = projects.is_trusted(tx, project.id, project.config_hash)
    shop = world.workshop_of(project)
    baseline = "none"
    if shop.config.checks:
        baseline = project.baseline_verdict.value if project.baseline_known and project.baseline_verdict else "unknown"
    notes = []
    if not trusted:
        notes.append("legion.toml is not trusted: read it and run `legion trust`")
    elif trusting.stale(project):
        notes.append("legion.toml changed since you trusted it and is not in force: run `legion trust`")
    if project.person_refused is not None and project.person_refused == project.person_tip:
        why = events.latest(tx, project.id, Kind.NOT_ABSORBED)
        said = f"{why.data['why']}; {why.data['remedy']}" if why else ""
        notes.append(f"your commit {project.person_refused[:8]} is not in the target: {said}")
    if project.baseline_red:
        notes.append("the target itself fails its checks; no ticket is blamed for that")
    for command, times in flaky(world, tx, project.id).items():
        notes.append(f"the check `{command}` is flaky: red, then green on the same tree ({times})")
    for kind, work in ((JobKind.LAND, "landing"), (JobKind.BASELINE, "checking the target")):
        rest = _resting(world).get((kind, project.id))
        if rest is not None:
            notes.append(f"{work} is {_told(rest, world.clock())}")
    return ProjectLine(
        name=project.name,
        root=project.root,
        branch=project.branch,
        paused=project.paused,
        trusted=trusted,
        target=project.target,
        baseline=baseline,
        ahead=ahead(world, project),
        notes=notes,
    )


def ahead(world: World, project: Project) -> int:
    """Landed commits that the person's branch lacks."""
    if not project.person_absorbed or not project.target or project.person_absorbed == project.target:
        return 0
    hub = world.workshop_of(project).hub
    return len(hub.commits_between(project.person_tip or project.person_absorbed, project.target))


_FLAKY_DAYS = 7


def flaky(world: World, tx: ReadTransaction, project: int) -> dict[str, str]:
    """Checks that said both red and green about the same tree lately, and how often."""
    found = events.since(tx, project, Kind.FLAKY, world.clock() - _FLAKY_DAYS * 86_400)
    counted = Counter(str(event.data["command"]) for event in found)
    return {
        command: f"{'once' if count == 1 else f'{count} times'} in {_FLAKY_DAYS} days"
        for command, count in counted.items()
    }


def ticket_page(world: World, ticket_id: int) -> TicketPage:
    with world.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        shop = world.workshop(ticket.project)
        line = Lines(world, tx, [ticket]).line(ticket)
        all_runs = runs.of_ticket(tx, ticket_id)
        proofs = receipts.of_ticket(tx, ticket_id)
        history = events.of_ticket(tx, ticket_id)
        named = receipts.get_many(tx, _named_receipts(history))
        confirmed = evidence.confirmed(tx, shop, ticket)
        names = {project.id: project.name for project in projects.all(tx)}
        spent = usage.of_runs(tx, [run.id for run in all_runs])
        asked = [question for question in questions.open_ones(tx) if question.ticket == ticket_id]
        waiting = asking.lines(tx, asked)
        read = verdicts.of_ticket(tx, ticket_id)
        undone_by = [other.id for other in tickets.undoing(tx, ticket_id)]
    latest = next((run for run in reversed(all_runs) if not run.role), None)
    wish, change = ticket.wish, ticket.change
    worktree, changed = _on_disk(world, ticket)
    return TicketPage(
        ticket=line,
        text=wish.text,
        context=wish.context,
        criteria=wish.criteria,
        plan=wish.plan,
        files=list(wish.files),
        prove=list(wish.proofs),
        driver=wish.driver,
        command=wish.command,
        model=wish.model,
        feedback=ticket.feedback,
        cause=_cause(history),
        parked_until=ticket.parked.until if ticket.parked else None,
        base=ticket.base,
        change=change.commit if change else None,
        landed=ticket.landed,
        worktree=worktree,
        runs=[run_line(run, spent.get(run.id)) for run in all_runs],
        receipts=[receipt_line(world, receipt) for receipt in _without_repeats((*proofs, *named, *confirmed))],
        history=[event_line(event, names) for event in history],
        changed_files=changed,
        environment=environment_line(world, latest, worktree),
        conversation=latest.conversation if latest and latest.access else "",
        access=latest.access if latest else "",
        usage=usage_line(total(spent.values())),
        budget=wish.budget,
        ask=wish.asks,
        questions=waiting,
        undone_by=undone_by,
        clashes=_clash_lines(world, ticket),
        weakened=evidence.weakened(shop, ticket),
        accept=list(wish.acceptance),
        labels=list(wish.labels),
        crew=crews.line(world, shop, ticket, all_runs),
        reversal=evidence.reversal(history),
        reviews=reviewing.lines(ticket, read),
        evidence=evidence.lines(shop, ticket, history, _without_repeats((*proofs, *named, *confirmed)), read),
    )


def clashes_of(world: World, ticket: Ticket) -> list[Clash]:
    """What was foreseen of it, while that can still come true."""
    if ticket.state not in AT_WORK:
        return []
    known = world.clashes.get(ticket.project, ())
    return [clash.seen_from(ticket.id) for clash in known if ticket.id in clash.pair]


def _clash_lines(world: World, ticket: Ticket) -> list[ClashLine]:
    return [
        ClashLine(
            ticket=clash.theirs,
            path=place.path,
            first=place.mine[0],
            last=place.mine[1],
            their_first=place.theirs[0],
            their_last=place.theirs[1],
        )
        for clash in clashes_of(world, ticket)
        for place in clash.places
    ]


def _on_disk(world: World, ticket: Ticket) -> tuple[str | None, list[str]]:
    """Its worktree and what its change touches. A removed project has neither any more."""
    shop = world.workshop(ticket.project)
    if shop.project.removed_at is not None:
        return None, []
    tree = shop.worktrees.path(worktree_name(ticket.id))
    change = ticket.change
    changed = shop.hub.changed_files(change.base, change.commit) if change else ()
    return (str(tree) if tree.exists() else None), [file.path for file in changed]


def _cause(history: Iterable[Event]) -> str:
    """Why the ticket came to where it is, if its last move was back or the end."""
    moves = [event.data for event in history if event.kind is Kind.TICKET_MOVED]
    return str(moves[-1].get("cause", "")) if moves else ""


def _named_receipts(history: Iterable[Event]) -> list[int]:
    """The receipts that sent it back from the merge queue, and those that let it land."""
    listed = [event.data.get("receipts") for event in history]
    return [number for numbers in listed if isinstance(numbers, list) for number in numbers]


def _without_repeats(all_receipts: Iterable[Receipt]) -> list[Receipt]:
    return sorted({receipt.id: receipt for receipt in all_receipts}.values(), key=lambda receipt: receipt.id)


def graph(world: World, cwd: str) -> Graph:
    """The board of a project: all live tickets, what they come after, and the last ended ones."""
    project = project_cases.find(world, cwd)
    with world.store.read() as tx:
        live = tickets.live(tx, project=project.id)
        shown = {ticket.id: ticket for ticket in (*live, *tickets.recent(tx, project.id, limit=_RECENT))}
        lines = Lines(world, tx, shown.values())
    edges = {number: [other for other in ticket.wish.after if other in shown] for number, ticket in shown.items()}
    cost = {number: 0.0 if ticket.state is State.DONE else 1.0 for number, ticket in shown.items()}
    return Graph(
        tickets=[lines.line(ticket) for _, ticket in sorted(shown.items())],
        edges=[[number, other] for number, after in sorted(edges.items()) for other in after],
        waves=board.waves(edges),
        critical_path=board.critical_path(edges, cost),
    )


def receipt_line(world: World, receipt: Receipt) -> ReceiptLine:
    return ReceiptLine(
        name=receipt.name,
        command=receipt.command,
        commit=receipt.commit,
        tree=receipt.tree,
        verdict=receipt.verdict.value,
        exit_code=receipt.exit_code,
        duration=receipt.duration,
        made_at=receipt.made_at,
        tail=receipt.tail,
        output=str(world.data.root / receipt.output) if receipt.output else "",
    )


def event_line(event: Event, names: Mapping[int, str]) -> EventLine:
    return EventLine(
        n=event.n,
        at=event.at,
        kind=event.kind.value,
        project=names.get(event.project) if event.project is not None else None,
        ticket=event.ticket,
        data=dict(event.data),
    )


def _numbers(ids: Iterable[int]) -> str:
    return ", ".join(str(number) for number in ids)
