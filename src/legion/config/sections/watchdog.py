"""[liveness]: when a run counts as stuck. A repository sets the thresholds, since only it knows how long its tools
take; the person decides whether the watchdog runs at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.base.settings import DAY, flag, number, whole


@dataclass(frozen=True, kw_only=True)
class WatchdogSettings:
    """In legion.toml."""

    on: bool = flag(True, help="Whether stuck runs are nudged, interrupted and replaced.")
    repeats: int = whole(
        5,
        2,
        1000,
        help="How often an agent must repeat a call with the same result, and no new files, to count as looping.",
    )
    hang: float = number(
        300.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="How long a tool may use no processor and move no byte before it counts as hanging.",
    )
    program: float = number(
        1800.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="The same for an agent that is a plain program, which may wait for a model of its own.",
    )
    silence: float = number(
        900.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="How long an agent may have no call, no working process and no model request.",
    )


@dataclass(frozen=True, kw_only=True)
class PersonalWatchdogSettings:
    """In the person's file."""

    watch: bool = flag(True, help="Whether the watchdog runs, in all projects.")
    every: float = number(5.0, 0.1, 3600, unit="seconds", help="How often the watchdog checks running agents.")
