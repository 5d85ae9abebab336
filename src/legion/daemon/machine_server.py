"""Serves machines under an address of their own, with TLS. The address is recorded, so it is served again later."""

from __future__ import annotations

import logging
import threading

from legion.config.files.user import UserConfig
from legion.daemon import listener
from legion.daemon.page_server import ServerThread
from legion.domain.errors import BadInput, LegionError, Retryable
from legion.domain.machines.machine import LeaseTimes
from legion.jobs.machines.engine import EngineUnavailable
from legion.jobs.machines.head_addresses import HeadAddresses, MachineAddress
from legion.jobs.machines.part import MachinePart
from legion.service.machines.dial_in import DialIn
from legion.system.paths import DataDir

log = logging.getLogger("legion")

FIRST_PORT = 6690


class MachineListener:
    def __init__(self, data: DataDir, head: DialIn) -> None:
        self._data = data
        self._record = HeadAddresses(data).own
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
            refuse_all_addresses(host)
            self._end()
            return self._serve(host, port or FIRST_PORT)

    def reopen(self) -> None:
        """Serve the recorded address again. A daemon starts without it where that is not possible."""
        try:
            known = MachineAddress.read(self._record)
            with self._lock:
                self._serve(known.host, known.port)
        except FileNotFoundError:
            return
        except (LegionError, OSError, ValueError, TypeError, KeyError) as error:
            log.warning("machines cannot dial in, the address of %s is not served: %s", self._record, error)

    def stop(self) -> None:
        """Without forgetting the address."""
        with self._lock:
            self._end()

    def _serve(self, host: str, port: int) -> str:
        address, thread, self._fingerprint = serve_machines(self._data, self._head, host, port)
        self._served = (address, thread)
        address.write(self._record)
        return address.url

    def _end(self) -> None:
        if self._served is not None:
            self._served[1].stop()
        self._served = None


def refuse_all_addresses(host: str) -> None:
    if host in ("0.0.0.0", "::"):
        raise BadInput("Name one address of this host, not all: machines must dial exactly that one.")


def serve_machines(data: DataDir, head: DialIn, host: str, port: int) -> tuple[MachineAddress, ServerThread, str]:
    """Serve this address, or the next free port there. Also returns the fingerprint of the folder's authority."""
    # Only for heads of machines: both import libraries that take a while.
    from legion.api.machines import make_machine_app
    from legion.daemon.certificate import Certificate

    keys = data.root / "machine-keys"
    certificate = Certificate.of(keys, host)
    sockets = listener.on_port(host, port)
    address = MachineAddress(host=host, port=sockets[0].getsockname()[1])
    app = make_machine_app(head, authority=(keys / "authority.pem").read_text)
    thread = ServerThread(app, sockets, str(certificate.chain), str(certificate.key))
    thread.wait_until_up()
    return address, thread, certificate.fingerprint.replace(":", "").lower()


def machine_part(user: UserConfig) -> MachinePart:
    """The queue of jobs for machines, where the board is in Postgres."""
    times = LeaseTimes.scaled(user.daemon.machine_lease)
    if not user.daemon.database:
        return MachinePart(times=times)
    # Only for heads on Postgres: the library takes a while to import.
    from legion.jobs.machines.postgres_queue import PostgresQueue

    try:
        return MachinePart(engine=PostgresQueue(user.daemon.database), times=times)
    except EngineUnavailable as down:
        raise Retryable(f"{down}; start Postgres and try again.") from down
