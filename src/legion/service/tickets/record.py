"""`legion plan record`: switches recording of runs on and off, and makes the cassette of a recorded ticket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from legion.domain.errors import BadInput, NotFound
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Ticket
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.recording import tape
from legion.gateway.recording.tape import RecordedCall, RecordedExchange
from legion.jobs.board import Board
from legion.rehearsal.play.cassette import RecordedRequest, cassette
from legion.rehearsal.protocol.request import ApiPath
from legion.rehearsal.script.script import ScriptedCall, ScriptedUsage, Step
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.projects import Done
from legion.wire.ticket_pages import Cassette, CassetteFile
from legion.wire.tickets import SetRecording

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def set_recording(context: Board, wanted: SetRecording) -> Done:
    folder = GatewayFolder(context.data.gateway)
    folder.prepare()
    if wanted.on:
        tape.start(folder)
        return Done(message="New runs are recorded; `legion plan record N` makes a cassette.", notes=[])
    tape.stop(folder)
    return Done(message="New runs are not recorded; existing recordings stay.", notes=[])


def make_cassette(context: Board, id: int, name: str) -> Cassette:
    """The recorded model answers of a ticket's runs as scripts. Raises NotFound if nothing was recorded."""
    name = name or f"ticket-{id}"
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not a name for a cassette. Use lower-case letters, digits, - and _.")
    with context.store.read() as tx:
        ticket, there = tickets.get(tx, id), runs.of_ticket(tx, id)
    requests = list(_recorded_requests(GatewayFolder(context.data.gateway), there))
    scripts = cassette(name, requests, home=str(Path.home()), ticket=_ticket_fields(ticket))
    if not scripts:
        raise NotFound(f"No run of ticket {id} was recorded. `legion plan record on` records new runs.")
    head = f"# The model's answers in ticket {id}. Replay: `legion plan rehearse {name}.toml`.\n"
    files = [CassetteFile(name=f"{script}.toml", text=head + text) for script, text in scripts.items()]
    return Cassette(ticket=id, files=files)


def _ticket_fields(ticket: Ticket) -> dict[str, Any]:
    """The fields that are needed to repeat the ticket from the same commit."""
    spec = ticket.spec
    return {
        "title": spec.title,
        "text": spec.text,
        "context": spec.context,
        "criteria": spec.criteria,
        "plan": spec.plan,
        "files": list(spec.files),
        "model": spec.model,
        "base": ticket.base or "",
    }


def _recorded_requests(folder: GatewayFolder, there: Iterable[Run]) -> Iterator[RecordedRequest]:
    for run in there:
        for take in tape.exchanges(folder, run.name):
            yield RecordedRequest(
                dialect=ApiPath(take.path),
                conversation=take.conversation,
                agent=take.agent,
                body=take.request.encode("utf-8", "replace"),
                step=_step(take),
            )


def _step(take: RecordedExchange) -> Step:
    used = ScriptedUsage(input=take.input, output=take.output, cache_read=take.cache_read, cache_write=take.cache_write)
    calls = tuple(_call(call) for call in take.calls)
    return Step(think=take.thought, say=take.text, calls=calls, stop=take.stop, usage=used)


def _call(recorded: RecordedCall) -> ScriptedCall:
    """A call with the model's input. Invalid JSON becomes an empty input, which the tool refuses in the same way."""
    try:
        arguments = json.loads(recorded.input or "{}")
    except ValueError:
        arguments = {}
    return ScriptedCall(tool=recorded.tool, input=arguments if isinstance(arguments, dict) else {})
