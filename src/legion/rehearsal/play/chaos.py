"""Trouble that no script asks for: a limit, an overload, a broken connection, at steps that a seed draws.

The same seed gives the same step of the same ticket the same trouble, in whatever order agents ask.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from legion.rehearsal.script.script import Drop, ScriptedLimit, ScriptedTrouble, Step

_SHARE = 0.25
"""Of all steps."""
_RESETS_IN = 5.0
"""Seconds until a limit is over."""
_LIMIT = ScriptedTrouble(status=429, times=1, message="rehearsed chaos: the limit is reached")
_TROUBLES: tuple[tuple[ScriptedTrouble, Mapping[str, str]], ...] = (
    (_LIMIT, {}),
    # Claude Code waits by itself for a limit that is over soon; told to wait longer than a minute it ends.
    (_LIMIT, {"retry-after": "3600"}),
    (ScriptedTrouble(status=529, times=2, message="rehearsed chaos: overloaded"), {}),
    (ScriptedTrouble(drop=Drop.BEFORE, times=1), {}),
    (ScriptedTrouble(drop=Drop.MID, times=1), {}),
)


class ModelChaos:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def troubled(self, step: Step, ticket: str, attempt: int, number: int) -> Step:
        """The step, perhaps with trouble the first time or two that it is asked for."""
        dice = random.Random(f"{self._seed} {ticket} {attempt} {number}")
        if step.trouble is not None or dice.random() >= _SHARE:
            return step
        trouble, headers = dice.choice(_TROUBLES)
        limit = ScriptedLimit(resets_in=_RESETS_IN) if trouble is _LIMIT else step.limit
        return replace(step, trouble=trouble, limit=limit, headers={**step.headers, **headers})
