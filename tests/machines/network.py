"""Machines as network namespaces: each has its own address, and its cable can be pulled, in one direction too.

Only root can make them; `needs_namespaces` skips elsewhere. Delay, loss and bandwidth are the business of a `BadLink`,
since kernels without netem cannot do them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

_NUMBER = itertools.count()
_NO_MAC = "02:00:00:00:00:99"


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


@functools.cache
def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"lgt{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=30, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=30, check=False)
    return made


def needs_namespaces() -> pytest.MarkDecorator:
    return pytest.mark.skipif(not _can_make_namespaces(), reason="only root can make network namespaces, with `ip`")


@dataclass(kw_only=True)
class Host:
    """A machine: processes inside see only its own network."""

    namespace: str
    address: str
    cable: str
    """The name of its cable's end at the switch."""
    network: Network = field(repr=False)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    def start(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, *, asked: bool = False
    ) -> subprocess.Popen[bytes]:
        """A process there, with a process table of its own: `power_off` ends it with everything that it started.

        With `asked` the test writes to it.
        """
        inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", *argv]
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *inside],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE if asked else subprocess.DEVNULL,
            env=None if env is None else {**os.environ, **env},
        )
        self._started.append(process)
        return process

    def power_off(self) -> None:
        for process in self._started:
            process.kill()
            process.wait(30)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._started.clear()

    def cut(self) -> None:
        ip("link", "set", self.cable, "down")

    def heal(self) -> None:
        ip("link", "set", self.cable, "up")

    def lose_what_it_sends(self) -> None:
        """One way: it receives from the head, and nothing that it sends arrives."""
        self._misdirect(["-n", self.namespace], self.network.address, "eth0")

    def lose_what_it_is_sent(self) -> None:
        """One way: what it sends arrives at the head, and nothing comes back."""
        self._misdirect([], self.address, self.network.switch)

    def heal_directions(self) -> None:
        """Undo both."""
        for where, target, device in (
            (["-n", self.namespace], self.network.address, "eth0"),
            ([], self.address, self.network.switch),
        ):
            subprocess.run(["ip", *where, "neigh", "delete", target, "dev", device], capture_output=True, check=False)

    @staticmethod
    def _misdirect(where: list[str], target: str, device: str) -> None:
        """Frames go to a card that does not exist: they vanish, and the sender gets no error."""
        ip(*where, "neigh", "replace", target, "lladdr", _NO_MAC, "dev", device, "nud", "permanent")


@dataclass(kw_only=True)
class Network:
    """A switch with the head at `address`, in the namespace of the tests."""

    switch: str
    prefix: str
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.prefix}.1"

    def add(self, name: str) -> Host:
        number = len(self.hosts) + 11
        host = Host(
            namespace=f"{self.switch}-{name}",
            address=f"{self.prefix}.{number}",
            cable=f"{self.switch}v{number}",
            network=self,
        )
        ip("netns", "add", host.namespace)
        self.hosts[name] = host
        ip("link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        ip("link", "set", host.cable, "master", self.switch, "up")
        ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
        ip("-n", host.namespace, "link", "set", "eth0", "up")
        ip("-n", host.namespace, "link", "set", "lo", "up")
        return host


@contextlib.contextmanager
def network() -> Iterator[Network]:
    number = os.getpid() + 7 * next(_NUMBER)
    made = Network(switch=f"lg{number % 100000}", prefix=f"10.77.{number % 250}")
    ip("link", "add", made.switch, "type", "bridge")
    try:
        ip("address", "add", f"{made.address}/24", "dev", made.switch)
        ip("link", "set", made.switch, "up")
        yield made
    finally:
        for host in made.hosts.values():
            host.power_off()
            ip("netns", "delete", host.namespace)
        ip("link", "delete", made.switch)
