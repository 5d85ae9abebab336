"""Answers machines in another process than the head, from the same Postgres and the same data folder.

It decides nothing: the rows of placed runs do. It follows the head by the generation of the lease, so a copy of the
folder, or the folder of an earlier head, serves no machine.
"""

from __future__ import annotations

import json
import threading

from legion.domain.errors import Retryable
from legion.domain.machines.machine import Machine, PlacedRun
from legion.jobs.context import Context
from legion.jobs.machines.relayed import RelayDoor
from legion.service.machines.dial_in import DialIn
from legion.store.database import head_lease


class SecondHead(DialIn):
    def __init__(self, context: Context, *, host: str) -> None:
        """`host`: the name of this host, to compare with that of the head."""
        super().__init__(context)
        self._host = host
        self._is_with_head = True
        self._generation: int | None = None
        self._lock = threading.Lock()

    def machine(self, token: str) -> Machine:
        """The machine with this token. Raises NotAllowed, and Retryable while another folder is the head's."""
        self.follow()
        return super().machine(token)

    def _place(self, placed: PlacedRun, door: RelayDoor) -> str:
        """Gateway and tools listen on the loopback of the head's host: its address for machines passes on to them."""
        if not self._is_with_head:
            url = self._addresses.of_head()
            if not url:
                raise Retryable("The head serves no machines now: try again.")
            return f"{url}/machine/v1/runs/{placed.name}/{placed.generation}/{door.value}"
        if door is RelayDoor.GATEWAY:
            return super()._place(placed, door)
        try:
            return str(json.loads(self._context.data.daemon_record.read_bytes())["url"])
        except (FileNotFoundError, ValueError, KeyError):
            raise Retryable("The head does not serve now: try again.") from None

    def follow(self) -> None:
        """Write from now on under the generation of the head that serves this folder. Raises Retryable."""
        with self._context.store.read() as tx:
            last, holder = head_lease.last(tx)
        with self._lock:
            if last == self._generation:
                return
            if last == 0 or last != self._context.data.generation_of_head:
                raise Retryable(
                    f"The head that serves this database has another data folder than {self._context.data.root}, or "
                    "has not started yet: start it with `legion up`, or name its folder with --data-dir."
                )
            self._context.store.fence(last)
            self._is_with_head = head_lease.is_on(holder, self._host)
            self._generation = last
