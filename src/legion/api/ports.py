"""What the api asks of the service: one function per thing a person can ask, each callable from any thread."""

from __future__ import annotations

from typing import Protocol

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
from legion.wire.callers import Caller
from legion.wire.history import Events
from legion.wire.mail import Broadcast, Letter, Mail, ReadMail, Sent
from legion.wire.orchestrate import (
    Dependencies,
    OldDispatch,
    OldDispatched,
    OldReport,
    OldStop,
    Queue,
    Said,
    Submit,
    Submitted,
)
from legion.wire.projects import (
    AddProject,
    Collected,
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
from legion.wire.tickets import Acted, Action, Diff, Dispatch, Dispatched, EventLine, Log, Rewind, TicketPage
from legion.wire.tools import ToolAnswer, ToolCall, Tools
from legion.wire.usage import UsageReport


class Orchestrate(Protocol):
    """The routes of legion_cc, for one caller and one project."""

    def submit(self, wanted: Submit, /) -> Submitted: ...
    def dispatch(self, wanted: OldDispatch, /) -> OldDispatched: ...
    def status(self) -> Queue: ...
    def report(self, wanted: OldReport, /) -> Said: ...
    def stop(self, wanted: OldStop, /) -> Said: ...
    def stop_all(self) -> Said: ...
    def deps(self, number: int, /) -> Dependencies: ...


class Desk(Protocol):
    """Where callers are known by their tokens."""

    def known(self, token: str, /) -> Caller:
        """Whose token this is. Raises NotAllowed where it opens nothing."""
        ...

    def refused(self, caller: Caller, asked: str, why: str, /) -> None:
        """Writes down what somebody tried."""

    def acting(self, caller: Caller, /) -> Service:
        """The service with no more rights than the caller's."""
        ...

    def tools(self, caller: Caller, /) -> Tools:
        """Those that it sees."""
        ...

    def call_tool(self, caller: Caller, name: str, wanted: ToolCall, cwd: str, /) -> ToolAnswer:
        """Blocks for a while where the tool waits for something."""
        ...

    def orchestrate(self, caller: Caller, cwd: str, /) -> Orchestrate: ...


class Service(Protocol):
    """Raises the errors of `legion.domain.errors`; each becomes an answer of its own."""

    def add_project(self, wanted: AddProject, /) -> ProjectAdded: ...
    def remove_project(self, where: Where, /) -> Done: ...
    def trustable(self, where: Where, /) -> Trustable: ...
    def trust(self, wanted: Trust, /) -> Done: ...
    def dispatch(self, wanted: Dispatch, /) -> Dispatched: ...
    def status(self, cwd: str | None, all: bool, /) -> Status: ...
    def ticket(self, id: int, /) -> TicketPage: ...
    def log(self, id: int, run: int | None, offset: int, /) -> Log: ...
    def diff(self, id: int, /) -> Diff: ...
    def graph(self, cwd: str, /) -> Graph: ...
    def usage(self, cwd: str | None, by: str, /) -> UsageReport: ...
    def stretch(self, cwd: str, hours: float | None, /) -> Stretch: ...
    def rewind(self, id: int, wanted: Rewind, /) -> Acted: ...
    def undo(self, id: int, /) -> Acted: ...

    def history(self, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int, /) -> Events:
        """What happened behind a cursor; at most the `last` ones unless that is 0."""

    def wait(self, cwd: str | None, ids: list[int], after_event: int, timeout: float, /) -> WaitState:
        """Blocks until something happened after that event, all are settled, or the time is over."""

    def stop(self, id: int, action: Action, /) -> Acted: ...
    def stop_all(self, where: Where, /) -> Acted: ...
    def retry(self, id: int, action: Action, /) -> Acted: ...
    def drop(self, id: int, /) -> Acted: ...
    def pause(self, where: Where, /) -> Acted: ...
    def resume(self, where: Where, /) -> Acted: ...
    def pause_ticket(self, id: int, /) -> Acted: ...
    def resume_ticket(self, id: int, /) -> Acted: ...
    def inbox(self) -> Inbox: ...
    def answer(self, id: int, given: Answer, /) -> Answered: ...

    def tell(self, id: int, words: Words, /) -> Told:
        """Blocks until the agent has heard it, at most half a minute."""

    def interrupt(self, id: int, words: Words, /) -> Told:
        """Blocks like `tell` where there are words."""

    def hire(self, caller: str, wanted: Hire, /) -> Hired: ...
    def fire(self, caller: str, wanted: Fire, /) -> Fired: ...

    def interrupt_agent(self, caller: str, wanted: Interrupt, /) -> Sent:
        """Blocks like `tell` where there are words."""
        ...

    def tell_agent(self, caller: str, letter: Letter, /) -> Sent:
        """Blocks until the agent has heard it, at most half a minute, where it is to be told now."""
        ...

    def broadcast(self, caller: str, wanted: Broadcast, /) -> Sent: ...
    def claim(self, caller: str, wanted: ClaimTicket, /) -> Claimed: ...
    def submit(self, caller: str, wanted: SubmitTicket, /) -> Claimed: ...
    def propose_plan(self, caller: str, wanted: Plan, /) -> Sent: ...
    def decide_plan(self, caller: str, wanted: PlanVerdict, /) -> Sent: ...
    def mail(self, caller: str, wanted: ReadMail, /) -> Mail: ...
    def agents(self, caller: str, everybody: bool, /) -> Agents: ...
    def agent(self, caller: str, id: str, /) -> AgentPage: ...

    def providers(self) -> Providers: ...
    def add_provider(self, wanted: AddProvider, /) -> Done: ...
    def remove_provider(self, wanted: RemoveProvider, /) -> Done: ...
    def begin_login(self, wanted: BeginLogin, /) -> LoginBegun: ...

    def finish_login(self, wanted: FinishLogin, /) -> LoginState:
        """Blocks a while for the person."""

    def routes(self) -> Routes: ...
    def set_route(self, wanted: SetRoute, /) -> Done: ...
    def remove_route(self, wanted: RemoveRoute, /) -> Done: ...

    def models(self, name: str, /) -> Models:
        """Blocks until the providers have answered."""
        ...

    def switch_recording(self, wanted: Record, /) -> Done: ...
    def cassette(self, id: int, name: str, /) -> Cassette: ...

    def try_provider(self, wanted: TryProvider, /) -> ProviderAnswer:
        """Blocks until the provider has answered."""

    def collect(self, where: Where, /) -> Collected: ...
    def worktrees(self, where: Where, /) -> Worktrees: ...
    def doctor(self, cwd: str | None, /) -> Doctor: ...
    def config(self, cwd: str | None, /) -> Config: ...

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None, /
    ) -> list[EventLine]:
        """The next events after number `after`, oldest first."""

    def wait_for_event(self, after: int, timeout: float, /) -> bool:
        """Blocks until there is an event after that number. An early False says that the service is closing."""

    def shutdown(self) -> None:
        """Asks the daemon to end; answers at once."""
