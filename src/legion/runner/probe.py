"""Does the sandbox hold on this machine? Tried for real, once per process, since bubblewrap can fail at use.

A fresh interpreter tries, because what a runner does to itself before it starts bubblewrap cannot be undone.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import legion
from legion.runner import seccomp
from legion.runner.container import PodmanMissing
from legion.runner.sandbox import Sandbox, SandboxMissing, SandboxNetwork, find_bwrap, find_perl, is_setuid, wrap
from legion.system import kernel, process
from legion.system.process import FinishedProcess

PATIENCE = 30.0
_LOOK_AROUND = "readlink /proc/self/ns/pid && grep -E '^(CapEff|Seccomp):' /proc/self/status"
_FILTERED = "2"
"""The kernel's word for a process with a filter."""


class SandboxKind(Enum):
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"
    PROCESS_GROUPS = "process-groups"
    """No walls at all: programs are only ended together."""


@dataclass(frozen=True, kw_only=True)
class SandboxState:
    """What holds here. `why` is one sentence for a person, also when all is well."""

    kind: SandboxKind
    works: bool
    why: str
    pid_namespace: bool = False
    """A run's processes see only each other, and end together even if the runner is killed."""
    no_capabilities: bool = False
    """Root inside can neither mount nor change the network."""
    no_abstract_sockets: bool = False
    """Sockets of the host that have no path do not answer inside."""
    filters_calls: bool = False
    """System calls that no build needs are refused."""
    walled: bool = False
    """Landlock stands behind the mounts."""
    image: str | None = None
    """What containers are made of, as in `Sandbox`."""


@functools.cache
def probe(image: str | None) -> SandboxState:
    """Start a program in a sandbox and look around in it."""
    if image is not None:
        return _probe_container(image)
    if sys.platform != "linux":
        return _without("there is no bubblewrap on this system.")
    environment = {**os.environ, "PYTHONPATH": str(Path(legion.__file__).parent.parent)}
    tried = process.run([sys.executable, "-P", "-m", __name__], cwd=Path("/"), env=environment, timeout=PATIENCE)
    if tried.timed_out:
        return _without(f"bubblewrap did not start a program in {PATIENCE:g} s.")
    if tried.code != 0:
        return _without(f"bubblewrap does not work here ({tried.complaint.rstrip('.')}).")
    facts = json.loads(tried.stdout)
    leaks = "" if facts["no_abstract_sockets"] else ", but host sockets without a path answer (Linux 6.12 closes them)"
    open_calls = (
        "" if facts["filters_calls"] else ", without a filter of system calls, which this machine does not have"
    )
    wall = ", and Landlock behind it" if facts["walled"] else f", without Landlock behind it: {_no_wall()}"
    return SandboxState(
        kind=SandboxKind.BUBBLEWRAP,
        works=facts["pid_namespace"] and facts["no_capabilities"],
        why=f"bubblewrap works{wall}{open_calls}{leaks}.",
        **facts,
    )


def _no_wall() -> str:
    if not kernel.file_rights():
        return "this kernel has none"
    return "a program could not be started so" if find_perl() else "that needs perl"


def _probe_container(image: str) -> SandboxState:
    try:
        seen = _look_around(None, image)
    except PodmanMissing as missing:
        return _without(str(missing))
    if seen.code != 0:
        return _without(f"podman does not work here ({seen.complaint.rstrip('.') or 'it did not answer'}).")
    facts = _seen(seen.text)
    well = facts["pid_namespace"] and facts["no_capabilities"]
    made = f"the image {image}" if image else "this machine's programs"
    why = f"containers of podman work, with {made}; each start takes a second."
    return SandboxState(kind=SandboxKind.CONTAINER, works=well, why=why, image=image, **facts, no_abstract_sockets=True)


def _without(why: str) -> SandboxState:
    return SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=False, why=why)


def _try() -> dict[str, bool]:
    """What a runner does, and what a program then sees."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        listener.bind("")  # an empty name makes the kernel choose an abstract one
        listener.listen()
        closed = not is_setuid(find_bwrap()) and kernel.scope_self()
        try:
            caller.connect(listener.getsockname())
            closed = False
        except PermissionError:
            pass
    walled = bool(kernel.file_rights() and find_perl())
    seen = _look_around(seccomp.program(), walled=walled)
    if seen.code != 0 and walled:
        walled = False
        seen = _look_around(seccomp.program())
    if seen.code != 0:
        # A kernel without filters; the rest of the sandbox holds all the same.
        seen = _look_around(None)
    if seen.code != 0:
        raise SandboxMissing(seen.complaint)
    return {**_seen(seen.text), "no_abstract_sockets": closed, "walled": walled}


def _seen(text: str) -> dict[str, bool]:
    namespace, capabilities, filtered = text.splitlines()
    return {
        "pid_namespace": namespace != str(Path("/proc/self/ns/pid").readlink()),
        "no_capabilities": int(capabilities.split()[1], 16) == 0,
        "filters_calls": filtered.split()[1] == _FILTERED,
    }


def _look_around(filter: bytes | None, image: str | None = None, *, walled: bool = False) -> FinishedProcess:
    """bubblewrap reads the filter from the program's input."""
    network = SandboxNetwork.OPEN if image is None else SandboxNetwork.NONE
    sandbox = Sandbox(home=Path("/home/ada"), network=network, image=image, walled=walled)
    words, env = ["sh", "-c", _LOOK_AROUND], {"PATH": "/usr/bin:/bin"}
    wrapped = wrap(words, sandbox, cwd=Path("/tmp"), env=env, filter=None if filter is None else 0)
    return process.run(wrapped.argv, env=wrapped.env, stdin=filter or b"", timeout=PATIENCE)


if __name__ == "__main__":
    try:
        sys.stdout.write(json.dumps(_try()))
    except SandboxMissing as missing:
        sys.exit(str(missing))
