"""The person's settings as their file is now. An invalid file leaves the last valid ones in force."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from legion.config.files.user import UserConfig, load
from legion.domain.errors import BadInput

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
