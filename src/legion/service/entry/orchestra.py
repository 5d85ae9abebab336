"""The API of claude-orchestra, in front of our own use cases: its clients find the routes and shapes they know.

An agent there is a task with a worktree; here it is a ticket. Nothing of a ticket is lost when its agent is cleaned up:
its worktree is in the trash, and what landed stays.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from legion.domain.errors import BadInput, NotFound, Retryable, StateConflict
from legion.domain.runs import ticket_seat
from legion.domain.tickets.ticket import ParkReason, State, Ticket
from legion.jobs.board import Board
from legion.jobs.workspace.save import branch_name
from legion.service.operations import Service
from legion.store.board import projects, tickets
from legion.store.work import runs
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.orchestrate import (
    OrchestraAgent,
    OrchestraCleaned,
    OrchestraDone,
    OrchestraSession,
    OrchestraStatus,
    OrchestraWorktree,
    Spawned,
    SpawnedAgent,
    SpawnTasks,
)
from legion.wire.projects import SetNumbers, Where
from legion.wire.tickets import TicketLine

MOST_AT_ONCE = 1024
_TITLE = 72
_STATES = {
    State.DRAFT: ("pending", 0),
    State.QUEUED: ("pending", 0),
    State.PARKED: ("pending", 0),
    State.WORKING: ("running", 25),
    State.CHECKING: ("running", 50),
    State.REVIEWING: ("running", 65),
    State.LANDING: ("running", 80),
    State.DONE: ("completed", 100),
    State.FAILED: ("failed", 0),
    State.STOPPED: ("failed", 0),
}
"""Their status and progress. Nothing is stale here: an agent that is lost starts again."""
_ID = re.compile(r"[0-9a-fA-F]{1,15}")


class Orchestra:
    """With the person's rights. `only_project` is the project's folder, if there is just one project."""

    def __init__(self, context: Board, service: Service, only_project: str) -> None:
        self._context = context
        self._service = service
        self._only_project = only_project

    def status(self, cwd: str | None = None) -> OrchestraStatus:
        """Counts of all tickets; lists those that have not ended and the newest of those that have."""
        board = self._service.status(cwd or self._only_project or None)
        counts = dict.fromkeys(("pending", "running", "completed", "failed"), 0)
        for state, count in board.counts.items():
            counts[_STATES[State(state)][0]] += count
        del counts["pending"]
        return OrchestraStatus(total=sum(board.counts.values()), stale=0, agents=self._agents(board.tickets), **counts)

    def sessions(self, hours: float = 4.0) -> list[OrchestraSession]:
        found = self._service.conversations(hours, 2.0).conversations
        return [
            OrchestraSession(
                session_id=line.id,
                project_path=line.project,
                modified_at=_iso(line.modified_at),
                message_count=line.messages,
                last_prompt=line.last_prompt,
            )
            for line in found
            if line.program != "legion"
        ]

    def worktrees(self, cwd: str | None = None) -> list[OrchestraWorktree]:
        trees = [tree for tree in self._service.worktrees(self._project(cwd)).worktrees if tree.state != "warm"]
        numbers = {tree.name: tree.ticket for tree in trees if tree.ticket is not None}
        with self._context.store.read() as tx:
            known = {one.id: one for one in tickets.get_many(tx, list(numbers.values()))}
            working = {run.ticket for run in runs.active(tx)}
        return [
            OrchestraWorktree(
                branch=branch_name(number) if (number := numbers.get(tree.name)) is not None else "",
                task=known[number].spec.title if number in known else tree.name,
                path=tree.path,
                is_active=number is not None and number in working,
            )
            for tree in trees
        ]

    def spawn(self, wanted: SpawnTasks, cwd: str | None = None) -> Spawned:
        tasks = [task.strip() for task in wanted.tasks]
        if not tasks or not all(tasks):
            raise BadInput("Name at least one task, each with a text.")
        if not wanted.use_worktrees:
            raise BadInput("An agent always works in a worktree of its own: leave use_worktrees out.")
        place = self._project(cwd)
        if wanted.parallel is not None:
            if not 1 <= wanted.parallel <= MOST_AT_ONCE:
                raise BadInput(f"parallel must be a number from 1 to {MOST_AT_ONCE}.")
            self._service.set_numbers(SetNumbers(cwd=place, workers=wanted.parallel))
        new = [NewTicket(title=_title(task), text=task) for task in tasks]
        made = self._service.dispatch(Dispatch(cwd=place, tickets=new))
        root = self._service.worktrees(place).root
        agents = [
            SpawnedAgent(agent_id=agent_id(number), task=task, worktree=str(Path(root) / ticket_seat(number)))
            for number, task in zip(made.ids, tasks, strict=True)
        ]
        return Spawned(spawned=len(agents), agents=agents)

    def pause(self, id: str) -> OrchestraDone:
        number = self._known(id)
        try:
            self._service.pause_ticket(number)
        except (StateConflict, Retryable) as refused:
            return OrchestraDone(success=False, error=refused.message)
        return OrchestraDone(success=True)

    def resume(self, id: str) -> OrchestraDone:
        number = self._known(id)
        try:
            self._service.resume_ticket(number)
        except (StateConflict, Retryable) as refused:
            return OrchestraDone(success=False, error=refused.message)
        return OrchestraDone(success=True)

    def cleanup(self, all_agents: bool = False, cwd: str | None = None) -> OrchestraCleaned:
        """With `all_agents` those at work are stopped first; what is still stopping is cleaned up the next time."""
        where = Where(cwd=self._project(cwd))
        if all_agents:
            self._service.stop_all(where)
        return OrchestraCleaned(cleaned=len(self._service.drop_ended(where).tickets))

    def _project(self, cwd: str | None) -> str:
        place = cwd or self._only_project
        if not place:
            raise BadInput("There are several projects: say which one with ?cwd=FOLDER.")
        return place

    def _known(self, id: str) -> int:
        number = int(id, 16) if _ID.fullmatch(id) else 0
        with self._context.store.read() as tx:
            if not tickets.states_of(tx, [number]):
                raise NotFound(f"There is no agent {id[:40]!r}; GET /api/status lists them.")
        return number

    def _agents(self, lines: list[TicketLine]) -> list[OrchestraAgent]:
        doing = {line.id: line.doing for line in lines}
        with self._context.store.read() as tx:
            roots = {project.id: Path(project.worktrees) for project in projects.all(tx)}
            found = []
            for ticket in tickets.get_many(tx, list(doing)):
                latest = runs.latest(tx, ticket.id)
                tree = roots[ticket.project] / ticket_seat(ticket.id)
                status, progress = _status(ticket)
                found.append(
                    OrchestraAgent(
                        agent_id=agent_id(ticket.id),
                        session_id=latest.conversation if latest is not None else "",
                        worktree_path=str(tree) if tree.is_dir() else None,
                        started_at=_iso(latest.started_at) if latest is not None else None,
                        last_heartbeat=_iso(ticket.moved_at if ticket.ended else self._context.clock()),
                        current_activity=doing[ticket.id] or None,
                        task=ticket.spec.text or ticket.spec.title,
                        status=status,
                        progress=progress,
                        error_message=ticket.reason or ticket.state.value if status == "failed" else None,
                        result=f"landed as {ticket.landed}" if ticket.landed else None,
                    )
                )
        return found


def agent_id(ticket: int) -> str:
    return f"{ticket:08x}"


def _status(ticket: Ticket) -> tuple[str, int]:
    if ticket.parked is not None and ticket.parked.reason is ParkReason.PAUSED:
        return "paused", 0
    return _STATES[ticket.state]


def _title(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 3]}..."


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
