"""The person's own settings file: this machine, its sandbox, its agent programs.

No repository can write or replace it, so only this file decides what agents can reach.
"""

from __future__ import annotations

import logging
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.config.base import settings
from legion.config.base.settings import DAY, REQUIRED, Unfit, number, setting, text
from legion.config.base.source import SettingsText, read
from legion.config.sections.claude import ClaudeSettings
from legion.config.sections.environment import PersonalEnvironment
from legion.config.sections.evidence import Acceptance, ModelLadder, ProtectionSettings, QuestionSettings
from legion.config.sections.limits import (
    BudgetSettings,
    GovernorSettings,
    HookSettings,
    NotifySettings,
    StandingSettings,
    StartSettings,
)
from legion.config.sections.machine import (
    DaemonSettings,
    RewindSettings,
    SandboxSettings,
    TerminalSettings,
    WorktreeSettings,
)
from legion.config.sections.review import PersonalWatchdogSettings, PlannerSettings, ReviewerSettings
from legion.domain.errors import BadInput, NotFound
from legion.domain.tickets import ladder
from legion.drivers import registry
from legion.system.paths import user_config_file


def _split_command(value: object) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(settings.plain_text(value)))
    except ValueError:
        raise Unfit(value) from None
    if not words:
        raise Unfit(value)
    return words


@dataclass(frozen=True, kw_only=True)
class GeneralSettings:
    default_driver: str = text(
        "",
        allowed='"claude", the name of one of your [drivers.NAME], or empty',
        help="The driver where neither ticket nor project name one. Empty: your only one, or else Claude Code.",
    )


@dataclass(frozen=True, kw_only=True)
class DriverTable:
    """One [drivers.NAME] as written; the rest of the program sees DriverSettings."""

    run: tuple[str, ...] = setting(
        REQUIRED,
        allowed="a command line with balanced quotes",
        help="Starts the agent program. Split into words as a shell does it, but no shell runs it.",
        read=_split_command,
        show=shlex.join,
    )
    timeout: float = number(
        0.0, 0, 7 * DAY, unit="seconds", help="How long one run may take. 0: what the project's `agents.timeout` says."
    )
    driver: str = text(
        registry.COMMAND,
        allowed='"command" or "terminal"',
        fits=lambda value: value in (registry.COMMAND, registry.TERMINAL),
        help="`command`: it reads its briefing and exits. `terminal`: it is interactive, and people attach to it.",
    )


@dataclass(frozen=True, kw_only=True)
class DriverSettings:
    """How to start one agent program."""

    name: str
    argv: tuple[str, ...]
    timeout: float | None
    """None: as the project says."""
    driver: str = registry.COMMAND
    """The driver that runs it."""


@dataclass(frozen=True, kw_only=True)
class UserConfig:
    general: GeneralSettings = field(default_factory=GeneralSettings)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    drivers: Mapping[str, DriverSettings] = field(default_factory=dict)
    worktrees: WorktreeSettings = field(default_factory=WorktreeSettings)
    environment: PersonalEnvironment = field(default_factory=PersonalEnvironment)
    claude: ClaudeSettings = field(default_factory=ClaudeSettings)
    governor: GovernorSettings = field(default_factory=GovernorSettings)
    budgets: BudgetSettings = field(default_factory=BudgetSettings)
    rhythm: StartSettings = field(default_factory=StartSettings)
    rewind: RewindSettings = field(default_factory=RewindSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    models: ModelLadder = field(default_factory=ModelLadder)
    reviewer: ReviewerSettings = field(default_factory=ReviewerSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    liveness: PersonalWatchdogSettings = field(default_factory=PersonalWatchdogSettings)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)
    standing: StandingSettings = field(default_factory=StandingSettings)
    tui: TerminalSettings = field(default_factory=TerminalSettings)
    origin: str = field(default="", compare=False)
    """The file that was read, or would have been."""
    stated: frozenset[str] = field(default=frozenset(), compare=False)
    """The flat keys that the file sets itself; the rest are defaults."""

    def driver_name(self, *wanted: str) -> str:
        """The first of the wanted names that is not empty (the ticket's, then the project's), else the default one.

        One of the [drivers.NAME], or a driver that is built in. A [drivers.claude] replaces the one built in. An
        interactive program, and one that the settings name for reviews or plans, is not meant for tickets unless it
        is named.
        """
        name = next((name for name in (*wanted, self.general.default_driver) if name), "")
        meant_for_others = (self.reviewer.driver, self.planner.driver)
        own = [
            one.name
            for one in self.drivers.values()
            if one.driver != registry.TERMINAL and one.name not in meant_for_others
        ]
        if not name and len(own) == 1:
            return own[0]
        if name in (*self.drivers, *registry.built_in()):
            return name
        if not (name or own):
            return registry.DEFAULT
        where = self.origin or str(user_config_file())
        if name:
            raise NotFound(
                f"There is no driver {settings.shown(name)}: `legion driver list` shows those that there are, "
                f"`legion driver add` and a [drivers.{name}] in {where} add one."
            )
        raise NotFound(f"No driver is chosen: set `default_driver` in {where} to `claude` or one of your own.")

    def named_drivers(self) -> Iterator[tuple[str, str]]:
        """The drivers that settings name, each with the key of its setting."""
        yield from (
            ("default_driver", self.general.default_driver),
            ("reviewer.driver", self.reviewer.driver),
            ("planner.driver", self.planner.driver),
        )
        yield from (("models.escalation", ladder.parts(entry)[0]) for entry in self.models.escalation)
        yield from ((_BY_LABEL, ladder.parts(entry)[0]) for _, entries in self.models.by_label for entry in entries)

    def driver(self, *wanted: str) -> DriverSettings | None:
        """The person's own driver that `driver_name` chooses; None where that is built in and needs no settings."""
        return self.drivers.get(self.driver_name(*wanted))


DEFAULTS = UserConfig()

_BY_LABEL = "models.by_label"

CLAUDE = registry.DEFAULT
"""The driver that is always there."""

SECTIONS: Mapping[str, type] = {
    "": GeneralSettings,
    "daemon": DaemonSettings,
    "sandbox": SandboxSettings,
    "drivers.NAME": DriverTable,
    "worktrees": WorktreeSettings,
    "environment": PersonalEnvironment,
    "claude": ClaudeSettings,
    "governor": GovernorSettings,
    "budgets": BudgetSettings,
    "rhythm": StartSettings,
    "rewind": RewindSettings,
    "hooks": HookSettings,
    "notify": NotifySettings,
    "protection": ProtectionSettings,
    "questions": QuestionSettings,
    "models": ModelLadder,
    "reviewer": ReviewerSettings,
    "planner": PlannerSettings,
    "liveness": PersonalWatchdogSettings,
    "acceptance.NAME": Acceptance,
    "standing": StandingSettings,
    "tui": TerminalSettings,
}
"""Every table of the file by its name, for the documentation. The keys of the first are above all tables."""


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
    """The settings in the text of the person's file. Raises BadInput for the first fault."""
    source = read(text, origin)
    general = _general(source)
    drivers = {
        name: DriverSettings(name=name, argv=table.run, timeout=table.timeout or None, driver=table.driver)
        for name, table in settings.read_named(DriverTable, source, "drivers")
    }
    config = UserConfig(
        general=general,
        daemon=settings.read_section(DaemonSettings, source, ["daemon"]),
        sandbox=settings.read_section(SandboxSettings, source, ["sandbox"]),
        drivers=drivers,
        worktrees=settings.read_section(WorktreeSettings, source, ["worktrees"]),
        environment=settings.read_section(PersonalEnvironment, source, ["environment"]),
        claude=settings.read_section(ClaudeSettings, source, ["claude"]),
        governor=settings.read_section(GovernorSettings, source, ["governor"]),
        budgets=settings.read_section(BudgetSettings, source, ["budgets"]),
        rhythm=settings.read_section(StartSettings, source, ["rhythm"]),
        rewind=settings.read_section(RewindSettings, source, ["rewind"]),
        hooks=settings.read_section(HookSettings, source, ["hooks"]),
        notify=settings.read_section(NotifySettings, source, ["notify"]),
        protection=settings.read_section(ProtectionSettings, source, ["protection"]),
        questions=settings.read_section(QuestionSettings, source, ["questions"]),
        models=settings.read_section(ModelLadder, source, ["models"]),
        reviewer=settings.read_section(ReviewerSettings, source, ["reviewer"]),
        planner=settings.read_section(PlannerSettings, source, ["planner"]),
        liveness=settings.read_section(PersonalWatchdogSettings, source, ["liveness"]),
        acceptance=dict(settings.read_named(Acceptance, source, "acceptance")),
        standing=settings.read_section(StandingSettings, source, ["standing"]),
        tui=settings.read_section(TerminalSettings, source, ["tui"]),
        origin=origin,
        stated=_stated(source.table),
    )
    for key, driver in config.named_drivers():
        if driver and driver not in (*drivers, *registry.built_in()):
            raise source.fault(key.split("."), f"names no driver: add [drivers.{driver}] or change it")
    return config


_FLAT = (
    *("claude", "governor", "budgets", "rhythm", "rewind", "hooks", "notify", "protection", "questions", "models"),
    *("reviewer", "planner", "liveness", "standing", "tui"),
)
"""The tables that are shown as they are, in this order."""


def flatten(config: UserConfig) -> list[tuple[str, object]]:
    """Every setting as (key, plain value), for `legion config`. Passwords are left out."""
    rows = settings.flatten("", config.general)
    rows += settings.flatten("daemon", config.daemon)
    rows += settings.flatten("sandbox", config.sandbox)
    for driver in config.drivers.values():
        table = DriverTable(run=driver.argv, timeout=driver.timeout or 0.0, driver=driver.driver)
        rows += settings.flatten(f"drivers.{driver.name}", table)
    rows += settings.flatten("worktrees", config.worktrees)
    rows += settings.flatten("environment", config.environment)
    for name in _FLAT:
        rows += settings.flatten(name, getattr(config, name))
    for name, one in config.acceptance.items():
        rows += settings.flatten(f"acceptance.{name}", one)
    return rows


def _stated(table: Mapping[str, object]) -> frozenset[str]:
    """`models.by_label` is one setting, however many labels it has."""
    keys = settings.stated(table)
    return keys | {_BY_LABEL for key in keys if key.startswith(f"{_BY_LABEL}.")}


def worktrees_folder(config: UserConfig, root: Path) -> Path:
    """The folder of the worktrees of the repository at `root`. Raises BadInput where that would mix them with it."""
    template = config.worktrees.folder.replace("{name}", root.name)
    folder = Path(os.path.normpath(root / Path(template).expanduser()))
    if folder == root or root in folder.parents or folder in root.parents:
        raise BadInput(
            f"`worktrees.folder` in {config.origin or user_config_file()} leads to {folder}, "
            f"which must be neither inside nor around the repository {root}."
        )
    return folder


def _general(source: SettingsText) -> GeneralSettings:
    """The keys above all tables."""
    known = settings.rules(GeneralSettings)
    sections = [name.split(".")[0] for name in SECTIONS if name]
    for name in source.table:
        if name not in known and name not in sections:
            raise settings.unknown(source, [name], [*known, *sections])
    top = {name: value for name, value in source.table.items() if name in known}
    return settings.read_section(GeneralSettings, replace(source, table=top), [])


# The person's settings as their file is now. An invalid file leaves the last valid ones in force.

log = logging.getLogger(__name__)


class CurrentSettings:
    """Checks the file's time at every access, and reads it again when that changed."""

    def __init__(self, first: UserConfig) -> None:
        self._config = first
        self._file = Path(first.origin) if first.origin else None
        self._seen = self._stamp()
        self._lock = threading.Lock()
        self.complaint = ""
        """What is wrong with the file as it is now."""

    def get(self) -> UserConfig:
        # While one thread reads a changed file, the others wait for it: the old settings are not valid any more.
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                self._read()
            return self._config

    def _read(self) -> None:
        try:
            self._config, self.complaint = load(self._file), ""
        except BadInput as wrong:
            self.complaint = wrong.message
            log.warning("the settings stay as they were: %s", wrong.message)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            facts = self._file.stat() if self._file is not None else None
        except OSError:
            return None
        return (facts.st_mtime_ns, facts.st_size) if facts is not None else None
