"""The service as the API sees it: one method per use case, safe to call from many threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from legion.config import explain as explaining
from legion.config.explain import explain
from legion.config.project import FILE
from legion.config.teams import Kind
from legion.domain.agents import ROOT
from legion.domain.runs import seated
from legion.jobs import spending
from legion.jobs.world import World
from legion.service import (
    asking,
    claiming,
    collecting,
    doctor,
    hiring,
    history,
    login,
    mailing,
    output,
    planning,
    projects,
    providers,
    recording,
    reviewing,
    rewinding,
    routing,
    standing,
    stretch,
    teams,
    telling,
    tickets,
    trusting,
    trying,
    undoing,
    usage,
    views,
    waiting,
)
from legion.service.news import News
from legion.store import events
from legion.store import projects as stored_projects
from legion.store import tickets as stored_tickets
from legion.system.files import tree_size
from legion.wire.agents import (
    AgentPage,
    Agents,
    Claimed,
    ClaimTicket,
    Fire,
    Fired,
    Hire,
    Hired,
    Interrupt,
    Plan,
    PlanVerdict,
    SubmitTicket,
)
from legion.wire.history import Events
from legion.wire.mail import Broadcast, Letter, Mail, ReadMail, Sent
from legion.wire.projects import (
    AddProject,
    Collected,
    Config,
    DaemonLine,
    Doctor,
    Done,
    Graph,
    ProjectAdded,
    Setting,
    Status,
    Trust,
    Trustable,
    WaitState,
    Where,
    WorktreeLine,
    Worktrees,
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
from legion.wire.questions import Answer, Answered, Inbox, Told, Words
from legion.wire.recording import Cassette, Record
from legion.wire.stretch import Stretch
from legion.wire.teams import DefinitionText, RolePage, Roles, SaveDefinition, TeamPage, Teams
from legion.wire.tickets import Acted, Action, Diff, Dispatch, Dispatched, EventLine, Log, Rewind, TicketPage
from legion.wire.usage import UsageReport


class Service:
    def __init__(self, world: World, news: News, *, daemon: DaemonLine, end: Callable[[], None]) -> None:
        self._world = world
        self._news = news
        self._daemon = daemon
        self._end = end
        self._me = ROOT
        """Whose eyes see what is not asked for by name."""

    def add_project(self, request: AddProject) -> ProjectAdded:
        return projects.add(self._world, request)

    def remove_project(self, where: Where) -> Done:
        return projects.remove(self._world, where.cwd)

    def trustable(self, where: Where) -> Trustable:
        return trusting.trustable(self._world, where.cwd)

    def trust(self, request: Trust) -> Done:
        return trusting.trust(self._world, request)

    def dispatch(self, request: Dispatch) -> Dispatched:
        made = tickets.dispatch(self._world, request)
        return replace(made, notes=[*made.notes, *providers.dispatch_notes(self._world, request)])

    def status(self, cwd: str | None, all: bool) -> Status:
        spending.catch_up(self._world)
        seen = views.status(self._world, self._daemon, cwd, all)
        return replace(seen, seat=standing.seat(self._world, self._me))

    def ticket(self, id: int) -> TicketPage:
        spending.catch_up(self._world)
        return views.ticket_page(self._world, id)

    def log(self, id: int, run: int | None, offset: int) -> Log:
        return output.log(self._world, id, run, offset)

    def diff(self, id: int) -> Diff:
        return output.diff(self._world, id)

    def graph(self, cwd: str) -> Graph:
        return views.graph(self._world, cwd)

    def usage(self, cwd: str | None, by: str) -> UsageReport:
        spending.catch_up(self._world)
        return usage.usage_report(self._world, cwd, by)

    def history(self, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int) -> Events:
        return history.history(self._world, cwd, ticket, run, after, last)

    def stretch(self, cwd: str, hours: float | None) -> Stretch:
        spending.catch_up(self._world)
        return stretch.stretch(self._world, cwd, hours)

    def rewind(self, id: int, wanted: Rewind) -> Acted:
        return rewinding.rewind(self._world, id, wanted)

    def undo(self, id: int) -> Acted:
        return undoing.undo(self._world, id)

    def wait(self, cwd: str | None, ids: list[int], after_event: int, timeout: float) -> WaitState:
        return waiting.wait(self._world, self._news, cwd, ids, after_event, timeout)

    def stop(self, id: int, action: Action) -> Acted:
        return tickets.stop(self._world, id)

    def stop_all(self, where: Where) -> Acted:
        return tickets.stop_all(self._world, where.cwd)

    def retry(self, id: int, action: Action) -> Acted:
        return tickets.retry(self._world, id, action.feedback)

    def review(self, id: int) -> Acted:
        return reviewing.review(self._world, id)

    def bounce(self, id: int, action: Action) -> Acted:
        return reviewing.bounce(self._world, id, action.feedback)

    def drop(self, id: int) -> Acted:
        return tickets.drop(self._world, id)

    def pause(self, where: Where) -> Acted:
        project = projects.set_paused(self._world, where.cwd, True)
        return Acted(tickets=[], message=f"{project.name} is paused: running agents go on, nothing new starts.")

    def resume(self, where: Where) -> Acted:
        project = projects.set_paused(self._world, where.cwd, False)
        return Acted(tickets=[], message=f"{project.name} goes on.")

    def pause_ticket(self, id: int) -> Acted:
        return tickets.pause(self._world, id)

    def resume_ticket(self, id: int) -> Acted:
        return tickets.resume(self._world, id)

    def roles(self, cwd: str | None) -> Roles:
        return teams.role_list(self._world, cwd)

    def role(self, cwd: str | None, name: str) -> RolePage:
        return teams.role_page(self._world, cwd, name)

    def teams(self, cwd: str | None) -> Teams:
        return teams.team_list(self._world, cwd)

    def team(self, cwd: str | None, name: str) -> TeamPage:
        return teams.team_page(self._world, cwd, name)

    def definition(self, kind: str, cwd: str | None, name: str, new: bool, like: str) -> DefinitionText:
        return teams.text(self._world, cwd, Kind(kind), name, new=new, like=like)

    def save_definition(self, kind: str, wanted: SaveDefinition) -> Done:
        return teams.save(self._world, Kind(kind), wanted)

    def remove_definition(self, kind: str, cwd: str | None, name: str) -> Done:
        return teams.remove(self._world, cwd, Kind(kind), name)

    def inbox(self) -> Inbox:
        return asking.inbox(self._world)

    def answer(self, id: int, given: Answer) -> Answered:
        return asking.answer(self._world, id, given)

    def tell(self, id: int, words: Words) -> Told:
        return telling.tell(self._world, id, words)

    def interrupt(self, id: int, words: Words) -> Told:
        return telling.interrupt(self._world, id, words)

    def hire(self, caller: str, wanted: Hire) -> Hired:
        return hiring.hire(self._world, caller, wanted)

    def fire(self, caller: str, wanted: Fire) -> Fired:
        return hiring.fire(self._world, caller, wanted)

    def interrupt_agent(self, caller: str, wanted: Interrupt) -> Sent:
        return hiring.interrupt(self._world, caller, wanted)

    def tell_agent(self, caller: str, letter: Letter) -> Sent:
        return mailing.tell(self._world, caller, letter)

    def broadcast(self, caller: str, wanted: Broadcast) -> Sent:
        return mailing.broadcast(self._world, caller, wanted)

    def claim(self, caller: str, wanted: ClaimTicket) -> Claimed:
        return claiming.claim(self._world, caller, wanted)

    def submit(self, caller: str, wanted: SubmitTicket) -> Claimed:
        return claiming.submit(self._world, caller, wanted)

    def propose_plan(self, caller: str, wanted: Plan) -> Sent:
        return planning.propose(self._world, caller, wanted)

    def decide_plan(self, caller: str, wanted: PlanVerdict) -> Sent:
        return planning.decide(self._world, caller, wanted)

    def mail(self, caller: str, wanted: ReadMail) -> Mail:
        return mailing.read(self._world, caller, wanted)

    def agents(self, caller: str, everybody: bool) -> Agents:
        spending.catch_up(self._world)
        return standing.agents(self._world, caller, everybody)

    def agent(self, caller: str, id: str) -> AgentPage:
        spending.catch_up(self._world)
        return standing.agent(self._world, caller, id)

    def providers(self) -> Providers:
        return providers.listed(self._world)

    def add_provider(self, wanted: AddProvider) -> Done:
        return providers.add(self._world, wanted)

    def remove_provider(self, wanted: RemoveProvider) -> Done:
        return providers.remove(self._world, wanted)

    def begin_login(self, wanted: BeginLogin) -> LoginBegun:
        return login.begin(self._world, wanted)

    def finish_login(self, wanted: FinishLogin) -> LoginState:
        return login.finish(self._world, wanted)

    def routes(self) -> Routes:
        return routing.listed(self._world)

    def set_route(self, wanted: SetRoute) -> Done:
        return routing.set_route(self._world, wanted)

    def remove_route(self, wanted: RemoveRoute) -> Done:
        return routing.remove_route(self._world, wanted)

    def models(self, name: str) -> Models:
        return routing.models(self._world, name)

    def switch_recording(self, wanted: Record) -> Done:
        return recording.switch(self._world, wanted)

    def cassette(self, id: int, name: str) -> Cassette:
        return recording.of_ticket(self._world, id, name)

    def try_provider(self, wanted: TryProvider) -> ProviderAnswer:
        return trying.try_out(self._world, wanted)

    def collect(self, where: Where) -> Collected:
        return collecting.collect(self._world, where.cwd)

    def worktrees(self, where: Where) -> Worktrees:
        project = projects.find(self._world, where.cwd)
        shop = self._world.workshop_of(project)
        # Trees first: a ticket is there before its tree.
        trees = shop.worktrees.list()
        with self._world.store.read() as tx:
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
        return Worktrees(root=project.worktrees, worktrees=lines, trash_bytes=tree_size(shop.trash))

    def doctor(self, cwd: str | None) -> Doctor:
        return doctor.doctor(self._world, cwd)

    def config(self, cwd: str | None) -> Config:
        project = projects.find_or_none(self._world, cwd) if cwd else None
        if project is None:
            return Config(
                user_file=self._world.user.origin,
                project_file="",
                settings=_settings(explain(None, "", self._world.user)),
                trusted=False,
            )
        shop = self._world.workshop_of(project)
        origin = f"{FILE} of the {project.config_origin.value}"
        return Config(
            user_file=self._world.user.origin,
            project_file=f"{project.root}/{FILE}",
            settings=_settings(explain(shop.config, origin, self._world.user)),
            trusted=projects.is_trusted(self._world, project),
        )

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None
    ) -> list[EventLine]:
        project = projects.find(self._world, project_cwd).id if project_cwd else None
        with self._world.store.read() as tx:
            found = events.after(tx, after, project=project, ticket=ticket, limit=limit)
            names = {one.id: one.name for one in stored_projects.all(tx)}
        return [views.event_line(event, names) for event in found]

    def wait_for_event(self, after: int, timeout: float) -> bool:
        return self._news.wait(after, timeout)

    def shutdown(self) -> None:
        self._end()


def _ticket_of(seat: str, live: set[int]) -> int | None:
    """The live ticket that works there, or is read there."""
    found = seated(seat)
    return found[1] if found is not None and found[0] == "ticket" and found[1] in live else None


def _settings(rows: list[explaining.Setting]) -> list[Setting]:
    return [Setting(key=row.key, value=row.value, origin=row.origin) for row in rows]
