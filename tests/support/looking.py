"""For facts that no event tells of, such as a folder that goes: looked for again and again."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from tests.support.legion import PATIENCE, Squad

_LOOK_AGAIN = 0.05
_LONGEST_PAUSE = 0.5
"""Each look may be a request to the daemon: the longer it lasts already, the rarer they are."""


def until_seen(squad: Squad, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Look again and again while the daemon lives."""
    assert squad.process is not None
    daemon = os.pidfd_open(squad.process.pid)
    deadline = time.monotonic() + patience
    pause = _LOOK_AGAIN
    try:
        while time.monotonic() < deadline:
            if holds():
                return
            assert not select.select([daemon], [], [], pause)[0], f"the daemon died:\n{squad.log[-3000:]}"
            pause = min(pause * 1.2, _LONGEST_PAUSE)
    finally:
        os.close(daemon)
    raise AssertionError(f"{what} was never seen; the daemon's log ends with:\n{squad.log[-3000:]}")
