"""`legion serve --machines`: serves machines in a process of its own, for the head of the same Postgres and folder.

The head alone decides, starts, checks and lands. Machines know the addresses of all such processes, and dial another
one when theirs does not answer.
"""

from __future__ import annotations

import contextlib
import logging
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from legion.config.files import user as settings
from legion.config.files.user import CurrentSettings, UserConfig
from legion.daemon.machine_server import FIRST_PORT, machine_part, refuse_all_addresses, serve_machines
from legion.domain.errors import BadInput, StateConflict
from legion.jobs.context import Context
from legion.jobs.machines.head_addresses import HeadAddresses
from legion.jobs.machines.part import DistantBells
from legion.runner.launch import Launcher
from legion.runner.probe import SandboxKind, SandboxState
from legion.service.machines.dial_in import SecondHead
from legion.store.database.transactions import Store
from legion.system import kernel, loops
from legion.system.paths import DataDir

_NO_RUNS = SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=False, why="No run starts in this process.")


def serve(host: str, port: int | None, data: DataDir, announce: Callable[[str], None]) -> None:
    """Serve until a signal. `announce` gets the address. Raises BadInput, StateConflict, Retryable."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    user = settings.load()
    if not user.daemon.database:
        raise BadInput(
            "Machines need a head whose board is in Postgres: run `legion machine head move postgresql://USER@HOST/NAME`."
        )
    if not host:
        raise BadInput("Name the address of this host that machines dial: add --host ADDRESS.")
    refuse_all_addresses(host)
    if not data.head_generation.exists():
        raise StateConflict(
            f"No head on Postgres has served {data.root} yet: start it with `legion up`, or name its data folder with "
            "--data-dir."
        )
    kernel.hide_memory()
    with contextlib.closing(Store(user.daemon.database)) as store:
        store.refuse_other_release()
        _serve(host, port or FIRST_PORT + 1, user, data, store, announce)


def _serve(
    host: str, port: int, user: UserConfig, data: DataDir, store: Store, announce: Callable[[str], None]
) -> None:
    # Only for heads on Postgres, whose driver is optional.
    from legion.store.database.head_news import HeadNews

    news = HeadNews(user.daemon.database, store, on_run=lambda run: None)
    context = Context(
        data=data,
        store=store,
        launcher=Launcher(),
        settings=CurrentSettings(user),
        sandbox=_NO_RUNS,
        url="",
        machine=platform.node() or "this machine",
        clock=time.time,
        machines=replace(machine_part(user), bells=DistantBells(news.run_changed)),
    )
    head = SecondHead(context, host=platform.node())
    head.follow()
    addresses = HeadAddresses(data)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    address, thread, _ = serve_machines(data, head, host, port)
    loops.watch(data.daemon_lock, lambda: loops.end_process(data.daemon_lock))
    with addresses.added(address):
        news.start()
        # Machines that wait at the head get the new address with their next answer.
        store.tell()
        announce(address.url)
        over.wait()
    thread.stop()
    news.stop()
    if context.machines.engine is not None:
        context.machines.engine.close()
