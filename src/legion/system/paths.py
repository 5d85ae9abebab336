"""Paths of Legion's files: the XDG folders of a person, or one folder named by --data-dir."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def default_data_dir() -> Path:
    named = os.environ.get("LEGION_DATA_DIR")
    if named:
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share").absolute() / "legion"


def user_config_file() -> Path:
    """The person's own settings; a repository can never write or replace them."""
    named = os.environ.get("LEGION_CONFIG")
    if named:
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").absolute() / "legion" / "config.toml"


def user_cache_dir() -> Path:
    """Files that can be made again at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "legion"


@dataclass(frozen=True)
class DataDir:
    """The folder of one daemon. Everything below is private to the person (0700)."""

    root: Path

    def prepare(self) -> None:
        for folder in (self.root, self.runs, self.projects):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def database(self) -> Path:
        return self.second_database if self.second_database.exists() else self.root / "legion.db"

    @property
    def second_database(self) -> Path:
        """Ours, where legion_cc has its own under the first name: its folder and file are called the same."""
        return self.root / "legion-2.db"

    @property
    def moved_database(self) -> Path:
        """What `legion machine head move` leaves of a database that is in Postgres since."""
        return self.database.with_name(f"{self.database.name}.moved")

    @property
    def daemon_lock(self) -> Path:
        return self.root / "daemon.lock"

    @property
    def daemon_record(self) -> Path:
        """Address, pid and version of the daemon that serves this folder; clients read it."""
        return self.root / "daemon.json"

    @property
    def head_generation(self) -> Path:
        """The generation of the lease in Postgres by which a head last served this folder."""
        return self.root / "head-generation"

    @property
    def generation_of_head(self) -> int:
        """What that file says; 0 without one."""
        try:
            return int(self.head_generation.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    @property
    def daemon_log(self) -> Path:
        return self.root / "daemon.log"

    @property
    def socket(self) -> Path:
        return self.root / "api.sock"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def plugin_token(self) -> Path:
        """Opens Legion's tools to the plugin of the person's own Claude Code, and nothing else."""
        return self.root / "plugin.token"

    @property
    def plugin_sessions(self) -> Path:
        """One file per conversation of the person: the last event that was reported in it."""
        return self.root / "plugin"

    @property
    def runs(self) -> Path:
        """One folder per run of an agent or a check: spec, journal, control socket, lock, result."""
        return self.root / "runs"

    @property
    def gateway(self) -> Path:
        """All files of the gateway: passes, ledger, address."""
        return self.root / "gateway"

    @property
    def keys(self) -> Path:
        """Stored keys of providers, one file each, mode 0600."""
        return self.root / "keys"

    @property
    def projects(self) -> Path:
        """One folder per project: the hub, snapshot indexes, check trees."""
        return self.root / "projects"

    def project(self, project: int) -> Path:
        return self.projects / str(project)
