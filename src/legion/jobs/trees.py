"""The board with the trees of its projects: hubs, worktrees, check trees, and the settings of their targets."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.config.files.project import ProjectConfig, parse
from legion.domain.landing.queue import LandingTarget
from legion.domain.projects import Project
from legion.git.hub.filters import FilterSource
from legion.git.hub.repository import Hub
from legion.git.trees.check_trees import CheckTrees
from legion.git.trees.worktrees import Worktrees
from legion.jobs.board import Board
from legion.jobs.filter_sandbox import filter_confine
from legion.runner.probe import SandboxState
from legion.store.board import projects

TRASH = ".trash"


@dataclass(frozen=True, kw_only=True)
class ProjectContext:
    """One project with its hub, its trees, and the settings of its target."""

    record: Project
    config: ProjectConfig
    hub: Hub
    worktrees: Worktrees
    check_trees: CheckTrees
    folder: Path
    """Legion's own files about the project: indexes, records, caches."""

    @property
    def id(self) -> int:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def target(self) -> str:
        """The commit of the integration branch, as the hub has it now."""
        commit = self.hub.target()
        assert commit is not None, "a registered project has a target"
        return commit

    @property
    def trash(self) -> Path:
        """Where worktrees are moved instead of being deleted."""
        return Path(self.record.worktrees) / TRASH

    @property
    def agents(self) -> Path:
        """State folders of agents, kept between their runs."""
        return self.folder / "agents"

    @property
    def cache(self) -> Path:
        """Downloads that setups share."""
        return self.folder / "cache"


def settings_of(project: Project, *, origin: str = "") -> ProjectConfig:
    """The project's legion.toml, with the numbers that the person set without a commit. Raises BadInput."""
    config = parse(project.config_text, origin=origin or project.name)
    if project.session:
        # A session lands on a branch of the person's. Only the default one has a forge.
        config = replace(config, landing=replace(config.landing, target=LandingTarget.LOCAL))
    if project.workers is None and project.retries is None:
        return config
    agents = replace(
        config.agents,
        parallel=project.workers or config.agents.parallel,
        attempts=project.retries or config.agents.attempts,
    )
    return replace(config, agents=agents)


class ProjectTrees:
    """One Worktrees and one CheckTrees object per project, shared by all threads: they contain the locks."""

    def __init__(self) -> None:
        self._trees: dict[int, tuple[Worktrees, CheckTrees]] = {}
        self._lock = threading.Lock()

    def of(self, project: Project, hub: Hub, folder: Path) -> tuple[Worktrees, CheckTrees]:
        with self._lock:
            if project.id not in self._trees:
                root = Path(project.worktrees)
                worktrees = Worktrees(hub, root=root, trash=root / TRASH, side=folder)
                worktrees.sweep()
                self._trees[project.id] = (worktrees, CheckTrees(hub, root=folder / "trees", side=folder))
            return self._trees[project.id]

    def forget(self, project: int) -> None:
        with self._lock:
            self._trees.pop(project, None)


@dataclass(frozen=True, kw_only=True)
class Trees(Board):
    """No program of an agent can be started through it."""

    sandbox: SandboxState
    trees: ProjectTrees = field(default_factory=ProjectTrees)

    def project(self, project_id: int) -> ProjectContext:
        """The project as the store has it now. Raises BadInput if its stored legion.toml cannot be parsed."""
        with self.store.read() as tx:
            project = projects.get(tx, project_id)
        return self.project_of(project)

    def project_of(self, project: Project, config: ProjectConfig | None = None) -> ProjectContext:
        """With `config` instead of the stored legion.toml, for a caller that needs no settings."""
        folder = self.data.project(project.id)
        hub = Hub(folder / "hub.git", self.filter_source(Path(project.common_dir), Path(project.worktrees)))
        worktrees, check_trees = self.trees.of(project, hub, folder)
        return ProjectContext(
            record=project,
            config=config or settings_of(project, origin=f"legion.toml of {project.name}"),
            hub=hub,
            worktrees=worktrees,
            check_trees=check_trees,
            folder=folder,
        )

    def hub(self, project: int) -> Hub:
        return Hub(self.data.project(project) / "hub.git")

    def filter_source(self, common_dir: Path, worktrees: Path) -> FilterSource:
        confine = filter_confine(self.settings, self.sandbox, self.data.root, worktrees, self.clock)
        return FilterSource(common_dir=common_dir, confine=confine)

    def forget(self, project: int) -> None:
        """The project was removed, and its folders with it."""
        self.trees.forget(project)
