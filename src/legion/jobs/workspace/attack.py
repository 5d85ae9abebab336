"""Hostile commands, tried in the sandbox of a project as its agents have it: what holds on this machine."""

from __future__ import annotations

import os
import shlex
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from legion.jobs.trees import ProjectContext, Trees

_SECRETS = (".ssh", ".gnupg", ".aws", ".netrc", ".kube", ".docker", ".config/gh", ".claude/.credentials.json", ".codex")
_PROXY = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT %s HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3 | grep -q ' 200'"
_FIXED = {
    "write to the system": "touch /usr/legion-was-here || touch /legion-was-here || touch /etc/legion-was-here",
    "read the password hashes": "cat /etc/shadow",
    "keep a capability": "grep CapEff /proc/self/status | grep -v 0000000000000000",
    "gain rights by a setuid program": "grep -q 'NoNewPrivs:.*0' /proc/self/status",
    "mount a file system": "mount -t tmpfs none /mnt || mount -o remount,rw /",
    "make a user namespace": "unshare --user true",
    "change the kernel's settings": "test -w /proc/sys/kernel/core_pattern || test -w /proc/sysrq-trigger",
    "read disks or memory": "head -c1 /dev/mem || ls /dev/sd* || ls /dev/vd* || ls /dev/nvme*",
    "load a kernel module": "modprobe dummy",
    "reach the container engine": "test -S /run/docker.sock || test -S /run/podman/podman.sock",
    "reach D-Bus or the screen": "test -S /run/dbus/system_bus_socket || ls /tmp/.X11-unix/*",
    "reach this machine by the proxy": f"bash -c {shlex.quote(_PROXY % 'localhost:22')}",
    "reach the cloud's metadata": f"bash -c {shlex.quote(_PROXY % '169.254.169.254:80')}",
    "reach a private address": f"bash -c {shlex.quote(_PROXY % '10.0.0.1:80')}",
}


def attack(context: Trees, project: ProjectContext, run: Callable[[str, Path], str]) -> dict[str, bool]:
    """What was tried, and whether it held. `run` returns the end of what a shell command printed in that folder."""
    cases = {**_FIXED, **dict(_of_this_machine(context, project))}
    lines = [f"({words}) >/dev/null 2>&1 </dev/null && echo through {n}" for n, words in enumerate(cases.values())]
    with tempfile.TemporaryDirectory(prefix="legion-attack-") as tree:
        script = "\n".join([*lines, "echo all were tried"])
        said = run(script, Path(tree)).splitlines()
    complete = said[-1:] == ["all were tried"]
    return {name: complete and f"through {number}" not in said for number, name in enumerate(cases)}


def _of_this_machine(context: Trees, project: ProjectContext) -> Iterator[tuple[str, str]]:
    home, agent = Path.home(), os.environ.get("SSH_AUTH_SOCK", "/run/ssh-agent")
    yield "read your logins and keys", " || ".join(f"test -e {shlex.quote(str(home / name))}" for name in _SECRETS)
    yield "read Legion's data and token", f"test -e {shlex.quote(str(context.data.database))}"
    yield "read your checkout", f"test -e {shlex.quote(project.record.root)}/.git"
    yield "write to the hub", f"touch {shlex.quote(str(project.hub.objects))}/legion-was-here"
    yield "use your ssh agent", f"test -S {shlex.quote(agent)}"
    yield "signal Legion", f"kill -0 {os.getpid()}"
    yield "see other processes", "test $(ls -d /proc/[0-9]* | wc -l) -gt 20"
    named = sorted(_listening() - {one for one in context.user.sandbox.local if isinstance(one, int)})
    for host in sorted({"127.0.0.1", *socket.gethostbyname_ex(socket.gethostname())[2]}):
        words = f"for port in {' '.join(map(str, named))}; do (exec 3<>/dev/tcp/{host}/$port) && exit 0; done; exit 1"
        yield f"reach one of {len(named)} ports of {host}", f"bash -c {shlex.quote(words)}"


def _listening() -> set[int]:
    """Ports of TCP, by the kernel's table: state 0A listens."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[3] == "0A"}
