"""Adds random errors to scripts: a limit, an overload, a broken connection.

The same seed gives the same step of the same ticket the same error, in whatever order requests come.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from legion.rehearsal.script.script import Drop, ScriptedLimit, ScriptedTrouble, Step

_SHARE = 0.25
"""Share of steps with an error."""
_RESETS_IN = 5.0
"""Seconds until a limit is over."""
_LIMIT = ScriptedTrouble(status=429, times=1, message="rehearsed chaos: the limit is reached")
_TROUBLES: tuple[tuple[ScriptedTrouble, Mapping[str, str]], ...] = (
    (_LIMIT, {}),
    # Claude Code itself waits for a limit that ends soon; it ends where it should wait longer than a minute.
    (_LIMIT, {"retry-after": "3600"}),
    (ScriptedTrouble(status=529, times=2, message="rehearsed chaos: overloaded"), {}),
    (ScriptedTrouble(drop=Drop.BEFORE, times=1), {}),
    (ScriptedTrouble(drop=Drop.MID, times=1), {}),
)


class ModelChaos:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def troubled(self, step: Step, ticket: str, attempt: int, number: int) -> Step:
        """The step, perhaps with an error the first one or two times that it is requested."""
        generator = random.Random(f"{self._seed} {ticket} {attempt} {number}")
        if step.trouble is not None or generator.random() >= _SHARE:
            return step
        trouble, headers = generator.choice(_TROUBLES)
        limit = ScriptedLimit(resets_in=_RESETS_IN) if trouble is _LIMIT else step.limit
        return replace(step, trouble=trouble, limit=limit, headers={**step.headers, **headers})
