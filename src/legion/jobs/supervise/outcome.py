"""Decides a ticket's next step from the end of its run. What the program claims counts less than its tree.

A limit, a budget, a missing key or a person's interruption is not a failure: the ticket waits, and the same attempt
resumes its conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from legion.domain.review import additions, diffs
from legion.domain.review.path_patterns import undeclared
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run
from legion.domain.scheduling.throttle import apart, wakes_at
from legion.domain.scheduling.usage import ProviderLimit, Spending
from legion.domain.tickets.ladder import AT_ONCE, next_try, next_try_after_no_change, rest
from legion.domain.tickets.ticket import Cause, Change, Fail, Park, ParkReason, Propose, Resume, Step, Ticket, TryAgain
from legion.domain.watchdog.diagnosis import Intervention
from legion.drivers import EndKind
from legion.jobs.agent.model_access import OWN_ACCOUNT, OWN_LOGIN, OwnLogin
from legion.jobs.agent.resume_prompt import output_end
from legion.jobs.attempts import escalation, feedback
from legion.jobs.board import Board
from legion.jobs.supervise import questions
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.usage import day_of, stopped_for_budget
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import environment, quota, save
from legion.jobs.workspace.save import Saved
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import RunFolder, read_spec
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.store.work import runs, usage, watchdog

_LONGEST_TAIL = 4000

_OUTCOMES = {
    EndKind.TIMED_OUT: Outcome.TIMED_OUT,
    EndKind.STOPPED: Outcome.STOPPED,
    EndKind.FAILED_TO_START: Outcome.NOT_STARTED,
    EndKind.FINISHED: Outcome.FINISHED,
    EndKind.FAILED: Outcome.FAILED,
    EndKind.GAVE_UP: Outcome.GAVE_UP,
    EndKind.INTERRUPTED: Outcome.INTERRUPTED,
    EndKind.LIMITED: Outcome.LIMITED,
    EndKind.OUT_OF_BUDGET: Outcome.OUT_OF_BUDGET,
    EndKind.REFUSED: Outcome.REFUSED,
}


def run_outcome(ended: EndedRun | LostRun) -> tuple[Outcome, str]:
    """The runner's result as an outcome, and one line about it. `judge` decides what follows."""
    if isinstance(ended, LostRun):
        return Outcome.LOST, "its runner was killed"
    result = ended.result
    if result.outcome is EndKind.EXITED:
        return (Outcome.FINISHED if result.exit_code == 0 else Outcome.FAILED), f"exit code {result.exit_code}"
    return _OUTCOMES[result.outcome], result.message.rstrip(".")


def denied(ended: EndedRun | LostRun) -> tuple[str, ...]:
    """The tools that the agent was denied."""
    return ended.result.denied if isinstance(ended, EndedRun) else ()


def judge(
    context: Board, project: ProjectContext, ticket: Ticket, this_run: Run, ended: EndedRun | LostRun, saved: Saved
) -> Step:
    step = unfinished(context, ticket, this_run, ended)
    return step if step is not None else judge_change(context, project, ticket, saved, denied(ended))


def unfinished(context: Board, ticket: Ticket, this_run: Run, ended: EndedRun | LostRun) -> Step | None:
    """The next step after a run whose agent did not finish; None where it did."""
    how, detail = run_outcome(ended)
    match how:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return Fail(f"its runner was killed {this_run.generation} times: see `legion log {ticket.id}`")
        case Outcome.STOPPED | Outcome.LOST if (over := quota.exceeded(context, this_run)) is not None:
            return next_try(ticket, over.reason, over.feedback)
        case Outcome.STOPPED if empty := stopped_for_budget(context, this_run):
            return Resume(empty)
        case Outcome.STOPPED if (helped := ended_by(context, this_run)) is not None:
            return escalation.leave(context, ticket, helped.why, helped.advice)
        case Outcome.LOST | Outcome.STOPPED:
            return Resume(f"{detail}; the attempt resumes with what it left")
        case Outcome.NOT_STARTED:
            return Fail(detail)
        case Outcome.FAILED | Outcome.TIMED_OUT:
            tail = output_end(RunFolder(context.data.runs / this_run.name).output, _LONGEST_TAIL)
            why = f"the agent's program failed ({detail})"
            return next_try(ticket, why, feedback.program_failed(detail, tail), cause=cause_of(how, detail))
        case Outcome.LIMITED:
            until = limit_ends(context, this_run, ended)
            return Park(ParkReason.LIMIT, f"the provider does not serve for now: {detail}", until)
        case Outcome.OUT_OF_BUDGET:
            return Park(ParkReason.BUDGET, f"{detail}: `legion resume {ticket.id}` gives it as much again")
        case Outcome.REFUSED:
            return Park(ParkReason.PROVIDER, f"{detail}: fix it, then `legion resume {ticket.id}`")
        case Outcome.INTERRUPTED:
            return Park(ParkReason.PAUSED, f"a person interrupted it: `legion resume {ticket.id}` resumes it")
        case Outcome.GAVE_UP:
            return Fail(f"the agent gave up: {detail}", feedback.gave_up(detail), cause=cause_of(how, detail))
        case Outcome.FINISHED:
            return None


def ended_by(context: Board, this_run: Run) -> Intervention | None:
    """The watchdog's step that ended the run."""
    with context.store.read() as tx:
        return watchdog.ended_by(tx, this_run.id)


def rest_before(context: Board, ticket: Ticket, ended: EndedRun | LostRun, saved: Saved, step: Step) -> Park | None:
    """A pause before the next attempt, where this one ended at once and changed nothing."""
    return None if saved.changed else rest_after(context, ticket, ended, step)


def rest_after(context: Board, ticket: Ticket, ended: EndedRun | LostRun, step: Step) -> Park | None:
    if not isinstance(step, TryAgain) or isinstance(ended, LostRun):
        return None
    at_once = ended.result.ended_at - ended.result.started_at < AT_ONCE
    return rest(ticket, step.reason, context.clock()) if at_once else None


def staggered(tx: Transaction, step: Step) -> Step:
    """A limit stops many tickets at once; each gets its own moment to resume, in the transaction that takes it."""
    if not isinstance(step, Park) or step.reason is not ParkReason.LIMIT or step.until is None:
        return step
    waiting = [other.parked for other in tickets.live(tx) if other.parked is not None]
    taken = [other.until for other in waiting if other.reason is ParkReason.LIMIT and other.until is not None]
    return replace(step, until=apart(step.until, taken))


def first_paths(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (", ..." if len(paths) > 3 else "")


def judge_change(
    context: Board, project: ProjectContext, ticket: Ticket, saved: Saved, denials: Sequence[str]
) -> Propose | TryAgain | Fail:
    assert ticket.base is not None, "a started ticket has a base"
    if saved.tree == project.hub.tree_of(ticket.base):
        but = _what_was_changed(saved)
        why = f" (it was denied {', '.join(denials)})" if denials else ""
        advice = feedback.changed_nothing(
            saved.left_out, why, unsaved=saved.unsaved, elsewhere=saved.elsewhere, submodules=saved.submodules
        )
        again = _changed_nothing_before(context, project, ticket)
        return next_try_after_no_change(ticket, f"it changed nothing{but}{why}", advice, again=again)
    changed = [change.path for change in project.hub.changed_files(ticket.base, saved.commit)]
    private = undeclared(changed, environment.kept_out(context, project), ())
    if private:
        return next_try(
            ticket, f"it changed protected files ({first_paths(private)})", feedback.touched_protected(private)
        )
    if found := save.faults(project.hub, Change(base=ticket.base, commit=saved.commit)):
        named = first_paths([one.path for one in found])
        return next_try(ticket, f"it holds files that cannot land ({named})", feedback.repository_files(found))
    if saved.unfinished is not None:
        advice = feedback.unfinished(saved.unfinished.value, saved.unfinished.remedy)
        return next_try(ticket, f"it left a {saved.unfinished.value} unfinished", advice)
    if paths := _marked(project, ticket.base, saved.commit):
        return next_try(ticket, "it left conflict markers in the tree", feedback.left_markers(paths))
    return Propose(Change(base=ticket.base, commit=saved.commit))


def _what_was_changed(saved: Saved) -> str:
    """What there is of a change that cannot land; continues `it changed nothing`."""
    if saved.elsewhere:
        return f", but has work elsewhere in its repository ({first_paths(saved.elsewhere)})"
    if saved.submodules:
        return f" but submodules ({first_paths(saved.submodules)})"
    return f" but what [setup] made ({first_paths(saved.left_out)})" if saved.left_out else ""


def _changed_nothing_before(context: Board, project: ProjectContext, ticket: Ticket) -> bool:
    """Whether the attempt before this one left the tree of its base, too."""
    if ticket.base is None or ticket.attempt - ticket.spared < 2:
        return False
    with context.store.read() as tx:
        earlier = [run.saved for run in runs.of_ticket(tx, ticket.id, role="") if run.attempt == ticket.attempt - 1]
    last = next((commit for commit in reversed(earlier) if commit is not None), None)
    return last is not None and project.hub.tree_of(last) == project.hub.tree_of(ticket.base)


def _marked(project: ProjectContext, base: str, commit: str) -> tuple[str, ...]:
    """The files with new conflict markers. The patch for programs comes from a process that has run already; renames,
    which it does not follow, matter only where it holds one."""
    hub = project.hub
    patch = hub.patch(base, commit)
    if not additions.may_hold(patch) or not additions.may_hold(hub.diff(base, commit)):
        return ()
    return additions.marked(diffs.read(patch))


def limit_ends(context: Board, this_run: Run, ended: EndedRun | LostRun) -> float:
    """The moment from which a limited run may resume."""
    with context.store.read() as tx:
        earlier = runs.of_seat(tx, this_run)
    return wakes_at(context.clock(), resets_at(context, this_run, ended), earlier)


def resets_at(context: Board, this_run: Run, ended: EndedRun | LostRun) -> float | None:
    """The reset that the agent's program reported, else the last one that its provider reported to any run.

    Claude Code itself waits for a reset that is near, and may report nothing of the next refusal.
    """
    reported = ended.result.until if isinstance(ended, EndedRun) else None
    if reported is not None and reported > context.clock():
        return reported
    with context.store.read() as tx:
        # The run's access was stored after the job had read the run.
        limit = usage.limits(tx).get(runs.get(tx, this_run.id).access)
    return limit.resets_at if limit is not None and limit.at >= this_run.started_at and limit.status != 200 else None


# Handles the journal of a running agent, event by event: its questions, and the limits and usage that it reports.

_SPANS = {"five_hour": "5h", "seven_day": "7d"}
_COUNTED_BY_THE_PROGRAM = {OwnLogin.label: OWN_LOGIN, OWN_ACCOUNT: "its own account"}
"""By the run's access, the provider under which its usage is stored."""
_REFUSED, _SERVED = 429, 200


def listener(context: Board, source: QuestionSource, this_run: Run) -> Callable[[JournalEvent], None]:
    """Gets every event of the run's journal, again from the first one after a restart."""
    handle_question = questions.listener(context, source, this_run)

    def handle(event: JournalEvent) -> None:
        handle_question(event)
        if event.kind == "limit":
            _record_limit(context, this_run, event)
        elif event.kind in ("conversation", "result"):
            record_usage(context, this_run, event)

    return handle


def _record_limit(context: Board, this_run: Run, event: JournalEvent) -> None:
    """With the person's own login only the program learns of the limit; otherwise the gateway knows better."""
    with context.store.read() as tx:
        known = usage.limits(tx).get(OWN_LOGIN)
        own = runs.get(tx, this_run.id).access == OwnLogin.label
    if not own or (known is not None and known.at >= event.time):
        return
    used, resets_at, span = (event.facts.get(name) for name in ("utilization", "resets_at", "window"))
    limit = ProviderLimit(
        provider=OWN_LOGIN,
        at=event.time,
        status=_REFUSED if event.facts.get("status") == "rejected" else _SERVED,
        span=_SPANS.get(str(span), str(span or "")),
        utilization=float(used) if isinstance(used, int | float) else None,
        resets_at=float(resets_at) if isinstance(resets_at, int | float) else None,
    )
    with context.store.write() as tx:
        usage.note_limit(tx, limit)
        # Other tickets may be able to start now.
        tx.tell()


def record_usage(context: Board, this_run: Run, event: JournalEvent) -> None:
    """Outside of the gateway only the program counts, from the start of the conversation on."""
    models, turns = event.facts.get("models"), event.facts.get("turns")
    with context.store.read() as tx:
        account = _COUNTED_BY_THE_PROGRAM.get(runs.get(tx, this_run.id).access)
    if account is None:
        return
    at = (this_run.id, event.number)
    if event.kind == "conversation" and not event.facts.get("resumed"):
        with context.store.write() as tx:
            usage.count_from_zero(tx, this_run.conversation, at)
    if event.kind != "result" or not isinstance(models, Mapping):
        return
    day, requests = day_of(event.time), turns if isinstance(turns, int) else 0
    reported = read_spec(context.data.runs / this_run.name).profile.usage(models)
    with context.store.write() as tx:
        for model, counted in reported.items():
            spent = Spending(
                run=this_run.id, provider=account, model=model, day=day, usage=replace(counted, requests=requests)
            )
            usage.add_report(tx, this_run.conversation, at, spent)
            requests = 0


_TOO_LARGE = re.compile(
    r"(?i)\b(?:too|very) (?:large|big|long|broad)\b|\btoo (?:much|many)\b"
    r"|\bcontext (?:window|length|limit)\b|\bsplit (?:it|this|the ticket|up)\b|\bshould be split\b"
)


def cause_of(outcome: Outcome, detail: str) -> Cause:
    """The cause of a run that did not finish: its time was up, its context was full, or its agent said so."""
    if outcome is Outcome.TIMED_OUT:
        return Cause.SIZE
    told = outcome in (Outcome.GAVE_UP, Outcome.FAILED) and _TOO_LARGE.search(detail)
    return Cause.SIZE if told else Cause.ATTEMPT
