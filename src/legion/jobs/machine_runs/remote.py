"""Waits for a run on a machine as for one on the head, and reads what the machine saved of its tree.

The row of the placed run decides: it ends once, by the machine's report or by the end of its lease, never by both.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.machines.machine import CommandKind, PlacedRun, PlacementState
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ticket import Ticket
from legion.drivers import ControlRequest, InterruptRequest, PermissionAnswer, StopRequest, TellRequest
from legion.git.trees.unsaved import GitOperation
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import packs, placements
from legion.jobs.machines.travel import SAVED, SNAPSHOT, MachineJob
from legion.jobs.supervise import usage
from legion.jobs.supervise.outcome import run_outcome
from legion.jobs.supervise.wait import stop_when_unwanted
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota
from legion.jobs.workspace.save import Saved, found_tree
from legion.runner.control import ControlServer, gate
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import RunFolder, read_result
from legion.store.work import machines
from legion.system import files

_LOOK_EVERY = 5.0
"""Seconds between two looks at the row, should a signal be missed."""
_UNWANTED = "its ticket was stopped before the machine took it"


def run_to_end(
    context: Context,
    this_run: Run,
    *,
    job: Callable[[], MachineJob],
    wanted: Callable[[], bool],
    on_event: Callable[[JournalEvent], None],
) -> EndedRun | LostRun | None:
    """None where no machine has taken it: it was stopped, or its machine was removed or is silent."""
    placed = _placed(context, this_run)
    if placed is None:
        if not wanted():
            return None
        placed = placements.place(context, this_run, job)
        if placed is None:
            return None
    if placed.open:
        placements.queue(context, this_run, placed)
        placed = _wait(context, this_run, placed, wanted, on_event)
    placements.unqueue(context, this_run)
    usage.catch_up(context)
    return _ended(context, this_run, placed)


def why_lost(context: Board, this_run: Run) -> str:
    """For people: why the head no longer waits for it."""
    placed = _placed(context, this_run)
    facts = _saved_file(context, this_run)
    failed = str(facts.get("failed", "")) if facts else ""
    if failed:
        return f"machine {this_run.machine} could not prepare it: {failed}"
    if _is_unsaved(context, this_run):
        reason = f": {facts['could_not_save']}" if facts.get("could_not_save") else ""
        return (
            f"its agent finished, and machine {this_run.machine} could not save its tree{reason}; "
            "what it wrote since the last state that arrived stays there"
        )
    over = quota.exceeded(context, this_run)
    why = over.reason if over is not None else placed.why if placed is not None else ""
    return why or f"its runner on machine {this_run.machine} was killed"


def setup_failed(context: Board, this_run: Run) -> bool:
    """Whether the project's [setup] failed there."""
    return _saved_file(context, this_run).get("setup_failed") is True


def tree_of(context: Board, this_run: Run) -> str:
    """The path of its worktree on its machine, for paths in its journal; empty where it was not reported."""
    return str(_saved_file(context, this_run).get("tree", ""))


def last_snapshot(context: Board, this_run: Run) -> tuple[str, float] | None:
    """The last state of its tree that arrived, as a commit, and when; None before the first one."""
    facts = _read(context, this_run, SNAPSHOT)
    if not facts.get("commit"):
        return None
    return str(facts["commit"]), (context.data.runs / this_run.name / SNAPSHOT).stat().st_mtime


def saved(context: Board, project: ProjectContext, ticket: Ticket, this_run: Run) -> Saved | None:
    """What the machine saved of the tree; None where nothing arrived in time.

    The commit was verified when it arrived. What else the machine reports only explains the change to people.
    """
    placed = _placed(context, this_run)
    facts = _saved_file(context, this_run)
    if placed is None or placed.state is not PlacementState.ENDED or not facts.get("commit"):
        # The machine is lost, or could not save: the last snapshot of the working run counts.
        facts = _read(context, this_run, SNAPSHOT)
    if not facts.get("commit"):
        return None
    assert ticket.base is not None, "a started ticket has a base"
    commit = str(facts["commit"])
    tree = project.hub.tree_of(commit)
    unfinished = facts.get("unfinished")
    return Saved(
        commit=commit,
        tree=tree,
        changed=tree != found_tree(context, project, ticket, ticket.base),
        nested=_texts(facts.get("nested")),
        left_out=_texts(facts.get("left_out")),
        unsaved=_texts(facts.get("unsaved")),
        unfinished=GitOperation(unfinished) if unfinished in {one.value for one in GitOperation} else None,
        submodules=_texts(facts.get("submodules")),
        elsewhere=_texts(facts.get("elsewhere")),
    )


def _wait(
    context: Context,
    this_run: Run,
    placed: PlacedRun,
    wanted: Callable[[], bool],
    on_event: Callable[[JournalEvent], None],
) -> PlacedRun:
    folder = context.data.runs / this_run.name
    journal = JournalReader(folder)
    listener = stop_when_unwanted(folder, wanted, on_event)
    proxy = RunProxy(context, placed, folder)
    with proxy.open(), context.machines.bells.listening(this_run.name, proxy.ring):
        now = placed
        proxy.moved.set()
        while True:
            proxy.grown.clear()
            if proxy.moved.is_set():
                proxy.moved.clear()
                now = _still_placed(_placed(context, this_run))
            for event in journal.read_on():
                listener(event)
            if now.state is PlacementState.PLACED and not wanted():
                now = _withdraw(context, this_run)
            if not now.open:
                return now
            if proxy.grown.wait(_LOOK_EVERY):
                continue
            proxy.moved.set()
            if not wanted():
                stop_again(context, now)
            elif now.state is PlacementState.PLACED:
                # A server that crashed may have lost the job: its queue does not wait for the disk.
                placements.queue(context, this_run, now)


def stop_again(context: Board, placed: PlacedRun) -> None:
    """The request to stop it may have been lost with the daemon that stored it."""
    with context.store.write() as tx:
        if not any(one.run == placed.name for one in machines.commands(tx, placed.machine)):
            machines.send(tx, placed, CommandKind.STOP, {"grace": 0})


def _withdraw(context: Board, this_run: Run) -> PlacedRun:
    """The row as it is then: the machine may have taken the run meanwhile."""
    with context.store.write() as tx:
        if _still_placed(machines.placed(tx, this_run.id)).state is PlacementState.PLACED:
            machines.move(tx, this_run.id, PlacementState.LAPSED, _UNWANTED)
        return _still_placed(machines.placed(tx, this_run.id))


def _still_placed(found: PlacedRun | None) -> PlacedRun:
    assert found is not None, "a placed run stays placed"
    return found


def _ended(context: Board, this_run: Run, placed: PlacedRun) -> EndedRun | LostRun | None:
    if placed.state is PlacementState.ENDED:
        result = read_result(context.data.runs / this_run.name)
        return EndedRun(result) if result is not None and not _is_unsaved(context, this_run) else LostRun()
    return LostRun() if placed.taken else None


def _is_unsaved(context: Board, this_run: Run) -> bool:
    """Whether its agent finished a change that did not arrive: what arrived earlier is not what it calls finished."""
    result = read_result(context.data.runs / this_run.name)
    finished = result is not None and run_outcome(EndedRun(result))[0] is Outcome.FINISHED
    return finished and packs.job_of(context, this_run.name).saves and not _saved_file(context, this_run).get("commit")


def _placed(context: Board, this_run: Run) -> PlacedRun | None:
    with context.store.read() as tx:
        return machines.placed(tx, this_run.id)


def _saved_file(context: Board, this_run: Run) -> dict[str, Any]:
    return _read(context, this_run, SAVED)


def _read(context: Board, this_run: Run, name: str) -> dict[str, Any]:
    try:
        facts = json.loads((context.data.runs / this_run.name / name).read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as damaged:
        raise LegionError(f"{name} of run {this_run.name} is damaged ({damaged}): retry the ticket.") from damaged
    return facts if isinstance(facts, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


# The proxy of a runner on a machine, so that the head asks for its run in the usual way.
#
# It holds the lock and the control socket in the head's folder of the run. Requests to stop, to interrupt and to tell
# are stored for the machine; clients that follow the journal are notified when the head's copy of it has grown.

log = logging.getLogger(__name__)

_LOCK_PATIENCE = 5.0
"""Seconds: another thread that looks whether the run has a runner holds the lock for a moment."""


class RunProxy:
    """Open it as a context. `ring` may be called from any thread."""

    def __init__(self, context: Board, placed: PlacedRun, folder: Path) -> None:
        self._context = context
        self._placed = placed
        self._folder = folder
        self._pipe = threading.Lock()
        self._reading, writing = os.pipe()
        os.set_blocking(writing, False)
        self._writing: int | None = writing
        """None once the run has ended."""
        self._ended = False
        self.grown = threading.Event()
        """Set when a file of the run has grown, or its state has changed."""
        self.moved = threading.Event()
        """Set when its state may have changed."""

    def ring(self, grown: bool = False) -> None:
        if not grown:
            self.moved.set()
        self.grown.set()
        # One byte in a full pipe is as good as two. A closed one may be another file of this process by now.
        with self._pipe, contextlib.suppress(BlockingIOError):
            if self._writing is not None:
                os.write(self._writing, b".")

    @contextlib.contextmanager
    def open(self) -> Iterator[RunProxy]:
        with gate(self._folder):
            held = files.lock(RunFolder(self._folder).lock, patience=_LOCK_PATIENCE)
            server = ControlServer(self._folder, self._placed.name)
        thread = threading.Thread(target=self._serve, args=(server,), name=f"at {self._placed.name}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended = True
            self.ring()
            thread.join()
            server.close()
            held.release()
            with self._pipe:
                writing, self._writing = self._writing, None
            assert writing is not None, "opened once"
            os.close(writing)
            os.close(self._reading)

    def _serve(self, server: ControlServer) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(server.fileno(), selectors.EVENT_READ)
            selector.register(self._reading, selectors.EVENT_READ)
            while not self._ended:
                ready = {key.fd for key, _ in selector.select()}
                if self._reading in ready:
                    os.read(self._reading, 4096)
                    server.ring()
                for request in server.take():
                    self._pass_on(request)

    def _pass_on(self, request: ControlRequest) -> None:
        kind, facts = command_of(request)
        try:
            with self._context.store.write() as tx:
                now = machines.placed(tx, self._placed.run)
                if now is not None and now.open:
                    machines.send(tx, now, kind, facts)
        except LegionError as trouble:
            log.warning("run %s: the request to %s was not stored: %s", self._placed.name, kind.value, trouble.message)


def command_of(request: ControlRequest) -> tuple[CommandKind, dict[str, object]]:
    """A request of the control socket, as it is stored for a machine."""
    match request:
        case StopRequest(grace=grace):
            return CommandKind.STOP, {"grace": grace}
        case InterruptRequest(then=None):
            return CommandKind.INTERRUPT, {}
        case InterruptRequest(then=TellRequest(id=id, text=text)):
            return CommandKind.INTERRUPT, {"id": id, "text": text}
        case TellRequest(id=id, text=text):
            return CommandKind.TELL, {"id": id, "text": text}
        case PermissionAnswer(question=question, allowed=allowed, why=why):
            return CommandKind.PERMIT, {"question": question, "allowed": allowed, "why": why}
    raise AssertionError(f"an unknown request: {request!r}")
