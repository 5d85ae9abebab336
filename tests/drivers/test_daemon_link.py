"""How a run's tools reach the daemon where there is no socket file: under the name that the daemon answers to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from legion.drivers.profile import ToolLink
from legion.drivers.turns.daemon_link import DaemonLink


@pytest.mark.parametrize("below", ["", "/runs/ticket-1-run-1/secret/tools"], ids=["daemon", "relay"])
def test_the_host_of_a_call_is_the_address_that_was_recorded(tmp_path: Path, below: str):
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b'HTTP/1.0 200 OK\r\n\r\n{"text": "yes"}')
        writer.close()

    async def play() -> int:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = int(server.sockets[0].getsockname()[1])
            record = tmp_path / "daemon.json"
            record.write_text(json.dumps({"socket": None, "url": f"http://127.0.0.1:{port}{below}"}))
            link = ToolLink(record=str(record), token="t", server="legion", tools=())
            assert (await DaemonLink(link).call("legion-ask", {})).text == "yes"
            return port

    port = asyncio.run(play())
    (head,) = heads
    assert head.startswith(f"POST {below}/v1/tools/legion-ask HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n")
