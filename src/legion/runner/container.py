"""The sandbox as a container of podman, for machines where bubblewrap does not work.

Holds as much: no network but the bridge, no capabilities, a root that cannot be written, and only the listed folders.
Slower: a second for each start. The system's programs are this machine's own, or those of an image.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import resource
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from legion.drivers import StartFailed

_PLACES = "/usr/bin:/bin:/usr/local/bin"
_GATE = "/run/legion"
_WAIT = f'echo > {_GATE}/ready; read -r _ < {_GATE}/go; "$@"'
"""Stays the first process, so that signals reach the program, which is none."""
_OWN = ("LD_", "CONTAINER", "STORAGE", "PODMAN", "XDG_", "PATH", "HOME", "TMPDIR", "DBUS_", "GODEBUG")
"""Variables with these beginnings would steer podman itself."""
_PATIENCE = 120.0
_MOST = 1 << 14
"""Open files, and processes of one user."""


class PodmanMissing(Exception):
    """A container is wanted, and podman is not there."""


def find_podman() -> str:
    found = shutil.which("podman", path=_PLACES)
    if found is None:
        raise PodmanMissing("podman is not installed: install the package `podman`.")
    return found


@dataclass(frozen=True, kw_only=True)
class ContainerPlace:
    """What a container is made of, besides its folders."""

    image: str
    """Empty: this machine's own programs."""
    networked: bool
    """It uses this machine's network."""
    tmp_bytes: int
    empty: Sequence[str]
    """Folders that are empty, in memory and writable."""
    binds: Sequence[tuple[str, str, str]]
    """Options, sources and places, as bubblewrap has them."""


def command(
    argv: Sequence[str],
    place: ContainerPlace,
    *,
    cwd: Path,
    env: Mapping[str, str],
    folder: Path | None,
    terminal: bool,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words and the environment of podman. A run has a `folder`: there `Gate` holds it back, and `end` finds
    the container.
    """
    # Of two binds at one place, bubblewrap shows the later one.
    binds = {bind[2]: bind for bind in place.binds if _is_there(*bind)}
    empty = [path for path in place.empty if path not in binds]
    options = [
        *("run", "--rm", "--interactive", *(("--tty",) if terminal else ()), "--log-driver", "none"),
        *("--network", "host" if place.networked else "none", "--no-hosts", "--http-proxy=false"),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--read-only-tmpfs=false"),
        # The run's own group of processes has its limits.
        *("--cgroups", "disabled", *(() if os.geteuid() == 0 else ("--userns", "keep-id"))),
        *_limits(),
        *(word for path in empty for word in ("--tmpfs", f"{path}:rw,exec,size={place.tmp_bytes},mode=1777")),
        *("--shm-size", str(place.tmp_bytes)),
        *(word for bind in binds.values() for word in ("--mount", _mount(*bind))),
        *("--workdir", str(cwd)),
    ]
    for name, value in env.items():
        options += ("--env", f"{name}={value}" if name.startswith(_OWN) else name)
    waits: tuple[str, ...] = ()
    if folder is not None:
        options += ("--cidfile", str(folder / "container"), "--pidfile", str(folder / "container.pid"))
        options += ("--mount", _mount("--ro-bind", str(folder / "gate"), _GATE))
        waits = ("sh", "-c", _WAIT, "sh")
    root = (place.image,) if place.image else ("--rootfs", str(_root(folder)))
    ours = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR") if name in os.environ}
    passed = {name: value for name, value in env.items() if not name.startswith(_OWN)}
    return (*options, *root, *waits, *argv), {**passed, **ours}


def _root(folder: Path | None) -> Path:
    """An empty folder. podman makes places for what it mounts there, which no other run sees."""
    root = _shared_root() if folder is None else folder / "root"
    (root / "var").mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (root / "var" / "run").symlink_to("../run")
    return root


@functools.cache
def _shared_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="legion-root-"))


def _limits() -> Iterator[str]:
    """podman would raise them, which not every machine allows."""
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        _, hard = resource.getrlimit(kind)
        most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
        yield from ("--ulimit", f"{name}={most}:{most}")


def _is_there(option: str, source: str, _: str) -> bool:
    return not option.endswith("-try") or Path(source).exists()


def _mount(option: str, source: str, place: str) -> str:
    written = io.StringIO()
    fields = ["type=bind", f"src={source}", f"dst={place}", *(["ro=true"] if "ro" in option.split("-") else [])]
    csv.writer(written).writerow([*fields, "bind-propagation=private"])
    return written.getvalue().removesuffix("\r\n")


class Gate:
    """Two named pipes: the container says through one that it is there, and waits at the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "gate").mkdir(exist_ok=True)
        for name in ("ready", "go"):
            with contextlib.suppress(FileExistsError):
                os.mkfifo(folder / "gate" / name)
        # Open for both sides from the start: neither waits for the other to open it.
        self._ready = os.open(folder / "gate" / "ready", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        go = os.open(folder / "gate" / "go", os.O_RDWR | os.O_CLOEXEC)
        # The other handle stays open as long as the runner: what is written waits there for its reader.
        self.go: BinaryIO = os.fdopen(os.dup(go), "wb", buffering=0)

    def first(self, podman: subprocess.Popen[bytes], complaints: BinaryIO) -> int:
        """The first process of the container, once it waits. Raises StartFailed."""
        ended = os.pidfd_open(podman.pid)
        poll = select.poll()
        for handle in (self._ready, ended):
            poll.register(handle, select.POLLIN)
        try:
            ready = [handle for handle, _ in poll.poll(_PATIENCE * 1000)]
            if self._ready in ready:
                return int((self._folder / "container.pid").read_text())
        except (OSError, ValueError) as failure:
            raise StartFailed(f"The container is not known: {failure}.") from failure
        finally:
            os.close(ended)
            os.close(self._ready)
        said = (os.read(complaints.fileno(), 4096) if ended in ready else b"").decode("utf-8", "replace").strip()
        end(self._folder)
        raise StartFailed(f"podman could not start a container ({said or 'it did not answer'}).")


def end(folder: Path) -> None:
    """Remove the container of a run whose runner is gone, if there is one."""
    if (folder / "container").exists():
        words = [find_podman(), "rm", "--force", "--ignore", "--time", "0", "--cidfile", str(folder / "container")]
        subprocess.run(words, check=False, capture_output=True, timeout=_PATIENCE)
