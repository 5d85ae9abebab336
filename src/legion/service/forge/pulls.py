"""Shows and merges pull requests of tickets, and records what came out when a person tried a change by hand."""

from __future__ import annotations

import shlex

from legion.domain.errors import BadInput, LegionError, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.forge.connections import PULL_OFFERS, TicketPull, offered
from legion.domain.forge.pulls import PullRequest, PullStage
from legion.domain.tickets.offers import may
from legion.jobs.board import Board
from legion.jobs.forge import pulls
from legion.jobs.forge.clients import Visit
from legion.jobs.forge.sync import visiting
from legion.jobs.trees import Trees
from legion.service.forge.actions import ForgeActions
from legion.service.forge.connections import connection_of
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.service.tickets import actions, review
from legion.store.board import forges, projects, tickets
from legion.wire.forge import MergePulls, PullLine, Pulls, TriedByHand, TryIt

_PUSHED = "a person pushed to it; merge it at the forge"


def listed(context: Board, cwd: str) -> Pulls:
    record = registry.find(context, cwd)
    with context.store.read() as tx:
        found = forges.pulls(tx, record.id)
        dropped = tickets.dropped(tx, [one.ticket for one in found])
    return Pulls(pulls=[_line(context, one) for one in found if one.ticket not in dropped])


def _line(context: Board, one: TicketPull, merges: str = "") -> PullLine:
    with context.store.read() as tx:
        title = tickets.get(tx, one.ticket).spec.title
    commit = one.pushed or one.tested
    offers = offered(one)
    return shaped(PullLine, one, title=title, commit=commit, review=one.ruling, merges=merges, offers=offers)


def page(context: Trees, ticket: int) -> Pulls:
    """Look at it now. Trouble with the forge is a note, since what is known can still be shown."""
    with context.store.read() as tx:
        found, known = actions.get_ticket(tx, ticket), forges.pull_of(tx, ticket)
    if known is None:
        raise NotFound(
            f"Ticket {ticket} has no pull request: it gets one when its change has passed, with `landing.target = "
            '"pr"`.'
        )
    notes, merges = [], ""
    try:
        with visiting(context, found.project, ForgeActions(context)) as visit:
            pulls.follow(visit, known)
            merges = _merges(visit, ticket, MergePulls(cwd=""))
    except LegionError as trouble:
        notes.append(trouble.message)
    with context.store.read() as tx:
        known = forges.pull_of(tx, ticket) or known
    return Pulls(pulls=[_line(context, known, merges)], notes=notes)


def _merges(visit: Visit, ticket: int, wanted: MergePulls) -> str:
    """What keeps it from merging, or that it can."""
    with visit.context.store.read() as tx:
        known = forges.pull_of(tx, ticket)
    if known is None or known.number is None or known.stage is not PullStage.OPEN:
        return ""
    pull = visit.forge.pull(known.number)
    if pull is None:
        return "it is gone"
    if not PULL_OFFERS["merge_pulls"](known):
        return _PUSHED
    fault = pulls.current_fault(visit, known, pull, without_checks=wanted.no_checks, without_review=wanted.skip_review)
    return fault or "it can merge"


def merge(context: Trees, wanted: MergePulls) -> Pulls:
    """Merge what may merge, one after the other, by the forge's own rules."""
    if wanted.method not in pulls.METHODS:
        raise BadInput(f"There is no method {wanted.method[:40]!r}: use {', '.join(pulls.METHODS)}.")
    one = connection_of(context, wanted.cwd)
    with visiting(context, one.project, ForgeActions(context)) as visit:
        with context.store.read() as tx:
            open_ones = {known.ticket: known for known in forges.pulls(tx, one.project, [PullStage.OPEN])}
        unknown = [number for number in (*wanted.order, *wanted.only) if number not in open_ones]
        if unknown:
            raise NotFound(f"Ticket {unknown[0]} has no open pull request in this project: see `legion status pr`.")
        chosen = wanted.order or wanted.only or sorted(open_ones)
        return Pulls(pulls=[_merge(visit, open_ones[number], wanted) for number in chosen])


def _merge(visit: Visit, known: TicketPull, wanted: MergePulls) -> PullLine:
    pull = visit.forge.pull(known.number) if known.number is not None else None
    if pull is None:
        return _line(visit.context, known, "it is gone")
    if not PULL_OFFERS["merge_pulls"](known):
        return _line(visit.context, known, _PUSHED)
    fault = pulls.current_fault(visit, known, pull, without_checks=wanted.no_checks, without_review=wanted.skip_review)
    result = fault or ("it can merge" if wanted.dry_run else _merge_now(visit, known, pull, wanted.method))
    with visit.context.store.read() as tx:
        after = forges.pull_of(tx, known.ticket) or known
    return _line(visit.context, after, result)


def _merge_now(visit: Visit, known: TicketPull, pull: PullRequest, method: str) -> str:
    try:
        commit = pulls.merge(visit, known, pull, method)
    except LegionError as refused:
        return refused.message
    return f"merged as {commit[:12]}" if commit else "in the forge's merge queue"


def tried(context: Trees, ticket_id: int, wanted: TriedByHand) -> TryIt:
    """How to try it; or record the result. A failure goes back to the agent with the reason."""
    with context.store.read() as tx:
        ticket = actions.get_ticket(tx, ticket_id)
        record, pull = projects.get(tx, ticket.project), forges.pull_of(tx, ticket_id)
    if ticket.change is None or not may("tried", ticket):
        raise StateConflict(f"Ticket {ticket_id} has no change yet: see `legion ticket {ticket_id}`.")
    commit = pull.tested if pull is not None else ticket.landed or ticket.change.commit
    hub = context.hub(ticket.project).path
    commands = [
        f"git -C {shlex.quote(record.root)} fetch {shlex.quote(str(hub))} {commit}",
        f"git -C {shlex.quote(record.root)} worktree add --detach ../try-{ticket_id} FETCH_HEAD",
    ]
    if wanted.passed is None:
        message = f"Try it there, then: legion try report {ticket_id} --passed, or --fail --reason WHY"
        return TryIt(ticket=ticket_id, commands=commands, message=message)
    if not wanted.passed and not wanted.reason.strip():
        raise BadInput("Say what went wrong: add --reason WHY.")
    with context.store.write() as tx:
        data = {"passed": wanted.passed, "reason": wanted.reason, "commit": commit}
        tx.record(EventKind.TICKET_TRIED, project=ticket.project, ticket=ticket_id, data=data)
    if wanted.passed:
        return TryIt(ticket=ticket_id, commands=[], message=f"Recorded: a person tried ticket {ticket_id}; it works.")
    back = review.bounce(context, ticket_id, f"A person tried it by hand: {wanted.reason.strip()}")
    return TryIt(ticket=ticket_id, commands=[], message=back.message)
