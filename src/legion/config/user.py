"""The person's own settings file: this machine, its sandbox, its agent programs.

No repository can write or replace it, so only this file decides what agents can reach.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.config import settings
from legion.config.claude import Claude
from legion.config.environment import OwnEnvironment
from legion.config.evidence import Acceptance, Models, Protection, Questions
from legion.config.machine import Daemon, Sandbox, Worktrees
from legion.config.rewind import Rewind
from legion.config.rhythm import Budgets, Governor, Rhythm
from legion.config.settings import DAY, Rule, Unfit, number, setting, text
from legion.config.source import Source, read
from legion.config.telling import Hooks, Notify
from legion.domain.errors import BadInput, NotFound
from legion.system.paths import user_config_file


def _words(value: object) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(settings.plain_text(value)))
    except ValueError:
        raise Unfit(value) from None
    if not words:
        raise Unfit(value)
    return words


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
    rewind: Rewind = field(default_factory=Rewind)
    hooks: Hooks = field(default_factory=Hooks)
    notify: Notify = field(default_factory=Notify)
    protection: Protection = field(default_factory=Protection)
    questions: Questions = field(default_factory=Questions)
    models: Models = field(default_factory=Models)
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
    "rewind": Rewind,
    "hooks": Hooks,
    "notify": Notify,
    "protection": Protection,
    "questions": Questions,
    "models": Models,
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
        rewind=settings.read_section(Rewind, source, ["rewind"]),
        hooks=settings.read_section(Hooks, source, ["hooks"]),
        notify=settings.read_section(Notify, source, ["notify"]),
        protection=settings.read_section(Protection, source, ["protection"]),
        questions=settings.read_section(Questions, source, ["questions"]),
        models=settings.read_section(Models, source, ["models"]),
        acceptance=dict(settings.read_named(Acceptance, source, "acceptance")),
        origin=origin,
        stated=settings.stated(source.table),
    )


def flatten(config: UserConfig) -> list[tuple[str, object]]:
    """Every setting as (key, plain value), for `legion config`. Passwords are left out."""
    rows = settings.flatten("", config.general)
    rows += settings.flatten("daemon", config.daemon)
    rows += settings.flatten("sandbox", config.sandbox)
    for driver in config.drivers.values():
        rows += settings.flatten(f"drivers.{driver.name}", DriverTable(run=driver.argv, timeout=driver.timeout or 0.0))
    rows += settings.flatten("worktrees", config.worktrees)
    rows += settings.flatten("environment", config.environment)
    plain = (
        "claude",
        "governor",
        "budgets",
        "rhythm",
        "rewind",
        "hooks",
        "notify",
        "protection",
        "questions",
        "models",
    )
    for name in plain:
        rows += settings.flatten(name, getattr(config, name))
    for name, one in config.acceptance.items():
        rows += settings.flatten(f"acceptance.{name}", one)
    return rows


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
