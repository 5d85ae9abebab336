"""The board of a project as `legion status` and `legion status graph` show it. Read only."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

from legion.domain.events import EventKind
from legion.domain.landing.filter_rules import filter_sentence
from legion.domain.projects import Project
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State
from legion.jobs.board import Board
from legion.jobs.checks import red_checks
from legion.jobs.trees import Trees
from legion.service.projects import registry, trials, trust
from legion.service.projects.collect import ahead
from legion.service.projects.sessions import rewritten_note, session_notes
from legion.service.projects.trust import unreadable_settings
from legion.service.shared.fragments import shaped, usage_line
from legion.service.views.ticket_line import TicketLines, describe_backoff, pending_backoffs
from legion.store import events
from legion.store.board import goals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import usage
from legion.wire.board import DaemonLine, Graph, ProjectLine, ProjectList, Status
from legion.wire.projects import TrialPage

_RECENT = 50
"""Ended tickets that `legion status` lists without --all."""


def status(context: Trees, daemon: DaemonLine, cwd: str | None, everything: bool) -> Status:
    here = registry.find_or_none(context, cwd) if cwd else None
    with context.store.read() as tx:
        known = projects.all(tx)
        wanted = here.id if here else None
        live = tickets.live(tx, project=wanted)
        counts = tickets.counts(tx, wanted)
        ended_count = sum(count for state, count in counts.items() if state in _ENDED)
        ended = {one.id: one for one in tickets.recent(tx, wanted, limit=ended_count if everything else _RECENT)}
        # A failed ticket waits for a person, however many have ended since.
        ended |= {one.id: one for one in tickets.recent(tx, wanted, limit=_RECENT, state=State.FAILED)}
        shown = sorted([*live, *ended.values()], key=lambda ticket: ticket.id)
        lines = TicketLines(context, tx, shown)
        asked = [question.project for question in questions.open_ones(tx)]
        return Status(
            daemon=_with_sandbox_setting(context, daemon),
            project=_project_line(context, tx, here) if here else None,
            projects=[_project_line(context, tx, project) for project in known],
            counts={state.value: count for state, count in counts.items()},
            tickets=[lines.line(ticket) for ticket in shown],
            omitted=max(0, ended_count - len(ended)),
            last_event=events.last(tx),
            questions=len(asked),
            questions_elsewhere=sum(bool(one) and one != wanted for one in asked) if wanted else 0,
            plans=len(goals.undecided(tx, wanted)),
            usage=usage_line(usage.of_project(tx, wanted)),
        )


def all_projects(context: Trees) -> ProjectList:
    with context.store.read() as tx:
        return ProjectList(projects=[_project_line(context, tx, project) for project in projects.all(tx)])


def _with_sandbox_setting(context: Board, daemon: DaemonLine) -> DaemonLine:
    """The sandbox was probed at the start; the settings may have switched it off since."""
    if context.user.sandbox.is_off:
        return replace(daemon, sandbox="off, by your settings", sandbox_missing=False)
    return daemon


_ENDED = (State.DONE, State.FAILED, State.STOPPED)


def _project_line(context: Trees, tx: ReadTransaction, record: Project) -> ProjectLine:
    trusted = projects.is_trusted(tx, record.id, record.config_hash)
    unreadable = unreadable_settings(record)
    baseline = "none"
    project = None if unreadable else context.project_of(record)
    if project is not None and project.config.checks:
        baseline = record.baseline_verdict.value if record.baseline_known and record.baseline_verdict else "unknown"
    notes = []
    if not Path(record.common_dir).is_dir():
        notes.append(
            "its repository is missing: if you moved it, run `legion init` there; if you deleted it, "
            f"`legion init --remove {shlex.quote(record.root)}`"
        )
    for failed in context.live.scheduler.undecided.current.values():
        notes.append(f"nothing new starts; {describe_backoff(failed, context.clock())}")
    notes += session_notes(tx, record)
    notes += rewritten_note(project) if project is not None else []
    if unreadable:
        notes.append(f"nothing of it runs: {unreadable}")
    if not trusted:
        notes.append("legion.toml is not trusted: read it and run `legion trust`")
    elif trust.stale(record):
        notes.append("legion.toml changed since you trusted it and is not in force: run `legion trust`")
    refused = record.person_refused is not None and record.person_refused == record.person_tip
    if refused:
        why = events.latest(tx, record.id, EventKind.NOT_ABSORBED)
        detail = f"{why.data['why']}; {why.data['remedy']}" if why else ""
        notes.append(f"your commit {(record.person_refused or '')[:8]} is not in the target: {detail}")
        notes += red_checks.sentences(context, red_checks.by_ids(tx, why.data.get("receipts") if why else None))
    if record.baseline_red:
        notes.append(
            "the target itself fails its checks, for which no ticket is blamed: "
            f"fix that on {record.branch} and commit; tickets that wait for it then continue by themselves"
        )
        notes += red_checks.sentences(context, red_checks.on_commit(tx, record.id, record.target))
    if project is not None and trusted:
        notes += _trial_notes(trials.page_of(context, tx, project))
    if project is not None and project.hub.path.is_dir():
        filters = project.hub.filters(record.target)
        notes += [filter_sentence(name, why) for name, why in (filters.refused.items() if filters else ())]
    for command, times in flaky(context, tx, record.id).items():
        notes.append(f"the check `{command}` is flaky: red, then green on the same tree ({times})")
    for kind, work in ((JobKind.LAND, "landing"), (JobKind.BASELINE, "checking the target")):
        backoff = pending_backoffs(context).get((kind, record.id))
        if backoff is not None:
            notes.append(f"{work} is {describe_backoff(backoff, context.clock())}")
    return shaped(
        ProjectLine,
        record,
        trusted=trusted,
        baseline=baseline,
        ahead=ahead(context, record),
        open=tickets.how_many_live(tx, record.id),
        collectable=not refused and not record.upstream_pending,
        notes=notes,
    )


def _trial_notes(found: TrialPage) -> list[str]:
    """What a person should know about the trial of the checks; nothing where they see the code."""
    if found.state == "running":
        return [f"the checks are tried before changes land on them: {found.steps[-1]}"]
    if found.state == "failed":
        return [f"the trial of the checks could not run, and is repeated: {found.trouble}"]
    if found.setup_fault:
        return [f"[setup] fails, so no check can run: {found.setup_fault}", f"to go on: {found.remedy}"]
    if not found.doubts:
        return []
    answer = "you trust the checks all the same" if found.trusted else found.remedy
    return [f"{'; '.join(found.doubts)}: {answer}"]


_FLAKY_DAYS = 7


def flaky(context: Board, tx: ReadTransaction, project: int) -> dict[str, str]:
    """Checks that were both red and green on the same tree in the last days, and how often."""
    found = events.since(tx, project, EventKind.FLAKY, context.clock() - _FLAKY_DAYS * 86_400)
    counted = Counter(str(event.data["command"]) for event in found)
    return {
        command: f"{'once' if count == 1 else f'{count} times'} in {_FLAKY_DAYS} days"
        for command, count in counted.items()
    }


def graph(context: Trees, cwd: str) -> Graph:
    """All live tickets of a project and the last ended ones, with their dependencies."""
    project = registry.find(context, cwd)
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
