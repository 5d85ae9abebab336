"""Sends notifications to the person: by their own hooks, the desktop, a webhook, ntfy, and to browsers.

Follows the events by number. The position is stored before anything is sent, so nothing is sent twice; what a power cut
swallows is shown by `legion status done`. Each channel has a thread of its own, so that a hook that hangs or a server
that does not answer does not delay the others.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from legion.config.files.user import UserConfig
from legion.domain.errors import LegionError
from legion.domain.events import Event, EventKind
from legion.domain.notifications import NotificationKind, may_be_one, occasions
from legion.jobs.background.web_push import WebPush
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.workspace.save import worktree_name
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, devices
from legion.store.work import usage
from legion.system import loops, process
from legion.system.process import ProgramMissing

log = logging.getLogger(__name__)

_SOURCE = "herald"
_PATIENCE = 60.0
"""Seconds that a hook may take."""
_NET_PATIENCE = 10.0
_AT_ONCE = 200
_PAUSE = 0.2
_STARTED = "begun"


@dataclass(frozen=True, kw_only=True)
class Notification:
    """As hooks and webhooks get it."""

    event: str
    project: str
    root: str
    ticket: int | None
    title: str
    text: str
    old: str
    """The ticket's state before; empty where it did not change."""
    new: str
    path: str
    """Where the ticket's worktree is, or was; empty without a ticket."""
    link: str
    """The place on the page."""


class Notifier(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "notifier")
        self.page_url: Callable[[], str] = lambda: context.url
        """The address of the page, as far out as it is served."""
        self._push = WebPush(context.data)
        self._channels: dict[str, NotificationChannel] = {}

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            if not self._attempt("sending notifications", self._send_all):
                self._stopping.wait(_NET_PATIENCE)
            self._wake.wait()
            # Runs that start now go first.
            self._stopping.wait(_PAUSE)

    def _send_all(self) -> None:
        while not self._stopping.is_set() and self._send_next():
            pass

    def _send_next(self) -> bool:
        """Send notifications of the next events. True where there may be more."""
        with self.context.store.read() as tx:
            started, after = usage.read_up_to(tx, _SOURCE)
            # The first start ever sends nothing about earlier events.
            found = events.after(tx, after, limit=_AT_ONCE) if started else ()
            new = [one for event in found if may_be_one(event) for one in self._notifications(tx, event)]
            last = found[-1].n if found else events.last(tx) if not started else after
        if started and last == after:
            return False
        with self.context.store.write() as tx:
            usage.have_read(tx, _SOURCE, _STARTED, last)
        for occasion, one in _without_repeats(new):
            for name, send in (*_channels(self.context.user, occasion, one), *self._browsers(occasion, one)):
                self.channel(name).put(send)
        return bool(found)

    def channel(self, name: str) -> NotificationChannel:
        """Each sends in a thread of its own, so that a slow one holds up no other."""
        if name not in self._channels:
            self._channels[name] = NotificationChannel(name, self._stopping, self._report)
        return self._channels[name]

    def _notifications(self, tx: ReadTransaction, event: Event) -> list[tuple[NotificationKind, Notification]]:
        if event.project is None:
            return []
        project = projects.get(tx, event.project)
        there = tickets.states_of(tx, [event.ticket]) if event.ticket is not None else {}
        ticket = tickets.get(tx, event.ticket) if event.ticket is not None and event.ticket in there else None
        live = tickets.how_many_live(tx, event.project)
        parked = ticket.parked.reason.value if ticket is not None and ticket.parked is not None else None
        title = ticket.spec.title if ticket is not None else ""
        tree = "" if ticket is None else str(self.context.project_of(project).worktrees.path(worktree_name(ticket.id)))
        found = []
        for occasion in occasions(event, parked=parked, live=live):
            whole = occasion is NotificationKind.ALL_DONE
            text = _text(occasion, event, title, project.name, agents.names(tx))
            found.append(
                (
                    occasion,
                    Notification(
                        event=occasion.value,
                        project=project.name,
                        root=project.root,
                        ticket=None if whole else event.ticket,
                        title="" if whole else title,
                        text=text,
                        old=str(event.data.get("from") or ""),
                        new=str(event.data.get("to") or ""),
                        path=tree,
                        link=f"{self.page_url()}/#/{_place(occasion, event)}",
                    ),
                )
            )
        return found

    def _browsers(self, occasion: NotificationKind, news: Notification) -> list[tuple[str, Callable[[], None]]]:
        """The browsers that subscribed and are still let in."""
        wanted = self._push.devices() if _is_wanted(self.context.user, occasion) else frozenset()
        if not wanted:
            return []
        with self.context.store.read() as tx:
            let_in = [device.id for device in devices.accepted(tx) if device.id in wanted]
        message: dict[str, object] = {"title": f"Legion: {news.project}", "text": news.text, "link": news.link}
        return [("browsers", partial(self._push.send, device, message)) for device in let_in]


class NotificationChannel:
    """One channel: what waits to be sent, in order."""

    def __init__(self, name: str, stopping: threading.Event, failed: Callable[[str, Exception], object]) -> None:
        self._name = name
        self._stopping = stopping
        self._waiting: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        loops.lasting(self._send, name=f"notifier-{name}", stopped=stopping.wait, failed=failed).start()

    def put(self, send: Callable[[], object]) -> None:
        self._waiting.put(send)

    def _send(self) -> None:
        while True:
            send = self._waiting.get()
            if self._stopping.is_set():
                return
            try:
                send()
            except (LegionError, OSError) as trouble:
                log.warning("a notification could not be sent by %s: %s", self._name, trouble)


def _without_repeats(found: list[tuple[NotificationKind, Notification]]) -> list[tuple[NotificationKind, Notification]]:
    """If several tickets end together, only the last one says that all work has ended."""
    last = {one.project: place for place, (occasion, one) in enumerate(found) if occasion is NotificationKind.ALL_DONE}
    return [
        (occasion, one)
        for place, (occasion, one) in enumerate(found)
        if occasion is not NotificationKind.ALL_DONE or last[one.project] == place
    ]


def _place(occasion: NotificationKind, event: Event) -> str:
    """The view of the page that shows it."""
    if "plan" in event.data:
        return f"plan/P{event.data['plan']}"
    if occasion is NotificationKind.QUESTION:
        return "inbox"
    return "board" if occasion is NotificationKind.ALL_DONE else f"ticket/{event.ticket}"


def _text(occasion: NotificationKind, event: Event, title: str, project: str, names: Mapping[str, str]) -> str:
    reason = str(event.data.get("reason") or event.data.get("words") or "")
    match occasion:
        case NotificationKind.DONE:
            return f"Ticket {event.ticket} is done: {title}"
        case NotificationKind.FAILED:
            return f"Ticket {event.ticket} failed: {title} ({reason})"
        case NotificationKind.QUESTION:
            if "plan" in event.data:
                state = event.data.get("to")
                return f"P{event.data['plan']} is {state}: `legion plan show P{event.data['plan']}`"
            if event.kind is EventKind.MACHINE_STATE:
                return reason[:1].upper() + reason[1:]
            agent = str(event.data.get("agent") or "")
            asker = names.get(agent, "An agent") if agent else "Work"
            asker = f"Ticket {event.ticket}" if event.ticket is not None else asker
            return f"{asker} waits for you: {reason or title}"
        case NotificationKind.ALL_DONE:
            return f"All work in {project} has ended: `legion status done` shows the results"


def _channels(
    user: UserConfig, occasion: NotificationKind, news: Notification
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every channel that the person chose, by its name."""
    hook: tuple[str, ...] = getattr(user.hooks, occasion.value)
    if hook:
        yield "hooks", partial(_hook, hook, news)
    if not _is_wanted(user, occasion):
        return
    if user.notify.desktop:
        yield "desktop", partial(_desktop, news)
    body = json.dumps({"schema": "legion.news/1", **asdict(news)}).encode()
    if user.notify.webhook:
        yield "webhook", partial(_post, "webhook", user.notify.webhook, body, {"Content-Type": "application/json"})
    if user.notify.ntfy:
        titled = {"Title": f"Legion: {news.event}", "Tags": news.event, "Click": news.link}
        yield "ntfy", partial(_post, "ntfy", user.notify.ntfy, news.text.encode(), titled)


def _is_wanted(user: UserConfig, occasion: NotificationKind) -> bool:
    """Whether the person is notified of it, and now."""
    quiet = user.notify.quiet
    local = datetime.now().astimezone()
    hushed = quiet is not None and quiet.left(local.hour * 60 + local.minute) is not None
    return occasion.value in user.notify.on and not hushed


def _hook(argv: tuple[str, ...], news: Notification) -> None:
    variables = {
        "LEGION_EVENT": news.event,
        "LEGION_PROJECT": news.project,
        "LEGION_TICKET": str(news.ticket or ""),
        "LEGION_TITLE": news.title,
        "LEGION_TEXT": news.text,
        "LEGION_FROM": news.old,
        "LEGION_TO": news.new,
        "LEGION_PATH": news.path,
        "LEGION_LINK": news.link,
    }
    cwd = Path(news.root)
    try:
        ended = process.run(
            argv,
            cwd=cwd if cwd.is_dir() else Path.home(),
            env={**os.environ, **variables},
            stdin=json.dumps(asdict(news)).encode(),
            timeout=_PATIENCE,
            lingers=True,
        )
    except (ProgramMissing, OSError) as missing:
        log.warning("your hook for %s could not be started: %s", news.event, missing)
        return
    if ended.timed_out or ended.code != 0:
        how = f"took longer than {_PATIENCE:g} s" if ended.timed_out else f"ended with {ended.code}"
        log.warning("your hook for %s %s: %s", news.event, how, ended.complaint[-300:])


def _desktop(news: Notification) -> None:
    if sys.platform == "darwin":
        script = f"display notification {json.dumps(news.text)} with title {json.dumps('Legion')}"
        argv: tuple[str, ...] = ("osascript", "-e", script)
    else:
        argv = ("notify-send", "--app-name=Legion", "--", f"Legion: {news.project}", news.text)
    if shutil.which(argv[0]) is None:
        log.warning("no desktop notification: %s is not on PATH", argv[0])
        return
    ended = process.run(argv, env=dict(os.environ), timeout=_NET_PATIENCE)
    if ended.timed_out or ended.code != 0:
        log.warning("the desktop notification failed: %s", ended.complaint[-300:])


def _post(name: str, url: str, body: bytes, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # http by its rule
    try:
        with urllib.request.urlopen(request, timeout=_NET_PATIENCE):  # as above
            pass
    except (urllib.error.URLError, OSError, ValueError) as trouble:
        # The address may hold a secret.
        reason = getattr(trouble, "reason", None) or type(trouble).__name__
        log.warning("a notification could not be sent by %s: %s", name, reason)
