"""The daemon as an object: one method per thing that can be asked, with the wire's dataclasses in and out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from legion import __version__
from legion.client.http import DaemonAddress, DaemonConnection, OtherVersion, Query
from legion.client.shapes import UnreadableAnswer, read
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
    Doctor,
    Done,
    Graph,
    ProjectAdded,
    Status,
    Trust,
    Trustable,
    WaitState,
    Where,
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

Shape = TypeVar("Shape")

LONGEST_WAIT = 20.0
"""Seconds of one long poll; a line that is silent for longer is dead."""


class Legion:
    def __init__(self, address: DaemonAddress, line: DaemonConnection | None = None) -> None:
        self.address = address
        self.line = line or DaemonConnection(address)

    @property
    def other_version(self) -> str | None:
        """The daemon's version where it is not ours."""
        return self.line.daemon_version if self.line.daemon_version != __version__ else None

    def add_project(self, wanted: AddProject) -> ProjectAdded:
        return self._post(ProjectAdded, "projects", wanted)

    def remove_project(self, where: Where) -> Done:
        return self.understood(Done, self.line.ask("DELETE", "/v1/projects", query={"cwd": where.cwd}))

    def trustable(self, where: Where) -> Trustable:
        return self._get(Trustable, "project/trustable", {"cwd": where.cwd})

    def trust(self, wanted: Trust) -> Done:
        return self._post(Done, "project/trust", wanted)

    def dispatch(self, wanted: Dispatch) -> Dispatched:
        return self._post(Dispatched, "tickets", wanted)

    def status(self, cwd: str | None, all: bool = False) -> Status:
        return self._get(Status, "status", {"cwd": cwd, "all": all})

    def ticket(self, id: int) -> TicketPage:
        return self._get(TicketPage, f"tickets/{id}")

    def log(self, id: int, run: int | None = None, offset: int = 0) -> LogText:
        return self._get(LogText, f"tickets/{id}/log", {"run": run, "offset": offset})

    def diff(self, id: int) -> Diff:
        return self._get(Diff, f"tickets/{id}/diff")

    def graph(self, cwd: str) -> Graph:
        return self._get(Graph, "graph", {"cwd": cwd})

    def usage(self, cwd: str | None, by: str = "ticket") -> UsageReport:
        return self._get(UsageReport, "usage", {"cwd": cwd, "by": by})

    def history(
        self, cwd: str | None, *, ticket: int | None = None, run: int | None = None, after: str = "", last: int = 0
    ) -> Events:
        query: Query = {"cwd": cwd, "ticket": ticket, "run": run, "after": after, "last": last}
        return self._get(Events, "history", query)

    def stretch(self, cwd: str, hours: float | None = None) -> WorkSummary:
        return self._get(WorkSummary, "stretch", {"cwd": cwd, "hours": hours})

    def rewind(self, id: int, wanted: RewindTo) -> Acted:
        return self._post(Acted, f"tickets/{id}/rewind", wanted)

    def undo(self, id: int) -> Acted:
        return self._post(Acted, f"tickets/{id}/undo")

    def wait(
        self, cwd: str | None, ids: list[int], *, after_event: int = 0, timeout: float = LONGEST_WAIT
    ) -> WaitState:
        """One long poll of at most LONGEST_WAIT."""
        timeout = max(0.0, min(timeout, LONGEST_WAIT))
        query: Query = {"cwd": cwd, "id": ids, "after_event": after_event, "timeout": timeout}
        return self.understood(WaitState, self.line.ask("GET", "/v1/wait", query=query, timeout=timeout + 30))

    def stop(self, id: int, action: Action) -> Acted:
        return self._post(Acted, f"tickets/{id}/stop", action)

    def stop_all(self, where: Where) -> Acted:
        return self._post(Acted, "project/stop", where)

    def retry(self, id: int, action: Action) -> Acted:
        return self._post(Acted, f"tickets/{id}/retry", action)

    def review(self, id: int) -> Acted:
        return self._post(Acted, f"tickets/{id}/review")

    def bounce(self, id: int, action: Action) -> Acted:
        return self._post(Acted, f"tickets/{id}/bounce", action)

    def drop(self, id: int) -> Acted:
        return self._post(Acted, f"tickets/{id}/drop")

    def pause(self, where: Where) -> Acted:
        return self._post(Acted, "project/pause", where)

    def resume(self, where: Where) -> Acted:
        return self._post(Acted, "project/resume", where)

    def pause_ticket(self, id: int) -> Acted:
        return self._post(Acted, f"tickets/{id}/pause")

    def resume_ticket(self, id: int) -> Acted:
        return self._post(Acted, f"tickets/{id}/resume")

    def roles(self, cwd: str | None) -> Roles:
        return self._get(Roles, "roles", {"cwd": cwd})

    def role(self, cwd: str | None, name: str) -> RolePage:
        return self._get(RolePage, "roles/page", {"cwd": cwd, "name": name})

    def teams(self, cwd: str | None) -> Teams:
        return self._get(Teams, "teams", {"cwd": cwd})

    def team(self, cwd: str | None, name: str) -> TeamPage:
        return self._get(TeamPage, "teams/page", {"cwd": cwd, "name": name})

    def definition(self, kind: str, cwd: str | None, name: str, *, new: bool, like: str) -> DefinitionText:
        """`kind` is role or team."""
        return self._get(DefinitionText, f"{kind}s/text", {"cwd": cwd, "name": name, "new": new, "like": like})

    def save_definition(self, kind: str, wanted: SaveDefinition) -> Done:
        return self._post(Done, f"{kind}s", wanted)

    def remove_definition(self, kind: str, cwd: str | None, name: str) -> Done:
        return self.understood(Done, self.line.ask("DELETE", f"/v1/{kind}s", query={"cwd": cwd, "name": name}))

    def inbox(self) -> Inbox:
        return self._get(Inbox, "inbox")

    def answer(self, id: int, given: AnswerQuestion) -> Answered:
        return self._post(Answered, f"questions/{id}/answer", given)

    def tell(self, id: int, words: MessageText) -> Told:
        return self._post(Told, f"tickets/{id}/tell", words)

    def interrupt(self, id: int, words: MessageText) -> Told:
        return self._post(Told, f"tickets/{id}/interrupt", words)

    def hire(self, wanted: HireAgent) -> Hired:
        return self._post(Hired, "agents", wanted)

    def fire(self, wanted: FireAgent) -> Fired:
        return self._post(Fired, "agents/fire", wanted)

    def interrupt_agent(self, wanted: InterruptAgent) -> Sent:
        return self._post(Sent, "agents/interrupt", wanted)

    def tell_agent(self, letter: NewMessage) -> Sent:
        return self._post(Sent, "agents/tell", letter)

    def broadcast(self, wanted: Broadcast) -> Sent:
        return self._post(Sent, "agents/broadcast", wanted)

    def claim(self, wanted: ClaimTicket) -> Claimed:
        return self._post(Claimed, "agents/claim", wanted)

    def submit(self, wanted: SubmitTicket) -> Claimed:
        return self._post(Claimed, "agents/submit", wanted)

    def propose_plan(self, wanted: Plan) -> Sent:
        return self._post(Sent, "agents/plan", wanted)

    def decide_plan(self, wanted: PlanVerdict) -> Sent:
        return self._post(Sent, "agents/verdict", wanted)

    def mail(self, wanted: ReadMail) -> Mail:
        return self._post(Mail, "mail", wanted)

    def agents(self, everybody: bool = False) -> AgentList:
        return self._get(AgentList, "agents", {"all": everybody})

    def agent(self, id: str) -> AgentPage:
        from urllib.parse import quote  # noqa: PLC0415  # not every command needs it

        return self._get(AgentPage, f"agents/{quote(id, safe='')}")

    def providers(self) -> Providers:
        return self._get(Providers, "providers")

    def add_provider(self, wanted: AddProvider) -> Done:
        return self._post(Done, "providers", wanted)

    def remove_provider(self, wanted: RemoveProvider) -> Done:
        return self._post(Done, "providers/remove", wanted)

    def begin_login(self, wanted: BeginLogin) -> LoginBegun:
        return self._post(LoginBegun, "providers/login", wanted)

    def finish_login(self, wanted: FinishLogin) -> LoginState:
        return self._post(LoginState, "providers/login/finish", wanted)

    def routes(self) -> Routes:
        return self._get(Routes, "providers/routes")

    def set_route(self, wanted: SetRoute) -> Done:
        return self._post(Done, "providers/routes", wanted)

    def remove_route(self, wanted: RemoveRoute) -> Done:
        return self._post(Done, "providers/routes/remove", wanted)

    def models(self, name: str = "") -> Models:
        return self._get(Models, "providers/models", {"name": name})

    def switch_recording(self, wanted: SetRecording) -> Done:
        return self._post(Done, "tickets/recording", wanted)

    def cassette(self, id: int, name: str) -> Cassette:
        return self._get(Cassette, f"tickets/{id}/cassette", {"name": name})

    def try_provider(self, wanted: TryProvider) -> ProviderAnswer:
        return self._post(ProviderAnswer, "providers/test", wanted)

    def collect(self, where: Where) -> CollectResult:
        return self._post(CollectResult, "project/collect", where)

    def worktrees(self, where: Where) -> WorktreeList:
        return self._get(WorktreeList, "worktrees", {"cwd": where.cwd})

    def doctor(self, cwd: str | None) -> Doctor:
        return self._get(Doctor, "doctor", {"cwd": cwd})

    def config(self, cwd: str | None) -> Config:
        return self._get(Config, "config", {"cwd": cwd})

    def shutdown(self) -> Done:
        return self._post(Done, "shutdown")

    def healthy(self) -> bool:
        """Whether it answers at all; raises NotRunning where nobody does."""
        return bool(self.line.ask("GET", "/health", timeout=30) == {"status": "healthy"})

    def events(self, after: int, *, cwd: str | None = None, ticket: int | None = None) -> Iterator[EventLine | None]:
        """Events after that number and then as they happen; None for each sign of life between them."""
        for data in self.line.follow("/v1/events", query={"after": after, "cwd": cwd, "ticket": ticket}):
            yield None if data is None else self.understood(EventLine, data)

    def _get(self, shape: type[Shape], path: str, query: Query | None = None) -> Shape:
        return self.understood(shape, self.line.ask("GET", f"/v1/{path}", query=query))

    def _post(self, shape: type[Shape], path: str, body: object = None) -> Shape:
        return self.understood(shape, self.line.ask("POST", f"/v1/{path}", body=body))

    def understood(self, shape: type[Shape], data: object) -> Shape:
        """The daemon's answer in its shape, or one sentence about two versions that have grown apart."""
        try:
            return read(shape, data)
        except UnreadableAnswer:
            raise OtherVersion(self.line.daemon_version) from None
