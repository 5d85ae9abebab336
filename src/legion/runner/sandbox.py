"""The sandbox: a root that holds only what is listed, in namespaces of its own, with no capability (bubblewrap).

Never the host's root made read-only: root can remount that, and host sockets answer through it. It knows folders, not
why somebody wants them; `toolchains` finds the person's, `probe` finds out what holds on this machine.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

DEFAULT_TMP_BYTES = 4 << 30
BWRAP_PLACES = "/usr/bin:/bin:/usr/local/bin"


class SandboxNetwork(Enum):
    OPEN = "open"
    """The host's network, its loopback included."""
    NONE = "none"
    """A loopback of its own and nothing else."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What a program sees beside the system: folders or files, the deeper ones winning over those that hold them."""

    home: Path
    """An empty folder inside, whatever the person keeps there."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    network: SandboxNetwork = SandboxNetwork.OPEN
    tmp_bytes: int = DEFAULT_TMP_BYTES
    """The most that each of /tmp, /var/tmp, /run, /dev/shm and the home folder holds; they live in memory."""

    def __post_init__(self) -> None:
        for path in (self.home, *self.writable, *self.readable):
            if not path.is_absolute() or path == Path("/"):
                raise ValueError(f"A sandbox cannot list {str(path)!r}; name an absolute folder other than the root.")

    def to_json(self) -> dict[str, Any]:
        return {
            "home": str(self.home),
            "writable": [str(path) for path in self.writable],
            "readable": [str(path) for path in self.readable],
            "network": self.network.value,
            "tmp_bytes": self.tmp_bytes,
        }

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> Sandbox:
        return Sandbox(
            home=Path(facts["home"]),
            writable=tuple(Path(path) for path in facts["writable"]),
            readable=tuple(Path(path) for path in facts["readable"]),
            network=SandboxNetwork(facts["network"]),
            tmp_bytes=facts["tmp_bytes"],
        )

    def shows(self, folder: Path) -> bool:
        """Whether the folder, or one that holds it, is among the listed ones."""
        real = folder.resolve()
        return any(real.is_relative_to(path.resolve()) for path in (*self.writable, *self.readable))


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """A command line that runs a program inside, and the environment for it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class SandboxMissing(Exception):
    """bubblewrap is wanted and not there."""


def find_bwrap() -> str:
    """From the system's own folders: what a PATH puts in front of them could be anybody's."""
    found = shutil.which("bwrap", path=BWRAP_PLACES)
    if found is None:
        raise SandboxMissing("bubblewrap is not installed: install the package `bubblewrap`.")
    return found


def is_setuid(bwrap: str) -> bool:
    """A bubblewrap that needs its setuid bit; Landlock would take its rights away."""
    return bool(Path(bwrap).stat().st_mode & stat.S_ISUID) and os.geteuid() != 0


def wrap(
    argv: Sequence[str], sandbox: Sandbox, *, cwd: Path, env: Mapping[str, str], status: int | None = None
) -> Wrapped:
    """The command line that runs `argv` inside. bubblewrap writes how it went to the handle `status`."""
    # bubblewrap itself runs outside, so what steers the loader is set for the program alone.
    loader = {name: value for name, value in env.items() if name.startswith("LD_")}
    options = [
        *_namespaces(sandbox),
        *_system(),
        *_etc(),
        *_private_places(sandbox),
        *_listed(sandbox),
        *("--remount-ro", "/"),
        *("--chdir", str(cwd)),
        *(word for name, value in loader.items() for word in ("--setenv", name, value)),
        *(() if status is None else ("--json-status-fd", str(status))),
    ]
    outside = {name: value for name, value in env.items() if name not in loader}
    return Wrapped(argv=(find_bwrap(), *options, "--", *argv), env=outside)


def _namespaces(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if os.geteuid() != 0:
        yield "--unshare-user"
    if sandbox.network is SandboxNetwork.NONE:
        yield "--unshare-net"
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")


def _system() -> Iterator[str]:
    """The programs and libraries of the system, in the shape that this host gives them."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--ro-bind-try", "/nix/store", "/nix/store")
    yield from ("--proc", "/proc", "--dev", "/dev")
    if os.geteuid() == 0:
        # Root needs no capability to write here: core_pattern alone would give it the host.
        for name in ("sys", "sysrq-trigger", "fs", "irq", "bus", "acpi", "scsi", "mtrr"):
            yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")


_ETC = (
    # who and where
    *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "gai.conf", "resolv.conf"),
    *("protocols", "services", "localtime", "timezone", "locale.conf", "default/locale"),
    *("os-release", "debian_version", "lsb-release", "redhat-release", "alpine-release", "static"),
    # the loader, and links that packages choose between
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives"),
    # certificates, without the private keys that lie beside them
    *("ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "crypto-policies"),
    *("pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"),
    # what the machine sets for everybody's tools
    *("gitconfig", "npmrc", "pip.conf", "mime.types", "fonts", "maven"),
    *("perl", "python3", "java-*", "R"),
)


def _etc() -> Iterator[str]:
    for pattern in _ETC:
        for path in sorted(Path("/etc").glob(pattern)):
            target = str(path.readlink()) if path.is_symlink() else None
            if target is not None and path.resolve().is_relative_to("/usr"):
                yield from ("--symlink", target, str(path))
            else:
                yield from ("--ro-bind-try", str(path), str(path))


def _private_places(sandbox: Sandbox) -> Iterator[str]:
    for path in ("/tmp", "/var/tmp", "/run", "/dev/shm", str(sandbox.home)):
        yield from ("--size", str(sandbox.tmp_bytes), "--tmpfs", path)
    yield from ("--symlink", "../run", "/var/run")


def _listed(sandbox: Sandbox) -> Iterator[str]:
    """Outer folders first, so that an inner one can be more open or more closed than what holds it."""
    # A toolchain may go while we run, and only its own programs miss it; a worktree may not.
    binds = [(path, "--ro-bind-try") for path in sandbox.readable] + [(path, "--bind") for path in sandbox.writable]
    for path, option in sorted(binds, key=lambda bind: len(bind[0].parts)):
        yield from (option, str(path), str(path))
