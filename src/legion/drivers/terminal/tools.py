"""Legion's tools for an interactive program: the run's MCP server in a thread, and its address in the command line."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace

from legion.drivers import Program
from legion.drivers.profile import ToolLink
from legion.drivers.turns.tool_server import ToolServer

URL, TOKEN = "LEGION_TOOLS_URL", "LEGION_TOOLS_TOKEN"
"""The variables of the program, for those whose settings can name one."""


@contextlib.contextmanager
def served(link: ToolLink) -> Iterator[ToolServer]:
    """The server, for the length of a block; the terminal's own loop never waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tools", daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(ToolServer.open(link), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def with_tools(program: Program, server: ToolServer) -> Program:
    """The program with the server's address and token in its arguments and variables. Other braces stay."""

    def filled(text: str) -> str:
        return text.replace("{tools_url}", server.url).replace("{tools_token}", server.token)

    env = {name: filled(value) for name, value in program.env.items()}
    return replace(program, argv=tuple(map(filled, program.argv)), env={**env, URL: server.url, TOKEN: server.token})
