"""Serves machines under an address of their own, with TLS. The address is recorded, so it is served again later."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass

from legion.api.machines import make_machine_app
from legion.daemon import listener
from legion.daemon.page_server import ServerThread
from legion.domain.errors import BadInput, LegionError
from legion.service.machines.dial_in import DialIn
from legion.system import files
from legion.system.paths import DataDir

log = logging.getLogger("legion")

FIRST_PORT = 6690


@dataclass(frozen=True, kw_only=True)
class MachineAddress:
    """What is recorded in machines.json."""

    host: str
    port: int

    @property
    def url(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{shown}:{self.port}"


class MachineListener:
    def __init__(self, data: DataDir, head: DialIn) -> None:
        self._record = data.root / "machines.json"
        self._keys = data.root / "machine-keys"
        self._head = head
        self._lock = threading.Lock()
        self._served: tuple[MachineAddress, ServerThread] | None = None
        self._fingerprint = ""

    @property
    def url(self) -> str:
        served = self._served
        return served[0].url if served is not None else ""

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def open(self, host: str, port: int) -> str:
        with self._lock:
            served = self._served
            if served is not None and host in ("", served[0].host) and port in (0, served[0].port):
                return served[0].url
            if not host:
                raise BadInput("Machines have no address yet: name one of this host with --host, as others reach it.")
            if host in ("0.0.0.0", "::"):
                raise BadInput("Name one address of this host, not all: machines must dial exactly that one.")
            self._end()
            return self._serve(host, port or FIRST_PORT)

    def reopen(self) -> None:
        """Serve the recorded address again. A daemon starts without it where that is not possible."""
        try:
            known = json.loads(self._record.read_bytes())
            with self._lock:
                self._serve(str(known["host"]), int(known["port"]))
        except FileNotFoundError:
            return
        except (LegionError, OSError, ValueError, TypeError, KeyError) as error:
            log.warning("machines cannot dial in, the address of %s is not served: %s", self._record, error)

    def stop(self) -> None:
        """Without forgetting the address."""
        with self._lock:
            self._end()

    def _serve(self, host: str, port: int) -> str:
        # Only for heads of machines: the library takes a while to import.
        from legion.daemon.certificate import Certificate  # noqa: PLC0415

        certificate = Certificate.of(self._keys, host)
        socket_ = listener.on_port(host, port)
        address = MachineAddress(host=host, port=socket_.getsockname()[1])
        app = make_machine_app(self._head, authority=(self._keys / "authority.pem").read_text)
        thread = ServerThread(app, socket_, str(certificate.chain), str(certificate.key))
        thread.wait_until_up()
        self._fingerprint = certificate.fingerprint.replace(":", "").lower()
        self._served = (address, thread)
        files.write_atomic(self._record, json.dumps(asdict(address)))
        return address.url

    def _end(self) -> None:
        if self._served is not None:
            self._served[1].stop()
        self._served = None
