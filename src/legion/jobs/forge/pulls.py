"""Follows the pull request of one ticket: push, open, feedback to the agent, answers, merge, landing.

`store/board/forges.py` has what was done; the forge is read before anything is done again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from legion.domain.checks import CheckResult, Receipt
from legion.domain.events import EventKind
from legion.domain.forge import texts
from legion.domain.forge.connections import TicketPull
from legion.domain.forge.issues import marker
from legion.domain.forge.pulls import (
    CiResult,
    ForgeCheck,
    ForgeReview,
    PullRequest,
    PullStage,
    PullState,
    Remark,
    ReviewRuling,
    approval,
    ci_result,
    feedback,
    merge_fault,
    remarks_of,
)
from legion.domain.forge.texts import ProvenCheck, PullFacts
from legion.domain.plans.checks import shown_point
from legion.domain.plans.plan import GoalPlan
from legion.domain.rules import Rule
from legion.domain.scheduling.usage import total
from legion.domain.tickets import evidence
from legion.domain.tickets.evidence import Backing, criteria_of
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.ticket import Cause, Land, ParkReason, State, Ticket, Unpark
from legion.git.hub import remote
from legion.git.hub.lfs import lfs_files
from legion.git.hub.remote import PushResult
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.forge.clients import Visit
from legion.jobs.forge.notices import digest
from legion.jobs.supervise.outcome import first_paths
from legion.jobs.trees import ProjectContext
from legion.store import epic_sessions, events
from legion.store.board import forges, goals, projects, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import usage

METHODS = ("merge", "squash", "rebase")


def follow(visit: Visit, known: TicketPull) -> None:
    """One look at one pull request. It takes the next step, and the next pass the one after that."""
    if known.stage not in forges.OPEN_STAGES:
        return
    with visit.context.store.read() as tx:
        ticket = None if tickets.dropped(tx, [known.ticket]) else tickets.get(tx, known.ticket)
    if known.stage is PullStage.MERGED:
        _land(visit, known, ticket)
        return
    if ticket is None:
        _withdraw(visit, known, "dropped")
        return
    if ticket.ended and known.stage is not PullStage.OFFERED:
        _withdraw(visit, known, ticket.state.value)
        return
    if known.stage is PullStage.OFFERED:
        if not _waits(ticket):
            _change(visit, known, stage=PullStage.AWAY if known.number else PullStage.CLOSED)
        else:
            _publish(visit, known, ticket)
        return
    if known.number is None:
        return
    pull = visit.forge.pull(known.number)
    if pull is None or pull.state is PullState.CLOSED:
        _closed(visit, known, ticket)
    elif pull.state is PullState.MERGED:
        _change(visit, known, stage=PullStage.MERGED, merged=pull.merge_commit)
    else:
        _watch(visit, known, ticket, pull)


def _waits(ticket: Ticket) -> bool:
    return ticket.parked is not None and ticket.parked.reason is ParkReason.OUTSIDE


def _change(visit: Visit, known: TicketPull, **values: object) -> None:
    with visit.context.store.write() as tx:
        forges.change_pull(tx, known.ticket, **values)


def _publish(visit: Visit, known: TicketPull, ticket: Ticket) -> None:
    """Push the tested commit and open the pull request, or bring an open one up to date."""
    with visit.context.store.read() as tx:
        claim = forges.claim_of_ticket(tx, ticket.id)
    url, settings = visit.remote.url, visit.remote.settings
    exists = known.branch in remote.tips(url, settings, known.branch)
    large = lfs_files(visit.project.hub, visit.base or visit.project.target, known.tested)
    # A branch with this commit was pushed by the person's own git, and the content with it.
    if large and known.tested not in remote.tips(url, settings, "*").values():
        note = (
            f"its change holds files of Git LFS ({first_paths(large)}), whose content Legion does not upload: "
            f"run `legion push {ticket.id}`, which uploads it with your own git"
        )
        _change(visit, known, note=note)
        return
    ours = (known.pushed or (claim.claim if claim is not None else None)) if exists else None
    there = visit.forge.pull_of(known.branch) if known.number is None else visit.forge.pull(known.number)
    if there is not None and there.state is PullState.MERGED and there.commit == known.pushed:
        _change(visit, known, stage=PullStage.MERGED, merged=there.merge_commit, number=there.number, url=there.url)
        return
    if known.number is not None and (there is None or there.state is PullState.CLOSED):
        _closed(visit, known, ticket)
        return
    pushed = remote.push(visit.project.hub, url, settings, known.branch, known.tested, expected=ours)
    if pushed is not PushResult.PUSHED:
        tip = remote.tips(url, settings, known.branch).get(known.branch, "gone")
        note = f"a person pushed to {known.branch}; Legion leaves it alone"
        _change(visit, known, stage=PullStage.OPEN, foreign_commit=tip, note=note)
        return
    _change(visit, known, pushed=known.tested)
    title, body = _described(visit, known, ticket)
    if there is None or there.state is not PullState.OPEN:
        there = visit.forge.open_pull(
            title=title, body=body, branch=known.branch, base=visit.connection.branch, draft=False
        )
    elif digest(body) != known.wrote:
        visit.forge.describe_pull(there.number, title=title, body=body)
    if there.draft:
        visit.forge.set_draft(there, False)
    _answer(visit, known, there)
    _change(visit, known, stage=PullStage.OPEN, number=there.number, url=there.url, wrote=digest(body), note="")


def _described(visit: Visit, known: TicketPull, ticket: Ticket) -> tuple[str, str]:
    facts = gather(visit.context, visit.project, ticket, known.tested or known.pushed or "")
    return texts.pull_title(facts), texts.pull_body(facts)


def _show_what_was_read(visit: Visit, known: TicketPull, ticket: Ticket, pull: PullRequest) -> TicketPull:
    """The last reader of an epic may end after its pull request was opened."""
    with visit.context.store.read() as tx:
        read = _read(_plans(tx, ticket)) if _parts(tx, ticket) else []
    if not read:
        return known
    title, body = _described(visit, known, ticket)
    if digest(body) == known.wrote:
        return known
    visit.forge.describe_pull(pull.number, title=title, body=body)
    _change(visit, known, wrote=digest(body))
    return replace(known, wrote=digest(body))


def _answer(visit: Visit, known: TicketPull, pull: PullRequest) -> None:
    """Answer in the threads of comments that the pushed change dealt with."""
    with visit.context.store.read() as tx:
        open_ones = forges.unanswered(tx, known.ticket)
    for one in open_ones:
        if one.thread is not None:
            text, mark = texts.answer_text(one.source, known.tested), marker(f"answer {one.source}")
            visit.forge.reply(pull.number, one.thread, text, mark=mark)
        with visit.context.store.write() as tx:
            forges.answered(tx, one)


def _watch(visit: Visit, known: TicketPull, ticket: Ticket, pull: PullRequest) -> None:
    if pull.commit == known.pushed and known.foreign_commit:
        known = replace(known, foreign_commit="", note="")
        _change(visit, known, foreign_commit="", note="")
    if pull.commit not in (known.pushed, known.foreign_commit):
        tip = remote.tips(visit.remote.url, visit.remote.settings, known.branch).get(known.branch)
        if tip != known.pushed:
            note = f"a person pushed to {known.branch}; Legion leaves it alone"
            _change(visit, known, foreign_commit=pull.commit, note=note)
        # Else the forge's answer is older than our push.
        return
    known = _show_what_was_read(visit, known, ticket, pull)
    checks, reviews = visit.forge.checks(pull.commit), visit.forge.reviews(pull.number)
    remarks = _new_remarks(visit, known, pull, checks, reviews)
    ci, ruling = _seen(visit, known, checks, reviews)
    if known.foreign_commit:
        return
    if not _waits(ticket):
        if not pull.draft:
            visit.forge.set_draft(pull, True)
        if known.stage is PullStage.OPEN:
            _change(visit, known, stage=PullStage.AWAY)
    elif remarks:
        _send_back(visit, known, pull, remarks)
    elif known.base != visit.project.target:
        _test_again(visit, known)
    elif visit.project.config.landing.automerge and not merge_fault(pull, ci, ruling):
        merge(visit, known, pull, "merge")


def _writers(visit: Visit, logins: list[str]) -> frozenset[str]:
    return frozenset(login for login in set(logins) if visit.forge.may_write(login))


def _new_remarks(
    visit: Visit, known: TicketPull, pull: PullRequest, checks: tuple[ForgeCheck, ...], reviews: tuple[ForgeReview, ...]
) -> list[Remark]:
    comments, lines = visit.forge.comments(pull.number), visit.forge.line_comments(pull.number)
    authors = [*(one.author for one in reviews), *(one.author for one in (*comments, *lines))]
    found = remarks_of(pull.commit, checks, reviews, comments, lines, writers=_writers(visit, authors))
    with visit.context.store.read() as tx:
        old = forges.known_sources(tx, known.project, [one.source for one in found])
    return [one for one in found if one.source not in old]


def _send_back(visit: Visit, known: TicketPull, pull: PullRequest, remarks: list[Remark]) -> None:
    """Feedback for the next attempt, on the same conversation. The remarks are taken in the same transaction."""
    red = any(one.source.startswith("ci:") for one in remarks)
    reason = f"pull request {pull.number}: " + ("CI failed" if red else "a person asked for changes")
    with visit.context.store.write() as tx:
        ticket = tickets.get(tx, known.ticket)
        if not _waits(ticket):
            return
        forges.take(tx, known.project, ticket.id, remarks)
        ticket = tickets.move(tx, ticket.id, Unpark(), rule=Rule.MERGED_ELSEWHERE)
        step = next_try(ticket, reason, feedback(pull.url, remarks), cause=Cause.CHECKS if red else Cause.REVIEW)
        why, rule = escalation.apply_step(visit.context, tx, ticket, step)
        forges.change_pull(tx, ticket.id, stage=PullStage.AWAY)
        data = {"why": why, "receipts": [], "rule": rule.value}
        tx.record(EventKind.SENT_BACK, project=ticket.project, ticket=ticket.id, data=data)


def _test_again(visit: Visit, known: TicketPull) -> None:
    """The target moved: the merge queue tests the change on it and offers the result, or sends a conflict back."""
    with visit.context.store.write() as tx:
        if _waits(tickets.get(tx, known.ticket)):
            tickets.move(tx, known.ticket, Unpark(), rule=Rule.MERGED_ELSEWHERE)
            forges.change_pull(tx, known.ticket, stage=PullStage.AWAY)


def merge(visit: Visit, known: TicketPull, pull: PullRequest, method: str) -> str:
    """Merge exactly what was looked at. Empty where the forge queued it."""
    commit = visit.forge.merge(pull, method)
    if commit:
        _change(visit, known, stage=PullStage.MERGED, merged=commit)
    return commit


def _closed(visit: Visit, known: TicketPull, ticket: Ticket) -> None:
    _change(visit, known, stage=PullStage.CLOSED, note="a person closed the pull request")
    if not ticket.ended:
        visit.actions.stop(ticket.id, f"pull request {known.number} was closed without a merge")


def _withdraw(visit: Visit, known: TicketPull, state: str) -> None:
    """The ticket ended without landing: its pull request is closed, its branch stays."""
    pull = visit.forge.pull(known.number) if known.number is not None else None
    if pull is not None and pull.state is PullState.MERGED:
        _change(visit, known, stage=PullStage.MERGED, merged=pull.merge_commit)
        return
    if pull is not None and pull.state is PullState.OPEN and not known.foreign_commit:
        visit.forge.close_pull(pull.number)
    _change(visit, known, stage=PullStage.CLOSED, note=f"the ticket is {state}")


def _land(visit: Visit, known: TicketPull, ticket: Ticket | None) -> None:
    """The forge merged it. The ticket is done when the target contains the merge, which has passed the checks then."""
    hub, project = visit.project.hub, visit.project
    if hub.resolve(known.merged) is None or not hub.is_ancestor(known.merged, project.target):
        return
    if ticket is None:
        _change(visit, known, stage=PullStage.LANDED)
        return
    with visit.context.store.write() as tx:
        ticket = tickets.get(tx, known.ticket)
        if _waits(ticket):
            ticket = tickets.move(tx, ticket.id, Unpark(), rule=Rule.MERGED_ELSEWHERE)
        if ticket.state is State.LANDING:
            _record_landed(tx, visit, known, ticket)
        forges.change_pull(tx, known.ticket, stage=PullStage.LANDED)
    if not ticket.ended and ticket.state is not State.LANDING:
        visit.actions.stop(ticket.id, f"pull request {known.number} was merged as it was")


def _record_landed(tx: Transaction, visit: Visit, known: TicketPull, ticket: Ticket) -> None:
    commands = {*(check.command for check in visit.project.config.checks), *ticket.spec.proofs}
    tree = visit.project.hub.tree_of(known.merged)
    proof = green(receipts.for_tree(tx, ticket.project, tree), commands)
    tickets.move(tx, ticket.id, Land(known.merged, unchecked=not (commands or ticket.spec.acceptance)))
    data = {
        "commit": known.merged,
        "before": known.base,
        "tested": known.tested,
        "receipts": sorted(one.id for one in proof),
        "rule": Rule.MERGED_ELSEWHERE.value,
    }
    tx.record(EventKind.LANDED, project=ticket.project, ticket=ticket.id, data=data)


def current_fault(
    visit: Visit, known: TicketPull, pull: PullRequest, *, without_checks: bool, without_review: bool
) -> str:
    """Why a pull request may not merge now; empty where it may. What CI and reviews say is recorded."""
    ci, ruling = _seen(visit, known, visit.forge.checks(pull.commit), visit.forge.reviews(pull.number))
    return merge_fault(pull, ci, ruling, without_checks=without_checks, without_review=without_review)


def _seen(
    visit: Visit, known: TicketPull, checks: tuple[ForgeCheck, ...], reviews: tuple[ForgeReview, ...]
) -> tuple[CiResult, ReviewRuling | None]:
    ci = ci_result(checks)
    ruling = approval(reviews, _writers(visit, [one.author for one in reviews]))
    shown = ruling.value if ruling is not None else ""
    if (ci, shown) != (known.ci, known.ruling):
        _change(visit, known, ci=ci, ruling=shown)
    return ci, ruling


# Collects what a pull request says about its change: receipts, proven and unproven criteria, findings, cost.


def green(found: Iterable[Receipt], commands: Collection[str]) -> list[Receipt]:
    """The latest green receipt of each command."""
    latest = {one.command: one for one in found if one.verdict is CheckResult.GREEN and one.command in commands}
    return list(latest.values())


def gather(context: Board, project: ProjectContext, ticket: Ticket, commit: str) -> PullFacts:
    tree = project.hub.tree_of(commit)
    checks = {check.name: check.command for check in project.config.checks}
    with context.store.read() as tx:
        passed = green(receipts.for_tree(tx, ticket.project, tree), {*checks.values(), *ticket.spec.proofs})
        reviews = verdicts.of_ticket(tx, ticket.id)
        history = events.of_ticket(tx, ticket.id)
        reports = [one for one in history if one.kind is EventKind.TICKET_REPORTED]
        parts = _parts(tx, ticket)
        claims = [forges.claim_of_ticket(tx, one.id) for one in (ticket, *parts)]
        reviews = (*reviews, *(one for part in parts for one in verdicts.of_ticket(tx, part.id)))
        planned = _plans(tx, ticket) if parts else []
        of_plans = [usage.of_plan(tx, one.id) for one in planned]
        spent = total((*of_plans, *(usage.of_ticket(tx, one.id) for one in (ticket, *parts))))
    tried = [one.data.get("red") for one in history if one.kind is EventKind.REVERSED]
    red = [str(one) for one in tried[-1]] if tried and isinstance(tried[-1], list) else []
    weighed = evidence.weigh(ticket.spec.criteria, ticket.spec.bound, checks, passed, passed, {}, red)
    about = {one.change.commit for one in (ticket, *parts) if one.change is not None}
    given = [one.verdict for one in reviews if one.verdict is not None and one.commit in about]
    open_criteria = [f"{words} (ticket {part.id})" for part in parts for words in _unproven(part)]
    change = ticket.change
    return PullFacts(
        ticket=ticket.id,
        title=ticket.spec.title,
        asked=ticket.spec.text,
        issues=[claim.number for claim in claims if claim is not None],
        done=str(reports[-1].data.get("summary") or reports[-1].data.get("text") or "") if reports else "",
        checks=[ProvenCheck(name=one.name, command=one.command, seconds=one.duration) for one in passed],
        proven=[f"{one.words} (`{one.by}`)" for one in weighed if one.backing is Backing.PROVEN],
        unproven=[
            *(one.words for one in weighed if one.backing not in (Backing.PROVEN, Backing.GREEN)),
            *(f"{one.words} (`{one.by}` passes, not seen red)" for one in weighed if one.backing is Backing.GREEN),
            *open_criteria,
        ],
        findings=[f"{one.weight.value}, {one.place or 'the change'}: {one.text}" for v in given for one in v.findings],
        files=[file.path for file in project.hub.changed_files(change.base, change.commit)] if change else (),
        attempts=ticket.attempt,
        usd=spent.usd if spent.requests else None,
        parts=[f"ticket {part.id}: {part.spec.title}" for part in parts],
        read=_read(planned),
    )


def _plans(tx: ReadTransaction, ticket: Ticket) -> list[GoalPlan]:
    """Those of the epic, in every session of the repository; the last one is the newest."""
    home = projects.get(tx, ticket.project).common_dir
    there = [*projects.sessions_of(tx, home, ended=True), *projects.sessions_of(tx, home)]
    found = [plan for one in there for plan in goals.of_epic(tx, one.id, ticket.spec.epic)]
    return sorted(found, key=lambda plan: plan.id)


def _read(plans: Sequence[GoalPlan]) -> list[str]:
    """The points of the last reader, with what Legion saw when it ran their commands."""
    last = next((one for one in reversed(plans) if one.points), None)
    return [shown_point(one, last.trials.get(one.command)) for one in last.points] if last is not None else []


def _parts(tx: ReadTransaction, ticket: Ticket) -> tuple[Ticket, ...]:
    """The landed tickets of the epic whose branch this ticket lands."""
    session = epic_sessions.session_behind(tx, ticket.project, ticket.id, ticket.spec.epic)
    found = tickets.of_epic(tx, session.id, ticket.spec.epic) if session is not None else ()
    return tuple(one for one in found if one.landed is not None)


def _unproven(part: Ticket) -> list[str]:
    proven = {one.criterion for one in part.spec.bound}
    return [words for place, words in enumerate(criteria_of(part.spec.criteria)) if place not in proven]
