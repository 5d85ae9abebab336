"""The orchestrate API of legion_cc, in front of our own use cases: its tools find the routes and shapes they know.

A worker there is a seat with a number; here the agent of ticket 7 is worker 7. A ticket that is `stopped` here is an
`error` there, and really stopped. The caller's rights hold as everywhere.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

from legion.config.files import providers
from legion.domain.agents.teams import SOLO
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.events import EventKind
from legion.domain.tickets.ticket import Cause, State, Ticket
from legion.jobs.trees import Trees
from legion.service.entry.agent_rights import LimitedService
from legion.service.operations import Service
from legion.service.views import output
from legion.store import events
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.orchestrate import (
    Dependencies,
    Dependency,
    OldControlConfig,
    OldControlStatus,
    OldDispatch,
    OldDispatched,
    OldFileChange,
    OldOk,
    OldProvider,
    OldProviders,
    OldQueue,
    OldReport,
    OldSnapshot,
    OldStatus,
    OldStop,
    OldSubmit,
    OldSubmitted,
    OrchestrateOperations,
)
from legion.wire.projects import Where
from legion.wire.providers import AddProvider, ProviderLine
from legion.wire.tickets import Action

_STATES = {
    State.DRAFT: "queued",
    State.QUEUED: "queued",
    State.PARKED: "queued",
    State.WORKING: "working",
    State.CHECKING: "working",
    State.REVIEWING: "working",
    State.LANDING: "working",
    State.DONE: "done",
    State.FAILED: "error",
    State.STOPPED: "error",
}
_FORMATS = {
    "anthropic": ("anthropic", "x-api-key"),
    "anthropic_bearer": ("anthropic", "bearer"),
    "openai_chat": ("openai_chat", "bearer"),
    "openai_responses": ("openai_responses", "bearer"),
}
_FIRST_PROVIDER = "legion-cc"
_TITLE_LETTERS = 37
_LOG_LINES = 50
_LONGEST = 2000
_FILE = re.compile(r"^diff --git a/.* b/(.*)$")


class LegionCc(OrchestrateOperations):
    """With the rights of the service's caller."""

    def __init__(self, context: Trees, service: Service, only_project: str) -> None:
        self._context = context
        self._service = service
        self._only_project = only_project
        """The project's folder, if there is just one project."""

    def submit(self, wanted: OldSubmit, /, cwd: str | None = None) -> OldSubmitted:
        with self._context.store.read() as tx:
            known = tickets.states_of(tx, wanted.blocked_by or [])
        for number in wanted.blocked_by or []:
            if number not in known:
                raise BadInput(f"blocked_by references unknown ticket id {number}")
        new = NewTicket(
            title=wanted.title or _title(wanted.ticket),
            text=wanted.ticket,
            context=wanted.context or "",
            criteria=wanted.criteria or "",
            plan=wanted.structure_plan or "",
            after=wanted.blocked_by or [],
            checkpoint=wanted.is_checkpoint,
            max_attempts=wanted.max_iterations or None,
            team="" if wanted.is_checkpoint else _team(wanted.team_mode),
        )
        return OldSubmitted(ticket_id=self._dispatch(new, cwd))

    def dispatch(self, wanted: OldDispatch, /, cwd: str | None = None) -> OldDispatched:
        new = NewTicket(title=_title(wanted.ticket), text=wanted.ticket)
        return OldDispatched(ticket_id=self._dispatch(new, cwd))

    def status(self, cwd: str | None = None) -> OldQueue:
        """Counts of all tickets; lists those that have not ended and the newest of those that have."""
        board = self._service.status(cwd or self._only_project)
        with self._context.store.read() as tx:
            seen = tickets.get_many(tx, [line.id for line in board.tickets])
            shown = [_snapshot(tx, ticket, self._context.clock()) for ticket in seen]
        counts = dict.fromkeys(("queued", "working", "done", "error"), 0)
        for state, count in board.counts.items():
            counts[_STATES[State(state)]] += count
        return OldQueue(tickets=shown, total=sum(board.counts.values()), **counts)

    def report(self, wanted: OldReport, /, cwd: str | None = None) -> OldStatus:
        """A claim about a ticket at work: it is recorded and has no effect."""
        with self._context.store.read() as tx:
            state = tickets.states_of(tx, [wanted.worker_id]).get(wanted.worker_id)
        if state is not State.WORKING:
            raise BadInput("worker has no active ticket")
        if isinstance(self._service, LimitedService):
            self._service.refuse_to_speak_for(wanted.worker_id)
        with self._context.store.write() as tx:
            ticket = tickets.get(tx, wanted.worker_id)
            data = {"status": wanted.status, "summary": wanted.summary[:_LONGEST]}
            tx.record(EventKind.TICKET_REPORTED, project=ticket.project, ticket=ticket.id, data=data)
        return OldStatus(status="ok")

    def stop(self, wanted: OldStop, /, cwd: str | None = None) -> OldStatus:
        number = wanted.ticket_id if wanted.ticket_id is not None else wanted.worker_id
        if number is None:
            raise BadInput("Say what to stop: ticket_id, or worker_id.")
        if self._service.ticket(number).ticket.state != State.STOPPED.value:
            self._service.stop(number, Action())
        return OldStatus(status="stopped")

    def stop_all(self, cwd: str | None = None) -> OldStatus:
        if isinstance(self._service, LimitedService):
            for number in self._service.own_tickets():
                self._service.stop(number, Action())
        else:
            self._service.stop_all(Where(cwd=cwd or self._only_project))
        return OldStatus(status="all_stopped")

    def deps(self, ticket_id: int | None = None, cwd: str | None = None) -> Dependencies:
        if ticket_id is None:
            raise BadInput("Say whose dependencies you want: ticket_id.")
        seen = []
        for other in self._service.ticket(ticket_id).ticket.after:
            # An agent sees no ticket of another project.
            with contextlib.suppress(NotAllowed, NotFound):
                seen.append(self._service.ticket(other).ticket.id)
        return Dependencies(ticket_id=ticket_id, dependencies=[_dependency(self._context, other) for other in seen])

    def control_status(self) -> OldControlStatus:
        one = self._default_provider()
        if one is None:
            return OldControlStatus(target_url=None, api_format=None, model=None, configured=False)
        configured = one.found is not False
        return OldControlStatus(
            target_url=one.url, api_format=_old_format(one), model=one.model or None, configured=configured
        )

    def control_config(self, wanted: OldControlConfig, /) -> OldOk:
        there = self._default_provider()
        kind, auth = "", ""
        if wanted.api_format is not None:
            if wanted.api_format not in _FORMATS:
                raise BadInput(f"invalid json: api_format must be one of {', '.join(_FORMATS)}")
            kind, auth = _FORMATS[wanted.api_format]
        if there is None and not wanted.target_url:
            raise BadInput("invalid json: there is no provider yet, so target_url is needed")
        name = there.name if there is not None else _FIRST_PROVIDER
        change = AddProvider(name=name, url=wanted.target_url or "", kind=kind, auth=auth, model=wanted.model)
        self._service.add_provider(replace(change, key=wanted.api_key) if wanted.api_key else _same_key(change))
        return OldOk()

    def control_providers(self) -> OldProviders:
        return OldProviders(
            providers=[
                OldProvider(
                    id=one.name,
                    name=one.name,
                    base_url=one.url,
                    api_format=_old_format(one),
                    models=[one.model] if one.model else None,
                    is_default=one.default,
                )
                for one in self._service.providers().providers
            ]
        )

    def _default_provider(self) -> ProviderLine | None:
        return next((one for one in self._service.providers().providers if one.default), None)

    def _dispatch(self, new: NewTicket, cwd: str | None) -> int:
        return self._service.dispatch(Dispatch(cwd=cwd or self._only_project, tickets=[new])).ids[0]


def _same_key(change: AddProvider) -> AddProvider:
    """With the key where it is now; without one, if there is none."""
    before = providers.load().get(change.name)
    if before is None or not any((before.key_file, before.key_env, before.key_command, before.key_keyring)):
        return replace(change, no_key=True)
    return replace(
        change,
        key_file=before.key_file,
        key_env=before.key_env,
        key_command=before.key_command,
        keyring=bool(before.key_keyring),
    )


def _old_format(one: ProviderLine) -> str:
    if one.auth == "copilot":
        return "github_copilot"
    return next((name for name, form in _FORMATS.items() if form == (one.kind, one.auth)), one.kind)


def _team(mode: object) -> str:
    """As legion_cc writes it: a name, or {"custom": NAME}."""
    name = mode.get("custom") if isinstance(mode, dict) else mode
    if name is not None and not isinstance(name, str):
        raise BadInput("team_mode must be the name of a team.")
    return name or ""


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_LETTERS else f"{line[:_TITLE_LETTERS]}..."


def _snapshot(tx: ReadTransaction, ticket: Ticket, now: float) -> OldSnapshot:
    spec = ticket.spec
    return OldSnapshot(
        id=ticket.id,
        prompt=spec.text,
        title=spec.title,
        context=spec.context,
        criteria=spec.criteria,
        status=_STATES[ticket.state],
        assigned_worker=ticket.id if ticket.state is State.WORKING else None,
        team_mode=spec.team or SOLO,
        iteration=ticket.attempt,
        max_iterations=spec.max_attempts,
        feedback=ticket.feedback,
        summary=_summary(tx, ticket),
        elapsed_secs=int(max(0.0, (ticket.moved_at if ticket.ended else now) - ticket.created_at)),
        base_commit=ticket.base,
        blocked_by=list(spec.after),
        merge_status=_merge_status(tx, ticket),
        structure_plan=spec.plan,
        is_checkpoint=spec.checkpoint,
    )


def _summary(tx: ReadTransaction, ticket: Ticket) -> str:
    reports = [event.data for event in events.of_ticket(tx, ticket.id) if event.kind is EventKind.TICKET_REPORTED]
    return str(reports[-1]["summary"]) if reports else ticket.reason


def _merge_status(tx: ReadTransaction, ticket: Ticket) -> str:
    if ticket.state is State.DONE:
        return "skipped" if ticket.spec.checkpoint else "merged"
    causes = [event.data.get("cause") for event in events.of_ticket(tx, ticket.id) if "cause" in event.data]
    return "conflict" if causes and causes[-1] == Cause.CONFLICT.value else "pending"


def _dependency(context: Trees, number: int) -> Dependency:
    with context.store.read() as tx:
        ticket = tickets.get(tx, number)
        summary, merged = _summary(tx, ticket), _merge_status(tx, ticket)
    changed = output.diff(context, number).text if ticket.change is not None else ""
    return Dependency(
        id=number,
        title=ticket.spec.title,
        status=_STATES[ticket.state],
        merge_status=merged,
        summary=summary,
        diff_summary=_files(changed),
        log_tail="\n".join(output.end_of_log(context, number, _LOG_LINES)),
        is_checkpoint=ticket.spec.checkpoint,
    )


def _files(diff: str) -> list[OldFileChange]:
    """The changed files of a diff, with their line counts."""
    found: list[OldFileChange] = []
    in_text = False
    for line in diff.splitlines():
        if (start := _FILE.match(line)) is not None:
            found.append(OldFileChange(path=start[1], status="modified", additions=0, deletions=0))
            in_text = False
        elif not found:
            continue
        elif line.startswith("@@"):
            in_text = True
        elif not in_text and line.startswith("new file"):
            found[-1].status = "added"
        elif not in_text and line.startswith("deleted file"):
            found[-1].status = "deleted"
        elif in_text and line.startswith("+"):
            found[-1].additions += 1
        elif in_text and line.startswith("-"):
            found[-1].deletions += 1
    return found
