"""legion.toml at the root of a repository: how its tickets are prepared, checked and landed.

It is checked in, so anyone who can change the repository can write it. It can therefore never set where Legion listens
or writes, the sandbox, the agent program, or anything else of the person's own file. Its commands run only after the
person has trusted the hash of its text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from legion.config.base import settings
from legion.config.base.settings import DAY, NAME, REQUIRED, choice, flag, number, text, texts, whole
from legion.config.base.source import SettingsText, read
from legion.config.files import user
from legion.config.sections.environment import EnvironmentSettings, read_environment
from legion.config.sections.review import PlanSettings, ReviewSettings, WatchdogSettings
from legion.domain.agents.teams import SOLO, name_fault
from legion.domain.checks import Check
from legion.domain.landing.conflicts import Overlap
from legion.domain.landing.queue import LandingMode, LandingTarget, PullUnit
from legion.domain.machines.machine import label_fault
from legion.domain.review.path_patterns import glob_fault
from legion.domain.tickets.spec import LandingGate

FILE = "legion.toml"


def _key_fault(name: str) -> str | None:
    if "*" in name or "?" in name:
        return "has a wildcard in it, so name the files themselves"
    return "is a folder, so name the files themselves" if name.endswith("/") else glob_fault(name)


@dataclass(frozen=True, kw_only=True)
class SetupSettings:
    run: str = text(
        "",
        allowed="a command, or empty for none",
        help="A shell command that prepares dependencies in a fresh worktree.",
    )
    key: tuple[str, ...] = texts(
        allowed="a list of file names from the root of the repository",
        fault=_key_fault,
        help="Files whose content decides whether it must run again, lock files mostly.",
    )
    timeout: float = number(1800.0, 1, DAY, unit="seconds", help="How long it may take.")


@dataclass(frozen=True, kw_only=True)
class CheckTable:
    """One [checks.NAME] as written; the rest of the program sees a Check."""

    run: str = text(
        REQUIRED,
        allowed="a command",
        fits=lambda command: bool(command.strip()),
        help="A shell command that exits with 0 when all is well.",
    )
    timeout: float = number(600.0, 1, DAY, unit="seconds", help="How long it may take before it counts as failed.")
    on: tuple[str, ...] = texts(
        (),
        allowed="labels",
        fault=lambda label: label_fault(label) or None,
        help="The labels of the machine that it runs on, such as gpu. Empty: it runs on the head.",
    )
    toolchain: str = text(
        "",
        allowed="a fingerprint, or empty",
        help="The toolchain that its machine must have: see `legion machine list --json`. Empty: that of the head.",
    )
    paths: tuple[str, ...] = texts(
        (),
        allowed="a list of patterns for paths from the root of the repository",
        fault=glob_fault,
        help="What it tests, with all that this depends on. It is left out for changes whose files are all in the "
        "`paths` of other checks, and in none of these. Empty: it always runs.",
    )


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    parallel: int = whole(4, 1, 1024, help="How many agents work on this project at once.")
    attempts: int = whole(
        5, 1, 20, help="How often a ticket without its own number of attempts is tried before it fails."
    )
    timeout: float = number(3600.0, 1, 7 * DAY, unit="seconds", help="How long one run of an agent may take.")
    driver: str = text(
        "",
        allowed="the name of a driver in the person's own file, or empty",
        fits=lambda name: name == "" or NAME.fullmatch(name) is not None,
        help="The driver for tickets that name none. Empty: the person's `default_driver`.",
    )
    team: str = text(
        SOLO,
        allowed="the name of a team",
        fits=lambda name: name_fault(name) is None,
        help="The team for tickets that name none: see `legion team list`.",
    )
    warm: bool = flag(
        False,
        help="Whether a ticket of an epic starts as a copy of a conversation that has read the repository already: that"
        " of its planner, else of another ticket of the epic. For Claude Code.",
    )


@dataclass(frozen=True, kw_only=True)
class LandingSettings:
    mode: LandingMode = choice(LandingMode.MERGE, help="How a change reaches the target branch.")
    gate: LandingGate = choice(
        LandingGate.AUTO,
        help='"person": a change that passed everything waits for `legion land N`; "risk": only if its risk is not low;'
        ' "auto": it lands.',
    )
    batch: int = whole(
        32, 1, 256, help="How many changes the merge queue tests together at most; after failures it tests fewer."
    )
    checks_at_once: int = whole(2, 1, 64, help="How many of the merge queue's candidates are checked at once.")
    speculate: bool = flag(
        True, help="Whether the next batch is built on top of the one being tested, and tested in parallel."
    )
    target: LandingTarget = choice(
        LandingTarget.LOCAL,
        help='Where landed work goes. "branch": also to the forge\'s branch; "pr": through a pull request there.',
    )
    pulls: PullUnit = choice(
        PullUnit.TICKET,
        help='What becomes one pull request, with `target = "pr"`. "epic": all tickets of an epic together.',
    )
    automerge: bool = flag(
        False, help='Whether Legion merges an approved pull request with green checks itself, with `target = "pr"`.'
    )

    @property
    def by_pull_request(self) -> bool:
        return self.target is LandingTarget.PR

    @property
    def most_together(self) -> int:
        """A pull request holds one change, so each is tested alone."""
        return 1 if self.by_pull_request else self.batch


@dataclass(frozen=True, kw_only=True)
class ConflictSettings:
    overlap: Overlap = choice(
        Overlap.ADVICE,
        help='Tickets whose `files` overlap. "advice": others start first; "rule": they never run at once.',
    )
    look_every: float = number(
        15.0,
        0,
        DAY,
        unit="seconds",
        help="How often open changes are merged with each other to predict conflicts. 0: never.",
    )
    already_there: bool = flag(
        True, help="Whether a ticket ends when what landed for another makes its proofs green, red before that."
    )
    order: bool = flag(True, help="Whether tickets that will change the same definition work one after the other.")
    by_definition: bool = flag(
        False,
        help="Whether Legion itself merges definitions that two changes touch in different words; the result is proven "
        "again. Never in protected files.",
    )
    keep_proofs: float = number(
        30.0,
        0,
        DAY,
        unit="seconds",
        help="How long proofs of landed tickets may run for each later change of the same code, the nearest first.",
    )
    tell: bool = flag(True, help="Whether agents that take messages are warned of a predicted conflict.")


@dataclass(frozen=True, kw_only=True)
class ProtectedSettings:
    paths: tuple[str, ...] = texts(
        allowed="a list of patterns for paths from the root of the repository",
        fault=glob_fault,
        help="Protected beyond the built-in list: a change here needs a ticket whose `files` name it, or your yes.",
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    fixes: int = whole(
        2, 0, 20, help="How many fix tickets a failed checkpoint may create, one after the other. 0: it fails."
    )


@dataclass(frozen=True, kw_only=True)
class RevertProofSettings:
    seconds: float = number(
        0.0,
        0,
        DAY,
        unit="seconds",
        help="How long each change may be tested without each of its hunks, and its checks without it. 0: not at all.",
    )
    proofs: float = number(
        60.0,
        0,
        DAY,
        unit="seconds",
        help="How long the proofs of a ticket may run without its change; one that took longer with it is left out.",
    )


def _name_fault(name: str) -> str | None:
    return None if name.strip() and "/" not in name and not name.startswith(".") else "is no name of a project"


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    depends_on: tuple[str, ...] = texts(
        allowed="a list of names of projects, as `legion status projects` lists them",
        fault=_name_fault,
        help="Projects whose open tickets every new ticket of this one comes after. Agents may read what landed there.",
    )


@dataclass(frozen=True, kw_only=True)
class ProjectConfig:
    project: LinkSettings = field(default_factory=LinkSettings)
    setup: SetupSettings = field(default_factory=SetupSettings)
    checks: tuple[Check, ...] = ()
    """In the order of the file."""
    agents: AgentSettings = field(default_factory=AgentSettings)
    landing: LandingSettings = field(default_factory=LandingSettings)
    conflicts: ConflictSettings = field(default_factory=ConflictSettings)
    protected: ProtectedSettings = field(default_factory=ProtectedSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    reversal: RevertProofSettings = field(default_factory=RevertProofSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    plans: PlanSettings = field(default_factory=PlanSettings)
    liveness: WatchdogSettings = field(default_factory=WatchdogSettings)
    environment: EnvironmentSettings = field(default_factory=EnvironmentSettings)
    stated: frozenset[str] = field(default=frozenset(), compare=False)
    """The flat keys that the file sets itself; the rest are defaults."""


DEFAULTS = ProjectConfig()

SECTIONS: Mapping[str, type] = {
    "project": LinkSettings,
    "setup": SetupSettings,
    "checks.NAME": CheckTable,
    "agents": AgentSettings,
    "landing": LandingSettings,
    "conflicts": ConflictSettings,
    "protected": ProtectedSettings,
    "checkpoints": CheckpointSettings,
    "reversal": RevertProofSettings,
    "review": ReviewSettings,
    "plans": PlanSettings,
    "liveness": WatchdogSettings,
    "environment": EnvironmentSettings,
}
"""Every table of the file by its name, for the documentation."""

_VARS = "environment.vars"

_PERSONS_OWN = (
    "belongs into the person's own settings file (see `legion config`), since a repository must not decide it"
)
_NO_CREDENTIALS = "has no place in legion.toml: a checked-in file must never contain or choose credentials"


def _names(sections: Mapping[str, type]) -> set[str]:
    """Of the tables and of the settings in them."""
    return {name.split(".")[0] for name in sections} | {
        name for kind in sections.values() for name in settings.rules(kind)
    }


_FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(_names(user.SECTIONS) - _names(SECTIONS), _PERSONS_OWN),
    **dict.fromkeys(("bind", "listen", "address", "data_dir", "command", "argv", "args", "shell"), _PERSONS_OWN),
    **dict.fromkeys(("permission", "permissions", "approval", "trust", "trusted", "mcp", "mcp_servers"), _PERSONS_OWN),
    **dict.fromkeys(("url", "base_url", "api_url", "endpoint", "endpoints", "proxy", "gateway"), _PERSONS_OWN),
    **dict.fromkeys(("providers",), _PERSONS_OWN),
    **dict.fromkeys(("key_file", "token", "tokens", "secret", "secrets", "password"), _NO_CREDENTIALS),
    **dict.fromkeys(("api_key", "apikey", "auth", "credential", "credentials"), _NO_CREDENTIALS),
}
"""Every name of the person's file that means nothing else here, and words that people may try. Any other name is
refused as unknown."""


@lru_cache(maxsize=1024)
def parse(text: str, *, origin: str = FILE) -> ProjectConfig:
    """The settings in the text of a legion.toml. Raises BadInput for the first fault."""
    source = read(text, origin)
    _refuse_foreign(source)
    _refuse_unknown_sections(source)
    return ProjectConfig(
        project=settings.read_section(LinkSettings, source, ["project"]),
        setup=settings.read_section(SetupSettings, source, ["setup"]),
        checks=tuple(
            Check(
                name=name,
                command=table.run,
                timeout=table.timeout,
                on=table.on,
                toolchain=table.toolchain,
                paths=table.paths,
            )
            for name, table in settings.read_named(CheckTable, source, "checks")
        ),
        agents=settings.read_section(AgentSettings, source, ["agents"]),
        landing=settings.read_section(LandingSettings, source, ["landing"]),
        conflicts=settings.read_section(ConflictSettings, source, ["conflicts"]),
        protected=settings.read_section(ProtectedSettings, source, ["protected"]),
        checkpoints=settings.read_section(CheckpointSettings, source, ["checkpoints"]),
        reversal=settings.read_section(RevertProofSettings, source, ["reversal"]),
        review=settings.read_section(ReviewSettings, source, ["review"]),
        plans=settings.read_section(PlanSettings, source, ["plans"]),
        liveness=settings.read_section(WatchdogSettings, source, ["liveness"]),
        environment=read_environment(source),
        stated=_stated(source.table),
    )


def hash_of(text: str) -> str:
    """The hash that `legion trust` stores: it changes with every character of the file."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def flatten(config: ProjectConfig) -> list[tuple[str, object]]:
    """Every setting as (key, plain value), for `legion config`."""
    rows = settings.flatten("project", config.project) + settings.flatten("setup", config.setup)
    for check in config.checks:
        table = CheckTable(
            run=check.command, timeout=check.timeout, on=check.on, toolchain=check.toolchain, paths=check.paths
        )
        rows += settings.flatten(f"checks.{check.name}", table)
    rows += settings.flatten("agents", config.agents)
    rows += settings.flatten("landing", config.landing)
    rows += settings.flatten("conflicts", config.conflicts)
    rows += settings.flatten("protected", config.protected)
    rows += settings.flatten("checkpoints", config.checkpoints)
    rows += settings.flatten("reversal", config.reversal)
    rows += settings.flatten("review", config.review)
    rows += settings.flatten("plans", config.plans)
    rows += settings.flatten("liveness", config.liveness)
    rows += settings.flatten("environment", config.environment)
    return rows


def _stated(table: Mapping[str, object]) -> frozenset[str]:
    """`environment.vars` is one setting, however many names it has."""
    keys = settings.stated(table)
    return keys | {_VARS for key in keys if key.startswith(f"{_VARS}.")}


def _refuse_unknown_sections(source: SettingsText) -> None:
    names = [name.split(".")[0] for name in SECTIONS]
    for name in source.table:
        if name not in names:
            raise settings.unknown(source, [name], names)


def _refuse_foreign(source: SettingsText) -> None:
    for path in _paths(source.table):
        named_by_person = (len(path) == 2 and path[0] == "checks") or path[:-1] == ("environment", "vars")
        why = _FOREIGN.get(path[-1].lower().replace("-", "_"))
        if path == ("agents", "run"):
            why = _PERSONS_OWN
        if why and not named_by_person:
            raise source.fault(path, why)


def _paths(table: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the file as deep as settings go; a deeper one is refused with its parent."""
    for name, value in table.items():
        yield (*above, name)
        if isinstance(value, Mapping) and len(above) < 2:
            yield from _paths(value, (*above, name))
