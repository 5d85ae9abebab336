"""[liveness]: what counts as not getting on. The thresholds are a repository's, since only it knows how long its tools
take; whether anybody looks at all is the person's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from legion.config.base.settings import DAY, flag, number, whole


@dataclass(frozen=True, kw_only=True)
class WatchdogSettings:
    """In legion.toml."""

    on: bool = field(
        default=True,
        metadata=flag(help="Whether runs that do not get on are nudged, interrupted and replaced."),
    )
    repeats: int = field(
        default=5,
        metadata=whole(
            2,
            1000,
            help="How often an agent makes the same call with the same result, and no new files, to be looping.",
        ),
    )
    hang: float = field(
        default=300.0,
        metadata=number(
            0.5, 7 * DAY, unit="seconds", help="How long a tool may use no processor and move no byte before it hangs."
        ),
    )
    program: float = field(
        default=1800.0,
        metadata=number(
            0.5,
            7 * DAY,
            unit="seconds",
            help="The same for an agent that is a plain program, which may be waiting for a model of its own.",
        ),
    )
    silence: float = field(
        default=900.0,
        metadata=number(
            0.5,
            7 * DAY,
            unit="seconds",
            help="How long an agent may have no call, no working process and no request at its model.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class PersonalWatchdogSettings:
    """In the person's file."""

    watch: bool = field(default=True, metadata=flag(help="Whether anybody looks whether runs get on, in any project."))
    every: float = field(
        default=5.0, metadata=number(0.1, 3600, unit="seconds", help="How often runs at work are looked at.")
    )
