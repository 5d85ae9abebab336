"""A head and its machines, each behind a link that can be cut, slowed and broken."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from legion.demo.machines.play import BadLink
from legion.wire.machines import MachineLine
from tests.machines.workers import LEASE, MachineHouse, machine_house
from tests.support.legion import PATIENCE, Project
from tests.support.looking import until_seen
from tests.support.repository import CHECK, Repository

LABEL = "far"
"""Every machine has it and the head has not: what asks for it runs on a machine."""


class Fleet:
    def __init__(self, house: MachineHouse, env: Mapping[str, str] | None = None) -> None:
        """`env` is for all workers."""
        self.house = house
        self._env = env
        self.head = house.head
        self.links: dict[str, BadLink] = {}
        self.workers = house.workers

    def add(self, name: str, *, slots: int = 4, labels: Sequence[str] = (LABEL,)) -> None:
        """A machine that has joined."""
        line = self.house.invite(name, labels=labels, slots=slots)
        address, _, secret = line.partition("/#")
        link = self.links[name] = BadLink(int(address.rpartition(":")[2]), seed=len(self.links))
        self.house.join(name, f"https://127.0.0.1:{link.port}/#{secret}", env=self._env)

    def line_of(self, name: str) -> MachineLine:
        return next(one for one in self.head.client.machines().machines if one.name == name)

    def given(self, name: str) -> list[tuple[str, str]]:
        """State and reason of each run that the machine was given, oldest first."""
        return [(one.state, one.why) for one in self.head.client.machine_log(name, limit=1000).runs]

    def runners(self) -> list[object]:
        return [runner for worker in self.workers.values() for runner in worker.runners()]

    def until(self, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
        try:
            until_seen(self.head, holds, what, patience)
        except AssertionError as never:
            logs = "\n".join(f"{name}:\n{one.log[-2500:]}" for name, one in self.workers.items())
            raise AssertionError(f"{never}\n{logs}") from None

    def adopt(self, name: str = "shop") -> Project:
        return self.head.adopt(Repository(self.house.folder / name, CHECK))


@contextlib.contextmanager
def fleet(folder: Path, *names: str, lease: float = LEASE, env: Mapping[str, str] | None = None) -> Iterator[Fleet]:
    with machine_house(folder, lease=lease) as house:
        made = Fleet(house, env)
        try:
            for name in names:
                made.add(name)
            yield made
        finally:
            for link in made.links.values():
                link.close()
