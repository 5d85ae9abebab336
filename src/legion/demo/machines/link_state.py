"""The state of a link between a machine and its head: what happens to bytes in each direction. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One direction."""

    stalled: bool = False
    """Bytes wait, as behind a cable that was pulled; they arrive when it is plugged in again."""
    delay: float = 0.0
    """Seconds that each byte needs."""
    bytes_per_second: float = 0.0
    """0: as fast as it goes."""
    loss: float = 0.0
    """The share of pieces, of at most 16 KB each, at which the connection breaks."""


@dataclass(frozen=True, kw_only=True)
class LinkState:
    up: Flow = field(default_factory=Flow)
    """From the one that dials, a machine, to the head."""
    down: Flow = field(default_factory=Flow)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> LinkState:
        return cls(up=Flow(**given["up"]), down=Flow(**given["down"]))


GOOD = LinkState()
CUT = LinkState(up=Flow(stalled=True), down=Flow(stalled=True))
ONLY_UP = LinkState(down=Flow(stalled=True))
"""The head receives everything, and its answers do not arrive."""
ONLY_DOWN = LinkState(up=Flow(stalled=True))
SLOW = LinkState(up=Flow(delay=0.1), down=Flow(delay=0.1))
"""200 ms there and back."""
LOSSY = LinkState(up=Flow(loss=0.05), down=Flow(loss=0.05))
