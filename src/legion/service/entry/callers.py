"""Identifies callers by their tokens, and gives each the service with its own rights only."""

from __future__ import annotations

import hmac
import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from legion.domain.agents.agent import ROOT
from legion.domain.devices import Device, PushSubscription
from legion.domain.errors import NotAllowed
from legion.domain.events import EventKind
from legion.domain.runs import ticket_seat
from legion.jobs.background.web_push import WebPush
from legion.jobs.trees import Trees
from legion.service import web
from legion.service.entry.agent_rights import LimitedService
from legion.service.entry.legion_cc import LegionCc
from legion.service.entry.orchestra import Orchestra
from legion.service.entry.tools.registry import ToolRegistry
from legion.service.forge import connections
from legion.service.operations import Caller, Service
from legion.service.shared.commit_signal import CommitSignal
from legion.store.board import projects
from legion.store.staff import tokens
from legion.store.work import runs
from legion.wire.agents import ToolAnswer, ToolCall, Tools
from legion.wire.table import AnyAnswer, Operation

log = logging.getLogger(__name__)

_QUIET = 60.0
"""Seconds: a caller that repeats a refused call is recorded once in this time."""
_NAMES = re.compile(r"/[^/]*[0-9%][^/]*")
_MOST_REMEMBERED = 10_000
PLUGIN_PREFIX = "legion-plugin-"
"""Distinguishes the plugin's token, which opens Legion's tools only."""

UNKNOWN = (
    "The token is missing or wrong; send the one in the file `token` of the data directory, or as an agent your own."
)


class CallerRegistry:
    def __init__(self, context: Trees, service: Service, news: CommitSignal) -> None:
        self._context = context
        self._service = service
        self._tools = ToolRegistry(context, news)
        self._recorded: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def known(self, token: str) -> Caller:
        """The caller with this token. Raises NotAllowed where the token is unknown, ended or revoked."""
        if token.startswith(PLUGIN_PREFIX):
            return self._plugin(token)
        if not token.startswith(tokens.PREFIX):
            raise NotAllowed(UNKNOWN)
        with self._context.store.read() as tx:
            bearer = tokens.bearer(tx, token)
        if bearer is None:
            raise NotAllowed(UNKNOWN)
        caller = Caller(id=bearer.agent or ticket_seat(bearer.ticket or 0), ticket=bearer.ticket, run=bearer.run)
        if bearer.ended:
            why = f"The token of {caller.id} ended with its run {bearer.run}; it is no longer valid."
        elif bearer.revoked:
            why = f"The token of {caller.id} was revoked; it is no longer valid."
        else:
            return caller
        self.refused(caller, "any call", why)
        raise NotAllowed(why)

    def _plugin(self, token: str) -> Caller:
        """The person, through the plugin of their own Claude Code. The file goes with the plugin."""
        try:
            stored = self._context.data.plugin_token.read_text().strip()
        except FileNotFoundError:
            raise NotAllowed(UNKNOWN) from None
        if not hmac.compare_digest(stored.encode(), token.encode("utf-8", "replace")):
            raise NotAllowed(UNKNOWN)
        return Caller(id=ROOT, only_tools=True)

    def accept_device(self, code: str, *, name: str, host: str) -> tuple[str, Device]:
        return web.accept(self._context, code, name=name, host=host)

    def device(self, secret: str, *, host: str) -> Device:
        """The browser with this secret. Raises NotAllowed where it is not let in, or no longer."""
        return web.known(self._context, secret, host=host)

    def end_devices_elsewhere(self, ports: Collection[int], *, proxy: str = "", lost_proxy: str = "") -> None:
        """Called at a start, with the ports of this machine and the proxy that Legion has now, or has lost."""
        if ended := web.end_elsewhere(self._context, ports, proxy=proxy, lost_proxy=lost_proxy):
            log.warning("browsers whose secrets another program may have read were shut out: %d", ended)

    def forge_hook(self, project: int, *, signature: str, delivery: str, raw: bytes) -> bool:
        """A webhook of a forge, which proves itself by its signature."""
        return connections.receive_hook(self._context, project, signature=signature, delivery=delivery, raw=raw)

    @property
    def authority_file(self) -> Path:
        return self._context.data.root / "web" / "authority.pem"

    def push_key(self) -> str:
        """What a browser needs to subscribe to notifications."""
        return WebPush(self._context.data).public_key()

    def subscribe_push(self, device: Device, wanted: PushSubscription | None) -> None:
        WebPush(self._context.data).subscribe(device.id, wanted)

    def refused(self, caller: Caller, asked: str, why: str) -> None:
        """Record a refused call; its repetitions are not recorded for a while."""
        # Whatever numbers and names it has: an agent could make any number of these up.
        now, key = self._context.clock(), (caller.id, _NAMES.sub("/", asked))
        with self._lock:
            if now - self._recorded.get(key, -_QUIET) < _QUIET:
                return
            if len(self._recorded) >= _MOST_REMEMBERED:
                self._recorded.clear()
            self._recorded[key] = now
        data = {"caller": caller.id, "run": caller.run, "asked": asked, "why": why}
        with self._context.store.write() as tx:
            project = None if caller.run is None else runs.get(tx, caller.run).project
            tx.record(EventKind.REFUSED, project=project, ticket=caller.ticket, data=data)

    def acting(self, caller: Caller) -> Service:
        """The service as this caller may use it."""
        return self._service if caller.is_person else LimitedService(self._service, caller)

    def perform(self, caller: Caller, row: Operation, arguments: Mapping[str, Any]) -> AnyAnswer:
        """Do what a request asks for, with the caller's rights."""
        tools: Mapping[str, Callable[..., object]] = {"tools": self.tools, "use_tool": self.use_tool}
        if row.name in tools:
            return tools[row.name](caller, *arguments.values())
        return self.acting(caller).call(row, arguments)

    def tools(self, caller: Caller) -> Tools:
        return self._tools.listed(caller)

    def use_tool(self, caller: Caller, name: str, wanted: ToolCall, cwd: str | None = None) -> ToolAnswer:
        """A refusal was caused by a model, and is recorded like any other."""
        try:
            return self._tools.call(self.acting(caller), caller, name, wanted, cwd or self._only_project())
        except NotAllowed as refusal:
            self.refused(caller, name, refusal.message)
            raise

    def orchestrate(self, caller: Caller) -> LegionCc:
        """The operations of legion_cc, with the caller's rights."""
        return LegionCc(self._context, self.acting(caller), self._only_project())

    def orchestra(self, caller: Caller) -> Orchestra:
        """The operations of claude-orchestra; they are the person's alone."""
        return Orchestra(self._context, self.acting(caller), self._only_project())

    def _only_project(self) -> str:
        """The root of the person's project if there is just one, else empty."""
        with self._context.store.read() as tx:
            roots = [project.root for project in projects.all(tx)]
        return roots[0] if len(roots) == 1 else ""
