"""Diagnoses whether a run makes progress, and chooses the intervention if not. Silence alone is never a reason.

An agent loops, a tool hangs, a model does not answer, a person is waited for, or a process is dead: each has facts of
its own. Every diagnosis needs new facts after the last intervention, so no intervention happens twice for the same
reason, and a run that makes progress again starts at the bottom of the ladder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from legion.domain.rules import Rule
from legion.domain.watchdog.activity import Activity, Repeats, new_since, red_again, repeats

RUNS_COMMANDS = frozenset({"Bash", "BashOutput", "TaskOutput"})
"""Tools that start processes; what other tools wait for cannot be measured."""
LOOKS_ON = frozenset({"BashOutput", "TaskOutput"})
"""Tools that poll a command in the background. While that works, polling is no loop."""
_SLEEPS = re.compile(r"(?:^|[\s;&|(])sleep\s+\d")
"""An agent that runs `sleep 30` before it polls waits on purpose; how often it polls means nothing, how long does."""
_RED_TIMES = 3
"""This many times the repeats where files change between tests that keep failing in the same way."""
_LONGEST, _SHORT = 80, 24


@dataclass(frozen=True, kw_only=True)
class WatchdogLimits:
    """How much of each sign is needed. Seconds, except for `repeats`."""

    repeats: int = 5
    hang: float = 300.0
    program: float = 1800.0
    silence: float = 900.0


class WatchdogStep(Enum):
    """The interventions, from the bottom of the ladder to its top."""

    NUDGE = "nudge"
    """A message in the same turn."""
    INTERRUPT = "interrupt"
    """Its call is cut off, with a message that says why and how to continue."""
    END = "end"
    """The run ends; the ticket's own ladder decides what follows: fresh eyes, another model, or a person."""


RANK = {action: rank for rank, action in enumerate(WatchdogStep)}
DONE = {WatchdogStep.NUDGE: "nudged", WatchdogStep.INTERRUPT: "interrupted", WatchdogStep.END: "ended"}
"""What a person reads about an intervention."""


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """An intervention in a run, with everything needed to perform it exactly once across crashes."""

    action: WatchdogStep
    at: float
    after: int
    """The number of the journal's last event at that time; earlier events led to it and no longer count."""
    run: int
    number: int
    """Counts the interventions of a run, from 1."""
    rule: Rule
    sign: str
    """The observation, in a few words."""
    why: str
    """The same as part of a sentence; starts in lower case."""
    advice: str
    """The message to the agent."""
    message: str
    """The message's id: the journal shows by it whether the message was delivered."""
    taken_at: float | None = None
    """None: not known yet."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known of a live run at one moment."""

    course: Activity = field(default_factory=Activity)
    talks: bool = True
    """It has a conversation; otherwise it is a plain program, and everything that it does is one call."""
    started_at: float = 0.0
    dead_since: float | None = None
    """Its program is gone, and its runner is not."""
    thinks: bool | None = None
    """Is a model request open now, according to the gateway? None: unknown."""
    thought_at: float = 0.0
    """When a model request was last seen open, or could not be observed."""
    processes: int | None = None
    """How many processes run for its tools (of a plain program: all of them); None: unknown."""
    idle_since: float | None = None
    """Since when none of them has used a processor or moved a byte; None while they work, or where that is unknown."""
    tree_since: int | None = None
    """The number of the event since which its files are known to be unchanged."""
    tree_at: float = 0.0
    """When its files were last seen to change."""
    clock_set_at: float = 0.0
    """When the clock was last set, or the machine woke up. No time before that counts: nothing could be done in it."""
    taken: tuple[Intervention, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Progress:
    why: str

    @property
    def summary(self) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class Looping:
    call: str
    times: int
    files_change: bool = False
    """The tests stay the same, though the files do not."""

    @property
    def summary(self) -> str:
        return f"loops: {self.times} times {short(self.call)}"


@dataclass(frozen=True, kw_only=True)
class HangingTool:
    call: str
    """Empty: the program itself."""
    since: float

    @property
    def summary(self) -> str:
        return f"hangs: {short(self.call) or 'its program'} does nothing"


@dataclass(frozen=True, kw_only=True)
class WaitingForPermission:
    since: float

    @property
    def summary(self) -> str:
        return "waits for a person"


@dataclass(frozen=True, kw_only=True)
class Silent:
    since: float

    @property
    def summary(self) -> str:
        return "silent: no call, no process and no request at its model"


@dataclass(frozen=True, kw_only=True)
class Dead:
    since: float

    @property
    def summary(self) -> str:
        return "its program has died"


State = Progress | Looping | HangingTool | WaitingForPermission | Silent | Dead

RULES: dict[type[State], Rule] = {
    Looping: Rule.LOOPS_ARE_BROKEN,
    HangingTool: Rule.HANGING_IS_CUT_OFF,
    Silent: Rule.SILENT_IS_WOKEN,
    Dead: Rule.DEAD_IS_ENDED,
}

_STEPS: dict[type[State], tuple[WatchdogStep, ...]] = {
    Looping: (WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END),
    # No message is read while a tool hangs.
    HangingTool: (WatchdogStep.INTERRUPT, WatchdogStep.END),
    Silent: (WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END),
    Dead: (WatchdogStep.END,),
}


def judge(facts: RunFacts, patience: WatchdogLimits, now: float) -> State:
    course, last = facts.course, facts.taken[-1] if facts.taken else None
    step_at = max(facts.clock_set_at, 0.0 if last is None else last.taken_at or last.at)
    if facts.dead_since is not None:
        since = max(facts.dead_since, step_at)
        return Dead(since=since) if now - since >= patience.hang else Progress(why="its program has just ended")
    if course.asked_at is not None:
        return WaitingForPermission(since=course.asked_at)
    if course.through:
        return Progress(why="it reports that it is finished")
    if not facts.talks:
        since = max(facts.idle_since or now, facts.started_at, step_at)
        hangs = bool(facts.processes) and now - since >= patience.program
        return HangingTool(call="", since=since) if hangs else Progress(why="its program works")
    if (hanging := _hanging(facts, patience, step_at, now)) is not None:
        return hanging
    if (looping := _looping(facts, patience, _told_at(course, facts.taken), now)) is not None:
        return looping
    if course.open and not _abandoned(facts):
        return Progress(why=f"{quoted(course.open[0].tool, course.open[0].words)} is at work")
    if facts.thinks is not False:
        return Progress(why="its model thinks")
    works = bool(facts.processes) and facts.idle_since is None
    since = max(course.last_at, facts.started_at, facts.thought_at, facts.idle_since or 0.0, step_at)
    silent = not works and now - since >= patience.silence
    return Silent(since=since) if silent else Progress(why="it has just done something")


def next_step(state: State, facts: RunFacts, patience: WatchdogLimits) -> WatchdogStep | None:
    """The intervention that is due now; none for a run that makes progress, waits for a person, or is being ended
    already.
    """
    steps = _STEPS.get(type(state), ())
    if not facts.talks:
        steps = tuple(step for step in steps if step is WatchdogStep.END)
    below = standing(facts, patience)
    return next((step for step in steps if below is None or RANK[step] > RANK[below]), None)


def standing(facts: RunFacts, patience: WatchdogLimits) -> WatchdogStep | None:
    """The last intervention, unless the run has made progress since: other files, or several calls with new results."""
    if not facts.taken:
        return None
    last = facts.taken[-1]
    if last.action is WatchdogStep.END:
        return last.action
    told = _told_at(facts.course, facts.taken)
    recovered = facts.tree_at > last.at or new_since(facts.course.returned, told) >= patience.repeats
    return None if recovered else last.action


def suspected(course: Activity, taken: Sequence[Intervention]) -> bool:
    """Are its files worth checking? It has started to repeat itself and may be looping."""
    found = repeats(course.returned, after=_told_at(course, taken))
    return found is not None and found.times > 1


def _told_at(course: Activity, taken: Sequence[Intervention]) -> int:
    """The event by which the agent knows of the last intervention: only what follows can show whether it helps.

    Until then nothing counts.
    """
    return max(taken[-1].after, course.delivered.get(taken[-1].message, course.last_number)) if taken else 0


def _hanging(facts: RunFacts, patience: WatchdogLimits, step_at: float, now: float) -> HangingTool | None:
    commands = [call for call in facts.course.open if call.tool in RUNS_COMMANDS]
    if not commands or not facts.processes or facts.idle_since is None or facts.thinks:
        return None
    since = max(commands[0].since, facts.idle_since, step_at)
    if now - since < patience.hang:
        return None
    return HangingTool(call=quoted(commands[0].tool, commands[0].words), since=since)


def _looping(facts: RunFacts, patience: WatchdogLimits, after: int, now: float) -> Looping | None:
    returned = facts.course.returned
    found = repeats(returned, after=after)
    waits = found is not None and (_watches(facts, found.call.tool) or _polls(found, facts, patience, now))
    if found is not None and found.times >= patience.repeats and not waits:
        # Files may have changed between two checks; only returns after the first of them count as proof.
        same_files = facts.tree_since is not None and returned[-1].number > facts.tree_since
        if same_files:
            return Looping(call=quoted(found.call.tool, found.call.words), times=found.times)
    red = red_again(returned, after=after)
    if red is not None and red.times >= _RED_TIMES * patience.repeats:
        # Where it made no other call between them, there is nothing that it changed.
        only = found is not None and found.times >= red.times
        return Looping(call=quoted(red.call.tool, red.call.words), times=red.times, files_change=not only)
    return None


def _abandoned(facts: RunFacts) -> bool:
    """Commands that it waits for and that no longer exist: their end has not reached it."""
    return facts.processes == 0 and all(call.tool in RUNS_COMMANDS for call in facts.course.open)


def _watches(facts: RunFacts, tool: str) -> bool:
    return tool in LOOKS_ON and bool(facts.processes) and facts.idle_since is None


def _polls(found: Repeats, facts: RunFacts, patience: WatchdogLimits, now: float) -> bool:
    """It polls something that takes its time, and has not done so for too long."""
    call = found.call
    since = max(found.since, facts.clock_set_at)
    return call.tool == "Bash" and bool(_SLEEPS.search(call.words)) and now - since < patience.silence


def quoted(tool: str, words: str) -> str:
    """A call as people name it: a command by itself, anything else with its tool."""
    text = " ".join((words if tool == "Bash" else f"{tool} {words}").split()).replace("`", "'")
    return f"`{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'}`"


def short(call: str) -> str:
    """The beginning of a quoted call, for a line on the board."""
    return call if len(call) <= _SHORT else f"{call[:_SHORT].rstrip()}...`"
