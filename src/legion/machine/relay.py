"""The relay: what agents of this machine reach the head's gateway and Legion's tools by, on loopback.

It adds the machine's token and passes everything else on, streaming both ways. Its port is kept over restarts of the
worker, because living agents know it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from aiohttp import web

from legion.domain.errors import Retryable
from legion.jobs.agent.on_machine import RelayAddress
from legion.jobs.machines.travel import MachineJob
from legion.machine.link import PREFIX, tls_context
from legion.machine.membership import Membership
from legion.system import files, ports

log = logging.getLogger("legion")

_FIRST_PORT = 6695
_MOST_BODY = 64 << 20
_IDLE = 600.0
_START_SECONDS = 10.0
_HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length")
) | {"legion-machine", "accept-encoding"}


class Relay:
    """A thread with an event loop of its own."""

    def __init__(self, root: Path, membership: Membership, head: Callable[[], str]) -> None:
        """`head`: the address of the head that is used now."""
        self._root = root
        self._membership = membership
        self._head = head
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._up.wait(_START_SECONDS) or not self._port:
            raise Retryable("The relay of this machine found no free port: end what listens from port 6695 on.")

    def stop(self) -> None:
        if self._thread.ident is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_START_SECONDS)

    def address(self, job: MachineJob) -> RelayAddress:
        """For one run: the paths name it, so the head can refuse a run that was given away."""
        base = f"http://127.0.0.1:{self._port}/runs/{job.run.name}/{job.run.generation}"
        record = self._root / "runs" / job.run.name / "relay.json"
        files.write_atomic(record, json.dumps({"socket": None, "url": f"{base}/tools"}), durable=False)
        return RelayAddress(gateway=f"{base}/gateway", record=str(record))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            session = self._loop.run_until_complete(self._serve())
            self._up.set()
            self._loop.run_forever()
            self._loop.run_until_complete(session.close())
        except Exception as trouble:  # a worker without a relay still runs plain programs
            log.error("the relay does not work: %s", trouble)
        finally:
            self._up.set()

    async def _serve(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_IDLE)
        connector = aiohttp.TCPConnector(ssl=tls_context(self._membership.authority), limit=0)
        session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        app = web.Application(client_max_size=_MOST_BODY)
        app.router.add_route("*", "/runs/{run}/{generation}/{what}/{path:.*}", self._handler(session))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        record = self._root / "relay.port"
        known = int(record.read_text()) if record.exists() else _FIRST_PORT
        listening = ports.listen("127.0.0.1", known)
        if listening is None:
            raise Retryable("no port is free")
        await web.SockSite(runner, listening).start()
        self._port = listening.getsockname()[1]
        files.write_atomic(record, str(self._port))
        return session

    def _handler(self, session: aiohttp.ClientSession) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            parts = request.match_info
            url = f"{self._head()}{PREFIX}/runs/{parts['run']}/{parts['generation']}"
            url = f"{url}/{parts['what']}/{parts['path']}"
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
            headers["legion-machine"] = self._membership.token
            body = await request.read()
            try:
                async with session.request(
                    request.method, url, params=request.query, headers=headers, data=body or None
                ) as answer:
                    return await _pass_back(request, answer)
            except aiohttp.ClientError as broken:
                log.warning("relay: the head was not reached: %s", broken)
                return web.json_response({"message": "The head was not reached: try again."}, status=503)

        return handle


async def _pass_back(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    passed = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
    response = web.StreamResponse(status=answer.status, headers=passed)
    if request.version == aiohttp.HttpVersion11:
        response.enable_chunked_encoding()
    await response.prepare(request)
    async for part in answer.content.iter_any():
        await response.write(part)
    await response.write_eof()
    return response
