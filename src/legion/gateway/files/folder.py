"""The gateway's folder: its paths, and how its files are parsed and cached. Daemon and gateway share nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from legion.domain.errors import LegionError

T = TypeVar("T")
VERSION = 1
"""Version of every file in the folder. Within a version, fields are only added."""


class Damaged(LegionError):
    """A file of the folder cannot be used."""

    code = "damaged"


@dataclass(frozen=True)
class GatewayFolder:
    """The folder of one gateway, private to the person (0700)."""

    root: Path

    def prepare(self) -> None:
        for place in (self.root, self.passes, self.ledger):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.chmod(0o700)

    @property
    def providers(self) -> Path:
        return self.root / "providers.json"

    @property
    def routes(self) -> Path:
        """Models that are not sent to the run's own provider."""
        return self.root / "routes.json"

    @property
    def passes(self) -> Path:
        """One file per running run, named by the digest of its token."""
        return self.root / "passes"

    @property
    def ledger(self) -> Path:
        """One file per day in UTC."""
        return self.root / "ledger"

    @property
    def activity(self) -> Path:
        """The runs with an open request."""
        return self.root / "activity.json"

    @property
    def tapes(self) -> Path:
        """Requests and answers of recorded runs, one file per run."""
        return self.root / "tapes"

    @property
    def recording(self) -> Path:
        """Exists while new runs are to be recorded."""
        return self.root / "recording"

    @property
    def record(self) -> Path:
        """Address, pid and release of the gateway."""
        return self.root / "gateway.json"

    @property
    def lock(self) -> Path:
        """Held by the running gateway."""
        return self.root / "lock"

    @property
    def starting(self) -> Path:
        """Held by a process that starts a gateway."""
        return self.root / "starting"

    @property
    def log(self) -> Path:
        return self.root / "gateway.log"


def parse(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in a file of the folder. Raises Damaged."""
    try:
        facts = json.loads(content)
    except ValueError:
        raise Damaged(f"{path} is not JSON: have the daemon write it again.") from None
    version = facts.get("version") if isinstance(facts, dict) else None
    if version != VERSION:
        raise Damaged(f"{path} has version {version} and this release reads {VERSION}: update Legion.")
    return dict(facts)


class CachedFile(Generic[T]):
    """A file that other processes replace, parsed again only after a change. A file that cannot be parsed raises."""

    def __init__(self, path: Path, parse: Callable[[bytes, Path], T]) -> None:
        self._path = path
        self._name = str(path)
        self._parse = parse
        self._last: tuple[tuple[int, int, int], T] | None = None

    def value(self) -> T:
        """The parsed file, for one stat while it stays the same. Raises FileNotFoundError."""
        status = os.stat(self._name)  # noqa: PTH116 - called with every request, and three times as fast
        mark = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._last is None or self._last[0] != mark:
            self._last = (mark, self._parse(self._path.read_bytes(), self._path))
        return self._last[1]
