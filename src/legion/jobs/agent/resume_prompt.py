"""The final message of an earlier run, and the prompt for an agent that resumes its conversation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.jobs.agent.briefing import resume_text
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.spec import RunFolder, read_spec
from legion.store.work import rewinds, runs

MODEL_ANSWERED = frozenset({"said", "thought", "called", "begins"})
"""Kinds of journal events that prove an answer of the model, and so that it has read the run's prompt."""


def resume_prompt(context: Board, project: ProjectContext, ticket: Ticket, this_run: Run) -> str:
    with context.store.read() as tx:
        since = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
        rewound = rewinds.by_conversation(tx, this_run.conversation)
    if rewound is not None:
        # The conversation no longer holds what came after that moment.
        since = [run for run in since if run.conversation == this_run.conversation]
    journals = {run.id: read_journal(context.data.runs / run.name) for run in since}
    answered = [run for run in since if any(event.kind in MODEL_ANSWERED for event in journals[run.id])]
    if answered:
        since = since[since.index(answered[-1]) :]
    events = [event for run in since for event in journals[run.id]]
    attended = bool(since) and any(event.kind == "terminal" for event in journals[since[-1].id])
    return resume_text(
        ticket,
        project.config,
        since,
        # A person was in the conversation since, and has seen what was cut off.
        () if attended else open_calls(events),
        _undelivered(events),
        attended=attended,
        rewound=rewound is not None and not answered,
    )


def is_first(context: Board, this_run: Run) -> bool:
    """Whether the model has not answered in this conversation yet, in any run of its seat."""
    with context.store.read() as tx:
        since = [run for run in runs.of_seat(tx, this_run) if run.conversation == this_run.conversation]
    journals = (read_journal(context.data.runs / run.name) for run in since if run.id < this_run.id)
    return not any(event.kind in MODEL_ANSWERED for events in journals for event in events)


def open_calls(events: Iterable[JournalEvent]) -> tuple[str, ...]:
    """The calls that started and never returned."""
    found: dict[object, str] = {}
    for event in events:
        if event.kind == "begins":
            found[event.facts.get("call")] = f"{event.facts.get('tool')}: {event.facts.get('input')}"
        elif event.kind == "returned":
            found.pop(event.facts.get("call"), None)
    return tuple(found.values())


def _undelivered(events: Iterable[JournalEvent]) -> tuple[str, ...]:
    """Messages of a person that the model had not seen when the run ended, or had no time to act on."""
    sent: dict[object, str] = {}
    seen: set[object] = set()
    for event in events:
        if event.kind == "told":
            sent[event.facts.get("id")] = str(event.facts.get("text"))
        elif event.kind == "heard":
            seen.add(event.facts.get("id"))
        elif event.kind in MODEL_ANSWERED:
            sent = {id: text for id, text in sent.items() if id not in seen}
    return tuple(sent.values())


_LONGEST_OUTPUT = 400_000


def final_message(run_dir: Path) -> str:
    """The last message of a conversation, or all that another program printed. Never a file of its tree."""
    if not read_spec(run_dir).profile.capabilities.talks:
        return output_end(RunFolder(run_dir).output, _LONGEST_OUTPUT)
    texts = [event.facts.get("text") for event in read_journal(run_dir) if event.kind == "result"]
    return str(texts[-1] or "") if texts else ""


def final_messages(events: Iterable[JournalEvent]) -> str:
    """The final messages of all answers; a run has several where messages reached it on the way."""
    texts = [str(event.facts.get("text") or "").strip() for event in events if event.kind == "result"]
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def output_end(output: Path, most: int) -> str:
    try:
        with output.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - most))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
