"""`legion attach adopt` and `legion attach own`: a person's conversation becomes a ticket, and a ticket's goes back.

An adoption is one transaction: ticket, start point and origin of its conversation. What is written before it, a commit
in the hub and a copy of the transcript, has no effect without it.
"""

from __future__ import annotations

import time
from pathlib import Path

from legion.conversations.conversation import ConversationProgram
from legion.conversations.index import Indexed
from legion.domain.errors import BadInput, NotFound, Retryable, StateConflict
from legion.domain.runs import Run
from legion.domain.text import count
from legion.domain.tickets.ticket import ENDED, Rewind, State
from legion.drivers import registry
from legion.drivers.profile import DriverProfile, ProgramUnusable
from legion.jobs.board import Board
from legion.jobs.landing import target
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import adopted
from legion.jobs.workspace.adopted import SavedCheckout
from legion.runner.spec import UnreadableSpec, read_spec
from legion.service.conversations.catalog import Catalog
from legion.service.projects import collect
from legion.service.projects import registry as project_cases
from legion.service.shared.commit_signal import CommitSignal
from legion.service.tickets import actions
from legion.service.tickets.actions import get_ticket
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare
from legion.store import events
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.work import adoptions, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.conversations import AdoptConversation, Adopted, HandedOff
from legion.wire.dispatch import Dispatch, NewTicket

_LONGEST_TITLE = 72
_PATIENCE = 60.0
"""Seconds that a handoff waits for the agent to stop and its work to be saved."""
_MOST_SUBJECTS = 5
_TEXT = "Continue and finish the work of the conversation that this ticket was adopted from."


def adopt(context: Trees, catalog: Catalog, wanted: AdoptConversation) -> Adopted:
    found = _chosen(context, catalog, wanted)
    facts = found.facts
    project = context.project_of(project_cases.find(context, facts.folder))
    # The person's commits enter the target as such, not as a part of the change.
    collect.refuse_pending(context, target.fetch(context, project))
    with context.store.read() as tx:
        _refuse_twice(tx, facts.id)
    saved = adopted.save_checkout(context, project, Path(facts.folder))
    try:
        adopted.keep_transcript(project, Path(found.path), facts.id)
    except OSError as error:
        raise NotFound(f"{found.path} cannot be read ({error.strerror}); choose another conversation.") from None
    title = wanted.title or facts.title or facts.first_prompt or f"Conversation {facts.id[:8]}"
    new = NewTicket(
        title=" ".join(title.split())[:_LONGEST_TITLE],
        text=wanted.text or _TEXT,
        team=wanted.team,
        driver=registry.default().name,
    )
    prepared = prepare(context, Dispatch(cwd=facts.folder, tickets=[new]))
    crash.reach(Point.ADOPT_BEFORE_DISPATCH)
    with context.store.write() as tx:
        made = create(tx, prepared).answer
        (number,) = made.ids
        _refuse_twice(tx, facts.id)
        tickets.move(tx, number, Rewind(saved.ground, f"adopted from conversation {facts.id}"))
        adoptions.add(tx, ticket=number, project=project.id, source=facts.id)
    crash.reach(Point.ADOPT_AFTER_DISPATCH)
    return Adopted(
        ticket=number,
        conversation=facts.id,
        folder=facts.folder,
        notes=[*made.notes, *_notes(project, saved)],
        message=f"Ticket {number} continues conversation {facts.id[:8]} with the work in {facts.folder}.",
    )


def handoff(context: Trees, news: CommitSignal, number: int) -> HandedOff:
    """The ticket waits, its agent ends, and the person's own program can resume its conversation."""
    with context.store.read() as tx:
        ticket = get_ticket(tx, number)
        latest = runs.latest(tx, number)
    if ticket.state is State.DONE:
        raise StateConflict(f"Ticket {number} has landed; `legion conversations ask {number} TEXT` asks its agent.")
    if latest is None:
        raise StateConflict(f"Ticket {number} has no conversation yet; `legion drop {number}` gives it up.")
    if ticket.state not in (State.PARKED, *ENDED):
        actions.pause(context, number)
    latest = _ended(context, news, number)
    project = context.project(ticket.project)
    driver = _driver(context, latest)
    state = project.agents / latest.seat
    place = driver.transcript(state, latest.conversation) if driver.capabilities.rewinds else None
    tree = project.worktrees.path(latest.seat)
    if place is None or not tree.is_dir():
        raise StateConflict(
            f"{driver.title} left no conversation of ticket {number} to resume; `legion diff {number}` shows its work."
        )
    copy = adopted.give(driver, place, latest.conversation, tree)
    return HandedOff(
        ticket=number,
        conversation=latest.conversation,
        folder=str(tree),
        transcript=str(copy),
        argv=[_program(context, driver), "--resume", latest.conversation],
        message=f"Ticket {number} is paused. Its worktree is yours until `legion resume {number}`, which continues"
        " from the files and the conversation as you leave them.",
    )


def _chosen(context: Board, catalog: Catalog, wanted: AdoptConversation) -> Indexed:
    found = catalog.one(wanted.id) if wanted.id else _last_in(context, catalog, wanted.cwd)
    facts = found.facts
    if facts.program is not ConversationProgram.CLAUDE or facts.parent:
        raise BadInput(
            f"Only a conversation of Claude Code can be adopted; {facts.id} is one of {facts.program.value}."
        )
    if not facts.folder or not Path(facts.folder).is_dir():
        raise StateConflict(f"The folder {facts.folder or '(unknown)'} of conversation {facts.id} is gone.")
    (line,) = catalog.lines([found])
    if line.alive:
        raise StateConflict(f"Conversation {facts.id} is open in a terminal: close it there, then adopt it again.")
    return found


def _last_in(context: Board, catalog: Catalog, cwd: str) -> Indexed:
    """The newest conversation of Claude Code in the folder's project."""
    here = project_cases.find(context, cwd)
    with catalog.index(_PATIENCE / 6) as (index, _):
        every = index.conversations()
    for one in every:
        if one.facts.program is ConversationProgram.CLAUDE and one.facts.folder:
            project = project_cases.find_or_none(context, one.facts.folder)
            if project is not None and project.id == here.id:
                return one
    raise NotFound(f"Claude Code has no conversation in {here.root}; `legion conversations` lists all of them.")


def _refuse_twice(tx: ReadTransaction, conversation: str) -> None:
    other = adoptions.latest_of(tx, conversation)
    state = tickets.states_of(tx, [other.ticket]).get(other.ticket) if other is not None else None
    if other is not None and state is not None and state not in ENDED:
        raise StateConflict(
            f"Ticket {other.ticket} continues conversation {conversation} already;"
            f" `legion log watch {other.ticket}` follows it."
        )


def _notes(project: ProjectContext, saved: SavedCheckout) -> list[str]:
    notes = [] if saved.changed else ["Everything in the checkout has landed; the ticket starts from the target."]
    if saved.commits:
        branch, many = project.record.branch, len(saved.commits)
        become = count(many, f"commit that {branch} lacks becomes", f"commits that {branch} lacks become")
        more = ", and more" if many > _MOST_SUBJECTS else ""
        notes.append(f"{become} part of the change: {', '.join(saved.commits[:_MOST_SUBJECTS])}{more}.")
    if saved.left_out:
        notes.append(f"These stay in your checkout alone: {', '.join(saved.left_out)}.")
    return notes


def _ended(context: Board, news: CommitSignal, number: int) -> Run:
    """The ticket's last run, when its work is saved."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        with context.store.read() as tx:
            seen = events.last(tx)
            latest = runs.latest(tx, number)
            active = runs.active_of(tx, number)
        assert latest is not None, "a run stays"
        if not active:
            return latest
        if time.monotonic() > deadline or news.is_closed:
            raise Retryable(f"The agent of ticket {number} is still stopping. Try again in a moment.")
        news.wait(seen, 1.0)


def _program(context: Board, driver: DriverProfile) -> str:
    try:
        return str(driver.find_program(context.user.claude.program).path)
    except ProgramUnusable as missing:
        raise StateConflict(str(missing)) from None


def _driver(context: Board, run: Run) -> DriverProfile:
    try:
        return read_spec(context.data.runs / run.name).profile
    except UnreadableSpec:
        return registry.default()
