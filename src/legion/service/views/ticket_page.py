"""The page of one ticket, as `legion ticket` shows it. Read only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from legion.domain.agents.agent import Planning
from legion.domain.checks import HELD_OUT, Receipt
from legion.domain.events import Event, EventKind
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import deciding
from legion.domain.review.verdicts import ReviewRequest
from legion.domain.runs import Run
from legion.domain.scheduling.job_places import JobKind
from legion.domain.scheduling.usage import total
from legion.domain.tickets import evidence
from legion.domain.tickets.evidence import Backing
from legion.domain.tickets.spec import Statements, statements_in
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.agent.resume_prompt import output_end
from legion.jobs.board import Board
from legion.jobs.checks import approvals
from legion.jobs.run.job import run_dir
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import environment, quota, slots
from legion.jobs.workspace.environment import HookRun
from legion.jobs.workspace.save import worktree_name
from legion.runner.spec import RunFolder
from legion.service.questions import question_lines
from legion.service.shared.fragments import event_line, run_line, shaped, usage_line
from legion.service.tickets import crews, review
from legion.service.views.ticket_line import TicketLines, predicted_conflicts
from legion.store import events
from legion.store.board import plan_approvals, projects, questions, receipts, tickets, verdicts
from legion.store.board.receipts import for_tree
from legion.store.database.transactions import ReadTransaction
from legion.store.work import claims, runs, usage
from legion.wire.ticket_pages import (
    CommandLine,
    EnvironmentLine,
    EvidenceLine,
    HiddenCharacterLine,
    PredictedConflictLine,
    ReceiptLine,
    ReversalLine,
    TicketPage,
    UnprovenLine,
    WeakeningLine,
)


def ticket_page(context: Trees, ticket_id: int) -> TicketPage:
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        project = context.project_of(projects.get(tx, ticket.project))
        line = TicketLines(context, tx, [ticket]).line(ticket)
        all_runs = runs.of_ticket(tx, ticket_id)
        proofs = receipts.of_ticket(tx, ticket_id)
        history = events.of_ticket(tx, ticket_id)
        named = receipts.get_many(tx, _named_receipts(history))
        confirmed = confirmed_receipts(tx, project, ticket)
        names = {record.id: record.name for record in projects.all(tx)}
        spent = usage.of_runs(tx, [run.id for run in all_runs])
        asked = [question for question in questions.open_ones(tx) if question.ticket == ticket_id]
        waiting = question_lines(tx, asked)
        read = verdicts.of_ticket(tx, ticket_id)
        undone_by = [other.id for other in tickets.undoing(tx, ticket_id)]
        plan = plan_approvals.of_ticket(tx, ticket_id)
        job = claims.latest(tx, JobKind.REVIEW if ticket.state is State.REVIEWING else JobKind.RUN, ticket_id)
    latest = next((run for run in reversed(all_runs) if not run.role), None)
    without = reversal(history)
    spec, change = ticket.spec, ticket.change
    worktree, changed = _on_disk(project, ticket)
    said = _statements(context, latest)
    return shaped(
        TicketPage,
        ticket,
        spec,
        ticket=line,
        prove=list(spec.proofs),
        cause=_cause(history),
        parked_until=ticket.parked.until if ticket.parked else None,
        change=change.commit if change else None,
        worktree=worktree,
        runs=[run_line(run, spent.get(run.id)) for run in all_runs],
        receipts=[_receipt_line(context, one, without) for one in _without_repeats((*proofs, *named, *confirmed))],
        not_needed=_not_needed(history),
        merged=next((str(one.data.get("merged", "")) for one in history if one.kind is EventKind.LANDED), ""),
        history=[event_line(event, names) for event in history],
        changed_files=changed,
        environment=environment_line(context, latest, worktree),
        conversation=latest.conversation if latest and latest.access else "",
        forked_from=_forked_from(history),
        access=latest.access if latest else "",
        usage=usage_line(total(spent.values())),
        progress=said.status,
        smoke_tests=said.smoke_tests,
        machine=job.machine if job else "",
        placed_because=job.why if job else "",
        ask=spec.asks,
        gate=spec.gate.value if spec.gate is not None else "",
        planning=(plan.stage if plan is not None else Planning.NONE).value,
        proposal=plan.text if plan is not None else "",
        questions=waiting,
        undone_by=undone_by,
        clashes=_conflict_lines(context, ticket),
        weakened=weakened(project, ticket),
        hidden_characters=hidden(project, ticket),
        accept=list(spec.acceptance),
        retires=list(spec.retires),
        crew=crews.crew_line(context, project, ticket, all_runs),
        reversal=without,
        reviews=review.review_lines(ticket, read),
        evidence=evidence_lines(
            project, ticket, history, _without_repeats((*proofs, *named, *confirmed)), read, changed
        ),
    )


def _statements(context: Board, run: Run | None) -> Statements:
    if run is None:
        return Statements()
    return statements_in(output_end(RunFolder(run_dir(context, run)).output, _READ))


def _conflict_lines(context: Board, ticket: Ticket) -> list[PredictedConflictLine]:
    return [
        PredictedConflictLine(
            ticket=conflict.theirs,
            path=place.path,
            first=place.mine[0],
            last=place.mine[1],
            their_first=place.theirs[0],
            their_last=place.theirs[1],
            definition=place.name,
        )
        for conflict in predicted_conflicts(context, ticket)
        for place in conflict.places
    ]


def _on_disk(project: ProjectContext, ticket: Ticket) -> tuple[str | None, list[str]]:
    """Its worktree and the paths that its change touches. A removed project has neither."""
    if project.record.removed_at is not None:
        return None, []
    tree = project.worktrees.path(worktree_name(ticket.id))
    change = ticket.change
    changed = project.hub.changed_files(change.base, change.commit) if change else ()
    return (str(tree) if tree.exists() else None), [file.path for file in changed]


def _forked_from(history: Iterable[Event]) -> str:
    found = [event.data for event in history if event.kind is EventKind.TICKET_FORKED]
    return f"{found[-1]['seat']}, run {found[-1]['run']}" if found else ""


def _cause(history: Iterable[Event]) -> str:
    """The cause of its last move, if that sent it back or ended it."""
    moves = [event.data for event in history if event.kind is EventKind.TICKET_MOVED]
    return str(moves[-1].get("cause", "")) if moves else ""


def _named_receipts(history: Iterable[Event]) -> list[int]:
    """The receipts with which the merge queue sent it back or landed it."""
    listed = [event.data.get("receipts") for event in history]
    return [number for numbers in listed if isinstance(numbers, list) for number in numbers]


def _not_needed(history: Iterable[Event]) -> list[str]:
    listed = [event.data.get("not_needed") for event in history if event.kind is EventKind.LANDED]
    left_out = listed[-1] if listed and isinstance(listed[-1], dict) else {}
    return [f"{name}: touches nothing of {', '.join(map(str, paths))}" for name, paths in left_out.items()]


def _without_repeats(all_receipts: Iterable[Receipt]) -> list[Receipt]:
    return sorted({receipt.id: receipt for receipt in all_receipts}.values(), key=lambda receipt: receipt.id)


def _receipt_line(context: Board, receipt: Receipt, tried: ReversalLine | None) -> ReceiptLine:
    without = "" if tried is None else "red" if receipt.command in tried.red else "green"
    known = tried is not None and receipt.command in (*tried.red, *tried.idle)
    output = str(context.data.root / receipt.output) if receipt.output else ""
    return shaped(ReceiptLine, receipt, output=output, without=without if known else "")


_READ = 200_000
"""Bytes at the end of an agent's output in which its reports on its progress are looked for."""
_MOST_COUNTED = 100_000
"""More are not counted, because a person waits for the page."""


def environment_line(context: Board, latest: Run | None, worktree: str | None) -> EnvironmentLine | None:
    """None before the first run."""
    if latest is None:
        return None
    slot = slots.held(context, latest)
    record = environment.read_record(context, latest)
    temp = slots.temp(context, latest.seat)
    tree_size = quota.measure((Path(worktree),) if worktree else (), most=_MOST_COUNTED)
    temp_size = quota.measure((temp,), most=_MOST_COUNTED)
    return EnvironmentLine(
        run=latest.id,
        slot=slot.number if slot else None,
        ports=list(slot.ports) if slot else [],
        listening=list(slots.listening(context, slot.ports, latest)) if slot else [],
        temp=str(temp) if temp.exists() else None,
        temp_bytes=temp_size.bytes,
        worktree_bytes=tree_size.bytes,
        all_counted=tree_size.whole and temp_size.whole,
        limit_bytes=quota.limit(context, latest),
        up=_command_line(record.up_result),
        down=_command_line(record.down_result),
        notes=list(record.notes),
    )


def _command_line(ran: HookRun | None) -> CommandLine | None:
    return None if ran is None else shaped(CommandLine, ran)


# The evidence on a ticket's page: what proves each criterion, weakened tests, proof by reversal.


def weakened(project: ProjectContext, ticket: Ticket) -> list[WeakeningLine]:
    """Signs that its change weakens tests, whether or not it was allowed to touch them."""
    if ticket.change is None or project.record.removed_at is not None:
        return []
    return [shaped(WeakeningLine, one) for one in approvals.find_weakenings(project, ticket, ticket.change)]


def hidden(project: ProjectContext, ticket: Ticket) -> list[HiddenCharacterLine]:
    """Characters that its change adds and a screen does not show."""
    if ticket.change is None or project.record.removed_at is not None:
        return []
    return [shaped(HiddenCharacterLine, one) for one in approvals.find_hidden(project, ticket.change)]


def evidence_lines(
    project: ProjectContext,
    ticket: Ticket,
    history: Sequence[Event],
    receipts: Sequence[Receipt],
    read: Sequence[ReviewRequest],
    changed: Sequence[str],
) -> list[EvidenceLine]:
    """`receipts` are all that the page shows, `read` the reviews of its changes, `changed` its paths."""
    checks = {check.name: check.command for check in project.config.checks}
    there = ticket.spec.checkpoint and ticket.landed is not None and project.record.removed_at is None
    tree = project.hub.tree_of(ticket.landed) if there and ticket.landed else ""
    landed_on = _landed_on(ticket, history, receipts, tree)
    since = _attempt_started(history)
    tried = reversal(history)
    idle, red = (tried.idle, tried.red) if tried else ([], [])
    fresh = [receipt for receipt in receipts if receipt.made_at >= since]
    return [
        EvidenceLine(
            criterion=one.words,
            backing=one.backing.value,
            by=one.by,
            commit=one.receipt.commit if one.receipt else None,
            idle=one.by in idle,
            own=one.backing is not Backing.READ and _changed_the_proof(changed, one.by),
        )
        for one in evidence.weigh(
            ticket.spec.criteria,
            ticket.spec.bound,
            checks,
            fresh,
            landed_on,
            _reviewed(ticket, read),
            None if ticket.spec.checkpoint else red,
        )
    ]


def _changed_the_proof(changed: Sequence[str], command: str) -> bool:
    named = deciding([command])
    return any(matches(path, named, any_case=True) for path in changed)


def _reviewed(ticket: Ticket, read: Sequence[ReviewRequest]) -> dict[int, str]:
    """By a criterion's index, what the last reviewer of the present change wrote if it found the criterion met."""
    given = [one for one in read if ticket.change is not None and one.commit == ticket.change.commit and one.verdict]
    judgements = [(one.reviewer, judged) for one in given if one.verdict is not None for judged in one.verdict.criteria]
    last = {judged.number - 1: (reader, judged) for reader, judged in judgements}
    return {place: f"{reader}: {judged.why or 'met'}" for place, (reader, judged) in last.items() if judged.met}


def reversal(history: Sequence[Event]) -> ReversalLine | None:
    """The result for the latest attempt's change; None if there is none."""
    since = _attempt_started(history)
    found = [event.data for event in history if event.kind is EventKind.REVERSED and event.at >= since]
    if not found:
        return None
    data: Any = found[-1]
    return ReversalLine(
        idle=list(data["idle"]),
        red=list(data.get("red", ())),
        unproven=[UnprovenLine(**one) for one in data["unproven"]],
        tried=data["tried"],
        left=data["left"],
    )


def confirmed_receipts(tx: ReadTransaction, project: ProjectContext, ticket: Ticket) -> tuple[Receipt, ...]:
    """The receipts that a done checkpoint is based on: of its commands on its tree, from any ticket."""
    if not ticket.spec.checkpoint or ticket.landed is None or project.record.removed_at is not None:
        return ()
    tree = project.hub.tree_of(ticket.landed)
    commands = {*(check.command for check in project.config.checks), *ticket.spec.proofs}
    names = {f"{HELD_OUT}{name}" for name in ticket.spec.acceptance}
    return tuple(
        receipt
        for receipt in for_tree(tx, ticket.project, tree)
        if receipt.command in commands or receipt.name in names
    )


def _landed_on(
    ticket: Ticket, history: Sequence[Event], receipts: Sequence[Receipt], tree: str
) -> list[Receipt] | None:
    """The receipts with which it landed, or with which a checkpoint is done; None before."""
    if ticket.state is not State.DONE:
        return None
    if ticket.spec.checkpoint:
        return [receipt for receipt in receipts if receipt.tree == tree]
    named = [event.data.get("receipts") for event in history if event.kind is EventKind.LANDED]
    ids = {number for numbers in named if isinstance(numbers, list) for number in numbers}
    return [receipt for receipt in receipts if receipt.id in ids]


def _attempt_started(history: Sequence[Event]) -> float:
    """When the latest attempt started: older results are about an earlier change."""
    started = [event.at for event in history if event.kind is EventKind.RUN_STARTED and not event.data.get("role")]
    return max(started, default=0.0)
