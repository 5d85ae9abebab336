"""The shapes of the orchestrate API that legion_cc's tools speak. Names and meanings are that program's."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class OldSubmit:
    title: str = ""
    ticket: str
    context: str | None = None
    criteria: str | None = None
    team_mode: object = None
    """The name of a team; {"custom": NAME} means the same."""
    max_iterations: int | None = None
    blocked_by: list[int] | None = None
    structure_plan: str | None = None
    is_checkpoint: bool = False


@dataclass(kw_only=True)
class OldSubmitted:
    ticket_id: int


@dataclass(kw_only=True)
class OldDispatch:
    ticket: str
    worker_id: int | None = None
    """Taken and without effect: whoever is free takes the next ticket."""


@dataclass(kw_only=True)
class OldDispatched:
    ticket_id: int
    status: str = "dispatched"


@dataclass(kw_only=True)
class OldSnapshot:
    id: int
    prompt: str
    title: str
    context: str
    criteria: str
    status: str
    """queued, working, done or error."""
    assigned_worker: int | None
    """Who works on ticket 7 is worker 7."""
    team_mode: str
    iteration: int
    max_iterations: int
    feedback: str
    summary: str
    elapsed_secs: int
    base_commit: str | None
    blocked_by: list[int]
    merge_status: str
    """pending, merged, conflict or skipped."""
    structure_plan: str
    is_checkpoint: bool


@dataclass(kw_only=True)
class OldQueue:
    tickets: list[OldSnapshot]
    total: int
    queued: int
    working: int
    done: int
    error: int


@dataclass(kw_only=True)
class OldReport:
    worker_id: int
    status: str
    summary: str = ""


@dataclass(kw_only=True)
class OldStop:
    ticket_id: int | None = None
    worker_id: int | None = None


@dataclass(kw_only=True)
class OldSaid:
    status: str


@dataclass(kw_only=True)
class OldFileChange:
    path: str
    status: str
    additions: int
    deletions: int


@dataclass(kw_only=True)
class Dependency:
    id: int
    title: str
    status: str
    merge_status: str
    summary: str
    diff_summary: list[OldFileChange]
    log_tail: str
    is_checkpoint: bool


@dataclass(kw_only=True)
class Dependencies:
    ticket_id: int
    dependencies: list[Dependency] = field(default_factory=list)
