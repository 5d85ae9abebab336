"""Leaving the screen for a while: the agent's terminal takes it, or the person's editor, and the UI comes back.

While a person is attached nothing of the UI runs; it reads everything again afterwards.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

from textual.app import App

from legion.client.legion import Legion
from legion.client.terminal import How, RelayEnd, relay, window_size
from legion.client.text.terminal import sanitize
from legion.tui.link.requests import Requests
from legion.wire.terminal import Attach, OpenShell, OpenTerminal

Answer = TypeVar("Answer")
Suspend = Callable[[], AbstractContextManager[None]]
WaitingDialog = Callable[[str], AbstractContextManager[asyncio.Event]]
"""Shows what is waited for; its event says that the person gave up."""


class Attachment:
    """One for the UI. Its methods run on the loop and return a sentence for the person; they raise LegionError."""

    def __init__(self, requests: Requests, suspend: Suspend, waiting: WaitingDialog) -> None:
        self._requests = requests
        self._suspend = suspend
        self._waiting = waiting

    async def attach(self, ticket: int) -> str:
        with self._waiting(f"Waiting for a safe moment of the agent of #{ticket}") as given_up:
            leaving = asyncio.ensure_future(given_up.wait())
            opening = asyncio.ensure_future(self._opened(ticket))
            try:
                await asyncio.wait({leaving, opening}, return_when=asyncio.FIRST_COMPLETED)
                found = opening.result() if opening.done() else None
            finally:
                leaving.cancel()
                opening.cancel()
        if found is None:
            return (await self._ask(lambda legion: legion.give_back(ticket))).message
        left = self._relay(found)
        if left.how is How.DETACHED and found.wheel:
            return (await self._ask(lambda legion: legion.give_back(ticket))).message
        if left.how is How.DETACHED:
            return f"Detached from #{ticket}; its program still runs."
        return (
            f"The terminal of #{ticket} has ended." if left.how is How.ENDED else f"The terminal of #{ticket} is gone."
        )

    async def _opened(self, ticket: int) -> OpenTerminal:
        began, waited = time.monotonic(), 0.0
        while True:
            found = await self._ask(partial(_attach, ticket, Attach(waited=waited)))
            if found.socket:
                return found
            waited = time.monotonic() - began

    async def shell(self, ticket: int) -> str:
        size = window_size(1)
        wanted = OpenShell(columns=size.columns, rows=size.rows, term=os.environ.get("TERM", ""))
        left = self._relay(await self._ask(lambda legion: legion.shell(ticket, wanted)), leaves=False)
        return f"The shell of #{ticket} has ended." if left.how is How.ENDED else f"The shell of #{ticket} is gone."

    def _relay(self, found: OpenTerminal, *, leaves: bool = True) -> RelayEnd:
        with self._suspend():
            return relay(found.socket, message=sanitize(found.message), leaves=leaves)

    def _ask(self, call: Callable[[Legion], Answer]) -> Awaitable[Answer]:
        """A request that may wait for an agent, so it does not make the connection look slow."""
        return self._requests.ask(call, counts=False)


def _attach(ticket: int, wanted: Attach, legion: Legion) -> OpenTerminal:
    return legion.attach(ticket, wanted)


def edited(app: App[None], text: str, name: str) -> str | None:
    """What the editor left; None where it ended with an error."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        file = Path(folder) / f"{''.join(one for one in name if one.isalnum() or one == '-')}.toml"
        file.write_text(text)
        with app.suspend():
            try:
                ended = subprocess.run([*editor, str(file)], check=False)
            except OSError as error:
                app.notify(f"{editor[0]} does not start: {error.strerror}; set EDITOR.", severity="error")
                return None
        return file.read_text() if ended.returncode == 0 else None
