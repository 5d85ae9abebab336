"""The person's own settings file: this machine, its sandbox, its agent programs.

No repository can write or replace it, so only this file decides what agents can reach.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from legion.config import settings
from legion.config.claude import Claude
from legion.config.environment import OwnEnvironment
from legion.config.evidence import Acceptance, Models, Protection, Questions
from legion.config.review import Reviewer
from legion.config.rhythm import Budgets, Governor, Rhythm
from legion.config.settings import DAY, Rule, Unfit, choice, number, setting, text, texts, whole
from legion.config.source import Source, read
from legion.config.telling import Hooks, Notify
from legion.domain.errors import BadInput, NotFound
from legion.system.paths import user_config_file


class SandboxMode(Enum):
    AUTO = "auto"
    """Use a sandbox where one works, and say so where none does."""
    REQUIRE = "require"
    """Start no agent without one."""
    OFF = "off"


class Network(Enum):
    OPEN = "open"
    NONE = "none"


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


def _is_template(value: str) -> bool:
    return "{name}" in value and not set("{}") & set(value.replace("{name}", ""))


def _words(value: object) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(settings.plain_text(value)))
    except ValueError:
        raise Unfit(value) from None
    if not words:
        raise Unfit(value)
    return words


def _pool(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 64:
        raise Unfit(value)
    return value


def _folders(help: str) -> settings.Metadata:
    return texts(
        allowed="a list of folders",
        fault=_folder_fault,
        make=lambda folder: Path(folder).expanduser(),
        help=help,
    )


@dataclass(frozen=True, kw_only=True)
class General:
    default_driver: str = field(
        default="",
        metadata=text(
            allowed='"claude", the name of one of your [drivers.NAME], or empty',
            help="The driver where neither ticket nor project name one. Empty: your only one, or else Claude Code.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Daemon:
    host: str = field(
        default="127.0.0.1",
        metadata=text(
            allowed="an IP address of this machine or localhost",
            fits=_is_host,
            help="Where the API listens. Anything but loopback opens it to others, who still need the token.",
        ),
    )
    port: int = field(
        default=6666,
        metadata=whole(1, 65535, help="The API's port. Where it is taken, the next free one is used and recorded."),
    )
    mcp_port: int = field(
        default=6670,
        metadata=whole(
            1,
            65535,
            help="A second port of the API, which browsers and node accept, for MCP. Else the next free one.",
        ),
    )
    gateway_port: int = field(
        default=6671,
        metadata=whole(1, 65535, help="The gateway's port, on loopback. Where it is taken, the next free one is used."),
    )
    slots: int = field(
        default=32, metadata=whole(1, 1024, help="How many agents work at once on this machine, in all projects.")
    )
    database: str = field(
        default="",
        metadata=text(
            allowed="a postgresql:// URL, or empty for SQLite",
            fits=_is_database,
            show=_without_password,
            secret=True,
            help="Where the state is kept. Empty: in SQLite in the data folder.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    mode: SandboxMode = field(
        default=SandboxMode.AUTO,
        metadata=choice(
            SandboxMode,
            help='Holds agents and checks in. "auto": where it works, and says where not; "require": or nothing runs.',
        ),
    )
    network: Network = field(
        default=Network.OPEN, metadata=choice(Network, help='What agents and checks reach. "none": not even loopback.')
    )
    read: tuple[Path, ...] = field(
        default=(), metadata=_folders("What agents may read beside their worktree and the toolchains on your PATH.")
    )
    write: tuple[Path, ...] = field(
        default=(), metadata=_folders("What agents may write beside their worktree, a download cache for example.")
    )
    env: tuple[str, ...] = field(
        default=(),
        metadata=texts(
            allowed="a list of names of environment variables",
            fault=_variable_fault,
            help="Environment variables of yours that agents get, and can read.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class DriverTable:
    """One [drivers.NAME] as it is written; the rest of the program sees a Driver."""

    run: tuple[str, ...] = field(
        metadata=setting(
            Rule(
                allowed="a command line with balanced quotes",
                help="Starts the agent program. Split into words as a shell does it, but no shell runs it.",
                read=_words,
                show=shlex.join,
            )
        )
    )
    timeout: float = field(
        default=0.0,
        metadata=number(
            0, 7 * DAY, unit="seconds", help="How long one run may take. 0: what the project's `agents.timeout` says."
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Driver:
    """How to start one agent program."""

    name: str
    argv: tuple[str, ...]
    timeout: float | None
    """None: as the project says."""


@dataclass(frozen=True, kw_only=True)
class Worktrees:
    folder: str = field(
        default="../{name}-legion",
        metadata=text(
            allowed="a folder with {name} in it, which stands for the repository's name",
            fits=_is_template,
            help="Where worktrees lie. A relative folder starts at the root of the repository.",
        ),
    )
    pool: int | None = field(
        default=2,
        metadata=setting(
            Rule(
                allowed='a whole number from 0 to 64 or "auto"',
                help='Worktrees kept warm per project, where agents start at once. "auto": `agents.parallel` of them.',
                read=_pool,
                show=lambda trees: "auto" if trees is None else trees,
            )
        ),
    )
    """None: as many as the project's agents at once."""
    disk_gb: float = field(
        default=10.0,
        metadata=number(0, 100_000, unit="gigabytes", help="Most disk for the warm worktrees and trash of a project."),
    )
    trash_days: float = field(
        default=14.0, metadata=number(0, 3650, unit="days", help="How long a worktree stays in the trash.")
    )

    def warm(self, parallel: int) -> int:
        """How many trees to keep warm for a project with so many agents at once."""
        return parallel if self.pool is None else self.pool


@dataclass(frozen=True, kw_only=True)
class UserConfig:
    general: General = field(default_factory=General)
    daemon: Daemon = field(default_factory=Daemon)
    sandbox: Sandbox = field(default_factory=Sandbox)
    drivers: Mapping[str, Driver] = field(default_factory=dict)
    worktrees: Worktrees = field(default_factory=Worktrees)
    environment: OwnEnvironment = field(default_factory=OwnEnvironment)
    claude: Claude = field(default_factory=Claude)
    governor: Governor = field(default_factory=Governor)
    budgets: Budgets = field(default_factory=Budgets)
    rhythm: Rhythm = field(default_factory=Rhythm)
    hooks: Hooks = field(default_factory=Hooks)
    notify: Notify = field(default_factory=Notify)
    protection: Protection = field(default_factory=Protection)
    questions: Questions = field(default_factory=Questions)
    models: Models = field(default_factory=Models)
    reviewer: Reviewer = field(default_factory=Reviewer)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)
    origin: str = field(default="", compare=False)
    """The file that was read, or would have been."""
    stated: frozenset[str] = field(default=frozenset(), compare=False)
    """The flat keys that the file sets itself; the rest are defaults."""

    def driver(self, *wanted: str) -> Driver | None:
        """The first of the wanted names that is not empty (the ticket's, then the project's), else the default one.

        None is Claude Code, which needs no settings; a [drivers.claude] of the person's own replaces it.
        """
        name = next((name for name in (*wanted, self.general.default_driver) if name), "")
        if not name and len(self.drivers) == 1:
            return next(iter(self.drivers.values()))
        if name in self.drivers:
            return self.drivers[name]
        if name == CLAUDE or not (name or self.drivers):
            return None
        where = self.origin or str(user_config_file())
        if name:
            raise NotFound(
                f"There is no driver {settings.shown(name)}: use `claude`, or add [drivers.{name}] with `run = ...` "
                f"to {where}."
            )
        raise NotFound(f"No driver is chosen: set `default_driver` in {where} to `claude` or one of your own.")


DEFAULTS = UserConfig()

_BY_LABEL = "models.by_label"

CLAUDE = "claude"
"""The driver that is always there."""

SECTIONS: Mapping[str, type] = {
    "": General,
    "daemon": Daemon,
    "sandbox": Sandbox,
    "drivers.NAME": DriverTable,
    "worktrees": Worktrees,
    "environment": OwnEnvironment,
    "claude": Claude,
    "governor": Governor,
    "budgets": Budgets,
    "rhythm": Rhythm,
    "hooks": Hooks,
    "notify": Notify,
    "protection": Protection,
    "questions": Questions,
    "models": Models,
    "reviewer": Reviewer,
    "acceptance.NAME": Acceptance,
}
"""Every table of the file by its name, for the documentation. The keys of the first stand above all tables."""


def load(path: Path | None = None) -> UserConfig:
    """The person's settings; the defaults where there is no file."""
    path = path or user_config_file()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return UserConfig(origin=str(path))
    except OSError as fault:
        raise BadInput(f"{path} cannot be read ({fault.strerror}): make it a readable file or remove it.") from None
    try:
        return parse(content.decode("utf-8"), origin=str(path))
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text: save it as such.") from None


def parse(text: str, *, origin: str = "config.toml") -> UserConfig:
    """The settings in the text of the person's file. Raises BadInput with the first thing that is wrong."""
    source = read(text, origin)
    general = _general(source)
    drivers = {
        name: Driver(name=name, argv=table.run, timeout=table.timeout or None)
        for name, table in settings.read_named(DriverTable, source, "drivers")
    }
    if general.default_driver and general.default_driver not in (*drivers, CLAUDE):
        raise source.fault(["default_driver"], f"names no driver: add [drivers.{general.default_driver}] or change it")
    reviewer = settings.read_section(Reviewer, source, ["reviewer"])
    if reviewer.driver and reviewer.driver not in (*drivers, CLAUDE):
        raise source.fault(["reviewer", "driver"], f"names no driver: add [drivers.{reviewer.driver}] or change it")
    return UserConfig(
        general=general,
        daemon=settings.read_section(Daemon, source, ["daemon"]),
        sandbox=settings.read_section(Sandbox, source, ["sandbox"]),
        drivers=drivers,
        worktrees=settings.read_section(Worktrees, source, ["worktrees"]),
        environment=settings.read_section(OwnEnvironment, source, ["environment"]),
        claude=settings.read_section(Claude, source, ["claude"]),
        governor=settings.read_section(Governor, source, ["governor"]),
        budgets=settings.read_section(Budgets, source, ["budgets"]),
        rhythm=settings.read_section(Rhythm, source, ["rhythm"]),
        hooks=settings.read_section(Hooks, source, ["hooks"]),
        notify=settings.read_section(Notify, source, ["notify"]),
        protection=settings.read_section(Protection, source, ["protection"]),
        questions=settings.read_section(Questions, source, ["questions"]),
        models=settings.read_section(Models, source, ["models"]),
        reviewer=reviewer,
        acceptance=dict(settings.read_named(Acceptance, source, "acceptance")),
        origin=origin,
        stated=_stated(source.table),
    )


_PLAIN = ("claude", "governor", "budgets", "rhythm", "hooks", "notify", "protection", "questions", "models", "reviewer")
"""Tables that are shown as they are."""


def flatten(config: UserConfig) -> list[tuple[str, object]]:
    """Every setting as (key, plain value), for `legion config`. Passwords are left out."""
    rows = settings.flatten("", config.general)
    rows += settings.flatten("daemon", config.daemon)
    rows += settings.flatten("sandbox", config.sandbox)
    for driver in config.drivers.values():
        rows += settings.flatten(f"drivers.{driver.name}", DriverTable(run=driver.argv, timeout=driver.timeout or 0.0))
    rows += settings.flatten("worktrees", config.worktrees)
    rows += settings.flatten("environment", config.environment)
    for name in _PLAIN:
        rows += settings.flatten(name, getattr(config, name))
    for name, one in config.acceptance.items():
        rows += settings.flatten(f"acceptance.{name}", one)
    return rows


def _stated(table: Mapping[str, object]) -> frozenset[str]:
    """`models.by_label` is one setting, however many labels it holds."""
    keys = settings.stated(table)
    return keys | {_BY_LABEL for key in keys if key.startswith(f"{_BY_LABEL}.")}


def worktrees_folder(config: UserConfig, root: Path) -> Path:
    """Where the worktrees of the repository at `root` lie. Raises BadInput where that would mix them with it."""
    template = config.worktrees.folder.replace("{name}", root.name)
    folder = Path(os.path.normpath(root / Path(template).expanduser()))
    if folder == root or root in folder.parents or folder in root.parents:
        raise BadInput(
            f"`worktrees.folder` in {config.origin or user_config_file()} leads to {folder}, "
            f"which must be neither inside nor around the repository {root}."
        )
    return folder


def _general(source: Source) -> General:
    """The keys above all tables."""
    known = settings.rules(General)
    sections = [name.split(".")[0] for name in SECTIONS if name]
    for name in source.table:
        if name not in known and name not in sections:
            raise settings.unknown(source, [name], [*known, *sections])
    top = {name: value for name, value in source.table.items() if name in known}
    return settings.read_section(General, replace(source, table=top), [])
