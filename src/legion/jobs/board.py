"""The data that every use case and job has: rows, folders, the settings, the clock, and the state in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from legion.config.files.user import CurrentSettings, UserConfig
from legion.jobs.live_state import LiveState
from legion.store.database.transactions import Store
from legion.system.paths import DataDir


@dataclass(frozen=True, kw_only=True)
class Board:
    """No repository and no program can be reached through it."""

    data: DataDir
    store: Store
    settings: CurrentSettings
    machine: str
    """The name of this one."""
    clock: Callable[[], float]
    live: LiveState = field(default_factory=LiveState)

    @property
    def user(self) -> UserConfig:
        return self.settings.get()

    def clear_backoffs(self) -> None:
        """End all backoffs: a person fixed something and does not want to wait."""
        self.live.scheduler.backoffs.replace({})
        self.store.tell()
