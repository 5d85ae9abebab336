"""Texts for an agent that makes no progress: what was seen, why more of it will not help, and what may."""

from __future__ import annotations

from legion.domain.watchdog.diagnosis import (
    Dead,
    HangingTool,
    Looping,
    Progress,
    Silent,
    State,
    WaitingForPermission,
    WatchdogStep,
)

_ANOTHER_WAY = (
    "Stop here and think: what did you expect, what did you see instead, and what have you not looked at yet? Look at "
    "that, then take another way. If you wait for something, wait for it in one call with a limit. If you see no way "
    "left, end with one line: STUCK: and the reason."
)
_INTERRUPTED = "You were interrupted by Legion, which checks whether work makes progress. "


def why(state: State, now: float) -> str:
    """For people; starts in lower case and ends without a full stop."""
    match state:
        case Looping(call=call, times=times, files_change=True):
            return f"{call} failed in the same way {times} times, whatever was changed"
        case Looping(call=call, times=times):
            return f"it made the same call {times} times with the same result: {call}"
        case HangingTool(call="", since=since):
            return f"its program has used no processor and moved no byte for {lasted(now - since)}"
        case HangingTool(call=call, since=since):
            return f"{call} has used no processor and moved no byte for {lasted(now - since)}"
        case Silent(since=since):
            return f"it has had no call, no working process and no request at its model for {lasted(now - since)}"
        case Dead():
            return "its program has died and left its runner waiting"
        case Progress() | WaitingForPermission():
            return state.summary


def advice(action: WatchdogStep, state: State, now: float) -> str:
    """The message to the agent; at the end of a run, feedback for the next attempt."""
    seen = f"{_capital(why(state, now))}."
    if action is WatchdogStep.END:
        return f"The run was ended because it made no progress. {seen}{_instead(state)} Do not try the same way again."
    first = _INTERRUPTED if action is WatchdogStep.INTERRUPT else ""
    match state:
        case HangingTool():
            return f"{first}{seen}{_instead(state)}"
        case Silent():
            return f"{first}{seen} If you are done, say so and end; otherwise continue with the next step."
        case _:
            return f"{first}{seen} Doing it again will not change that. {_ANOTHER_WAY}"


def _instead(state: State) -> str:
    if not isinstance(state, HangingTool):
        return ""
    return (
        " It probably waits for input, for a lock, or for something that never comes. Do not start it like that again: "
        "give it its input, or a limit (`timeout 60 ...`), or find out first what it waits for."
    )


def lasted(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
