"""A ticket's line on the board: its state, and in one sentence what it does or waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from legion.config.files.project import parse
from legion.domain.agents.agent import STANDING, Planning
from legion.domain.agents.teams import RolePart
from legion.domain.errors import LegionError
from legion.domain.landing.conflicts import AT_WORK, Overlap, PredictedConflict, overlapping
from legion.domain.projects import Project
from legion.domain.questions import Question, QuestionKind
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.scheduling.admission import HoldReason
from legion.domain.scheduling.decide import JobKind
from legion.domain.text import count
from legion.domain.tickets import board, ladder
from legion.domain.tickets.evidence import unproven
from legion.domain.tickets.offers import AgentReach, OfferFacts, offered
from legion.domain.tickets.spec import statements_in
from legion.domain.tickets.ticket import Parked, ParkReason, State, Ticket
from legion.jobs.agent.resume_prompt import output_end
from legion.jobs.background.watchdog import describe_run
from legion.jobs.board import Board
from legion.jobs.landing import queue
from legion.jobs.live_state import Backoff, Job
from legion.jobs.run.job import run_dir
from legion.jobs.trees import Trees
from legion.jobs.workspace import quota
from legion.jobs.workspace.setup import is_prepared
from legion.runner.spec import RunFolder, RunnerError, read_spec
from legion.service.shared.fragments import lasting, moment, silence
from legion.store.board import plan_approvals, projects, questions, races, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, ticket_holders
from legion.store.work import runs, takeovers, watchdog
from legion.wire.tickets import TicketLine

_RACES = "proven; waits for the other attempts of its race"


class TicketLines:
    """Formats tickets as lines, and loads what several lines need only once."""

    def __init__(self, context: Trees, tx: ReadTransaction, shown: Collection[Ticket]) -> None:
        self._context = context
        self._now = context.clock()
        self._backoffs = pending_backoffs(context)
        self._disk_full = not quota.has_room(context)
        self._projects = {project.id: project for project in projects.all(tx)}
        self._trusted = {
            project.id: projects.is_trusted(tx, project.id, project.config_hash) for project in self._projects.values()
        }
        self._active = {run.ticket: run for run in runs.active(tx)}
        self._helps = watchdog.interventions(tx, [run.id for run in self._active.values()])
        self._asking = {question.ticket: question for question in questions.open_ones(tx)}
        names = agents.names(tx)
        self._holders = {ticket: names.get(id, id) for ticket, id in ticket_holders.holders(tx).items()}
        waited_for = {other for ticket in shown for other in ticket.spec.after if not ticket.ended}
        self._states = tickets.states_of(tx, sorted(waited_for))
        found = [takeovers.of_ticket(tx, ticket.id) for ticket in shown if not ticket.ended]
        self._attended = {one.ticket: one for one in found if one is not None}
        asking = [ticket.id for ticket in shown if ticket.parked and ticket.parked.reason is ParkReason.QUESTION]
        plans = [plan_approvals.of_ticket(tx, id) for id in asking]
        self._plans_wait = {one.ticket for one in plans if one is not None and one.stage is Planning.PROPOSED}
        self._criteria = tickets.criteria(tx, [ticket.id for ticket in shown if ticket.state is State.DONE])
        declared = any(ticket.spec.files and ticket.state is State.QUEUED for ticket in shown)
        landing = {ticket.project for ticket in shown if ticket.state is State.LANDING}
        racing = {lane.ticket: _RACES for lanes in races.undecided(tx).values() for lane in lanes} if landing else {}
        self._places = _places(context, tx, landing.intersection(self._projects)) | racing
        self._at_work = [one for one in tickets.live(tx) if one.state in AT_WORK] if declared else []

    def line(self, ticket: Ticket) -> TicketLine:
        spec = ticket.spec
        held_up = board.held_up_by(spec.after, self._states) if not ticket.ended else ()
        project = self._projects.get(ticket.project)
        doing, since = self._doing(ticket, held_up)
        conflicts = predicted_conflicts(self._context, ticket)
        return TicketLine(
            id=ticket.id,
            project=project.name if project else "",
            title=spec.title,
            state=ticket.state.value,
            after=list(spec.after),
            attempt=ticket.attempt,
            max_attempts=ticket.spared - ticket.skipped + spec.max_attempts * (1 + ladder.place(ticket)),
            checkpoint=spec.checkpoint,
            epic=spec.epic,
            priority=spec.priority,
            reason=ticket.reason,
            unchecked=ticket.unchecked,
            unproven=unproven(self._criteria.get(ticket.id, ""), spec.bound),
            held_up_by=list(held_up),
            created_at=ticket.created_at,
            moved_at=ticket.moved_at,
            doing=doing,
            doing_since=since,
            parked_until=ticket.parked.until if ticket.parked else None,
            question=self._asking[ticket.id].id if ticket.id in self._asking else None,
            undoes=spec.undoes,
            conflicts_with=[conflict.theirs for conflict in conflicts],
            conflicts_in=sorted({place.name for one in conflicts for place in one.places if place.name}),
            team=spec.team,
            labels=list(spec.labels),
            agent=self._holders.get(ticket.id) or " ".join(filter(None, (spec.driver, spec.model, spec.command))),
            offers=offered(ticket, self._offer_facts(ticket)),
        )

    def _offer_facts(self, ticket: Ticket) -> OfferFacts:
        run = self._active.get(ticket.id) if ticket.state is State.WORKING else None
        attended = self._attended.get(ticket.id)
        return OfferFacts(
            agent=None if run is None else reach_of(self._context, run),
            attended=attended.mode if attended else None,
            held=ticket.id in self._holders,
            plan_waits=ticket.id in self._plans_wait,
        )

    def _doing(self, ticket: Ticket, held_up: tuple[int, ...]) -> tuple[str, float | None]:
        """In words, and since when where that lasts."""
        kind = _JOBS.get(ticket.state)
        subject = ticket.project if kind is JobKind.LAND else ticket.id
        if kind is not None and (backoff := self._backoffs.get((kind, subject))) is not None:
            return describe_backoff(backoff, self._now), None
        if ticket.state is State.WORKING and ticket.id not in self._asking and ticket.id not in self._holders:
            return self._working(self._active.get(ticket.id))
        if ticket.state is State.REVIEWING:
            return self._reviewing(ticket, self._active.get(ticket.id))
        return self._standing(ticket, held_up), None

    def _standing(self, ticket: Ticket, held_up: tuple[int, ...]) -> str:
        match ticket.state:
            case State.QUEUED:
                return self._waiting(ticket, held_up)
            case State.WORKING if ticket.id in self._asking:
                return _asks(self._asking[ticket.id])
            case State.WORKING:
                return f"held by {self._holders[ticket.id]}"
            case State.CHECKING if (hold := self._context.live.scheduler.holds.get(ticket.id)) is not None:
                return hold.why
            case State.CHECKING:
                return "checks of the landed code" if ticket.spec.checkpoint else "its proofs run"
            case State.LANDING:
                return self._context.live.queue.notes.get(ticket.id) or self._places.get(
                    ticket.id, "in the merge queue"
                )
            case State.DONE if ticket.unchecked and not ticket.reason:
                return "landed unchecked"
            case State.PARKED if ticket.parked is not None:
                return self._parked(ticket.id, ticket.parked)
            case _:
                return ""

    def _parked(self, ticket: int, parked: Parked) -> str:
        if parked.reason is ParkReason.LIMIT:
            return f"waits for the provider, resumes by itself {moment(parked.until, self._now)}".rstrip()
        if parked.reason is ParkReason.RED_BASELINE:
            return "resumes by itself when the target is green: `legion status` shows what fails; fix that and commit"
        if parked.reason is ParkReason.QUESTION and ticket in self._asking:
            first, *others = self._asking[ticket].choices or ("'your text'",)
            return f"asks you: `legion answer {self._asking[ticket].id} {first}`{_or(others)}"
        return ""

    def _working(self, run: Run | None) -> tuple[str, float | None]:
        if run is None:
            return "agent starts", None
        folder = run_dir(self._context, run)
        if (ended := _ended_at(folder)) is not None:
            return "the agent has ended; its work is saved and judged", ended
        if not is_prepared(self._context, run):
            return self._preparing(run)
        # Only the journal of an agent with access to a model shows whether it answers.
        if run.access and (quiet := silence(folder)):
            return quiet, None
        working = f"{run.role} advises" if run.part is RolePart.ADVISE else "agent at work"
        if attended := self._attended.get(run.ticket or 0):
            working = attended.doing(run.id) or working
        if said := statements_in(output_end(RunFolder(folder).output, _READ)).status:
            working = f"{working}: {said}"
        text = describe_run(self._context, run, self._helps.get(run.id, ()), self._now, working=working)
        return text, run.started_at if text == working else None

    def _preparing(self, run: Run) -> tuple[str, float | None]:
        """Before its program starts: a new worktree, and [setup] in it."""
        project = self._projects.get(run.project)
        unreadable = project is None or project.id in self._context.live.scheduler.unreadable.current
        if project is None or unreadable or not parse(project.config_text).setup.run:
            return "agent starts", None
        failed = self._context.live.scheduler.backoffs.current.get((JobKind.RUN, run.ticket or 0))
        again = f"; before, {failed.why}" if failed is not None else ""
        return f"[setup] runs{again}", run.started_at

    def _reviewing(self, ticket: Ticket, run: Run | None) -> tuple[str, float | None]:
        if run is None or not run.role:
            hold = self._context.live.scheduler.holds.get(ticket.id)
            return f"{hold.why}{self._starts(hold)}" if hold is not None else "waits for a reviewer", None
        return f"{run.role} reads it", run.started_at

    def _waiting(self, ticket: Ticket, held_up: tuple[int, ...]) -> str:
        project = self._projects.get(ticket.project)
        if held_up:
            return f"held up by {_numbers(held_up)}"
        waits = [other for other in ticket.spec.after if self._states.get(other, State.DONE) is not State.DONE]
        if waits:
            return f"waits for {_numbers(waits)}"
        if project and not self._trusted[project.id]:
            return "waits for `legion trust`"
        if project and project.id in self._context.live.scheduler.unreadable.current:
            return "waits until legion.toml can be read: see `legion status`"
        if project and project.paused:
            return f"waits for `{project.resumed_by}`"
        if project and project.upstream_pending:
            return "waits while your own commits are checked"
        if project and (same := self._same_files(project, ticket)):
            return f"waits for {_numbers(same)}, at work on the same files"
        if (hold := self._context.live.scheduler.holds.get(ticket.id)) is not None:
            return f"{hold.why}{self._starts(hold)}"
        if ticket.id in self._active:
            return "its last run is being stopped"
        if ticket.spec.driver == STANDING:
            return "waits until a standing agent claims it"
        if self._disk_full:
            return "waits for free space on the disk: `legion doctor` says more"
        return "waits for a free slot"

    def _starts(self, hold: HoldReason) -> str:
        when = moment(hold.until, self._now) if hold.rule is not Rule.ONE_BY_ONE else ""
        return f"; starts {when}" if when else ""

    def _same_files(self, project: Project, ticket: Ticket) -> tuple[int, ...]:
        # A project whose settings cannot be read starts nothing at all.
        unreadable = project.id in self._context.live.scheduler.unreadable.current
        if unreadable or parse(project.config_text).conflicts.overlap is not Overlap.RULE:
            return ()
        return overlapping(ticket, [one for one in self._at_work if one.project == project.id])


def reach_of(context: Board, run: Run) -> AgentReach | None:
    """How a person reaches the agent of a run; None before it has started."""
    try:
        spec = read_spec(run_dir(context, run))
    except RunnerError:
        return None
    can = spec.profile.capabilities
    return AgentReach(talks=can.talks, interrupts=can.interrupts, opens=can.interactive or spec.program.terminal)


def _ended_at(folder: Path) -> float | None:
    """When the program of a run ended, if it did."""
    try:
        return RunFolder(folder).result.stat().st_mtime
    except OSError:
        return None


def _places(context: Trees, tx: ReadTransaction, wanted: Iterable[int]) -> dict[int, str]:
    """The position in the merge queue of each change of these projects that waits to land and is not being tested."""
    places: dict[int, str] = {}
    for project in wanted:
        try:
            waiting = queue.waiting_entries(context, tx, project, tickets.live(tx, project=project))
        except LegionError:
            # The job that needs the hub reports that it cannot be read; the board is shown all the same.
            continue
        free = [one for one in waiting if one.ticket not in context.live.queue.notes.current]
        for place, one in enumerate(free, 1):
            first = f", first because it was overtaken {count(one.overtaken, 'time')}" if one.overdue else ""
            places[one.ticket] = f"in the merge queue, place {place} of {len(free)}, {count(one.lines, 'line')}{first}"
    return places


def _asks(question: Question) -> str:
    if question.kind is QuestionKind.PERMISSION:
        return f"its agent asks you: `legion answer {question.id} yes` or no"
    return f"its agent asks you: `legion inbox` has question {question.id}"


_READ = 20_000
"""Bytes at the end of an agent's output in which its last report on its progress is looked for."""
_JOBS = {
    State.WORKING: JobKind.RUN,
    State.CHECKING: JobKind.CHECK,
    State.REVIEWING: JobKind.REVIEW,
    State.LANDING: JobKind.LAND,
}


def _or(choices: Sequence[str]) -> str:
    *before, last = choices or ("",)
    return f", {', '.join(before)} or {last}" if before else f" or {last}" if last else ""


def pending_backoffs(context: Board) -> dict[Job, Backoff]:
    """Jobs that failed and wait for their next try."""
    return {
        job: backoff
        for job, backoff in context.live.scheduler.backoffs.current.items()
        if backoff.until > context.clock()
    }


def describe_backoff(backoff: Backoff, now: float) -> str:
    return f"tried again in {lasting(backoff.until - now)}: {backoff.why}"


def predicted_conflicts(context: Board, ticket: Ticket) -> list[PredictedConflict]:
    """Predicted conflicts of the ticket, as long as they can still happen."""
    if ticket.state not in AT_WORK:
        return []
    known = context.live.predicted_conflicts.get(ticket.project) or ()
    return [conflict.seen_from(ticket.id) for conflict in known if ticket.id in conflict.pair]


def _numbers(ids: Iterable[int]) -> str:
    return ", ".join(str(number) for number in ids)
