"""What a job works with: the store, the launcher, the person's settings, and one workshop per project."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from legion.config.files.current import CurrentSettings
from legion.config.files.project import ProjectConfig, parse
from legion.config.files.user import UserConfig
from legion.domain.landing.conflicts import PredictedConflict
from legion.domain.projects import Project
from legion.domain.scheduling.admission import HoldReason, StartCandidate
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import Change
from legion.git.hub.repository import Hub
from legion.git.trees.check_trees import CheckTrees
from legion.git.trees.worktrees import Worktrees
from legion.runner.launch import Launcher
from legion.runner.probe import SandboxState
from legion.store.board import projects
from legion.store.database.transactions import Store
from legion.system.paths import DataDir

TRASH = ".trash"


@dataclass(frozen=True, kw_only=True)
class ProjectContext:
    """One project's outside things and the settings in force at its target."""

    project: Project
    config: ProjectConfig
    hub: Hub
    worktrees: Worktrees
    check_trees: CheckTrees
    folder: Path
    """Ours alone: indexes, records, caches."""

    @property
    def target(self) -> str:
        """The commit of the integration branch, as the hub has it at this moment."""
        commit = self.hub.target()
        assert commit is not None, "a registered project has a target"
        return commit

    @property
    def trash(self) -> Path:
        """Where worktrees go instead of being deleted."""
        return Path(self.project.worktrees) / TRASH

    @property
    def agents(self) -> Path:
        """State folders of agents, kept across their runs."""
        return self.folder / "agents"

    @property
    def cache(self) -> Path:
        """Downloads that setups share."""
        return self.folder / "cache"


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """A job broke through no fault of a ticket. It is started again when it has rested."""

    length: float
    until: float
    why: str
    """One line, for people."""


@dataclass(kw_only=True)
class Context:
    data: DataDir
    store: Store
    launcher: Launcher
    settings: CurrentSettings
    sandbox: SandboxState
    url: str
    """Where agents reach the daemon."""
    machine: str
    clock: Callable[[], float]
    check_slots: CheckSlots = field(default_factory=lambda: CheckSlots())
    rests: dict[tuple[JobKind, int], Backoff] = field(default_factory=dict)
    """Jobs that broke and rest, by kind and subject."""
    held: Mapping[StartCandidate, HoldReason] = field(default_factory=dict)
    """Who could begin and does not, and why, as was decided last."""
    clashes: dict[int, tuple[PredictedConflict, ...]] = field(default_factory=dict)
    """By project: changes in work that will conflict, as they were seen last."""
    signs: dict[int, str] = field(default_factory=dict)
    """By run at work: in a few words why it does not get on, as was judged last. Those that do are left out."""
    sizes: dict[Change, int] = field(default_factory=dict)
    """How many lines each change that came into the merge queue adds and removes."""
    reds: dict[int, int] = field(default_factory=dict)
    """By project: how many batches in a row were red."""
    aboard: dict[int, str] = field(default_factory=dict)
    """By ticket in the merge queue: in a few words what is done with it now. Those that only wait are left out."""
    _trees: dict[int, tuple[Worktrees, CheckTrees]] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    @property
    def user(self) -> UserConfig:
        return self.settings.get()

    def workshop(self, project_id: int) -> ProjectContext:
        """Read afresh each time: the target's settings may have changed since."""
        with self.store.read() as tx:
            project = projects.get(tx, project_id)
        return self.workshop_of(project)

    def workshop_of(self, project: Project) -> ProjectContext:
        folder = self.data.project(project.id)
        hub = self.hub(project.id)
        worktrees, check_trees = self._trees_of(project, hub, folder)
        return ProjectContext(
            project=project,
            config=parse(project.config_text, origin=f"legion.toml of {project.name}"),
            hub=hub,
            worktrees=worktrees,
            check_trees=check_trees,
            folder=folder,
        )

    def hub(self, project: int) -> Hub:
        return Hub(self.data.project(project) / "hub.git")

    def rested(self) -> None:
        """Whoever mended something does not want to wait until broken jobs have rested."""
        self.rests.clear()
        self.store.tell()

    def forget(self, project: int) -> None:
        """The project is gone, and its folders with it."""
        with self._making:
            self._trees.pop(project, None)

    def _trees_of(self, project: Project, hub: Hub, folder: Path) -> tuple[Worktrees, CheckTrees]:
        """One object per project for all threads: they hold the locks between them."""
        with self._making:
            if project.id not in self._trees:
                root = Path(project.worktrees)
                worktrees = Worktrees(hub, root=root, trash=root / TRASH, side=folder)
                worktrees.sweep()
                self._trees[project.id] = (worktrees, CheckTrees(hub, root=folder / "trees", side=folder))
            return self._trees[project.id]


class CheckSlots:
    """Which check trees are free, per project. A slot is a tree; who holds it may use that tree alone."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._taken: dict[int, set[int]] = {}
        self._alone: set[int] = set()
        """Projects in which somebody has, or waits for, all of them."""

    def take(self, project: int, most: int) -> int:
        """The lowest free slot below `most`, waiting for one."""
        with self._condition:
            taken = self._taken.setdefault(project, set())
            self._condition.wait_for(lambda: len(taken) < most and project not in self._alone)
            slot = next(number for number in range(most) if number not in taken)
            taken.add(slot)
            return slot

    @contextmanager
    def alone(self, project: int) -> Iterator[int]:
        """A slot while no other is taken, and none can be."""
        with self._condition:
            self._condition.wait_for(lambda: project not in self._alone)
            self._alone.add(project)
            self._condition.wait_for(lambda: not self._taken.get(project))
        try:
            yield 0
        finally:
            with self._condition:
                self._alone.discard(project)
                self._condition.notify_all()

    def give_back(self, project: int, slot: int) -> None:
        with self._condition:
            self._taken[project].discard(slot)
            self._condition.notify_all()
