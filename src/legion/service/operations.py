"""The service: maps each row of wire/operations.py to its use case. Safe to call from many threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from legion.config.files.teams import DefinitionKind
from legion.domain.agents.agent import ROOT
from legion.jobs.context import Context
from legion.jobs.supervise import usage as spending
from legion.service import questions, web
from legion.service.agents import claim as claiming
from legion.service.agents import hire as hiring
from legion.service.agents import listing, plan_approval
from legion.service.agents import mail as mailing
from legion.service.agents import tell as telling
from legion.service.conversation_rows import ConversationRows
from legion.service.conversations.catalog import Catalog
from legion.service.forge import connections as forge_connections
from legion.service.forge import issues as forge_issues
from legion.service.forge import pulls as forge_pulls
from legion.service.leader import chat as chatting
from legion.service.leader import lessons as learning
from legion.service.leader import notes as noting
from legion.service.leader import routines as regular
from legion.service.plans import create as planning
from legion.service.plans import decisions as plan_decisions
from legion.service.plans import pages as plan_pages
from legion.service.plans import templates as plan_templates
from legion.service.projects import collect as collecting
from legion.service.projects import memories as remembering
from legion.service.projects import numbers as project_numbers
from legion.service.projects import registry
from legion.service.projects import sessions as session_cases
from legion.service.projects import teams as definitions
from legion.service.projects import trust as trusting
from legion.service.providers import agent_programs, catalog, probe
from legion.service.providers import login as logins
from legion.service.providers import routes as routing
from legion.service.shared.commit_signal import CommitSignal
from legion.service.shared.fragments import event_line
from legion.service.tickets import assign, by_hand, cleanup, imports, record
from legion.service.tickets import attach as attaching
from legion.service.tickets import dispatch as tickets
from legion.service.tickets import edit as editing
from legion.service.tickets import freeze as freezing
from legion.service.tickets import queue as queueing
from legion.service.tickets import race as racing
from legion.service.tickets import review as reviewing
from legion.service.tickets import rewind as rewinding
from legion.service.tickets import shell as shells
from legion.service.tickets import try_tree as trying
from legion.service.tickets import undo as undoing
from legion.service.views import doctor as diagnosis
from legion.service.views import epic as epics
from legion.service.views import history as past
from legion.service.views import installation, live_output, output, summary
from legion.service.views import status as board
from legion.service.views import ticket_page as pages
from legion.service.views import usage as costs
from legion.service.views import wait as waiting
from legion.store import events
from legion.store.board import projects as stored_projects
from legion.wire.agents import AgentList, AgentPage
from legion.wire.history import Events
from legion.wire.live import FollowOutput, LiveOutput
from legion.wire.plans import PlanPage
from legion.wire.projects import CollectResult, DaemonLine, Done, Status, WaitState, Where
from legion.wire.questions import Delivered, MessageText
from legion.wire.table import TicketIds
from legion.wire.teams import DefinitionText, SaveDefinition
from legion.wire.tickets import Acted, Action, Cassette, Dispatch, Dispatched, EventLine, LogText, TicketPage
from legion.wire.usage import UsageReport, WorkSummary
from legion.wire.web import OpenWeb, WebAddresses

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The person, a standing agent, or the agent of a ticket. Only a token proves which."""

    id: str
    """`root` for the person, a standing agent's id, or ticket-12 for the agent of a ticket."""
    ticket: int | None = None
    run: int | None = None
    """The run that the token was issued for; None for the person."""
    only_tools: bool = False
    """The person's rights, through Legion's tools and nothing else."""

    @property
    def is_person(self) -> bool:
        return self.id == ROOT


PERSON = Caller(id=ROOT)


def _use_case(function: Callable[Concatenate[Context, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row that is one use case."""

    def performed(service: Service, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, *given, **named)

    return performed


def _by_caller(function: Callable[Concatenate[Context, str, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row whose use case needs the caller's id, because it acts in that name."""

    def performed(service: Service, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, service.caller.id, *given, **named)

    return performed


class Service(ConversationRows):
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
    ) -> None:
        self.context = context
        self._web_server = web_server
        self.caller = caller
        self._news = news
        self._daemon = daemon
        self._end = end
        self._catalog = Catalog(context)

    # Sessions
    sessions = _use_case(session_cases.session_list)
    new_session = _use_case(session_cases.new)
    switch_session = _use_case(session_cases.switch)
    complete_session = _use_case(session_cases.complete)
    delete_session = _use_case(session_cases.delete)
    drop_session = _use_case(session_cases.drop)
    bind_session = _use_case(session_cases.bind)
    rebuild_session = _use_case(session_cases.rebuild)
    recreate_session = _use_case(session_cases.recreate)

    # Work from other tools
    import_tickets = _use_case(imports.import_tickets)

    # Projects
    add_project = _use_case(registry.add)
    remove_project = _use_case(registry.remove)
    trustable = _use_case(trusting.trustable)
    trust = _use_case(trusting.trust)
    projects = _use_case(board.all_projects)
    worktrees = _use_case(installation.worktrees)
    doctor = _use_case(diagnosis.doctor)
    config = _use_case(installation.config)

    def pause(self, where: Where, /) -> Acted:
        project = registry.set_paused(self.context, where.cwd, True)
        return Acted(tickets=[], message=f"{project.name} is paused: running agents go on, nothing new starts.")

    def resume(self, where: Where, /) -> Acted:
        project = registry.set_paused(self.context, where.cwd, False)
        return Acted(tickets=[], message=f"{project.name} is resumed.")

    def stop_all(self, where: Where, /) -> Acted:
        return tickets.stop_all(self.context, where.cwd)

    def collect(self, where: Where, /) -> CollectResult:
        return collecting.collect(self.context, where.cwd)

    preview_collect = _use_case(collecting.preview)

    def drop_ended(self, where: Where, /) -> Acted:
        return cleanup.drop_ended(self.context, where.cwd)

    numbers = _use_case(project_numbers.numbers)
    set_numbers = _use_case(project_numbers.set_numbers)
    freeze = _use_case(freezing.freeze)
    thaw = _use_case(freezing.thaw)

    def shutdown(self) -> Done:
        self._end()
        return Done(message="Legion is going down.")

    # The board
    graph = _use_case(board.graph)

    def status(self, cwd: str | None, all: bool = False) -> Status:
        spending.catch_up(self.context)
        seen = board.status(self.context, self._daemon, cwd, all)
        return replace(seen, seat=listing.seat(self.context, self.caller.id))

    def wait(self, cwd: str | None, id: TicketIds = None, after_event: int = 0, timeout: float = 0.0) -> WaitState:
        return waiting.wait(self.context, self._news, cwd, id or [], after_event, timeout)

    def history(
        self, cwd: str | None, ticket: int | None = None, run: int | None = None, after: str = "", last: int = 0
    ) -> Events:
        return past.history(self.context, cwd, ticket, run, after, last)

    def stretch(self, cwd: str, hours: float | None = None) -> WorkSummary:
        spending.catch_up(self.context)
        return summary.stretch(self.context, cwd, hours)

    def usage(self, cwd: str | None, by: str = "ticket", since: str = "") -> UsageReport:
        spending.catch_up(self.context)
        return costs.usage_report(self.context, cwd, by, since)

    # Tickets
    diff = _use_case(output.diff)
    drop = _use_case(tickets.drop)
    pause_ticket = _use_case(tickets.pause)
    resume_ticket = _use_case(tickets.resume)
    rewind = _use_case(rewinding.rewind)
    race = _use_case(racing.race)
    race_page = _use_case(racing.page)
    undo = _use_case(undoing.undo)
    review = _use_case(reviewing.review)
    switch_recording = _use_case(record.set_recording)

    land = _use_case(queueing.land)
    edit = _use_case(editing.edit)
    move_in_queue = _use_case(queueing.move)
    merge_queue = _use_case(queueing.page)
    try_changes = _use_case(trying.try_changes)

    def dispatch(self, wanted: Dispatch, /) -> Dispatched:
        made = tickets.dispatch(self.context, wanted, also=assign.to_agent(self.context, wanted))
        return replace(made, notes=[*made.notes, *catalog.dispatch_notes(self.context, wanted)])

    def ticket(self, id: int, /) -> TicketPage:
        spending.catch_up(self.context)
        return pages.ticket_page(self.context, id)

    def log(self, id: int, /, run: int | None = None, offset: int = 0) -> LogText:
        return output.log(self.context, id, run, offset)

    def output(self, wanted: FollowOutput, /, timeout: float = 0.0) -> LiveOutput:
        return live_output.follow(self.context, self._news, wanted, timeout)

    def stop(self, id: int, action: Action | None = None, /) -> Acted:
        return tickets.stop(self.context, id)

    def retry(self, id: int, action: Action | None = None, /) -> Acted:
        return editing.retry(self.context, id, action or Action())

    def bounce(self, id: int, action: Action | None = None, /) -> Acted:
        return reviewing.bounce(self.context, id, action.feedback if action else "")

    def interrupt(self, id: int, message: MessageText | None = None, /) -> Delivered:
        return telling.interrupt(self.context, id, message or MessageText())

    def cassette(self, id: int, /, name: str = "") -> Cassette:
        return record.make_cassette(self.context, id, name)

    def tell(self, id: int, message: MessageText, /) -> Delivered:
        return telling.tell(self.context, id, message)

    # Terminals
    attach = _use_case(attaching.attach)
    give_back = _use_case(attaching.give_back)
    shell = _use_case(shells.shell)
    new_by_hand = _use_case(by_hand.new)
    submit_ticket = _use_case(by_hand.submit)
    checkout = _use_case(by_hand.checkout)
    push = _use_case(by_hand.push)

    # Plans
    plan = _use_case(planning.plan)
    plans = _use_case(plan_pages.plans)
    split = _use_case(planning.split)
    replan = _use_case(planning.replan)
    approve_plan = _use_case(plan_decisions.approve)
    reject_plan = _use_case(plan_decisions.reject)
    retry_plan = _use_case(plan_decisions.retry)
    drop_plan = _use_case(plan_decisions.drop)
    plan_text = _use_case(plan_decisions.text)
    save_plan = _use_case(plan_decisions.save)
    templates = _use_case(plan_templates.template_list)
    template = _use_case(plan_templates.template_page)
    run_template = _use_case(plan_templates.run)
    template_from = _use_case(plan_templates.from_epic)
    epic = _use_case(epics.epic_page)
    epic_budget = _use_case(epics.set_budget)
    epic_gate = _use_case(epics.set_gate)
    stop_epic = _use_case(epics.stop_epic)

    def plan_page(self, id: int, /) -> PlanPage:
        spending.catch_up(self.context)
        return plan_pages.page(self.context, id)

    # Memories
    remember = _use_case(remembering.remember)
    memories = _use_case(remembering.listed)
    forget = _use_case(remembering.forget)

    # Leaders
    conversation = _use_case(chatting.conversation)
    add_routine = _use_case(regular.add)
    routines = _use_case(regular.listed)
    remove_routine = _use_case(regular.remove)
    run_routine = _use_case(regular.run)
    lessons = _by_caller(learning.listed)
    accept_lesson = _by_caller(learning.accept)
    notes = _by_caller(noting.listed)
    add_note = _by_caller(noting.add)
    close_note = _by_caller(noting.close)

    # Questions
    inbox = _use_case(questions.inbox)
    answer = _use_case(questions.answer)

    # Agents and mail
    hire = _by_caller(hiring.hire)
    fire = _by_caller(hiring.fire)
    interrupt_agent = _by_caller(hiring.interrupt)
    tell_agent = _by_caller(mailing.tell)
    broadcast = _by_caller(mailing.broadcast)
    mail = _by_caller(mailing.read)
    find_mail = _use_case(mailing.find)
    archive_mail = _use_case(mailing.archive)
    claim = _by_caller(claiming.claim)
    submit = _by_caller(claiming.submit)
    propose_plan = _by_caller(plan_approval.propose)
    decide_plan = _by_caller(plan_approval.decide)

    def agents(self, all: bool = False) -> AgentList:
        spending.catch_up(self.context)
        return listing.agents(self.context, self.caller.id, all)

    def agent(self, id: str, /) -> AgentPage:
        spending.catch_up(self.context)
        return listing.agent(self.context, self.caller.id, id)

    # Roles and teams
    roles = _use_case(definitions.role_list)
    role = _use_case(definitions.role_page)
    teams = _use_case(definitions.team_list)
    team = _use_case(definitions.team_page)

    def role_text(self, cwd: str | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        return definitions.text(self.context, cwd, DefinitionKind.ROLE, name, new=new, like=like)

    def team_text(self, cwd: str | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        return definitions.text(self.context, cwd, DefinitionKind.TEAM, name, new=new, like=like)

    def save_role(self, wanted: SaveDefinition, /) -> Done:
        return definitions.save(self.context, DefinitionKind.ROLE, wanted)

    def save_team(self, wanted: SaveDefinition, /) -> Done:
        return definitions.save(self.context, DefinitionKind.TEAM, wanted)

    def remove_role(self, cwd: str | None, name: str) -> Done:
        return definitions.remove(self.context, cwd, DefinitionKind.ROLE, name)

    def remove_team(self, cwd: str | None, name: str) -> Done:
        return definitions.remove(self.context, cwd, DefinitionKind.TEAM, name)

    # Providers
    drivers = _use_case(agent_programs.listed)
    driver = _use_case(agent_programs.shown)
    add_driver = _use_case(agent_programs.add)
    providers = _use_case(catalog.listed)
    add_provider = _use_case(catalog.add)
    remove_provider = _use_case(catalog.remove)
    use_account = _use_case(catalog.use)
    begin_login = _use_case(logins.begin)
    finish_login = _use_case(logins.finish)
    routes = _use_case(routing.listed)
    set_route = _use_case(routing.set_route)
    remove_route = _use_case(routing.remove_route)
    models = _use_case(routing.models)
    try_provider = _use_case(probe.try_out)

    # Forges
    forges = _use_case(forge_connections.listed)
    add_forge = _use_case(forge_connections.add)
    remove_forge = _use_case(forge_connections.remove)
    try_forge = _use_case(forge_connections.try_out)
    sync_forge = _use_case(forge_connections.sync_now)
    forge_hook = _use_case(forge_connections.hook)
    assign = _use_case(forge_issues.assign)
    pulls = _use_case(forge_pulls.listed)
    pull = _use_case(forge_pulls.page)
    merge_pulls = _use_case(forge_pulls.merge)
    tried = _use_case(forge_pulls.tried)

    # The page
    offer_device = _use_case(web.offer)
    devices = _use_case(web.listed)
    revoke_device = _use_case(web.revoke)

    def web_addresses(self) -> WebAddresses:
        return web.server_of(self._web_server).addresses()

    def open_web(self, wanted: OpenWeb, /) -> WebAddresses:
        return web.server_of(self._web_server).open(wanted)

    def close_web(self) -> WebAddresses:
        return web.server_of(self._web_server).close()

    # The stream of events

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None
    ) -> list[EventLine]:
        project = registry.find(self.context, project_cwd).id if project_cwd else None
        with self.context.store.read() as tx:
            found = events.after(tx, after, project=project, ticket=ticket, limit=limit)
            names = {one.id: one.name for one in stored_projects.all(tx)}
        return [event_line(event, names) for event in found]

    def last_event(self) -> int:
        with self.context.store.read() as tx:
            return events.last(tx)

    def wait_for_event(self, after: int, timeout: float) -> bool:
        return self._news.wait(after, timeout)
