"""The relay: what agents of this machine reach the head's gateway and Legion's tools by, on loopback.

An address of it is of one run and holds a secret that only that run knows. The relay passes on what the table in
`legion.jobs.machines.travel` has, while the run works here, adds the machine's token, and streams both ways. Its port
is kept over restarts of the worker, because living agents know it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from legion.domain.errors import Retryable
from legion.jobs.agent.preparation import RelayAddress
from legion.jobs.machines.travel import TOKEN, MachineJob, RelayDoor, passed_back
from legion.machine.link import PREFIX, tls_context
from legion.machine.membership import Membership
from legion.system import files, ports

log = logging.getLogger("legion")

_FIRST_PORT = 6695
_MOST_BODY = 64 << 20
_IDLE = 600.0
_START_SECONDS = 10.0
_END_SECONDS = 1.0
"""For answers that still stream: the next worker's relay gets the port."""
_ADDRESS = re.compile(r"/runs/(?P<run>[\w-]+)/(?P<secret>[\w-]+)/(?P<door>gateway|tools)(?P<path>/.*)", re.ASCII)


class Relay:
    """A thread with an event loop of its own."""

    def __init__(
        self, root: Path, membership: Membership, head: Callable[[], str], living: Callable[[str], MachineJob | None]
    ) -> None:
        """`head`: the address of the head that is used now. `living`: the job of a run that works here now."""
        self._root = root
        self._membership = membership
        self._head = head
        self._living = living
        self._loop: asyncio.AbstractEventLoop
        self._up = threading.Event()
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        if not self._up.wait(_START_SECONDS) or not self._port:
            raise Retryable("The relay of this machine found no free port: end what listens from port 6695 on.")

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_START_SECONDS)

    def address(self, job: MachineJob) -> RelayAddress:
        """For one run in this generation, whose agent alone gets to know it. The next worker reads the record."""
        known = {door.value: secrets.token_urlsafe(32) for door in RelayDoor}
        base = f"http://127.0.0.1:{self._port}/runs/{job.run.name}"
        record = self._record(job)
        tools = f"{base}/{known[RelayDoor.TOOLS.value]}/{RelayDoor.TOOLS.value}"
        facts = {"socket": None, "url": tools, "generation": job.run.generation, "secrets": known}
        files.write_atomic(record, json.dumps(facts), durable=False)
        return RelayAddress(gateway=f"{base}/{known[RelayDoor.GATEWAY.value]}/gateway", record=str(record))

    def _record(self, job: MachineJob) -> Path:
        return self._root / "runs" / job.run.name / "relay.json"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            session, served = self._loop.run_until_complete(self._serve())
            self._up.set()
            self._loop.run_forever()
            self._loop.run_until_complete(served.cleanup())
            self._loop.run_until_complete(session.close())
        except Exception as trouble:  # a worker without a relay still runs plain programs
            log.error("the relay does not work: %s", trouble)
        finally:
            self._up.set()
            self._loop.close()

    async def _serve(self) -> tuple[aiohttp.ClientSession, web.AppRunner]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=_IDLE)
        connector = aiohttp.TCPConnector(ssl=tls_context(self._membership.authority), limit=0)
        session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        )

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._answer(session, request)

        app = web.Application(client_max_size=_MOST_BODY)
        app.router.add_route("*", "/{any:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_END_SECONDS)
        await runner.setup()
        record = self._root / "relay.port"
        known = int(record.read_text()) if record.exists() else _FIRST_PORT
        listening = ports.listen("127.0.0.1", known)
        if listening is None:
            raise Retryable("no port is free")
        await web.SockSite(runner, listening).start()
        self._port = listening.getsockname()[1]
        files.write_atomic(record, str(self._port))
        return session, runner

    def _goal(self, method: str, raw_path: str) -> tuple[RelayDoor, str] | None:
        """The door and the URL at the head; None for a request that no living run may send."""
        found = _ADDRESS.fullmatch(raw_path.partition("?")[0])
        job = self._living(found["run"]) if found is not None else None
        if found is None or job is None:
            return None
        door = RelayDoor(found["door"])
        secret = self._secret(job, door)
        if secret is None or not hmac.compare_digest(secret, found["secret"]) or not door.opens(method, found["path"]):
            return None
        return door, f"{self._head()}{PREFIX}/runs/{job.run.name}/{job.run.generation}/{door.value}{found['path']}"

    def _secret(self, job: MachineJob, door: RelayDoor) -> str | None:
        try:
            facts = json.loads(self._record(job).read_bytes())
            return str(facts["secrets"][door.value]) if facts["generation"] == job.run.generation else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    async def _answer(self, session: aiohttp.ClientSession, request: web.Request) -> web.StreamResponse:
        goal = self._goal(request.method, request.raw_path)
        if goal is None:
            return _refusal(404, "Nothing is relayed from this address: use the one in your environment.")
        door, place = goal
        url = URL(place, encoded=True)
        if door is RelayDoor.GATEWAY:
            url = url.with_query(request.query)
        headers = {**door.headers(request.headers), TOKEN: self._membership.token}
        body = await request.read()
        try:
            async with session.request(
                request.method, url, headers=headers, data=body or None, allow_redirects=False
            ) as answer:
                if 300 <= answer.status < 400:
                    return _refusal(502, "The head answered with a redirect, which is not followed.")
                return await _pass_back(request, answer)
        except aiohttp.ClientError as broken:
            log.warning("relay: the head was not reached: %s", broken)
            return _refusal(503, "The head was not reached: try again.")


def _refusal(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


async def _pass_back(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=passed_back(answer.headers))
    if request.version == aiohttp.HttpVersion11:
        response.enable_chunked_encoding()
    await response.prepare(request)
    async for part in answer.content.iter_any():
        await response.write(part)
    await response.write_eof()
    return response
