"""The service: maps each row of wire/operations to its use case. Safe to call from many threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import legion.service.machines.listing
import legion.service.views.usage
from legion.config.files.teams import DefinitionKind
from legion.jobs.context import Context
from legion.jobs.supervise import usage
from legion.service import adoption, web
from legion.service.agents import listing, tell
from legion.service.conversations import ask, documents
from legion.service.conversations.catalog import Catalog, analytics, health
from legion.service.machines import steer
from legion.service.plain_operations import PERSON, Caller, PlainOperations
from legion.service.plans import pages
from legion.service.projects import collect, registry, teams
from legion.service.providers import catalog
from legion.service.shared.commit_signal import CommitSignal
from legion.service.shared.fragments import event_line
from legion.service.tickets import actions, by_hand, dispatch, edit, record, review
from legion.service.views import history, output, status, ticket_page, wait
from legion.service.views.usage import stretch
from legion.store import events
from legion.store.board import projects
from legion.wire.agents import AgentList, AgentPage
from legion.wire.board import DaemonLine, Status, WaitState
from legion.wire.conversations import (
    AdoptConversation,
    Adopted,
    Analytics,
    AskConversation,
    ConversationAnswer,
    ConversationHealth,
    Conversations,
    ExportedConversation,
    HandedOff,
    SearchResult,
)
from legion.wire.dispatch import Dispatch, Dispatched
from legion.wire.history import Events, FollowOutput, LiveOutput, UsageReport, WorkSummary
from legion.wire.machines import InviteMachine, MachineInvitation, MachineList
from legion.wire.mail import Delivered, MessageText
from legion.wire.plans import PlanPage
from legion.wire.projects import CollectResult, Done, Where
from legion.wire.table import TicketIds
from legion.wire.teams import DefinitionText, SaveDefinition
from legion.wire.terminal import OfferedBranch, OfferWork
from legion.wire.ticket_pages import Cassette, LogText, TicketPage
from legion.wire.tickets import Acted, Action, EventLine
from legion.wire.web import OpenWeb, WebAddresses

__all__ = ["PERSON", "Caller", "Service"]


class Service(PlainOperations):
    """With the person's rights. Legion's tools are not here: they stand on the service (entry/callers.py)."""

    def __init__(
        self,
        context: Context,
        news: CommitSignal,
        *,
        daemon: DaemonLine,
        end: Callable[[], None],
        caller: Caller = PERSON,
        web_server: web.WebServer | None = None,
        machine_server: steer.MachineServer | None = None,
    ) -> None:
        self.context = context
        self._web_server = web_server
        self._machine_server = machine_server
        self.caller = caller
        self._news = news
        self._daemon = daemon
        self._end = end
        self._catalog = Catalog(context)

    # Projects

    def pause(self, where: Where, /) -> Acted:
        project = registry.set_paused(self.context, where.cwd, True)
        return Acted(tickets=[], message=f"{project.name} is paused: running agents go on, nothing new starts.")

    def resume(self, where: Where, /) -> Acted:
        project = registry.set_paused(self.context, where.cwd, False)
        return Acted(tickets=[], message=f"{project.name} is resumed.")

    def stop_all(self, where: Where, /) -> Acted:
        return actions.stop_all(self.context, where.cwd)

    def checkout(self, id: int, wanted: OfferWork, /) -> OfferedBranch:
        return by_hand.checkout(self.context, self._news, id, wanted)

    def push(self, id: int, wanted: OfferWork, /) -> OfferedBranch:
        return by_hand.push(self.context, self._news, id, wanted)

    def collect(self, where: Where, /) -> CollectResult:
        return collect.collect(self.context, where.cwd)

    def drop_ended(self, where: Where, /) -> Acted:
        return actions.drop_ended(self.context, where.cwd)

    def shutdown(self) -> Done:
        self._end()
        return Done(message="Legion is going down.")

    # The board

    def status(self, cwd: str | None, all: bool = False) -> Status:
        usage.catch_up(self.context)
        seen = status.status(self.context, self._daemon, cwd, all)
        return replace(seen, seat=listing.seat(self.context, self.caller.id))

    def wait(self, cwd: str | None, id: TicketIds = None, after_event: int = 0, timeout: float = 0.0) -> WaitState:
        return wait.wait(self.context, self._news, cwd, id or [], after_event, timeout)

    def history(
        self,
        cwd: str | None,
        ticket: int | None = None,
        run: int | None = None,
        after: str = "",
        last: int = 0,
        kinds: str = "",
        since: str = "",
        until: str = "",
    ) -> Events:
        wanted = history.EventFilter.read(kinds, since, until)
        return history.history(self.context, cwd, ticket, run, after, last, wanted)

    def stretch(self, cwd: str, hours: float | None = None) -> WorkSummary:
        usage.catch_up(self.context)
        return stretch(self.context, cwd, hours)

    def usage(self, cwd: str | None, by: str = "ticket", since: str = "") -> UsageReport:
        usage.catch_up(self.context)
        return legion.service.views.usage.usage_report(self.context, cwd, by, since)

    # Tickets

    def dispatch(self, wanted: Dispatch, /) -> Dispatched:
        made = dispatch.dispatch(self.context, wanted)
        return replace(made, notes=[*made.notes, *catalog.dispatch_notes(self.context, wanted)])

    def ticket(self, id: int, /) -> TicketPage:
        usage.catch_up(self.context)
        return ticket_page.ticket_page(self.context, id)

    def log(self, id: int, /, run: int | None = None, offset: int = 0) -> LogText:
        return output.log(self.context, id, run, offset)

    def output(self, wanted: FollowOutput, /, timeout: float = 0.0) -> LiveOutput:
        return output.follow(self.context, self._news, wanted, timeout)

    def stop(self, id: int, action: Action | None = None, /) -> Acted:
        return actions.stop(self.context, id)

    def retry(self, id: int, action: Action | None = None, /) -> Acted:
        return edit.retry(self.context, id, action or Action())

    def bounce(self, id: int, action: Action | None = None, /) -> Acted:
        return review.bounce(self.context, id, action.feedback if action else "")

    def interrupt(self, id: int, message: MessageText | None = None, /) -> Delivered:
        return tell.interrupt(self.context, id, message or MessageText())

    def cassette(self, id: int, /, name: str = "") -> Cassette:
        return record.make_cassette(self.context, id, name)

    def tell(self, id: int, message: MessageText, /) -> Delivered:
        return tell.tell(self.context, id, message)

    # Plans

    def plan_page(self, id: int, /) -> PlanPage:
        usage.catch_up(self.context)
        return pages.page(self.context, id)

    # Conversations

    def conversations(self, hours: float = 168.0, timeout: float = 0.0) -> Conversations:
        return self._catalog.listed(hours, timeout)

    def search_conversations(
        self, query: str, hours: float = 100_000.0, most: int = 20, timeout: float = 0.0
    ) -> SearchResult:
        return self._catalog.search(query, hours, most, timeout)

    def export_conversation(self, id: str = "", format: str = "md") -> ExportedConversation:
        return documents.export(self._catalog, id, format)

    def analytics(self, hours: float = 24.0, timeout: float = 0.0) -> Analytics:
        return analytics(self._catalog, self.context.clock(), hours, timeout)

    def conversation_health(self, hours: float = 168.0, timeout: float = 0.0) -> ConversationHealth:
        return health(self._catalog, self.context.clock(), hours, timeout)

    def ask_conversation(self, wanted: AskConversation, /) -> ConversationAnswer:
        return ask.ask(self.context, self._catalog, wanted)

    def adopt(self, wanted: AdoptConversation, /) -> Adopted:
        return adoption.adopt(self.context, self._catalog, wanted)

    def handoff(self, id: int, /) -> HandedOff:
        return adoption.handoff(self.context, self._news, id)

    # Agents and mail

    def agents(self, all: bool = False) -> AgentList:
        usage.catch_up(self.context)
        return listing.agents(self.context, self.caller.id, all)

    def agent(self, id: str, /) -> AgentPage:
        usage.catch_up(self.context)
        return listing.agent(self.context, self.caller.id, id)

    # Roles and teams

    def role_text(self, cwd: str | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        return teams.text(self.context, cwd, DefinitionKind.ROLE, name, new=new, like=like)

    def team_text(self, cwd: str | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        return teams.text(self.context, cwd, DefinitionKind.TEAM, name, new=new, like=like)

    def save_role(self, wanted: SaveDefinition, /) -> Done:
        return teams.save(self.context, DefinitionKind.ROLE, wanted)

    def save_team(self, wanted: SaveDefinition, /) -> Done:
        return teams.save(self.context, DefinitionKind.TEAM, wanted)

    def remove_role(self, cwd: str | None, name: str) -> Done:
        return teams.remove(self.context, cwd, DefinitionKind.ROLE, name)

    def remove_team(self, cwd: str | None, name: str) -> Done:
        return teams.remove(self.context, cwd, DefinitionKind.TEAM, name)

    # The page

    def web_addresses(self) -> WebAddresses:
        return web.server_of(self._web_server).addresses()

    def open_web(self, wanted: OpenWeb, /) -> WebAddresses:
        return web.server_of(self._web_server).open(wanted)

    def close_web(self) -> WebAddresses:
        return web.server_of(self._web_server).close()

    def machines(self) -> MachineList:
        server = self._machine_server
        return legion.service.machines.listing.machine_list(self.context, server.url if server is not None else "")

    def invite_machine(self, wanted: InviteMachine, /) -> MachineInvitation:
        return steer.invite(self.context, self._machine_server, wanted)

    # The stream of events

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None
    ) -> list[EventLine]:
        project = registry.find(self.context, project_cwd).id if project_cwd else None
        with self.context.store.read() as tx:
            found = events.after(tx, after, project=project, ticket=ticket, limit=limit)
            names = {one.id: one.name for one in projects.all(tx)}
        return [event_line(event, names) for event in found]

    def last_event(self) -> int:
        with self.context.store.read() as tx:
            return events.last(tx)

    def wait_for_event(self, after: int, timeout: float) -> bool:
        return self._news.wait(after, timeout)
