"""Starts the daemon: locks its folder, opens the store, wires all packages, and serves until it is stopped."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from legion import __version__
from legion.api.app import make_app
from legion.api.mcp import PATH
from legion.config.files import user as settings
from legion.config.files.user import CurrentSettings, UserConfig
from legion.daemon import listener as addresses
from legion.daemon.machine_server import MachineListener, machine_part
from legion.daemon.page_server import PageServer
from legion.daemon.standby import FolderInUse, Leadership, serve_in_turn
from legion.domain.errors import LegionError, NotAllowed, Retryable, StateConflict
from legion.jobs.background.housekeeping import Housekeeper, end_left_over_commands
from legion.jobs.background.lesson_proposals import EpicLandings
from legion.jobs.background.routine_clock import RoutineClock
from legion.jobs.backup import restore
from legion.jobs.backup.mirror import Mirror
from legion.jobs.context import Context
from legion.jobs.forge.loop import ForgeLoop
from legion.jobs.loop import report
from legion.jobs.machine_runs.ends import Reaper
from legion.jobs.machines.head_addresses import HeadAddresses
from legion.jobs.scheduling.gateway_supervisor import GatewaySupervisor
from legion.jobs.scheduling.scheduler import Scheduler
from legion.jobs.trees import Trees
from legion.runner.launch import Launcher
from legion.runner.probe import probe
from legion.service.entry.callers import CallerRegistry
from legion.service.forge.actions import ForgeActions
from legion.service.leader.routines import start as start_routine
from legion.service.machines.dial_in import DialIn
from legion.service.operations import Service
from legion.service.shared.commit_signal import CommitSignal
from legion.service.tickets.epic_change import land_wanted
from legion.store import board_records
from legion.store.database.full_copy import is_foreign
from legion.store.database.transactions import Store, sqlite_url
from legion.system import capacity, cgroups, files, imports, kernel, ports
from legion.system.loops import end_process, watch
from legion.system.paths import DataDir, default_data_dir
from legion.wire.board import DaemonLine

if TYPE_CHECKING:
    from legion.store.database.head_news import HeadNews

log = logging.getLogger("legion")

_LOCK_PATIENCE = 2.0
"""Seconds: a program that a killed daemon was just starting holds the lock until it has started."""

_HEAPS = 2
"""Of the memory allocator, for all threads: with one per thread the daemon grows for thousands of tickets."""
_SWITCH_EVERY = 0.0005
"""Seconds after which a thread that computes lets others go on: starts wait for the disk, then for the interpreter."""


def serve(
    port: int | None = None,
    host: str | None = None,
    data_dir: Path | None = None,
    announce: Callable[[str], None] | None = None,
    *,
    standby: bool = False,
) -> int:
    """Serve in the foreground until a signal or `legion down`. Returns the exit code.

    A `standby` first waits until no other head serves the same database.
    With `announce` the address is passed to it and errors are raised; without, both are printed.
    """
    data = DataDir((data_dir or default_data_dir()).expanduser().absolute())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        _make_room()
        with _translate_full_disk(data):
            if standby:
                url = settings.load().daemon.database
                serve_in_turn(lambda: _serve(port, host, data, announce), _print, url)
            else:
                _serve(port, host, data, announce)
    except LegionError as error:
        _report_start(f"error: {error.message}")
        if announce is not None:
            raise
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    return 0


@contextlib.contextmanager
def _translate_full_disk(data: DataDir) -> Iterator[None]:
    """Turn a full disk into one sentence for the caller: the log, on the same disk, could not hold it."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Retryable(f"The disk that holds {data.root} is full: free some space and try again.") from error


def _make_room() -> None:
    """For as many agents as this machine holds."""
    sys.setswitchinterval(_SWITCH_EVERY)
    capacity.raise_open_files()


def _serve(port: int | None, host: str | None, data: DataDir, announce: Callable[[str], None] | None) -> None:
    user = settings.load()
    host = host or user.daemon.host
    with locked(data):
        # For `legion down`, should daemon.json be lost.
        data.daemon_lock.write_text(str(os.getpid()))
        listener = addresses.on_port(host, port if port is not None else user.daemon.port)
        second = addresses.on_port(host, user.daemon.mcp_port)
        wanted = user.daemon.orchestrate_port
        third = addresses.on_port("127.0.0.1", wanted) if wanted else []
        number = listener[0].getsockname()[1]
        if announce is None:
            _print(f"Starting Legion service on port {number}...")
            _print(f"Data directory: {data.root}")
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{number}"
        tools = f"http://{shown}:{second[0].getsockname()[1]}{PATH}"
        with wired(user, data, url) as (context, news, scheduler, housekeeper):
            server: uvicorn.Server | None = None

            def end() -> None:
                if server is not None:
                    server.should_exit = True
                news.close()

            page = PageServer(
                data,
                lambda hosts, behind: make_app(callers, token=None, hosts=hosts, behind=behind),
                local=tools.removesuffix(PATH),
            )
            housekeeper.link_to(page.url)
            machine_listener = MachineListener(data, DialIn(context))
            service = Service(
                context,
                news,
                daemon=_daemon_line(context, url),
                end=end,
                web_server=page,
                machine_server=machine_listener,
            )
            forge_loop = ForgeLoop(context, ForgeActions(context))
            context.store.on_commit(forge_loop.poke)
            secret = addresses.token(data)
            callers = CallerRegistry(context, service, news)
            app = make_app(callers, token=secret, hosts=(*ports.LOOPBACK, host))
            page.reopen()
            mine = [one.getsockname()[1] for one in (*listener, *second, *third)]
            callers.end_devices_elsewhere([*mine, *page.ports()], proxy=page.proxy, lost_proxy=page.lost_proxy)
            machine_listener.reopen()
            local = addresses.on_socket(data.socket)

            def greet(url: str) -> None:
                # Logs and scrollbacks keep what is printed here, so it names the file of the token, not the token.
                _print(f"Ready at {url} (token in {data.token})")

            server = _UvicornServer(
                addresses.config(app),
                lambda: _ready(data, url, tools, third, local, (scheduler, housekeeper, forge_loop), announce or greet),
            )
            sockets = [*listener, *second, *third, *([local] if local is not None else [])]
            imports.collect_rarely()
            try:
                server.run(sockets=sockets)
            finally:
                forge_loop.stop()
                page.stop()
                machine_listener.stop()
                news.close()
                data.daemon_record.unlink(missing_ok=True)
                data.socket.unlink(missing_ok=True)


def _daemon_line(context: Trees, url: str) -> DaemonLine:
    return DaemonLine(
        pid=os.getpid(),
        url=url,
        version=__version__,
        data_dir=str(context.data.root),
        started_at=time.time(),
        sandbox=context.sandbox.why,
        sandbox_missing=not context.sandbox.works,
    )


class _UvicornServer(uvicorn.Server):
    """Calls `ready` when it accepts requests, and ends on SIGINT and SIGTERM."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Both signals mean an orderly end, with exit code 0."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._ready()


def _ready(
    data: DataDir,
    url: str,
    tools: str,
    third: list[socket.socket],
    local: socket.socket | None,
    loops: tuple[Scheduler, Housekeeper, ForgeLoop],
    announce: Callable[[str], None],
) -> None:
    own_socket = str(data.socket) if local is not None else None
    orchestrate = f"http://127.0.0.1:{third[0].getsockname()[1]}" if third else ""
    addresses.DaemonFile(
        pid=os.getpid(), url=url, socket=own_socket, mcp=tools, version=__version__, orchestrate=orchestrate
    ).write(data)
    for loop in loops:
        loop.start()
    announce(url)
    _report_start("ready")


@contextlib.contextmanager
def locked(data: DataDir) -> Iterator[None]:
    """Hold the lock of the data folder, so that no other daemon uses it."""
    try:
        data.prepare()
        lock = files.lock(data.daemon_lock, patience=_LOCK_PATIENCE)
        # The pid of an earlier daemon.
        os.ftruncate(lock.handle, 0)
    except files.AlreadyLocked:
        raise FolderInUse(
            f"Another Legion daemon already serves {data.root}: use it, or end it with `legion down`."
        ) from None
    except OSError as error:
        raise NotAllowed(
            f"Legion cannot use {data.root} ({error.strerror}): name another folder with --data-dir."
        ) from error
    watch(data.daemon_lock, lambda: end_process(data.daemon_lock))
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def wired(user: UserConfig, data: DataDir, url: str) -> Iterator[tuple[Context, CommitSignal, Scheduler, Housekeeper]]:
    """Everything but the API, wired and not started yet."""
    kernel.hide_memory()
    kernel.share_heaps(_HEAPS)
    groups = cgroups.find()
    if groups is not None:
        groups.sweep()
    sandbox = probe(user.sandbox.container)
    if user.sandbox.is_required and not sandbox.works:
        raise NotAllowed(f"Your settings require a sandbox, and none works here: {sandbox.why}")
    if not (user.sandbox.is_off or sandbox.works):
        log.warning("agents run without a sandbox: %s", sandbox.why)
    launcher = Launcher()
    launcher.warm()
    if is_foreign(data.database):
        data.second_database.touch(mode=0o600)
    if not user.daemon.database and not data.database.exists():
        # Before the file is made: the sentence tells the person to rename the old one to its name.
        _refuse_moved(data)
    store = Store(user.daemon.database or sqlite_url(data.database))
    leadership = Leadership(user.daemon.database, data, store)
    try:
        leadership.start()
        _refuse_lost(store, data)
        context = Context(
            data=data,
            store=store,
            launcher=launcher,
            settings=CurrentSettings(user),
            sandbox=sandbox,
            url=url,
            machine=platform.node() or "this machine",
            clock=time.time,
            machines=machine_part(user),
        )
        leadership.failed = partial(report, context)
        end_left_over_commands(context)
        scheduler, housekeeper, news = Scheduler(context), Housekeeper(context), CommitSignal(store)
        routines = RoutineClock(context, partial(start_routine, context))
        epics = EpicLandings(context, partial(land_wanted, context))
        gateway, mirror = GatewaySupervisor(context), Mirror(context)
        reaper = Reaper(context)
        store.on_commit(housekeeper.poke)
        store.on_commit(gateway.poke)
        store.on_commit(mirror.poke)
        store.on_commit(routines.poke)
        store.on_commit(epics.poke)
        housekeeper.also(routines, epics)
        gateway.start()
        mirror.start()
        others = _news_of_others(context)
        if context.machines.engine is not None:
            reaper.start()
        try:
            yield context, news, scheduler, housekeeper
        finally:
            reaper.stop()
            if others is not None:
                others.stop()
            gateway.stop()
            housekeeper.stop()
            scheduler.stop()
            mirror.stop()
    finally:
        launcher.close()
        leadership.stop()
        store.close()


def _news_of_others(context: Context) -> HeadNews | None:
    """Of processes that serve machines for this head."""
    url = context.user.daemon.database
    if not url:
        return None
    # Only for heads on Postgres, whose driver is optional.
    from legion.store.database.head_news import HeadNews

    addresses_of_all = HeadAddresses(context.data)
    bells = context.machines.bells
    failed = partial(report, context)
    news = HeadNews(url, context.store, on_run=bells.ring, has_others=addresses_of_all.has_others, failed=failed)
    news.start()
    return news


def _refuse_lost(store: Store, data: DataDir) -> None:
    """Refuse an empty database where boards of earlier work exist: it would soon overwrite them."""
    if not board_records.is_empty(store):
        return
    if store.place == str(data.database):
        _refuse_moved(data)
    if restore.can_rebuild(data):
        raise StateConflict(
            f"The database {store.place} is empty, but {data.projects} holds boards of earlier work: run "
            "`legion doctor --rebuild` to restore them, or move that folder away to start empty."
        )


def _refuse_moved(data: DataDir) -> None:
    if data.moved_database.exists():
        raise StateConflict(
            "The database of this Legion was moved to Postgres: write its address into your settings as "
            f"`daemon.database`, or rename {data.moved_database} back to {data.database.name}."
        )


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _report_start(line: str) -> None:
    """Send one line to the process that started this one in the background."""
    handle = os.environ.pop("LEGION_READY_FD", None)
    if handle is not None:
        with contextlib.suppress(OSError):
            os.write(int(handle), f"{line}\n".encode())
            os.close(int(handle))
