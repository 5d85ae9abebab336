"""Tells a person what happened without their looking: their own hooks, the desktop, a webhook, ntfy.

Follows the events by number. How far it has come is written down before anything is told, so nothing is told twice;
what a power cut swallows is told by `legion done`. Each way of telling has a thread of its own, so that a hook that
hangs or a server that does not answer keeps nothing from the others.
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
from functools import partial
from pathlib import Path

from legion.config.files.user import UserConfig
from legion.domain.errors import LegionError
from legion.domain.events import Event
from legion.domain.notifications import NotificationKind, may_be_one, occasions
from legion.jobs.context import Context
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.store.work import usage
from legion.system import process
from legion.system.process import ProgramMissing

log = logging.getLogger(__name__)

_SOURCE = "herald"
_PATIENCE = 60.0
"""Seconds that a hook may take."""
_NET_PATIENCE = 10.0
_AT_ONCE = 200
_BREATH = 0.2
_BEGUN = "begun"


@dataclass(frozen=True, kw_only=True)
class Notification:
    """What is told, as hooks and webhooks get it."""

    event: str
    project: str
    root: str
    ticket: int | None
    title: str
    text: str


class Notifier:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._lanes: dict[str, _Channel] = {}
        self._thread = threading.Thread(target=self._follow, name="herald", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                while not self._stopping.is_set() and self._tell_next():
                    pass
            except (LegionError, OSError) as trouble:
                log.warning("nobody is told of anything at the moment: %s", trouble)
                self._stopping.wait(_NET_PATIENCE)
            self._wake.wait()
            # Whatever began just now goes first.
            self._stopping.wait(_BREATH)

    def _tell_next(self) -> bool:
        """Whether there may be more."""
        with self.context.store.read() as tx:
            begun, after = usage.read_up_to(tx, _SOURCE)
            # A first start tells nothing of what was before.
            found = events.after(tx, after, limit=_AT_ONCE) if begun else ()
            news = [one for event in found if may_be_one(event) for one in _news(tx, event)]
            last = found[-1].n if found else events.last(tx) if not begun else after
        if begun and last == after:
            return False
        with self.context.store.write() as tx:
            usage.have_read(tx, _SOURCE, _BEGUN, last)
        for occasion, one in _without_repeats(news):
            for name, way in _ways(self.context.user, occasion, one):
                if name not in self._lanes:
                    self._lanes[name] = _Channel(name, self._stopping)
                self._lanes[name].put(way)
        return bool(found)


class _Channel:
    """One way of telling: what is to be told, in its order."""

    def __init__(self, name: str, stopping: threading.Event) -> None:
        self._name = name
        self._stopping = stopping
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._tell, name=f"herald-{name}", daemon=True).start()

    def put(self, way: Callable[[], None]) -> None:
        self._waiting.put(way)

    def _tell(self) -> None:
        while True:
            way = self._waiting.get()
            if self._stopping.is_set():
                return
            try:
                way()
            except (LegionError, OSError) as trouble:
                log.warning("nobody is told by %s: %s", self._name, trouble)


def _without_repeats(news: list[tuple[NotificationKind, Notification]]) -> list[tuple[NotificationKind, Notification]]:
    """That all is done is said once, where several ended together."""
    last = {one.project: place for place, (occasion, one) in enumerate(news) if occasion is NotificationKind.ALL_DONE}
    return [
        (occasion, one)
        for place, (occasion, one) in enumerate(news)
        if occasion is not NotificationKind.ALL_DONE or last[one.project] == place
    ]


def _news(tx: ReadTransaction, event: Event) -> list[tuple[NotificationKind, Notification]]:
    if event.project is None:
        return []
    project = projects.get(tx, event.project)
    there = tickets.states_of(tx, [event.ticket]) if event.ticket is not None else {}
    ticket = tickets.get(tx, event.ticket) if event.ticket is not None and event.ticket in there else None
    live = tickets.how_many_live(tx, event.project)
    parked = ticket.parked.reason.value if ticket is not None and ticket.parked is not None else None
    title = ticket.spec.title if ticket is not None else ""
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
                ),
            )
        )
    return found


def _text(occasion: NotificationKind, event: Event, title: str, project: str, names: Mapping[str, str]) -> str:
    reason = str(event.data.get("reason") or event.data.get("words") or "")
    match occasion:
        case NotificationKind.DONE:
            return f"Ticket {event.ticket} is done: {title}"
        case NotificationKind.FAILED:
            return f"Ticket {event.ticket} failed: {title} ({reason})"
        case NotificationKind.QUESTION:
            agent = str(event.data.get("agent") or "")
            who = names.get(agent, "An agent") if agent else "Work"
            who = f"Ticket {event.ticket}" if event.ticket is not None else who
            return f"{who} waits for you: {reason or title}"
        case NotificationKind.ALL_DONE:
            return f"All work in {project} has ended: `legion done` tells what came of it"


def _ways(user: UserConfig, occasion: NotificationKind, news: Notification) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every way that the person chose, by its name."""
    hook: tuple[str, ...] = getattr(user.hooks, occasion.value)
    if hook:
        yield "hooks", partial(_hook, hook, news)
    if occasion.value not in user.notify.on:
        return
    if user.notify.desktop:
        yield "desktop", partial(_desktop, news)
    body = json.dumps({"schema": "legion.news/1", **asdict(news)}).encode()
    if user.notify.webhook:
        yield "webhook", partial(_post, "webhook", user.notify.webhook, body, {"Content-Type": "application/json"})
    if user.notify.ntfy:
        titled = {"Title": f"Legion: {news.event}", "Tags": news.event}
        yield "ntfy", partial(_post, "ntfy", user.notify.ntfy, news.text.encode(), titled)


def _hook(argv: tuple[str, ...], news: Notification) -> None:
    told = {
        "LEGION_EVENT": news.event,
        "LEGION_PROJECT": news.project,
        "LEGION_TICKET": str(news.ticket or ""),
        "LEGION_TITLE": news.title,
        "LEGION_TEXT": news.text,
    }
    cwd = Path(news.root)
    try:
        ended = process.run(
            argv,
            cwd=cwd if cwd.is_dir() else Path.home(),
            env={**os.environ, **told},
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
        log.warning("your desktop is not told: %s is not on PATH", argv[0])
        return
    ended = process.run(argv, env=dict(os.environ), timeout=_NET_PATIENCE)
    if ended.timed_out or ended.code != 0:
        log.warning("your desktop could not be told: %s", ended.complaint[-300:])


def _post(name: str, url: str, body: bytes, headers: dict[str, str]) -> None:
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # http by its rule
    try:
        with urllib.request.urlopen(request, timeout=_NET_PATIENCE):  # as above
            pass
    except (urllib.error.URLError, OSError, ValueError) as trouble:
        # The address may hold a secret.
        reason = getattr(trouble, "reason", None) or type(trouble).__name__
        log.warning("a notification could not be sent by %s: %s", name, reason)
