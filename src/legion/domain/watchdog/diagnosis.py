"""Whether a run gets on, and what is done about one that does not. Never by silence alone.

An agent goes round in circles, a tool hangs, a model does not answer, a person is waited for, or a process is dead:
each is told by facts of its own. Every sign needs new facts behind the last step that was taken, so that no step is
taken twice for the same reason, and whoever gets on again starts at the bottom of the ladder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from legion.domain.rules import Rule
from legion.domain.watchdog.activity import Activity, Repeats, new_since, red_again, repeats

RUNS_COMMANDS = frozenset({"Bash", "BashOutput", "TaskOutput"})
"""Tools behind which there are processes; what others wait for cannot be measured."""
LOOKS_ON = frozenset({"BashOutput", "TaskOutput"})
"""Tools that look at a command in the background. While that works, looking again is no loop."""
_SLEEPS = re.compile(r"(?:^|[\s;&|(])sleep\s+\d")
"""Who says `sleep 30` before it looks waits on purpose; how often it looks says nothing, how long does."""
_RED_TIMES = 3
"""So many times the repeats where files change between tests that stay red in the same way."""
_LONGEST, _SHORT = 80, 24


@dataclass(frozen=True, kw_only=True)
class WatchdogLimits:
    """How much of each sign is needed. Seconds, but for `repeats`."""

    repeats: int = 5
    hang: float = 300.0
    program: float = 1800.0
    silence: float = 900.0


class WatchdogStep(Enum):
    """The steps, from the bottom of the ladder to its top."""

    NUDGE = "nudge"
    """Words in the same turn."""
    INTERRUPT = "interrupt"
    """Its call is cut off, and it is told why, and how to go on."""
    END = "end"
    """The run ends; the ticket's own ladder says who goes on: fresh eyes, another model, or a person."""


RANK = {action: rank for rank, action in enumerate(WatchdogStep)}
DONE = {WatchdogStep.NUDGE: "nudged", WatchdogStep.INTERRUPT: "interrupted", WatchdogStep.END: "ended"}
"""What a person reads about a step that was taken."""


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """A step that was taken in a run, and everything that has to be known to take it once, whoever is killed."""

    action: WatchdogStep
    at: float
    after: int
    """The number of the journal's last event when it was taken; what came before led to it and counts no more."""
    run: int
    number: int
    """Counts the steps of a run, from 1."""
    rule: Rule
    sign: str
    """What was seen, in a few words."""
    why: str
    """The same as part of a sentence; begins in lower case."""
    advice: str
    """What the agent is told."""
    message: str
    """The name under which it is told: the journal tells by it whether that has happened."""
    taken_at: float | None = None
    """None: nobody knows yet whether it was."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known of a live run at a moment."""

    course: Activity = field(default_factory=Activity)
    talks: bool = True
    """It has a conversation; else it is a plain program, and everything that it does is one call."""
    started_at: float = 0.0
    dead_since: float | None = None
    """Its program is gone, and its runner is not."""
    thinks: bool | None = None
    """Whether its model is being asked at this moment, as the gateway has it; None: nobody can tell."""
    thought_at: float = 0.0
    """When its model was last seen being asked, or could not be seen."""
    processes: int | None = None
    """How many run for its tools (of a plain program: all of them); None: nobody can tell."""
    idle_since: float | None = None
    """Since when none of them has used a processor or moved a byte; None while they work, or where nobody can tell."""
    tree_since: int | None = None
    """The number of the event since which its files are known to have stayed the same."""
    tree_at: float = 0.0
    """When its files were last seen to be other than before."""
    taken: tuple[Intervention, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Progress:
    why: str

    @property
    def words(self) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class Looping:
    call: str
    times: int
    files_change: bool = False
    """It is the tests that stay as they are, though the files do not."""

    @property
    def words(self) -> str:
        return f"loops: {self.times} times {short(self.call)}"


@dataclass(frozen=True, kw_only=True)
class HangingTool:
    call: str
    """Empty: the program itself."""
    since: float

    @property
    def words(self) -> str:
        return f"hangs: {short(self.call) or 'its program'} does nothing"


@dataclass(frozen=True, kw_only=True)
class WaitingForPermission:
    since: float

    @property
    def words(self) -> str:
        return "waits for a person"


@dataclass(frozen=True, kw_only=True)
class Silent:
    since: float

    @property
    def words(self) -> str:
        return "silent: no call, no process and no request at its model"


@dataclass(frozen=True, kw_only=True)
class Dead:
    since: float

    @property
    def words(self) -> str:
        return "its program has died"


State = Progress | Looping | HangingTool | WaitingForPermission | Silent | Dead

RULES: dict[type[State], Rule] = {
    Looping: Rule.LOOPS_ARE_BROKEN,
    HangingTool: Rule.HANGING_IS_CUT_OFF,
    Silent: Rule.SILENT_IS_WOKEN,
    Dead: Rule.DEAD_IS_BURIED,
}

_STEPS: dict[type[State], tuple[WatchdogStep, ...]] = {
    Looping: (WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END),
    # Nobody hears a word while a tool hangs.
    HangingTool: (WatchdogStep.INTERRUPT, WatchdogStep.END),
    Silent: (WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END),
    Dead: (WatchdogStep.END,),
}


def judge(facts: RunFacts, patience: WatchdogLimits, now: float) -> State:
    course, last = facts.course, facts.taken[-1] if facts.taken else None
    step_at = 0.0 if last is None else last.taken_at or last.at
    if facts.dead_since is not None:
        since = max(facts.dead_since, step_at)
        return Dead(since=since) if now - since >= patience.hang else Progress(why="its program has just ended")
    if course.asked_at is not None:
        return WaitingForPermission(since=course.asked_at)
    if course.through:
        return Progress(why="it says that it is through")
    if not facts.talks:
        since = max(facts.idle_since or now, facts.started_at, step_at)
        hangs = bool(facts.processes) and now - since >= patience.program
        return HangingTool(call="", since=since) if hangs else Progress(why="its program works")
    if (hanging := _hanging(facts, patience, step_at, now)) is not None:
        return hanging
    if (looping := _looping(facts, patience, last.after if last is not None else 0, now)) is not None:
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
    """What is to be done now; nothing for one who gets on, waits for a person, or is being ended already."""
    steps = _STEPS.get(type(state), ())
    if not facts.talks:
        steps = tuple(step for step in steps if step is WatchdogStep.END)
    below = standing(facts, patience)
    return next((step for step in steps if below is None or RANK[step] > RANK[below]), None)


def standing(facts: RunFacts, patience: WatchdogLimits) -> WatchdogStep | None:
    """The last step that was taken, unless the run has got on since: other files, or several calls with news."""
    if not facts.taken:
        return None
    last = facts.taken[-1]
    if last.action is WatchdogStep.END:
        return last.action
    recovered = facts.tree_at > last.at or new_since(facts.course.returned, last.after) >= patience.repeats
    return None if recovered else last.action


def suspected(course: Activity, taken: Sequence[Intervention]) -> bool:
    """Whether it is worth a look at the files: it has begun to repeat itself, and may be going round in circles."""
    found = repeats(course.returned, after=taken[-1].after if taken else 0)
    return found is not None and found.times > 1


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
    waits = found is not None and (_watches(facts, found.call.tool) or _polls(found, patience, now))
    if found is not None and found.times >= patience.repeats and not waits:
        # Files may have changed between two looks; only what came back after the first of them counts as proof.
        same_files = facts.tree_since is not None and returned[-1].number > facts.tree_since
        if same_files:
            return Looping(call=quoted(found.call.tool, found.call.words), times=found.times)
    red = red_again(returned, after=after)
    if red is not None and red.times >= _RED_TIMES * patience.repeats:
        return Looping(call=quoted(red.call.tool, red.call.words), times=red.times, files_change=True)
    return None


def _abandoned(facts: RunFacts) -> bool:
    """Commands that it waits for and that are not there: their end has not reached it."""
    return facts.processes == 0 and all(call.tool in RUNS_COMMANDS for call in facts.course.open)


def _watches(facts: RunFacts, tool: str) -> bool:
    return tool in LOOKS_ON and bool(facts.processes) and facts.idle_since is None


def _polls(found: Repeats, patience: WatchdogLimits, now: float) -> bool:
    """Looks again and again at something that takes its time, and has not done so for too long."""
    call = found.call
    return call.tool == "Bash" and bool(_SLEEPS.search(call.words)) and now - found.since < patience.silence


def quoted(tool: str, words: str) -> str:
    """A call as people name it: a command by itself, anything else with its tool."""
    text = " ".join((words if tool == "Bash" else f"{tool} {words}").split()).replace("`", "'")
    return f"`{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'}`"


def short(call: str) -> str:
    """The beginning of a quoted call, for a line on the board."""
    return call if len(call) <= _SHORT else f"{call[:_SHORT].rstrip()}...`"
