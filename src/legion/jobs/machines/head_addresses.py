"""The addresses under which machines reach this Legion: the head's own, and those of processes that serve for it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from legion.system import files
from legion.system.paths import DataDir

_LOCK_PATIENCE = 5.0
"""Seconds: another process that looks whether the lock is held holds it for a moment."""


@dataclass(frozen=True, kw_only=True)
class MachineAddress:
    host: str
    port: int

    @property
    def url(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{shown}:{self.port}"

    def write(self, file: Path) -> None:
        files.write_atomic(file, json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> MachineAddress:
        """Raises FileNotFoundError, ValueError, TypeError or KeyError."""
        known = json.loads(file.read_bytes())
        return cls(host=str(known["host"]), port=int(known["port"]))


class HeadAddresses:
    """Files in the data folder, which all of these processes share. Each process holds the lock of its own."""

    def __init__(self, data: DataDir) -> None:
        self.own = data.root / "machines.json"
        """Of the head itself."""
        self._others = data.root / "machine-heads"

    @contextlib.contextmanager
    def added(self, address: MachineAddress) -> Iterator[None]:
        """Machines get this address during the block. A killed process leaves its file, without a lock."""
        self._others.mkdir(mode=0o700, exist_ok=True)
        name = "".join(letter if letter.isalnum() else "-" for letter in address.host)
        file = self._others / f"{name}-{address.port}.json"
        address.write(file)
        held = files.lock(file, patience=_LOCK_PATIENCE)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            held.release()

    def has_others(self) -> bool:
        return bool(self.others())

    def of_head(self) -> str:
        """Empty while the head has none."""
        return next(iter(_urls([self.own])), "")

    def others(self) -> list[str]:
        return _urls([file for file in sorted(self._others.glob("*.json")) if files.is_locked(file)])

    def of(self, machine: int) -> list[str]:
        """For one machine, the one that it should prefer first; empty while only the head itself serves."""
        others = self.others()
        if not others:
            return []
        urls = list(dict.fromkeys((*_urls([self.own]), *others)))
        first = machine % len(urls)
        return urls[first:] + urls[:first]


def _urls(found: list[Path]) -> list[str]:
    urls = []
    for file in found:
        # Removed since it was listed, or damaged.
        with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            urls.append(MachineAddress.read(file).url)
    return urls
