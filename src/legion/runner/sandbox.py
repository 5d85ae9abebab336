"""The sandbox: a root with only the listed folders, in namespaces of its own, without capabilities (bubblewrap).

Never the host's root made read-only: root can remount that, and host sockets answer through it. This module knows
folders, not their purpose; `toolchains` finds the person's tools, `probe` finds out what works on this machine.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

from legion.runner import container, etc
from legion.runner.bridge import NetworkBridge, plain
from legion.system import kernel

DEFAULT_TMP_BYTES = 4 << 30
BWRAP_PLACES = "/usr/bin:/bin:/usr/local/bin"
_EMPTY = ("/tmp", "/var/tmp", "/run")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
START_FAILED = "start-failed"
_WALL = Path(__file__).with_name("wall.pl").read_text("utf-8")
"""Starts a program behind a second wall. Landlock forbids all mounts, so it can only begin where bubblewrap has ended;
what comes with git and starts in two milliseconds is perl.
"""


class SandboxNetwork(Enum):
    OPEN = "open"
    """The host's network, its loopback included."""
    NONE = "none"
    """A loopback of its own, and what a bridge leads to."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What a program sees besides the system: folders or files; a deeper entry overrides the one that contains it."""

    home: Path
    """An empty folder inside, whatever the person keeps there."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    replaced: tuple[tuple[Path, Path], ...] = ()
    """Pairs of a place and a folder or file of ours: the program finds the second at the first, and may write to it."""
    network: SandboxNetwork = SandboxNetwork.OPEN
    tmp_bytes: int = DEFAULT_TMP_BYTES
    """The most that each of /tmp, /var/tmp, /run, /dev/shm and the home folder holds; they live in memory."""
    etc: Path | None = None
    """A prepared folder (`etc.sync`) to mount as /etc; without it every allowed entry of /etc is mounted by itself."""
    small: bool = False
    """Only the system's programs, two devices, one /tmp and the listed folders: for one short program of ours."""
    filtered: bool = False
    """System calls that no build needs are refused (`seccomp`)."""
    walled: bool = False
    """Landlock allows it nothing but what it lists, even if a mount should show more."""
    bridge: NetworkBridge | None = None
    """What its loopback leads to, where it has one of its own."""
    image: str | None = None
    """Of a container, empty for this machine's own programs; None: bubblewrap."""

    def __post_init__(self) -> None:
        for path in (self.home, *self.writable, *self.readable, *(one for pair in self.replaced for one in pair)):
            if not path.is_absolute() or path == Path("/"):
                raise ValueError(f"A sandbox cannot list {str(path)!r}; name an absolute folder other than the root.")

    def to_json(self) -> dict[str, Any]:
        return {one.name: plain(getattr(self, one.name)) for one in fields(self)}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> Sandbox:
        return Sandbox(
            home=Path(facts["home"]),
            writable=tuple(Path(path) for path in facts["writable"]),
            readable=tuple(Path(path) for path in facts["readable"]),
            network=SandboxNetwork(facts["network"]),
            tmp_bytes=facts["tmp_bytes"],
            # A daemon of the last release does not write these.
            replaced=tuple((Path(place), Path(ours)) for place, ours in facts.get("replaced", ())),
            etc=None if facts.get("etc") is None else Path(facts["etc"]),
            small=facts.get("small", False),
            filtered=facts.get("filtered", False),
            walled=facts.get("walled", False),
            bridge=None if facts.get("bridge") is None else NetworkBridge.from_json(facts["bridge"]),
            image=facts.get("image"),
        )

    def shows(self, folder: Path) -> bool:
        """Is the folder, or one that contains it, among the listed ones?"""
        real = folder.resolve()
        return any(real.is_relative_to(path.resolve()) for path in (*self.writable, *self.readable))


@dataclass(frozen=True)
class Wrapped:
    """A command line that runs a program inside, and the environment for it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


class SandboxMissing(Exception):
    """bubblewrap is wanted and not there."""


@functools.cache
def find_bwrap() -> str:
    """Only from the system's own folders: a PATH may put any program in front of them."""
    found = shutil.which("bwrap", path=BWRAP_PLACES)
    if found is None:
        raise SandboxMissing("bubblewrap is not installed: install the package `bubblewrap`.")
    return found


def find_perl() -> str | None:
    return shutil.which("perl", path=BWRAP_PLACES)


def is_setuid(bwrap: str) -> bool:
    """A bubblewrap that needs its setuid bit; Landlock would take its rights away."""
    return bool(Path(bwrap).stat().st_mode & stat.S_ISUID) and os.geteuid() != 0


def prepare() -> None:
    """Do now what `wrap` would do at its first call, so that processes forked from this one need not."""
    with contextlib.suppress(SandboxMissing):
        find_bwrap()
    _programs()


def wrap(
    argv: Sequence[str],
    sandbox: Sandbox,
    *,
    cwd: Path,
    env: Mapping[str, str],
    status: int | None = None,
    failure: int | None = None,
    filter: int | None = None,
    block: int | None = None,
    without: Sequence[str] = (),
    terminal: bool = False,
    folder: Path | None = None,
) -> Wrapped:
    """The command line that runs `argv` inside. For a container that is a run, `folder` is as in `container.command`.

    bubblewrap writes how it went to the handle `status`, and reads the filter of system calls from the handle `filter`.
    Behind the second wall, a program that could not be started is reported to the handle `failure`. The program starts
    when the handle `block` can be read.

    The variables named in `without` may be set for bubblewrap; the program does not get them. `terminal`: the program
    keeps the terminal that it is started on, which is its own and no person's.
    """
    if sandbox.image is not None:
        place = container.ContainerPlace(
            image=sandbox.image,
            networked=sandbox.network is SandboxNetwork.OPEN,
            tmp_bytes=sandbox.tmp_bytes,
            empty=(*_EMPTY, str(sandbox.home)),
            binds=(*(() if sandbox.image else _system(sandbox)), *_listed(sandbox)),
        )
        words, outside = container.command(argv, place, cwd=cwd, env=env, folder=folder, terminal=terminal)
        return Wrapped((container.find_podman(), *words), outside)
    # bubblewrap itself runs outside, so what steers the loader is set for the program alone.
    loader = {name: value for name, value in env.items() if name.startswith("LD_")}
    options = [
        *_namespaces(sandbox),
        *(() if terminal else ("--new-session",)),
        *_programs(),
        *(_SMALL if sandbox.small else _places(sandbox)),
        *(word for bind in _listed(sandbox) for word in bind),
        *("--remount-ro", "/"),
        *("--chdir", str(cwd)),
        *(word for name in without for word in ("--unsetenv", name)),
        *(word for name, value in loader.items() for word in ("--setenv", name, value)),
        *(() if status is None else ("--json-status-fd", str(status))),
        *(() if filter is None else ("--seccomp", str(filter))),
        *(() if block is None else ("--block-fd", str(block))),
    ]
    outside = {name: value for name, value in env.items() if name not in loader}
    words, hidden = _walled(sandbox, env, failure) if sandbox.walled else ((), ())
    return Wrapped((find_bwrap(), *options, *hidden, "--", *words, *argv), outside)


def _walled(sandbox: Sandbox, env: Mapping[str, str], failure: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What starts a program behind the second wall, and options that keep the program's variables from steering it."""
    carried = [name for name in env if name.startswith("PERL")]
    readable = [*_SYSTEM, "/etc", *map(str, sandbox.readable)]
    places = (sandbox.home, *sandbox.writable, *(place for place, _ in sandbox.replaced))
    writable = [*_EMPTY, "/proc", "/dev", *map(str, places)]
    numbers = (-1 if failure is None else failure, kernel.file_rights(), kernel.READ_RIGHTS, kernel.scopes())
    counts = (len(carried), len(readable), len(writable))
    facts = (*map(str, (*numbers, *counts)), *(f"{name}={env[name]}" for name in carried), *readable, *writable)
    hidden = tuple(word for name in carried for word in ("--unsetenv", name))
    return (find_perl() or "perl", "-e", _WALL, "--", *facts), hidden


def _namespaces(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if os.geteuid() != 0:
        yield "--unshare-user"
    if sandbox.network is SandboxNetwork.NONE:
        yield "--unshare-net"
    yield from ("--die-with-parent", "--cap-drop", "ALL")


@functools.cache
def _programs() -> tuple[str, ...]:
    """The programs and libraries of the system, in the shape that this host gives them."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            options += ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            options += ("--ro-bind", str(path), str(path))
    return (*options, "--ro-bind-try", "/nix/store", "/nix/store")


_SMALL = (
    *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
    *("--size", str(DEFAULT_TMP_BYTES), "--tmpfs", "/tmp"),
)


def _places(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    if os.geteuid() == 0:
        # Root needs no capability to write here: core_pattern alone would give it the host.
        for name in ("sys", "sysrq-trigger", "fs", "irq", "bus", "acpi", "scsi", "mtrr"):
            yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
    yield from etc.binds() if sandbox.etc is None else ("--ro-bind", str(sandbox.etc), "/etc")
    for path in (*_EMPTY, "/dev/shm", str(sandbox.home)):
        yield from ("--size", str(sandbox.tmp_bytes), "--tmpfs", path)
    yield from ("--symlink", "../run", "/var/run")


def _system(sandbox: Sandbox) -> Iterator[tuple[str, str, str]]:
    """As `_programs`, for a container, which follows no link to what it binds."""
    for path in map(Path, _SYSTEM):
        if path.is_dir():
            yield "--ro-bind", str(path.resolve()), str(path)
    if sandbox.etc is not None and not sandbox.small:
        yield "--ro-bind", str(sandbox.etc), "/etc"


def _listed(sandbox: Sandbox) -> Iterator[tuple[str, str, str]]:
    """Outer folders first, so that an inner one can be more open or more closed than the outer."""
    # A toolchain may disappear during a run, which only its own programs notice; a worktree may not.
    binds = [
        *((path, path, "--ro-bind-try") for path in sandbox.readable),
        *((path, path, "--bind") for path in sandbox.writable),
        *((place, ours, "--bind") for place, ours in sandbox.replaced),
    ]
    listed = {path for path, _, _ in binds}
    for path, source, option in sorted(binds, key=lambda bind: len(bind[0].parts)):
        if not _is_left_as_link(path, listed, sandbox.writable):
            yield option, str(source), str(path)
    if sandbox.bridge is None:
        return
    for socket in sandbox.bridge.sockets:
        # /var/run is a link inside as well.
        yield "--ro-bind-try", str(socket.resolve()), str(socket.parent.resolve() / socket.name)
    if sandbox.image or Path(sandbox.etc or "/etc", "resolv.conf").exists():
        # Without a name in it, resolvers ask this machine: the bridge.
        yield "--ro-bind", "/dev/null", "/etc/resolv.conf"


def _is_left_as_link(path: Path, listed: Collection[Path], writable: Collection[Path]) -> bool:
    """A path in a listed folder that leads through a link to something listed, which bubblewrap may not find yet; or
    from a writable folder to anywhere: a program made that link, and bubblewrap would follow it out of the sandbox."""
    outer = next((folder for folder in path.parents if folder in listed), None)
    if outer is None or (target := path.resolve()) == outer.resolve() / path.relative_to(outer):
        return False
    return outer in writable or any(place in listed for place in (target, *target.parents))
