"""Waits for a run on a machine as for one on the head, and reads what the machine saved of its tree.

The row of the placed run decides: it ends once, by the machine's report or by the end of its lease, never by both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.machines.machine import CommandKind, PlacedRun, PlacementState
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ticket import Ticket
from legion.git.hub.unfinished import GitOperation
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import packs, placements
from legion.jobs.machine_runs.run_proxy import RunProxy
from legion.jobs.machines.travel import SAVED, SNAPSHOT, MachineJob
from legion.jobs.supervise import usage
from legion.jobs.supervise.outcome import run_outcome
from legion.jobs.supervise.wait import stop_when_unwanted
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import quota
from legion.jobs.workspace.save import Saved, found_tree
from legion.runner.journal import JournalEvent, JournalReader
from legion.runner.launch import EndedRun, LostRun
from legion.runner.spec import read_result
from legion.store.work import machines

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
