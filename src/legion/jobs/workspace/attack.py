"""Hostile commands, tried in the sandbox of a project as its agents have it: what holds on this machine.

A command ends with 0 where it got through. What Legion itself opens for the attack (ports, sockets, a file) is there
to be reached: each of these cases gets through where its wall is open.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from shlex import quote

from legion.jobs.trees import ProjectContext, Trees
from legion.runner.sandbox import DEFAULT_TMP_BYTES
from legion.system.paths import user_config_file

_SECRETS = (
    ".ssh .gnupg .local/share/keyrings .password-store .git-credentials .gitconfig .netrc .config/gh .aws "
    ".config/gcloud "
    ".azure .kube .docker .npmrc .pypirc .cargo/credentials.toml .claude .codex .gemini .pgpass .my.cnf .bash_history "
    ".zsh_history .mozilla .config/google-chrome"
)
_SOCKETS = (
    "/run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/dbus/system_bus_socket "
    "/run/systemd/private /run/libvirt/libvirt-sock /run/snapd.socket /tmp/.X11-unix/X0 /run/user/{uid}/docker.sock "
    "/run/user/{uid}/podman/podman.sock /run/user/{uid}/bus /run/user/{uid}/systemd/private /run/user/{uid}/wayland-0 "
    "/run/user/{uid}/pulse/native /run/user/{uid}/pipewire-0 /run/user/{uid}/gnupg/S.gpg-agent"
)
_FIXED: Mapping[str, str] = {
    "write to the programs": "test -w /usr || test -w /usr/bin/env",
    "write to the root": "test -w /",
    "write to /etc": "test -w /etc || test -w /etc/passwd",
    "write to /var": "test -w /var || test -w /var/lib",
    "link a program into the tree": "ln /usr/bin/env here",
    "read the password hashes": "cat /etc/shadow",
    "read the machine's own ssh keys": "cat /etc/ssh/ssh_host_*_key",
    "read who may be root": "cat /etc/sudoers",
    "read keys of TLS": "ls /etc/ssl/private/*",
    "read the system's logs": "ls /var/log/*",
    "read databases of the system": "ls /var/lib/*",
    "let the machine sleep": "test -w /sys/power/state",
    "read the memory": "head -c1 /dev/mem || head -c1 /proc/kcore",
    "read a disk": "ls /dev/sd* || ls /dev/vd* || ls /dev/nvme*",
    "write to the kernel's log": "test -e /dev/kmsg",
    "make a network device": "test -e /dev/net/tun",
    "press keys": "test -e /dev/uinput",
    "make a device": "mknod disk b 254 0",
    "name the kernel's program for crashes": "test -w /proc/sys/kernel/core_pattern",
    "change how memory is given out": "test -w /proc/sys/vm/overcommit_memory",
    "press the magic key": "test -w /proc/sysrq-trigger",
    "see a network card": "tail -n +3 /proc/net/dev | grep -v ' lo:' | grep -q :",
    "keep a capability": "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status",
    "gain rights by a setuid program": "grep -q 'NoNewPrivs:.*0' /proc/self/status",
    "run without a filter of system calls": "grep -q 'Seccomp:.*0' /proc/self/status",
    "be spared when memory runs out": "echo -1000 > /proc/self/oom_score_adj",
    "use a login of git": "printf 'protocol=https\\nhost=github.com\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
    "leave a hook for git": "test -w $(git config --global --get core.hooksPath || echo /none)",
    "use a gpg key": "gpg --list-secret-keys | grep -q sec",
    "find a secret in a variable": "env | grep -E '^(SSH_AUTH_|DBUS_|LEGION_TOK|[A-Z_]*(_API_KEY|ACCESS_KEY|SECRET))'",
    "have a terminal of yours": "sh -c ': < /dev/tty'",
    **{
        f"fill the memory by {place}": f"test $(df -Pk {place} | awk 'END {{print $2}}') -gt {DEFAULT_TMP_BYTES >> 10}"
        for place in ("/tmp", "/var/tmp", "/run", "/dev/shm", "~")
    },
}
_CALLS: Mapping[str, tuple[int, int, str]] = {
    "mount a file system": (165, 40, "none /proc/self legion 0 0"),
    "unmount one": (166, 39, "/proc/self 2"),
    "change the root": (155, 41, "/proc/self /proc/self"),
    "enter a namespace": (308, 268, "0 0"),
    "make a user namespace": (272, 97, "268435456"),
    "make a mount namespace": (272, 97, "131072"),
    "make a network namespace": (272, 97, "1073741824"),
    "start a process past the filter": (435, 435, "0 0"),
    "open a tree of mounts": (428, 428, "-100 /usr 1"),
    "make a file system": (430, 430, "tmpfs 0"),
    "open a file by its number": (304, 265, "-1 0 0"),
    "keep a key in the kernel": (248, 217, "user legion x 1 -2"),
    "read a keyring": (250, 219, "0 -3 0"),
    "load a program into the kernel": (321, 280, "0 0 0"),
    "watch the processor": (298, 241, "0 0 -1 -1 0"),
    "handle faults of memory": (323, 282, "0"),
    "call the kernel through a ring": (425, 425, "1 0"),
    "load a module": (175, 105, "0 0 "),
    "unload a module": (176, 106, "legion 0"),
    "start another kernel": (246, 104, "0 99 0 0"),
    "restart the machine": (169, 142, "0 0 0 0"),
    "swap to a file": (167, 224, "/none 0"),
    "read the kernel's messages": (103, 116, "3 0 0"),
    "reach the host of a virtual machine": (41, 198, "40 1 0"),
    "send packets of its own making": (41, 198, "17 3 0"),
    "type into a terminal (TIOCSTI)": (16, 29, "0 21522 x"),
    "type into a terminal (TIOCLINUX)": (16, 29, "0 21532 x"),
}
"""System calls with their numbers on x86_64 and aarch64. Where one is open to a program, its arguments do no harm."""
_OF_FILTER = ("type into", "start a process past")
"""What bubblewrap's filter refuses, and a container's own need not: there is nothing there that it would reach."""
_HELPER = Path(__file__).with_name("attack.pl").read_text("utf-8")


class AttackResult(Enum):
    HELD = "held"
    THROUGH = "got through"
    UNTRIED = "not tried: there is nothing of that kind here"


@dataclass(frozen=True)
class _Case:
    words: str
    there: bool = True
    """Is what it is after on this machine?"""


def attack(context: Trees, project: ProjectContext, run: Callable[[str, Path], str]) -> dict[str, AttackResult]:
    """What was tried, and how it ended. `run` returns the end of what a shell command printed in that folder."""
    with contextlib.ExitStack() as open_ones, tempfile.TemporaryDirectory(prefix="legion-attack-") as name:
        tree, near = Path(name, "tree"), Path(name, "near")
        for folder in (tree, near):
            folder.mkdir()
        (tree / "try.pl").write_text(_HELPER)
        image = context.sandbox.image
        cases = {
            # In an image, these places are its own.
            **{what: _Case(words, not (image and what.startswith("read"))) for what, words in _FIXED.items()},
            **dict(_of_kernel(contained=image is not None)),
            **dict(_of_person(context, project)),
            **dict(_of_processes()),
            **dict(_of_sockets(near, open_ones)),
            **dict(_of_network(context, open_ones)),
        }
        lines = [
            f"({case.words}) >/dev/null 2>&1 </dev/null && echo through {number}"
            for number, case in enumerate(cases.values())
            if case.there
        ]
        script = ["command -v perl >/dev/null || echo no perl", *lines, "echo all were tried"]
        (tree / "try.sh").write_text("\n".join(script))
        said = run("sh try.sh", tree).splitlines()
    complete = said[-1:] == ["all were tried"]
    results = {}
    for number, (what, case) in enumerate(cases.items()):
        if not case.there or ("no perl" in said and "try.pl" in case.words):
            results[what] = AttackResult.UNTRIED
        else:
            held = complete and f"through {number}" not in said
            results[what] = AttackResult.HELD if held else AttackResult.THROUGH
    return results


def _tool(*words: object) -> str:
    return f"perl try.pl {' '.join(quote(str(word)) for word in words)}"


def _of_kernel(*, contained: bool) -> Iterator[tuple[str, _Case]]:
    column = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
    for what, call in _CALLS.items():
        words = "" if column is None else _tool("call", call[column], *call[2].split(" "))
        yield what, _Case(words, column is not None and not (contained and what.startswith(_OF_FILTER)))


def _of_person(context: Trees, project: ProjectContext) -> Iterator[tuple[str, _Case]]:
    home, root, data = Path.home(), Path(project.record.root), context.data
    for place in _SECRETS.split():
        yield f"read your ~/{place}", _Case(f'test -n "$(ls -A {quote(str(home / place))})"', (home / place).exists())
    for what, path in {
        "Legion's data": data.database,
        "Legion's token": data.token,
        "the keys of models": data.keys,
        "the gateway's folder": data.gateway,
        "other runs": data.runs,
        "your settings": user_config_file(),
        "your checkout": root / ".git",
        "other worktrees": Path(project.record.worktrees),
    }.items():
        yield f"read {what}", _Case(f"ls {quote(str(path))}", path.exists())
    for what, folder in {
        "the hub's objects": project.hub.objects,
        "the hub's branches": project.hub.path / "refs",
        "the caches of others": project.cache,
        "your checkout": root,
        "your hooks": Path(project.record.common_dir) / "hooks",
    }.items():
        yield f"write to {what}", _Case(f"test -w {quote(str(folder))}", folder.exists())
    first = f"find {quote(str(project.hub.objects))} -type f | head -1"
    yield "link an object of the hub", _Case(f"ln $({first}) own")


def _of_processes() -> Iterator[tuple[str, _Case]]:
    own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    pid = os.getpid()
    same = f'test "$(sed "s/.*)//" /proc/{pid}/stat | cut -d" " -f21)" = {own}'
    for what, words in {
        "see Legion's process": "true",
        "signal Legion": f"kill -0 {pid}",
        "read Legion's variables": f"cat /proc/{pid}/environ",
        "see files through Legion's process": f"ls /proc/{pid}/root/",
    }.items():
        yield what, _Case(f"{same} && {words}")
    for kind in ("pid", "ipc", "uts", "mnt"):
        inside = f'test "$(readlink /proc/self/ns/{kind})" = {quote(str(Path(f"/proc/self/ns/{kind}").readlink()))}'
        yield f"share a namespace with you ({kind})", _Case(inside)


def _of_sockets(near: Path, open_ones: contextlib.ExitStack) -> Iterator[tuple[str, _Case]]:
    for place in (
        *(one.format(uid=os.getuid()) for one in _SOCKETS.split()),
        os.environ.get("SSH_AUTH_SOCK", "/run/ssh-agent"),
    ):
        yield f"reach {place}", _Case(_tool("unix", place), Path(place).exists())
    (near / "file").write_text("private\n")
    yield "read a file next to its tree", _Case(f"cat {quote(str(near / 'file'))}")
    yield "write to a file next to its tree", _Case(f"echo x >> {quote(str(near / 'file'))}")
    yield "read a file by a link in its tree", _Case(f"ln -s {quote(str(near / 'file'))} link && cat link")
    for what, name in {"a path": str(near / "socket"), "no path": f"@legion-attack-{os.getpid()}"}.items():
        with contextlib.suppress(OSError):
            made = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            made.bind("\0" + name[1:] if name.startswith("@") else name)
            made.listen()
            yield f"reach a socket with {what}", _Case(_tool("unix", name))


def _of_network(context: Trees, open_ones: contextlib.ExitStack) -> Iterator[tuple[str, _Case]]:
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    server = open_ones.enter_context(socket.create_server(("", 0), family=family, dualstack_ipv6=both))
    port = server.getsockname()[1]
    opened = {one for one in context.user.sandbox.local if isinstance(one, int)}
    named = sorted({*_listening(), port} - opened)
    yield "see the ports of this machine", _Case(f"grep -q ':{port:04X} ' /proc/net/tcp /proc/net/tcp6")
    own = sorted({"127.0.0.1", *_addresses()})
    for host in own:
        yield f"reach one of {len(named)} ports of {host}", _Case(_tool("tcp", host, *named))
    yield "reach a port by IPv6", _Case(_tool("tcp", "::1", port), both)
    by_proxy = partial(_by_proxy, "connect", port)
    names = ("localhost", "localhost.", "sub.localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0.0.0.0")
    yield from by_proxy("this machine", (*names, "[::1]", "[::ffff:127.0.0.1]", socket.gethostname(), *own))
    yield from _by_proxy("get", port, "this machine over HTTP", ("localhost", "127.0.0.1"))
    yield from _by_proxy("socks", port, "this machine over SOCKS", ("localhost", "127.0.0.1"))
    yield from _by_proxy("connect", 80, "the cloud's metadata", ("169.254.169.254", "[fd00:ec2::254]", "168.63.129.16"))
    yield from _by_proxy("connect", 80, "a private network", ("10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"))
    yield "reach an address without the proxy", _Case(_tool("tcp", "1.1.1.1", 443))
    yield "ask a name server of its own choice", _Case(_tool("udp", "1.1.1.1", 53))
    yield "call everything in the local network", _Case(_tool("udp", "224.0.0.251", 5353))


def _by_proxy(how: str, port: int, what: str, hosts: Iterable[str]) -> Iterator[tuple[str, _Case]]:
    for host in dict.fromkeys(hosts):
        direct = f" || {_tool('tcp', host.strip('[]'), port)}"
        yield f"reach {what} as {host}", _Case(_tool(how, host, port) + direct)


def _addresses() -> list[str]:
    with contextlib.suppress(OSError):
        return socket.gethostbyname_ex(socket.gethostname())[2]
    return []


def _listening() -> set[int]:
    """Ports of TCP, by the kernel's table: state 0A listens."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[3] == "0A"}
