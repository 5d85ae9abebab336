"""For facts that no event tells of, such as a folder that goes: looked for again and again."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from tests.support.legion import PATIENCE, Squad

_LOOK_AGAIN = 0.1


def until_seen(squad: Squad, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Look again and again while the daemon lives."""
    assert squad.process is not None
    daemon = os.pidfd_open(squad.process.pid)
    try:
        for _ in range(int(patience / _LOOK_AGAIN)):
            if holds():
                return
            assert not select.select([daemon], [], [], _LOOK_AGAIN)[0], f"the daemon died:\n{squad.log[-3000:]}"
    finally:
        os.close(daemon)
    raise AssertionError(f"{what} was never seen; the daemon's log ends with:\n{squad.log[-3000:]}")
