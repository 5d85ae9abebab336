"""`legion record`: whether new runs are recorded, and the cassette of a ticket that was."""

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
from legion.jobs.context import Context
from legion.rehearsal.play.cassette import RecordedRequest, cassette
from legion.rehearsal.protocol.request import ApiPath
from legion.rehearsal.script.script import ScriptedCall, ScriptedUsage, Step
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.projects import Done
from legion.wire.tickets import Cassette, CassetteFile, SetRecording

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


def switch(context: Context, wanted: SetRecording) -> Done:
    folder = GatewayFolder(context.data.gateway)
    folder.prepare()
    if wanted.on:
        tape.start(folder)
        return Done(message="Runs that start from now on are recorded; `legion record N` makes a cassette.", notes=[])
    tape.stop(folder)
    return Done(message="Nothing new is recorded; what was recorded stays.", notes=[])


def of_ticket(context: Context, id: int, name: str) -> Cassette:
    """What the models of the ticket's runs said, as scripts to play. Raises NotFound where none of it was recorded."""
    name = name or f"ticket-{id}"
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r} is no name for a cassette: use small letters, digits, - and _.")
    with context.store.read() as tx:
        ticket, there = tickets.get(tx, id), runs.of_ticket(tx, id)
    heard = list(_heard(GatewayFolder(context.data.gateway), there))
    scripts = cassette(name, heard, home=str(Path.home()), ticket=_asked(ticket))
    if not scripts:
        raise NotFound(f"No run of ticket {id} was recorded: `legion record on` records runs that start after it.")
    head = f"# What the model said in ticket {id}. Play it: `legion rehearse {name}.toml`.\n"
    files = [CassetteFile(name=f"{script}.toml", text=head + text) for script, text in scripts.items()]
    return Cassette(ticket=id, files=files)


def _asked(ticket: Ticket) -> dict[str, Any]:
    """What is needed to ask for it again, on the same ground."""
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


def _heard(folder: GatewayFolder, there: Iterable[Run]) -> Iterator[RecordedRequest]:
    for run in there:
        for take in tape.takes(folder, run.name):
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


def _call(said: RecordedCall) -> ScriptedCall:
    """Models write broken JSON at times; then the tool is called with nothing, and complains in the same way."""
    try:
        told = json.loads(said.input or "{}")
    except ValueError:
        told = {}
    return ScriptedCall(tool=said.tool, input=told if isinstance(told, dict) else {})
