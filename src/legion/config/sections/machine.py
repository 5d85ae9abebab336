"""The person's settings about this machine: the daemon, the sandbox and the worktrees."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from legion.config.base.settings import Unfit, choice, flag, number, setting, text, texts, whole
from legion.domain.egress import NetworkPlace, parse_place, place_fault
from legion.domain.machines.machine import label_fault


class SandboxMode(Enum):
    AUTO = "auto"
    """Use a sandbox where one works, and warn where none does."""
    REQUIRE = "require"
    """Start no agent without one."""
    OFF = "off"


class SandboxChoice(Enum):
    BUBBLEWRAP = "bubblewrap"
    CONTAINER = "container"
    """Of podman, where bubblewrap does not work."""
    OFF = "off"
    """Agents reach everything that the person does."""


class NetworkMode(Enum):
    PUBLIC = "public"
    """A network of its own: public addresses by name, through the run's bridge."""
    LIST = "list"
    """Only what a list names."""
    NONE = "none"
    """Only its model and Legion's tools."""
    HOST = "host"
    """The host's own network, loopback included."""


class SystemCalls(Enum):
    FILTERED = "filtered"
    """Without those that no build or test needs."""
    ALL = "all"


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):.*@|(?<=[?&])(password=)[^&]*", re.IGNORECASE)


def _is_host(value: str) -> bool:
    if value == "localhost":
        return True
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_database(value: str) -> bool:
    try:
        return value == "" or urlsplit(value).scheme in ("postgresql", "postgres", "postgresql+psycopg")
    except ValueError:
        return False


def _without_password(url: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] is not None else f"{found[2]}***", url)


def _folder_fault(folder: str) -> str | None:
    if not folder.startswith(("/", "~/")):
        return "must start with / or ~/"
    return "is too much to open to agents" if folder.strip("/") in ("", "~") else None


def _variable_fault(name: str) -> str | None:
    return None if _VARIABLE.fullmatch(name) else "is no name of an environment variable"


def _services(value: object) -> tuple[int | Path, ...]:
    if not isinstance(value, list) or not all(map(_is_service, value)):
        raise Unfit(value)
    return tuple(one if isinstance(one, int) else Path(one).expanduser() for one in value)


def _is_service(value: object) -> bool:
    if isinstance(value, str):
        return value.startswith(("/", "~/")) and value.isprintable() and ".." not in value.split("/")
    return type(value) is int and 0 < value < 65536


def _is_template(value: str) -> bool:
    return "{name}" in value and not set("{}") & set(value.replace("{name}", ""))


def _pool(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1024:
        raise Unfit(value)
    return value


def _gigabytes(value: object) -> float | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100_000:
        raise Unfit(value)
    return float(value)


def _folders(help: str) -> Any:
    return texts(
        allowed="a list of folders", fault=_folder_fault, make=lambda folder: Path(folder).expanduser(), help=help
    )


def machine_labels(help: str) -> Any:
    return texts(allowed='a list of labels such as ["gpu"]', fault=lambda one: label_fault(one) or None, help=help)


_ROOM_WITHOUT_SLOTS = 32


@dataclass(frozen=True, kw_only=True)
class DaemonSettings:
    host: str = text(
        "127.0.0.1",
        allowed="an IP address of this machine or localhost",
        fits=_is_host,
        help="Where the API listens. Anything but loopback opens it to others, who still need the token.",
    )
    port: int = whole(6666, 1, 65535, help="The API's port. Where it is taken, the next free one is used and recorded.")
    mcp_port: int = whole(
        6670,
        1,
        65535,
        help="A second port of the API, for MCP, which browsers and node accept. If taken, the next free one.",
    )
    gateway_port: int = whole(
        6671, 1, 65535, help="The gateway's port, on loopback. Where it is taken, the next free one is used."
    )
    orchestrate_port: int = whole(
        0, 0, 65535, help="A third port of the API, on loopback, for callers of legion_cc, which expect 20080. 0: none."
    )
    slots: int = whole(
        32,
        0,
        1024,
        help="How many agents work at once on this machine, in all projects. 0: only what cannot run on others.",
    )
    attach_timeout: float = number(
        20.0,
        0.0,
        86_400.0,
        unit="seconds",
        help="How long `legion attach` waits for a call of the agent to return. Then the call is cut off.",
    )
    labels: tuple[str, ...] = machine_labels("What `--on` finds this machine by, in addition to its name.")
    database: str = text(
        "",
        allowed="a postgresql:// URL, or empty for SQLite",
        fits=_is_database,
        show=_without_password,
        secret=True,
        help="Where the state is kept. Empty: in SQLite in the data folder.",
    )
    machine_lease: float = number(
        90.0,
        3.0,
        86_400.0,
        unit="seconds",
        help="How long a machine may be silent before its runs are given away. It stops them itself after two thirds.",
    )

    @property
    def room(self) -> int:
        """How many agents work here at once. Without slots that is only what can work nowhere else."""
        return self.slots or _ROOM_WITHOUT_SLOTS


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    mode: SandboxMode = choice(
        SandboxMode.AUTO, help='The sandbox. "auto": where it works, else with a warning; "require": or nothing runs.'
    )
    kind: SandboxChoice = choice(
        SandboxChoice.BUBBLEWRAP,
        help='What holds programs, from the next start on. "container": podman, or nothing runs; "off": nothing.',
    )
    image: str = text(
        "",
        allowed="the name of an image, or empty",
        help='The image of `kind = "container"`, with all that agents and checks need. Empty: your own programs.',
    )
    network: NetworkMode = choice(
        NetworkMode.PUBLIC,
        help="What agents and checks reach through a loopback of their own, besides the model and Legion's tools: "
        'public names, those of `allow`, or nothing. "host": all that this machine reaches, itself included.',
        old={"open": NetworkMode.HOST},
    )
    allow: tuple[NetworkPlace, ...] = texts(
        allowed='a list of hosts such as ["*.example.org", "10.0.0.5:5432"]',
        fault=place_fault,
        make=parse_place,
        help='What `network = "list"` allows, and with "public" what is no public address.',
    )
    local: tuple[int | Path, ...] = setting(
        (),
        allowed='a list of ports and sockets such as [5432, "/run/postgresql/.s.PGSQL.5432"]',
        read=_services,
        show=lambda services: [one if isinstance(one, int) else str(one) for one in services],
        help="Services of this machine that agents and checks reach: ports of its loopback, and sockets by their path. "
        "A program that reaches /var/run/docker.sock can do all that you can.",
    )
    system_calls: SystemCalls = choice(
        SystemCalls.FILTERED,
        help='"filtered": no user namespaces, mounts, keyrings, kernel tracing, 32-bit programs; "all": no filter.',
    )
    memory_gb: float | None = setting(
        None,
        allowed='a number of gigabytes or "auto"',
        help='Most memory of all processes of one run. "auto": three quarters of the machine\'s. 0: no limit.',
        read=_gigabytes,
        show=lambda most: "auto" if most is None else most,
    )
    processes: int = whole(4096, 0, 1_000_000, help="Most processes and threads of one run at once. 0: no limit.")
    read: tuple[Path, ...] = _folders(
        "What agents may read in addition to their worktree and the toolchains on your PATH."
    )
    write: tuple[Path, ...] = _folders(
        "What agents may write in addition to their worktree, a download cache for example."
    )
    env: tuple[str, ...] = texts(
        allowed="a list of names of environment variables",
        fault=_variable_fault,
        help="Environment variables of yours that agents get, and can read.",
    )

    @property
    def is_off(self) -> bool:
        return self.mode is SandboxMode.OFF or self.kind is SandboxChoice.OFF

    @property
    def is_required(self) -> bool:
        """Whether nothing runs without it. Who names a container wants one: no program runs outside for a slip."""
        return not self.is_off and (self.mode is SandboxMode.REQUIRE or self.kind is SandboxChoice.CONTAINER)

    @property
    def container(self) -> str | None:
        """The image of containers; None where programs are in no container."""
        return self.image if self.kind is SandboxChoice.CONTAINER else None


@dataclass(frozen=True, kw_only=True)
class WorktreeSettings:
    folder: str = text(
        "../{name}-legion",
        allowed="a folder with {name} in it, which stands for the repository's name",
        fits=_is_template,
        help="The folder of the worktrees. A relative folder starts at the root of the repository.",
    )
    pool: int | None = setting(
        2,
        allowed='a whole number from 0 to 1024 or "auto"',
        help='Worktrees kept warm per project for quick starts. "auto": `agents.parallel` of them.',
        read=_pool,
        show=lambda trees: "auto" if trees is None else trees,
    )
    """None: as many as the project's parallel agents."""
    disk_gb: float = number(
        10.0, 0, 100_000, unit="gigabytes", help="Most disk for the warm worktrees and trash of a project."
    )
    trash_days: float = number(14.0, 0, 3650, unit="days", help="How long a worktree stays in the trash.")

    def warm(self, parallel: int) -> int:
        """How many trees to keep warm for a project with so many parallel agents."""
        return parallel if self.pool is None else self.pool


@dataclass(frozen=True, kw_only=True)
class RewindSettings:
    """Which states of an agent's work are kept from call to call."""

    on: bool = flag(True, help="Whether the tree is saved after every call of Claude Code that can change it.")
    keep: int = whole(200, 1, 10_000, help="At least this many of the latest states of a run are kept.")
    disk_mb: float = number(500.0, 1, 1_000_000, unit="megabytes", help="Most disk for the kept states of a run.")


@dataclass(frozen=True, kw_only=True)
class TerminalSettings:
    keys: tuple[str, ...] = texts(
        allowed="a list of lines like board.filter = ctrl+f",
        help="Keys that you changed. The UI's help (`?`) names all actions; `unbind` takes a key away.",
    )
