"""Work by hand: tickets that a person works on with the agent, and a ticket's work as a branch of the person's own."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.rules import Rule
from legion.domain.takeovers import Takeover, TakeoverMode
from legion.domain.tickets.offers import OfferFacts, may
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Rewind, State, Ticket, Unpark
from legion.git.core.errors import BranchGone
from legion.git.person import branches
from legion.git.person.inspect import look
from legion.jobs.board import Board
from legion.jobs.run.job import run_dir
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.service.projects import registry
from legion.service.shared.commit_signal import CommitSignal
from legion.service.tickets.actions import get_ticket
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare
from legion.store import events
from legion.store.board import tickets
from legion.store.work import runs, takeovers
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from legion.wire.terminal import NewByHand, OfferedBranch, OfferWork
from legion.wire.tickets import Acted

_ORIGIN = "origin"
_SAVED_WITHIN = 15.0
"""Seconds that a request waits for the work of a run that was just ended."""


def new(context: Trees, wanted: NewByHand) -> Dispatched:
    """A ticket whose agent opens in a terminal. Nothing is checked before the person submits it."""
    if wanted.profile and wanted.program:
        raise BadInput("Name --profile or --program, not both: a profile has its program.")
    ground = _start_of(context, wanted.cwd, wanted.branch) if wanted.branch else None

    ticket = NewTicket(
        title=wanted.name, text=wanted.prompt, driver=wanted.profile, command=wanted.program, model=wanted.model
    )
    prepared = prepare(context, Dispatch(cwd=wanted.cwd, tickets=[ticket], request=wanted.request))
    with context.store.write() as tx:
        made = create(tx, prepared)
        if made.new:
            (id,) = made.answer.ids
            takeovers.put(tx, Takeover(ticket=id, mode=TakeoverMode.PERSON, accepts=wanted.accepts))
            if ground is not None:
                tickets.move(tx, id, Rewind(ground, f"it starts with the branch {wanted.branch}"))
    return made.answer


def _start_of(context: Trees, cwd: str, branch: str) -> StartPoint:
    """The files of a branch of the person's, on top of where it left the target."""
    project = context.project_of(registry.find(context, cwd))
    try:
        tip = project.hub.fetch_person(look(Path(project.record.root)).common_dir, branch)
    except BranchGone:
        raise NotFound(f"Your repository has no branch {branch!r}: `git branch` lists them.") from None
    return StartPoint(base=project.hub.merge_base(tip, project.target) or tip, tree=project.hub.tree_of(tip))


def submit(context: Board, ticket_id: int) -> Acted:
    """The tree as it is becomes the ticket's change. An open program is ended first."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        attended = takeovers.of_ticket(tx, ticket_id)
        if attended is None or attended.mode is not TakeoverMode.PERSON:
            raise StateConflict(
                f"Ticket {ticket_id} works alone: its change is submitted when its agent ends. "
                f"`legion attach new` makes a "
                "ticket that you submit."
            )
        run = runs.at_work(tx, ticket_id)
        if not may("submit_ticket", ticket, OfferFacts(attended=attended.mode)) or run is None:
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}, so there is nothing to submit yet.")
        takeovers.put(tx, replace(attended, submitted=True))
        if ticket.state is State.PARKED:
            tickets.move(tx, ticket_id, Unpark(), rule=Rule.PERSON)
    if ticket.state is State.WORKING and run.ended_at is None:
        launch.interrupt(run_dir(context, run))
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is submitted; `legion log watch {ticket_id}` follows it."
    )


def checkout(context: Trees, news: CommitSignal, ticket_id: int, wanted: OfferWork) -> OfferedBranch:
    """The ticket's work as a new branch in the person's repository. Their own branches and files stay as they are."""
    ticket, commit = _work(context, news, ticket_id)
    project = context.project(ticket.project)
    root = Path(project.record.root)
    name = wanted.branch or branches.branch_for(ticket_id, ticket.spec.title)
    branch = branches.offer(root, project.hub, commit, name)
    message = f"Ticket {ticket_id} is in the branch {branch}: `git switch {branch}`."
    return OfferedBranch(ticket=ticket_id, branch=branch, commit=commit, message=message)


def push(context: Trees, news: CommitSignal, ticket_id: int, wanted: OfferWork) -> OfferedBranch:
    """`checkout`, and that branch at the person's remote."""
    ticket, _ = _work(context, news, ticket_id)
    root = Path(context.project(ticket.project).record.root)
    known = branches.remotes(root)
    remote = wanted.remote or (_ORIGIN if _ORIGIN in known else next(iter(known), ""))
    if remote not in known:
        listed = f"it has {', '.join(known)}" if known else "it has none, so run `git remote add origin URL`"
        raise StateConflict(f"Your repository has no remote {remote or _ORIGIN}: {listed}.")
    made = checkout(context, news, ticket_id, wanted)
    branches.push(root, made.branch, remote)
    return replace(made, remote=remote, message=f"Ticket {ticket_id} is in {remote}/{made.branch}.")


def _work(context: Board, news: CommitSignal, ticket_id: int) -> tuple[Ticket, str]:
    """What landed, else the change, else what the last run left."""
    _wait_until_saved(context, news, ticket_id)
    with context.store.read() as tx:
        ticket = get_ticket(tx, ticket_id)
        saved = [run.saved for run in runs.of_ticket(tx, ticket_id, role="") if run.saved is not None]
    change = ticket.change.commit if ticket.change is not None else None
    commit = ticket.landed or change or (saved[-1] if saved else None)
    if commit is None:
        raise StateConflict(
            f"Ticket {ticket_id} has no saved work yet: `legion pause {ticket_id}` saves what its agent has so far."
        )
    return ticket, commit


def _wait_until_saved(context: Board, news: CommitSignal, ticket_id: int) -> None:
    """A ticket that was just paused or stopped has a run that still ends; its work is saved with its end."""
    deadline = time.monotonic() + _SAVED_WITHIN
    while True:
        with context.store.read() as tx:
            ticket = get_ticket(tx, ticket_id)
            last, seen = runs.at_work(tx, ticket_id), events.last(tx)
        ends = ticket.state in (State.PARKED, State.STOPPED) and last is not None and last.ended_at is None
        if not ends or not news.wait(seen, deadline - time.monotonic()):
            return
