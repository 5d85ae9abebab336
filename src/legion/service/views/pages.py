"""What people look at: the board, a ticket's page, the graph. Read only."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import parse
from legion.config.sections.machine import SandboxMode
from legion.domain.agents.agent import Planning
from legion.domain.checks import Receipt
from legion.domain.errors import BadInput
from legion.domain.events import Event, EventKind
from legion.domain.projects import Project
from legion.domain.scheduling.decide import JobKind
from legion.domain.scheduling.usage import total
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.context import Context
from legion.jobs.workspace.save import worktree_name
from legion.service import questions as asking
from legion.service.projects import registry as project_cases
from legion.service.projects import trust
from legion.service.shared.fragments import run_line, usage_line
from legion.service.tickets import crews, review
from legion.service.views import evidence
from legion.service.views.environment import environment_line
from legion.service.views.ticket_line import TicketLines, clashes_of, resting, told
from legion.store import events
from legion.store.board import plan_approvals, projects, questions, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage
from legion.wire.projects import DaemonLine, Graph, ProjectLine, Status
from legion.wire.tickets import EventLine, PredictedConflictLine, ReceiptLine, TicketPage

_RECENT = 50
"""Ended tickets that a plain status lists."""


def status(context: Context, daemon: DaemonLine, cwd: str | None, everything: bool) -> Status:
    here = project_cases.find_or_none(context, cwd) if cwd else None
    with context.store.read() as tx:
        known = projects.all(tx)
        wanted = here.id if here else None
        live = tickets.live(tx, project=wanted)
        counts = tickets.counts(tx, wanted)
        ended_count = sum(count for state, count in counts.items() if state in _ENDED)
        ended = {one.id: one for one in tickets.recent(tx, wanted, limit=ended_count if everything else _RECENT)}
        # What failed waits for a person, however much has ended since.
        ended |= {one.id: one for one in tickets.recent(tx, wanted, limit=_RECENT, state=State.FAILED)}
        shown = sorted([*live, *ended.values()], key=lambda ticket: ticket.id)
        lines = TicketLines(context, tx, shown)
        return Status(
            daemon=_walled(context, daemon),
            project=_project_line(context, tx, here) if here else None,
            projects=[_project_line(context, tx, project) for project in known],
            counts={state.value: count for state, count in counts.items()},
            tickets=[lines.line(ticket) for ticket in shown],
            omitted=max(0, ended_count - len(ended)),
            last_event=events.last(tx),
            questions=len(questions.open_ones(tx)),
            usage=usage_line(usage.of_tickets(tx, wanted)),
        )


def _walled(context: Context, daemon: DaemonLine) -> DaemonLine:
    """With what is in force: settings may switch off at any time what works."""
    if context.user.sandbox.mode is SandboxMode.OFF:
        return replace(daemon, sandbox="off, by your settings", sandbox_missing=False)
    return daemon


_ENDED = (State.DONE, State.FAILED, State.STOPPED)


def _project_line(context: Context, tx: ReadTransaction, project: Project) -> ProjectLine:
    trusted = projects.is_trusted(tx, project.id, project.config_hash)
    unreadable = unreadable_settings(project)
    baseline = "none"
    if not unreadable and context.workshop_of(project).config.checks:
        baseline = project.baseline_verdict.value if project.baseline_known and project.baseline_verdict else "unknown"
    notes = []
    if not Path(project.common_dir).is_dir():
        notes.append(f"its repository is gone: bring it back, or `legion init --remove {shlex.quote(project.root)}`")
    if unreadable:
        notes.append(f"nothing of it runs: {unreadable}")
    if not trusted:
        notes.append("legion.toml is not trusted: read it and run `legion trust`")
    elif trust.stale(project):
        notes.append("legion.toml changed since you trusted it and is not in force: run `legion trust`")
    if project.person_refused is not None and project.person_refused == project.person_tip:
        why = events.latest(tx, project.id, EventKind.NOT_ABSORBED)
        said = f"{why.data['why']}; {why.data['remedy']}" if why else ""
        notes.append(f"your commit {project.person_refused[:8]} is not in the target: {said}")
    if project.baseline_red:
        notes.append("the target itself fails its checks; no ticket is blamed for that")
    for command, times in flaky(context, tx, project.id).items():
        notes.append(f"the check `{command}` is flaky: red, then green on the same tree ({times})")
    for kind, work in ((JobKind.LAND, "landing"), (JobKind.BASELINE, "checking the target")):
        rest = resting(context).get((kind, project.id))
        if rest is not None:
            notes.append(f"{work} is {told(rest, context.clock())}")
    return ProjectLine(
        name=project.name,
        root=project.root,
        branch=project.branch,
        paused=project.paused,
        trusted=trusted,
        target=project.target,
        baseline=baseline,
        ahead=ahead(context, project),
        notes=notes,
    )


def unreadable_settings(project: Project) -> str:
    """What is wrong with its stored legion.toml and how to fix it; empty for one that can be parsed."""
    try:
        parse(project.config_text)
    except BadInput as wrong:
        fix = "fix the file in your checkout and run `legion trust`"
        return f"its legion.toml cannot be read ({wrong.message.rstrip('.')}): {fix}"
    return ""


def ahead(context: Context, project: Project) -> int:
    """Landed commits that the person's branch lacks."""
    if not project.person_absorbed or not project.target or project.person_absorbed == project.target:
        return 0
    hub = context.hub(project.id)
    return len(hub.commits_between(project.person_tip or project.person_absorbed, project.target))


_FLAKY_DAYS = 7


def flaky(context: Context, tx: ReadTransaction, project: int) -> dict[str, str]:
    """Checks that said both red and green about the same tree lately, and how often."""
    found = events.since(tx, project, EventKind.FLAKY, context.clock() - _FLAKY_DAYS * 86_400)
    counted = Counter(str(event.data["command"]) for event in found)
    return {
        command: f"{'once' if count == 1 else f'{count} times'} in {_FLAKY_DAYS} days"
        for command, count in counted.items()
    }


def ticket_page(context: Context, ticket_id: int) -> TicketPage:
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        project_context = context.workshop_of(projects.get(tx, ticket.project))
        line = TicketLines(context, tx, [ticket]).line(ticket)
        all_runs = runs.of_ticket(tx, ticket_id)
        proofs = receipts.of_ticket(tx, ticket_id)
        history = events.of_ticket(tx, ticket_id)
        named = receipts.get_many(tx, _named_receipts(history))
        confirmed = evidence.confirmed(tx, project_context, ticket)
        names = {project.id: project.name for project in projects.all(tx)}
        spent = usage.of_runs(tx, [run.id for run in all_runs])
        asked = [question for question in questions.open_ones(tx) if question.ticket == ticket_id]
        waiting = asking.lines(tx, asked)
        read = verdicts.of_ticket(tx, ticket_id)
        undone_by = [other.id for other in tickets.undoing(tx, ticket_id)]
        plan = plan_approvals.of_ticket(tx, ticket_id)
    latest = next((run for run in reversed(all_runs) if not run.role), None)
    spec, change = ticket.spec, ticket.change
    worktree, changed = _on_disk(context, ticket)
    return TicketPage(
        ticket=line,
        text=spec.text,
        context=spec.context,
        criteria=spec.criteria,
        plan=spec.plan,
        files=list(spec.files),
        prove=list(spec.proofs),
        driver=spec.driver,
        command=spec.command,
        model=spec.model,
        feedback=ticket.feedback,
        cause=_cause(history),
        parked_until=ticket.parked.until if ticket.parked else None,
        base=ticket.base,
        change=change.commit if change else None,
        landed=ticket.landed,
        worktree=worktree,
        runs=[run_line(run, spent.get(run.id)) for run in all_runs],
        receipts=[receipt_line(context, receipt) for receipt in _without_repeats((*proofs, *named, *confirmed))],
        history=[event_line(event, names) for event in history],
        changed_files=changed,
        environment=environment_line(context, latest, worktree),
        conversation=latest.conversation if latest and latest.access else "",
        access=latest.access if latest else "",
        usage=usage_line(total(spent.values())),
        budget=spec.budget,
        ask=spec.asks,
        planning=(plan.stage if plan is not None else Planning.NONE).value,
        proposal=plan.text if plan is not None else "",
        questions=waiting,
        undone_by=undone_by,
        clashes=_clash_lines(context, ticket),
        weakened=evidence.weakened(project_context, ticket),
        accept=list(spec.acceptance),
        labels=list(spec.labels),
        crew=crews.line(context, project_context, ticket, all_runs),
        reversal=evidence.reversal(history),
        reviews=review.lines(ticket, read),
        evidence=evidence.lines(
            project_context, ticket, history, _without_repeats((*proofs, *named, *confirmed)), read, changed
        ),
    )


def _clash_lines(context: Context, ticket: Ticket) -> list[PredictedConflictLine]:
    return [
        PredictedConflictLine(
            ticket=clash.theirs,
            path=place.path,
            first=place.mine[0],
            last=place.mine[1],
            their_first=place.theirs[0],
            their_last=place.theirs[1],
        )
        for clash in clashes_of(context, ticket)
        for place in clash.places
    ]


def _on_disk(context: Context, ticket: Ticket) -> tuple[str | None, list[str]]:
    """Its worktree and what its change touches. A removed project has neither any more."""
    project_context = context.workshop(ticket.project)
    if project_context.project.removed_at is not None:
        return None, []
    tree = project_context.worktrees.path(worktree_name(ticket.id))
    change = ticket.change
    changed = project_context.hub.changed_files(change.base, change.commit) if change else ()
    return (str(tree) if tree.exists() else None), [file.path for file in changed]


def _cause(history: Iterable[Event]) -> str:
    """Why the ticket came to where it is, if its last move was back or the end."""
    moves = [event.data for event in history if event.kind is EventKind.TICKET_MOVED]
    return str(moves[-1].get("cause", "")) if moves else ""


def _named_receipts(history: Iterable[Event]) -> list[int]:
    """The receipts that sent it back from the merge queue, and those that let it land."""
    listed = [event.data.get("receipts") for event in history]
    return [number for numbers in listed if isinstance(numbers, list) for number in numbers]


def _without_repeats(all_receipts: Iterable[Receipt]) -> list[Receipt]:
    return sorted({receipt.id: receipt for receipt in all_receipts}.values(), key=lambda receipt: receipt.id)


def graph(context: Context, cwd: str) -> Graph:
    """The board of a project: all live tickets, what they come after, and the last ended ones."""
    project = project_cases.find(context, cwd)
    with context.store.read() as tx:
        live = tickets.live(tx, project=project.id)
        shown = {ticket.id: ticket for ticket in (*live, *tickets.recent(tx, project.id, limit=_RECENT))}
        lines = TicketLines(context, tx, shown.values())
    edges = {number: [other for other in ticket.spec.after if other in shown] for number, ticket in shown.items()}
    cost = {number: 0.0 if ticket.state is State.DONE else 1.0 for number, ticket in shown.items()}
    return Graph(
        tickets=[lines.line(ticket) for _, ticket in sorted(shown.items())],
        edges=[[number, other] for number, after in sorted(edges.items()) for other in after],
        waves=board.waves(edges),
        critical_path=board.critical_path(edges, cost),
    )


def receipt_line(context: Context, receipt: Receipt) -> ReceiptLine:
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
        output=str(context.data.root / receipt.output) if receipt.output else "",
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
