"""The one store of what the daemon has answered. The stream of events feeds it, screens are views of it.

`run` connects, follows the events, and connects again when the daemon was away. What was known stays until then.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.text.terminal import sanitize_lines
from legion.tui.feed import Concerns, Feed
from legion.tui.link.connection import Phase
from legion.tui.link.events import EventThread
from legion.tui.link.requests import Requests
from legion.wire.agents import AgentList
from legion.wire.board import Graph, ProjectLine, Status
from legion.wire.errors import LegionError
from legion.wire.history import Events, FollowOutput, LiveOutput, OutputPiece, RunningLine, UsageReport
from legion.wire.mail import Inbox, Mail, ReadMail
from legion.wire.plans import PlanList
from legion.wire.providers import Providers
from legion.wire.tickets import EventLine, TicketLine

KEPT_LINES = 400
LEAST_PAUSE = 0.25
"""Seconds between two answers: agents that print constantly are drawn four times a second."""
_LONGEST_LINE = 8192
_WAIT = 20.0


@dataclass
class Tail:
    """The last lines that a run printed."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    rest: str = ""
    """The start of a line that is not complete."""
    next_offset: int = 0
    total: int = 0
    """Lines so far, those that were dropped included."""

    def add(self, text: str) -> None:
        complete, newline, self.rest = (self.rest + text).rpartition("\n")
        if newline:
            self._append(complete)
        if len(self.rest) > _LONGEST_LINE:
            self._append(self.rest)
            self.rest = ""

    def last(self, count: int) -> list[str]:
        """At most so many lines, with the incomplete one."""
        shown = [*self.lines, *(sanitize_lines(self.rest) if self.rest.strip() else [])]
        return shown[-count:] if count > 0 else []

    def _append(self, text: str) -> None:
        added = sanitize_lines(text)
        self.total += len(added)
        self.lines.extend(added)


class OutputFeed:
    """What each run at work has printed last. It asks only while there is a watcher."""

    def __init__(self, requests: Requests, cwd: Callable[[], str]) -> None:
        """`cwd` names the project; empty: all."""
        self._requests = requests
        self._cwd = cwd
        self._watchers: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.running: list[RunningLine] = []
        self.tails: dict[int, Tail] = {}
        self.pieces: list[OutputPiece] = []
        """Those of the last answer."""

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(watcher)
        self.resume()

        def end() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
            if not self._watchers:
                self.close()

        return end

    def resume(self) -> None:
        """Start to ask, or ask again after the daemon came back."""
        if self._watchers and self._task is None:
            self._task = asyncio.ensure_future(self._follow())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            began = time.monotonic()
            wanted = FollowOutput(cwd=self._cwd(), seen=self._seen())
            try:
                answer = await self._requests.ask(partial(_output, wanted), counts=False)
            except NotRunning:
                # The store resumes this when the daemon is back.
                self._task = None
                return
            except LegionError:
                await asyncio.sleep(_TROUBLE_PAUSE)
                continue
            self.take(answer)
            await asyncio.sleep(max(0.0, began + LEAST_PAUSE - time.monotonic()))

    def take(self, answer: LiveOutput) -> None:
        self.running, self.pieces = answer.running, answer.pieces
        at_work = {line.run for line in answer.running}
        self.tails = {run: tail for run, tail in self.tails.items() if run in at_work}
        for piece in answer.pieces:
            tail = self.tails.setdefault(piece.run, Tail())
            if piece.offset > tail.next_offset and tail.next_offset:
                tail.add("\n")
            tail.add(piece.text)
            tail.next_offset = piece.next_offset
        for run in at_work:
            self.tails.setdefault(run, Tail())
        for watcher in list(self._watchers):
            watcher()

    def _seen(self) -> dict[str, int]:
        return {str(run): tail.next_offset for run, tail in self.tails.items()}


def _output(wanted: FollowOutput, legion: Legion) -> LiveOutput:
    return legion.output(wanted, _WAIT)


Value = TypeVar("Value")

_TROUBLE_PAUSE = 2.0
USAGE_CUTS = ("day", "ticket", "agent", "model", "epic")
_RECENT = 200


def of_kinds(*starts: str) -> Concerns:
    """Whether an event's kind starts with one of these."""
    return lambda event: event.kind.startswith(starts)


@dataclass(frozen=True, kw_only=True)
class StartedWith:
    """What was known before the loop ran: found while Textual was imported."""

    legion: Legion | None = None
    status: Status | None = None


class BoardStore:
    def __init__(self, data_dir: Path, cwd: str, *, start: bool = True, known: StartedWith | None = None) -> None:
        """`cwd` is any folder inside the project."""
        known = known or StartedWith()
        self.cwd = cwd
        self._feeds: list[Feed[object]] = []
        self._tickets: dict[int, TicketLine] = {}
        self._tickets_of: Status | None = None
        self._connection_watchers: list[Callable[[], None]] = []
        self.requests = Requests(data_dir, self._connection_changed, start=start, legion=known.legion)
        self.status: Feed[Status] = self.feed(lambda legion: legion.status(cwd), lambda event: True)
        self.graph: Feed[Graph] = self.feed(
            lambda legion: legion.graph(self.project_root), of_kinds("ticket.", "landing.")
        )
        decided = of_kinds("question.", "plan.", "ticket.", "target.", "person.", "project.")
        self.inbox: Feed[Inbox] = self.feed(lambda legion: legion.inbox(), decided)
        self.agents: Feed[AgentList] = self.feed(
            lambda legion: legion.agents(), of_kinds("agent.", "mail.", "run.", "plan.")
        )
        # Reading the person's own mail marks it as read; with `all` it is listed afterwards, too.
        self.mail: Feed[Mail] = self.feed(lambda legion: legion.mail(ReadMail(all=True)), of_kinds("mail."))
        self.plans: Feed[PlanList] = self.feed(lambda legion: legion.plans(cwd), of_kinds("plan."))
        self.providers: Feed[Providers] = self.feed(lambda legion: legion.providers(), of_kinds("pace."))
        self.recent: Feed[Events] = self.feed(
            lambda legion: legion.history(cwd, last=_RECENT),
            of_kinds("landing.", "target.", "check.", "person.", "question."),
        )
        self.usage: dict[str, Feed[UsageReport]] = {cut: self._usage(cut) for cut in USAGE_CUTS}
        self.output = OutputFeed(self.requests, lambda: self.project_root)
        self.trouble = ""
        """Why there is no status, where the daemon answers and refuses."""
        if known.status is not None:
            self.status.put(known.status)

    def feed(self, fetch: Callable[[Legion], Value], concerns: Concerns) -> Feed[Value]:
        """A feed that gets the events until `drop`."""
        made: Feed[Value] = Feed(self.requests, fetch, concerns)
        self._feeds.append(made)  # type: ignore[arg-type]  # of any value
        return made

    def drop(self, feeds: Iterable[Feed[Value]]) -> None:
        """The screen that asked for them is gone."""
        for feed in feeds:
            feed.close()
            self._feeds.remove(feed)  # type: ignore[arg-type]  # of any value

    @property
    def tickets(self) -> dict[int, TicketLine]:
        """Those of the status by number; made once for each answer, because every key asks for one."""
        status = self.status.value
        if status is not None and status is not self._tickets_of:
            self._tickets_of = status
            self._tickets = {ticket.id: ticket for ticket in status.tickets}
        return self._tickets

    @property
    def project(self) -> ProjectLine | None:
        return self.status.value.project if self.status.value else None

    @property
    def project_root(self) -> str:
        """Empty where the UI shows all projects."""
        return self.project.root if self.project else ""

    def invalidate(self) -> None:
        """Read everything again that a screen shows."""
        for feed in self._feeds:
            feed.invalidate()

    def watch_connection(self, watcher: Callable[[], None]) -> Callable[[], None]:
        self._connection_watchers.append(watcher)
        return lambda: self._connection_watchers.remove(watcher)

    async def run(self) -> None:
        """Until it is cancelled."""
        watch = asyncio.ensure_future(self.requests.keep_watch())
        try:
            while True:
                await self._connect()
                await self._follow()
        finally:
            watch.cancel()

    async def _connect(self) -> None:
        while True:
            try:
                status = await self.requests.ask(lambda legion: legion.status(self.cwd))
            except LegionError as error:
                self.trouble = error.message
                self._connection_changed()
                gone = self.requests.phase in (Phase.GONE, Phase.CONNECTING)
                await asyncio.sleep(self.requests.connection.retry_delay() if gone else _TROUBLE_PAUSE)
            else:
                self.trouble = ""
                self._connection_changed()
                self.status.put(status)
                for feed in self._feeds:
                    if feed is not self.status:
                        feed.invalidate()
                self.output.resume()
                return

    async def _follow(self) -> None:
        legion, status = self.requests.legion, self.status.value
        if legion is None or status is None:
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()
        follower = EventThread(loop, legion, status.last_event)
        follower.start(self._take, self.requests.heard, ended.set_result)
        try:
            self.requests.lost(await ended)
        finally:
            follower.stop()

    def _take(self, events: list[EventLine]) -> None:
        self.requests.heard()
        for feed in self._feeds:
            feed.take(events)

    def _connection_changed(self) -> None:
        for watcher in list(self._connection_watchers):
            watcher()

    def _usage(self, cut: str) -> Feed[UsageReport]:
        return self.feed(lambda legion: legion.usage(self.cwd, cut), of_kinds("run.", "landing."))
