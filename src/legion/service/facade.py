"""The service as the API sees it: one method per use case, safe to call from many threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from legion.config import explain as explaining
from legion.config.explain import explain
from legion.config.files.project import FILE
from legion.config.files.teams import DefinitionKind
from legion.domain.agents.agent import ROOT
from legion.domain.runs import seated
from legion.jobs.context import Context
from legion.jobs.supervise import usage as spending
from legion.service import questions
from legion.service.agents import claim as claiming
from legion.service.agents import hire as hiring
from legion.service.agents import listing, plan_approval
from legion.service.agents import mail as mailing
from legion.service.agents import tell as telling
from legion.service.projects import collect as collecting
from legion.service.projects import registry, teams
from legion.service.projects import trust as trusting
from legion.service.providers import catalog, login, probe
from legion.service.providers import routes as routing
from legion.service.shared.commit_signal import CommitSignal
from legion.service.shared.fragments import event_line
from legion.service.tickets import dispatch as tickets
from legion.service.tickets import record
from legion.service.tickets import review as reviewing
from legion.service.tickets import rewind as rewinding
from legion.service.tickets import undo as undoing
from legion.service.views import doctor, history, output, status, summary, ticket_page, usage
from legion.service.views import wait as waiting
from legion.store import events
from legion.store.board import projects as stored_projects
from legion.store.board import tickets as stored_tickets
from legion.system.files import tree_size
from legion.wire.agents import (
    AgentList,
    AgentPage,
    Claimed,
    ClaimTicket,
    FireAgent,
    Fired,
    HireAgent,
    Hired,
    InterruptAgent,
    Plan,
    PlanVerdict,
    SubmitTicket,
)
from legion.wire.history import Events
from legion.wire.mail import Broadcast, Mail, NewMessage, ReadMail, Sent
from legion.wire.projects import (
    AddProject,
    CollectResult,
    Config,
    DaemonLine,
    Doctor,
    Done,
    Graph,
    ProjectAdded,
    SettingLine,
    Status,
    Trust,
    Trustable,
    WaitState,
    Where,
    WorktreeLine,
    WorktreeList,
)
from legion.wire.providers import (
    AddProvider,
    BeginLogin,
    FinishLogin,
    LoginBegun,
    LoginState,
    Models,
    ProviderAnswer,
    Providers,
    RemoveProvider,
    RemoveRoute,
    Routes,
    SetRoute,
    TryProvider,
)
from legion.wire.questions import Answered, AnswerQuestion, Inbox, MessageText, Told
from legion.wire.recording import Cassette, SetRecording
from legion.wire.stretch import WorkSummary
from legion.wire.teams import DefinitionText, RolePage, Roles, SaveDefinition, TeamPage, Teams
from legion.wire.tickets import Acted, Action, Diff, Dispatch, Dispatched, EventLine, LogText, RewindTo, TicketPage
from legion.wire.usage import UsageReport


class Service:
    def __init__(self, context: Context, news: CommitSignal, *, daemon: DaemonLine, end: Callable[[], None]) -> None:
        self._context = context
        self._news = news
        self._daemon = daemon
        self._end = end
        self._me = ROOT
        """Whose eyes see what is not asked for by name."""

    def add_project(self, request: AddProject) -> ProjectAdded:
        return registry.add(self._context, request)

    def remove_project(self, where: Where) -> Done:
        return registry.remove(self._context, where.cwd)

    def trustable(self, where: Where) -> Trustable:
        return trusting.trustable(self._context, where.cwd)

    def trust(self, request: Trust) -> Done:
        return trusting.trust(self._context, request)

    def dispatch(self, request: Dispatch) -> Dispatched:
        made = tickets.dispatch(self._context, request)
        return replace(made, notes=[*made.notes, *catalog.dispatch_notes(self._context, request)])

    def status(self, cwd: str | None, all: bool) -> Status:
        spending.catch_up(self._context)
        seen = status.status(self._context, self._daemon, cwd, all)
        return replace(seen, seat=listing.seat(self._context, self._me))

    def ticket(self, id: int) -> TicketPage:
        spending.catch_up(self._context)
        return ticket_page.ticket_page(self._context, id)

    def log(self, id: int, run: int | None, offset: int) -> LogText:
        return output.log(self._context, id, run, offset)

    def diff(self, id: int) -> Diff:
        return output.diff(self._context, id)

    def graph(self, cwd: str) -> Graph:
        return status.graph(self._context, cwd)

    def usage(self, cwd: str | None, by: str) -> UsageReport:
        spending.catch_up(self._context)
        return usage.usage_report(self._context, cwd, by)

    def history(self, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int) -> Events:
        return history.history(self._context, cwd, ticket, run, after, last)

    def stretch(self, cwd: str, hours: float | None) -> WorkSummary:
        spending.catch_up(self._context)
        return summary.stretch(self._context, cwd, hours)

    def rewind(self, id: int, wanted: RewindTo) -> Acted:
        return rewinding.rewind(self._context, id, wanted)

    def undo(self, id: int) -> Acted:
        return undoing.undo(self._context, id)

    def wait(self, cwd: str | None, ids: list[int], after_event: int, timeout: float) -> WaitState:
        return waiting.wait(self._context, self._news, cwd, ids, after_event, timeout)

    def stop(self, id: int, action: Action) -> Acted:
        return tickets.stop(self._context, id)

    def stop_all(self, where: Where) -> Acted:
        return tickets.stop_all(self._context, where.cwd)

    def retry(self, id: int, action: Action) -> Acted:
        return tickets.retry(self._context, id, action.feedback)

    def review(self, id: int) -> Acted:
        return reviewing.review(self._context, id)

    def bounce(self, id: int, action: Action) -> Acted:
        return reviewing.bounce(self._context, id, action.feedback)

    def drop(self, id: int) -> Acted:
        return tickets.drop(self._context, id)

    def pause(self, where: Where) -> Acted:
        project = registry.set_paused(self._context, where.cwd, True)
        return Acted(tickets=[], message=f"{project.name} is paused: running agents go on, nothing new starts.")

    def resume(self, where: Where) -> Acted:
        project = registry.set_paused(self._context, where.cwd, False)
        return Acted(tickets=[], message=f"{project.name} goes on.")

    def pause_ticket(self, id: int) -> Acted:
        return tickets.pause(self._context, id)

    def resume_ticket(self, id: int) -> Acted:
        return tickets.resume(self._context, id)

    def roles(self, cwd: str | None) -> Roles:
        return teams.role_list(self._context, cwd)

    def role(self, cwd: str | None, name: str) -> RolePage:
        return teams.role_page(self._context, cwd, name)

    def teams(self, cwd: str | None) -> Teams:
        return teams.team_list(self._context, cwd)

    def team(self, cwd: str | None, name: str) -> TeamPage:
        return teams.team_page(self._context, cwd, name)

    def definition(self, kind: str, cwd: str | None, name: str, new: bool, like: str) -> DefinitionText:
        return teams.text(self._context, cwd, DefinitionKind(kind), name, new=new, like=like)

    def save_definition(self, kind: str, wanted: SaveDefinition) -> Done:
        return teams.save(self._context, DefinitionKind(kind), wanted)

    def remove_definition(self, kind: str, cwd: str | None, name: str) -> Done:
        return teams.remove(self._context, cwd, DefinitionKind(kind), name)

    def inbox(self) -> Inbox:
        return questions.inbox(self._context)

    def answer(self, id: int, given: AnswerQuestion) -> Answered:
        return questions.answer(self._context, id, given)

    def tell(self, id: int, words: MessageText) -> Told:
        return telling.tell(self._context, id, words)

    def interrupt(self, id: int, words: MessageText) -> Told:
        return telling.interrupt(self._context, id, words)

    def hire(self, caller: str, wanted: HireAgent) -> Hired:
        return hiring.hire(self._context, caller, wanted)

    def fire(self, caller: str, wanted: FireAgent) -> Fired:
        return hiring.fire(self._context, caller, wanted)

    def interrupt_agent(self, caller: str, wanted: InterruptAgent) -> Sent:
        return hiring.interrupt(self._context, caller, wanted)

    def tell_agent(self, caller: str, letter: NewMessage) -> Sent:
        return mailing.tell(self._context, caller, letter)

    def broadcast(self, caller: str, wanted: Broadcast) -> Sent:
        return mailing.broadcast(self._context, caller, wanted)

    def claim(self, caller: str, wanted: ClaimTicket) -> Claimed:
        return claiming.claim(self._context, caller, wanted)

    def submit(self, caller: str, wanted: SubmitTicket) -> Claimed:
        return claiming.submit(self._context, caller, wanted)

    def propose_plan(self, caller: str, wanted: Plan) -> Sent:
        return plan_approval.propose(self._context, caller, wanted)

    def decide_plan(self, caller: str, wanted: PlanVerdict) -> Sent:
        return plan_approval.decide(self._context, caller, wanted)

    def mail(self, caller: str, wanted: ReadMail) -> Mail:
        return mailing.read(self._context, caller, wanted)

    def agents(self, caller: str, everybody: bool) -> AgentList:
        spending.catch_up(self._context)
        return listing.agents(self._context, caller, everybody)

    def agent(self, caller: str, id: str) -> AgentPage:
        spending.catch_up(self._context)
        return listing.agent(self._context, caller, id)

    def providers(self) -> Providers:
        return catalog.listed(self._context)

    def add_provider(self, wanted: AddProvider) -> Done:
        return catalog.add(self._context, wanted)

    def remove_provider(self, wanted: RemoveProvider) -> Done:
        return catalog.remove(self._context, wanted)

    def begin_login(self, wanted: BeginLogin) -> LoginBegun:
        return login.begin(self._context, wanted)

    def finish_login(self, wanted: FinishLogin) -> LoginState:
        return login.finish(self._context, wanted)

    def routes(self) -> Routes:
        return routing.listed(self._context)

    def set_route(self, wanted: SetRoute) -> Done:
        return routing.set_route(self._context, wanted)

    def remove_route(self, wanted: RemoveRoute) -> Done:
        return routing.remove_route(self._context, wanted)

    def models(self, name: str) -> Models:
        return routing.models(self._context, name)

    def switch_recording(self, wanted: SetRecording) -> Done:
        return record.switch(self._context, wanted)

    def cassette(self, id: int, name: str) -> Cassette:
        return record.of_ticket(self._context, id, name)

    def try_provider(self, wanted: TryProvider) -> ProviderAnswer:
        return probe.try_out(self._context, wanted)

    def collect(self, where: Where) -> CollectResult:
        return collecting.collect(self._context, where.cwd)

    def worktrees(self, where: Where) -> WorktreeList:
        project = registry.find(self._context, where.cwd)
        project_context = self._context.workshop_of(project)
        # Trees first: a ticket is there before its tree.
        trees = project_context.worktrees.list()
        with self._context.store.read() as tx:
            live = {ticket.id for ticket in stored_tickets.live(tx, project=project.id)}
        whose = {tree.name: _ticket_of(tree.name, live) for tree in trees}
        lines = [
            WorktreeLine(
                name=tree.name,
                path=str(tree.path),
                bytes=tree.bytes,
                ticket=whose[tree.name],
                state="warm" if tree.in_pool else "in use" if whose[tree.name] else "kept",
            )
            for tree in trees
        ]
        return WorktreeList(root=project.worktrees, worktrees=lines, trash_bytes=tree_size(project_context.trash))

    def doctor(self, cwd: str | None) -> Doctor:
        return doctor.doctor(self._context, cwd)

    def config(self, cwd: str | None) -> Config:
        project = registry.find_or_none(self._context, cwd) if cwd else None
        if project is None:
            return Config(
                user_file=self._context.user.origin,
                project_file="",
                settings=_settings(explain(None, "", self._context.user)),
                trusted=False,
            )
        project_context = self._context.workshop_of(project)
        origin = f"{FILE} of the {project.config_origin.value}"
        return Config(
            user_file=self._context.user.origin,
            project_file=f"{project.root}/{FILE}",
            settings=_settings(explain(project_context.config, origin, self._context.user)),
            trusted=registry.is_trusted(self._context, project),
        )

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None
    ) -> list[EventLine]:
        project = registry.find(self._context, project_cwd).id if project_cwd else None
        with self._context.store.read() as tx:
            found = events.after(tx, after, project=project, ticket=ticket, limit=limit)
            names = {one.id: one.name for one in stored_projects.all(tx)}
        return [event_line(event, names) for event in found]

    def wait_for_event(self, after: int, timeout: float) -> bool:
        return self._news.wait(after, timeout)

    def shutdown(self) -> None:
        self._end()


def _ticket_of(seat: str, live: set[int]) -> int | None:
    """The live ticket that works there, or is read there."""
    found = seated(seat)
    return found[1] if found is not None and found[0] == "ticket" and found[1] in live else None


def _settings(rows: list[explaining.ExplainedSetting]) -> list[SettingLine]:
    return [SettingLine(key=row.key, value=row.value, origin=row.origin) for row in rows]
