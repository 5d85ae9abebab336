"""Serves the page under one more address, for a phone or behind a proxy.

Nothing but the secret of a browser that was let in opens that address: no token is valid there.
The address is recorded, so that a daemon that is started again serves it again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette

from legion.api.guard import Guard
from legion.daemon import listener
from legion.daemon.listener import BoundedHttp
from legion.domain.errors import BadInput, LegionError, Retryable, StateConflict
from legion.system import files
from legion.system.paths import DataDir
from legion.wire.web import OpenWeb, WebAddresses

log = logging.getLogger("legion")

FIRST_PORT = 6680
_START_SECONDS = 10.0

MakeApp = Callable[[tuple[str, ...], str], Guard]
"""The API, open to browsers alone, for the host names under which it answers and the name of the proxy before it."""


@dataclass(frozen=True, kw_only=True)
class OpenAddress:
    """What is recorded in web.json."""

    host: str
    port: int
    tls: bool
    behind: str

    @property
    def url(self) -> str:
        if self.behind:
            return f"https://{self.behind}"
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{shown}:{self.port}"


class PageServer:
    def __init__(self, data: DataDir, make_app: MakeApp, *, local: str, http: type[BoundedHttp] = BoundedHttp) -> None:
        self._record = data.root / "web.json"
        self._keys = data.root / "web"
        self._make_app = make_app
        self._local = local
        self._http = http
        self._lock = threading.Lock()
        self._served: tuple[OpenAddress, ServerThread] | None = None
        self._fingerprint = ""
        self.lost_proxy = ""
        """The proxy in front of an address that could not be served again."""

    def addresses(self) -> WebAddresses:
        served = self._served
        more = [] if served is None else [served[0].url]
        proxied = "" if served is None or not served[0].behind else f"http://127.0.0.1:{served[0].port}"
        return WebAddresses(local=self._local, more=more, proxied=proxied, fingerprint=self._fingerprint)

    def url(self) -> str:
        """The address that reaches furthest."""
        return next(iter(self.addresses().more), self._local)

    def ports(self) -> list[int]:
        served = self._served
        return [] if served is None else [served[0].port]

    @property
    def proxy(self) -> str:
        """The name of the proxy in front of the address that is served; empty: none."""
        served = self._served
        return "" if served is None else served[0].behind

    def open(self, wanted: OpenWeb) -> WebAddresses:
        """The address that is open stays so where the new one cannot be served. Raises NotAllowed or BadInput."""
        with self._lock:
            # Any port, to see whether the host is one of this machine: the wanted port may be the open one.
            for one in listener.on_port(_bound(_checked(wanted)), 0):
                one.close()
            before = self._served
            self._end()
            try:
                self._serve(wanted)
            except (LegionError, OSError):
                if before is not None:
                    self._serve(OpenWeb(**asdict(before[0])))
                raise
        return self.addresses()

    def close(self) -> WebAddresses:
        with self._lock:
            self._end()
            self._record.unlink(missing_ok=True)
        return self.addresses()

    def reopen(self) -> None:
        """Serve the recorded address again. A daemon starts without it where that is not possible."""
        known: Any = {}
        try:
            known = json.loads(self._record.read_bytes())
            with self._lock:
                self._serve(_checked(OpenWeb(**known)))
        except FileNotFoundError:
            return
        except (LegionError, OSError, ValueError, TypeError) as error:
            self.lost_proxy = str(known.get("behind", "")) if isinstance(known, dict) else ""
            log.warning("the page's address of %s is not served: %s", self._record, error)

    def stop(self) -> None:
        """Without forgetting the address."""
        with self._lock:
            self._end()

    def _serve(self, wanted: OpenWeb) -> None:
        bound = _bound(wanted)
        sockets = listener.on_port(bound, wanted.port or FIRST_PORT)
        port = sockets[0].getsockname()[1]
        if wanted.behind and wanted.port not in (0, None, port):
            for one in sockets:
                one.close()
            raise StateConflict(f"The proxy {wanted.behind} forwards to port {wanted.port}, which another program has.")
        address = OpenAddress(host=bound, port=port, tls=wanted.tls, behind=wanted.behind)
        chain = key = None
        self._fingerprint = ""
        if wanted.tls:
            # Only for those who want TLS: the library takes a while to import.
            from legion.daemon.certificate import Certificate

            certificate = Certificate.of(self._keys, wanted.host)
            chain, key = str(certificate.chain), str(certificate.key)
            self._fingerprint = certificate.fingerprint
        app = self._make_app((wanted.host,), wanted.behind)
        thread = ServerThread(app, sockets, chain, key, http=self._http, proxied=bool(wanted.behind))
        thread.wait_until_up()
        self._served = (address, thread)
        files.write_atomic(self._record, json.dumps(asdict(address)))

    def _end(self) -> None:
        if self._served is not None:
            self._served[1].stop()
        self._served = None
        self._fingerprint = ""


class ServerThread:
    """A server with an event loop of its own."""

    def __init__(
        self,
        app: Guard | Starlette,
        listening: list[socket.socket],
        chain: str | None,
        key: str | None,
        http: type[BoundedHttp] = BoundedHttp,
        *,
        proxied: bool = False,
    ) -> None:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            # Else any program of this machine could call its plain connection an encrypted one.
            proxy_headers=proxied,
            timeout_graceful_shutdown=1,
            http=http,
            ws=listener.PROTOCOL,
            ws_max_size=listener.MOST_BYTES,
            ssl_certfile=chain,
            ssl_keyfile=key,
        )
        self._up = threading.Event()
        self._server = _Server(config, self._up)
        self._sockets = listening
        self._thread = threading.Thread(target=self._run, daemon=True, name="page")
        self._thread.start()

    def wait_until_up(self) -> None:
        if not self._up.wait(_START_SECONDS) or not self._server.started:
            raise Retryable("The address could not be opened; see daemon.log in the data directory.")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)

    def _run(self) -> None:
        try:
            self._server.run(sockets=self._sockets)
        finally:
            self._up.set()
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, up: threading.Event) -> None:
        super().__init__(config)
        self._up = up

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._up.set()


def _bound(wanted: OpenWeb) -> str:
    return "127.0.0.1" if wanted.behind else wanted.host


def _checked(wanted: OpenWeb) -> OpenWeb:
    if wanted.host in ("0.0.0.0", "::", ""):
        raise BadInput("Name one address of this machine, not all: browsers must use exactly that one.")
    if wanted.behind and wanted.tls:
        raise BadInput("A proxy has its own certificate: leave --tls out.")
    return wanted
