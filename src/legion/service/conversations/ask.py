"""`legion conversations ask`: finds the conversation that a person means, and asks a fork of it."""

from __future__ import annotations

from pathlib import Path

from legion.conversations.conversation import ConversationProgram
from legion.conversations.index import Indexed
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.drivers import registry
from legion.jobs import ask as job
from legion.jobs.ask import AskedConversation
from legion.jobs.context import Context
from legion.jobs.trees import Trees
from legion.service.conversations.catalog import Catalog
from legion.service.projects import registry as project_cases
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.conversations import AskConversation, ConversationAnswer
from legion.wire.text import names_a_ticket

_LONGEST = 100_000


def ask(context: Context, catalog: Catalog, wanted: AskConversation) -> ConversationAnswer:
    if not wanted.question.strip():
        raise BadInput("The question is empty: write it behind the conversation.")
    if len(wanted.question) > _LONGEST:
        raise BadInput(f"The question has more than {_LONGEST:,} characters; ask a shorter one.")
    name = wanted.id.strip().removeprefix("#")
    asked = _of_ticket(context, int(name)) if names_a_ticket(name) else _by_id(context, catalog, name)
    answer = job.ask(context, asked, wanted.question, model=wanted.model)
    return ConversationAnswer(id=asked.id, answer=answer.text, usd=answer.usd, seconds=answer.seconds)


def _of_ticket(context: Trees, number: int) -> AskedConversation:
    with context.store.read() as tx:
        tickets.get(tx, number)
        latest = runs.latest(tx, number)
    if latest is None:
        raise NotFound(f"Ticket {number} has no conversation yet; `legion wait {number}` waits for its end.")
    return job.of_run(context, latest)


def _by_id(context: Trees, catalog: Catalog, name: str) -> AskedConversation:
    if not name:
        raise BadInput("Name a conversation: a ticket's number, or an id as `legion conversations` shows it.")
    found = catalog.one(name)
    if found.facts.program is ConversationProgram.LEGION:
        with context.store.read() as tx:
            run = runs.get(tx, int(found.facts.id.rpartition("-run-")[2]))
        return job.of_run(context, run)
    return _of_person(context, catalog, found)


def _of_person(context: Trees, catalog: Catalog, found: Indexed) -> AskedConversation:
    facts = found.facts
    if facts.program is not ConversationProgram.CLAUDE or facts.parent:
        raise BadInput(
            f"Only conversations of Claude Code can be asked, and {facts.id} is one of {facts.program.value}."
        )
    (line,) = catalog.lines([found])
    if line.alive:
        raise StateConflict(f"Conversation {facts.id} is open in a terminal: ask there, or close it first.")
    project = context.project_of(project_cases.find(context, facts.folder or "/"))
    return AskedConversation(
        project=project, driver=registry.default(), transcript=Path(found.path), id=facts.id, tree=Path(facts.folder)
    )
