"""The shapes of claude-orchestra's API. Names and meanings are that program's."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class OrchestraAgent:
    agent_id: str
    """Eight hexadecimal digits: the number of the ticket."""
    session_id: str
    worktree_path: str | None
    task: str
    status: str
    """pending, running, completed, failed, stale or paused."""
    started_at: str | None
    last_heartbeat: str | None
    progress: int
    """Percent, by the state of the ticket."""
    current_activity: str | None
    error_message: str | None
    result: str | None


@dataclass(kw_only=True)
class OrchestraStatus:
    total: int
    running: int
    completed: int
    failed: int
    stale: int
    agents: list[OrchestraAgent] = field(default_factory=list)


@dataclass(kw_only=True)
class OrchestraSession:
    session_id: str
    project_path: str
    modified_at: str
    message_count: int
    last_prompt: str


@dataclass(kw_only=True)
class OrchestraWorktree:
    branch: str
    task: str
    path: str
    is_active: bool


@dataclass(kw_only=True)
class SpawnTasks:
    tasks: list[str]
    parallel: int | None = None
    """How many agents may work at once in the project; left out: as many as before."""
    use_worktrees: bool = True


@dataclass(kw_only=True)
class SpawnedAgent:
    agent_id: str
    task: str
    worktree: str


@dataclass(kw_only=True)
class Spawned:
    spawned: int
    agents: list[SpawnedAgent]


@dataclass(kw_only=True)
class OrchestraDone:
    success: bool
    error: str | None = None
    """Why not."""


@dataclass(kw_only=True)
class OrchestraCleaned:
    cleaned: int
