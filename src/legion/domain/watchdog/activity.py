"""The activity of a run: its tool calls, which of their results were new, and what the watchdog saw between checks.

Read from the facts in a run's journal, in order. A call counts as a repeat only if it had the same input and its result
is the same, times and addresses aside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

_FLEETING = re.compile(
    r"""
      \b\d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?  # a date, with its time
    | \b\d?\d:\d\d(?::\d\d(?:[.,]\d+)?)?\b                                          # a time of day
    | \b\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|m|mins?|minutes?)\b         # how long something took
    | \b0x[0-9a-fA-F]{4,}\b                                                         # an address
    | \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b                      # a uuid
    | (?<=/tmp/)[\w.-]+                                                             # a folder for the moment
    | (?<=\bpid[ =:])\s*\d+                                                         # a process
    """,
    re.VERBOSE,
)
USED_FACTS = ("id", "call", "tool", "input", "digest", "gist", "tests", "question")
"""The facts of an event that this module reads."""
_FAILED = re.compile(r"\b(\d+) (?:tests? )?(?:failed|failing|failures?|errors?)\b|\b[Ff]ail(?:ed|ures?): (\d+)")
_PASSED = re.compile(r"\b(\d+) (?:tests? )?(?:passed|passing)\b|\b[Pp]assed: (\d+)")


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The totals that a test run printed."""

    failed: int
    passed: int


def tally_of(text: str) -> Tally | None:
    """The totals that test programs print, from their last line that has any; None where there are none."""
    for line in reversed(text.splitlines()):
        failed = sum(int(one or other) for one, other in _FAILED.findall(line))
        passed = sum(int(one or other) for one, other in _PASSED.findall(line))
        if failed or passed:
            return Tally(failed=failed, passed=passed)
    return None


def gist(text: str) -> str:
    """A result reduced to what matters: the same for two runs of a program that differ only in times."""
    return _FLEETING.sub("~", text)


@dataclass(frozen=True, kw_only=True)
class JournalFact:
    """One event of a journal: its kind is open text, its facts are JSON."""

    number: int
    time: float
    kind: str
    facts: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """A tool call that has started."""

    id: str
    tool: str
    words: str
    """Its input, short, for people."""
    input: str
    """The digest of its full input; empty where an older runner did not record it."""
    since: float
    number: int


@dataclass(frozen=True, kw_only=True)
class ToolReturn:
    """A tool call that returned."""

    call: ToolUse
    number: int
    time: float
    result: str
    """The digest of its gist; empty where an older runner did not record it."""
    tests: Tally | None
    is_new: bool
    """The first time in this run that this call returned this."""

    @property
    def same(self) -> tuple[str, str]:
        return self.call.input, self.result

    @property
    def comparable(self) -> bool:
        return bool(self.call.input and self.result)


@dataclass(frozen=True, kw_only=True)
class Activity:
    returned: tuple[ToolReturn, ...] = ()
    open: tuple[ToolUse, ...] = ()
    """Calls that have started and not returned, oldest first."""
    asking: tuple[str, ...] = ()
    """Questions to a person that are not answered."""
    asked_at: float | None = None
    last_at: float = 0.0
    """The time of the last event."""
    last_number: int = 0
    delivered: Mapping[str, int] = field(default_factory=dict)
    """Messages to the agent: the event that shows it as heard, until then the one that shows it as told."""
    through: bool = False
    """It reported that it is finished; only its end is missing."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The call that returned most often without anything new."""

    call: ToolUse
    times: int
    first: int
    """The number of the first return that was not new."""
    since: float
    """Its time."""


class ActivityReader:
    """Reads journal facts as they come, each once: a long run costs no more per fact than a short one."""

    def __init__(self) -> None:
        self._open: dict[str, ToolUse] = {}
        self._asking: dict[str, float] = {}
        self._returned: list[ToolReturn] = []
        self._seen: set[tuple[str, str]] = set()
        self._delivered: dict[str, int] = {}
        self._last_at, self._last_number, self._through = 0.0, 0, False

    def add(self, one: JournalFact) -> None:
        self._last_at, self._last_number = one.time, one.number
        if one.kind in ("told", "heard"):
            self._delivered[str(one.facts.get("id"))] = one.number
        id, question = str(one.facts.get("call") or ""), str(one.facts.get("question") or "")
        match one.kind:
            case "begins" if id:
                self._open[id] = _call(one, id)
            case "returned" if id in self._open:
                back = _return(one, self._open.pop(id), self._seen)
                self._seen.add(back.same)
                self._returned.append(back)
            case "asked" if question:
                self._asking[question] = one.time
            case "answered":
                self._asking.pop(question, None)
            case "result":
                # A call that was cut off does not return.
                self._open.clear()
                self._through = True
            case "told" | "called" | "said":
                self._through = False

    def activity(self) -> Activity:
        return Activity(
            returned=tuple(self._returned),
            open=tuple(self._open.values()),
            asking=tuple(self._asking),
            asked_at=min(self._asking.values(), default=None),
            last_at=self._last_at,
            last_number=self._last_number,
            delivered=dict(self._delivered),
            through=self._through,
        )


def read(happenings: Iterable[JournalFact]) -> Activity:
    """All of them at once."""
    reader = ActivityReader()
    for one in happenings:
        reader.add(one)
    return reader.activity()


def repeats(returned: Sequence[ToolReturn], *, after: int) -> Repeats | None:
    """The call repeated since the last new result, and since the event `after`; None where there is none."""
    stale: list[ToolReturn] = []
    for one in reversed(returned):
        if one.is_new or one.number <= after:
            break
        stale.append(one)
    if not stale:
        return None
    most, times = Counter(one.same for one in stale).most_common(1)[0]
    found = next(one for one in stale if one.same == most)
    # The first time it was new, unless that was before the last intervention.
    before = any(one.same == most and one.is_new and one.number > after for one in returned)
    return Repeats(call=found.call, times=times + before, first=stale[-1].number, since=stale[-1].time)


def red_again(returned: Sequence[ToolReturn], *, after: int) -> Repeats | None:
    """The same tests, failing in the same way each time, whatever was changed between; None where they moved."""
    told = [one for one in returned if one.tests is not None and one.number > after]
    stale: list[ToolReturn] = []
    for one in reversed(told):
        if not one.comparable or one.tests is None or not one.tests.failed or one.same != told[-1].same:
            break
        stale.append(one)
    if not stale:
        return None
    return Repeats(call=stale[0].call, times=len(stale), first=stale[-1].number, since=stale[-1].time)


def new_since(returned: Sequence[ToolReturn], number: int) -> int:
    """How many calls returned something new after this event."""
    return sum(1 for one in returned if one.is_new and one.number > number)


def _call(begins: JournalFact, id: str) -> ToolUse:
    facts = begins.facts
    return ToolUse(
        id=id,
        tool=str(facts.get("tool") or ""),
        words=str(facts.get("input") or ""),
        input=str(facts.get("digest") or ""),
        since=begins.time,
        number=begins.number,
    )


def _return(event: JournalFact, call: ToolUse, seen: set[tuple[str, str]]) -> ToolReturn:
    result = str(event.facts.get("gist") or "")
    tests: Tally | None = None
    match event.facts.get("tests"):
        case [int(failed), int(passed)]:
            tests = Tally(failed=failed, passed=passed)
    same = (call.input, result)
    # What cannot be compared never counts against an agent.
    is_new = same not in seen or not (call.input and result)
    return ToolReturn(call=call, number=event.number, time=event.time, result=result, tests=tests, is_new=is_new)


_NOISE = 0.05
"""Seconds of processor time that do not count: a waiting process wakes up now and then."""
_NOISE_SHARE = 0.002
"""And this share of the elapsed time."""


@dataclass(frozen=True, kw_only=True)
class ProcessLoad:
    """What a set of processes has used so far."""

    cpu: float
    """Seconds."""
    bytes: int
    """Read and written."""
    processes: str
    """Identifies the set; another text for any other set."""
    count: int


NO_PROCESSES = ProcessLoad(cpu=0.0, bytes=0, processes="", count=0)


@dataclass(frozen=True, kw_only=True)
class Observation:
    run: int
    tree: str = ""
    tree_since: int = 0
    """The number of the journal's last event when the files were first seen in this state."""
    tree_at: float = 0.0
    """When they were last seen to change; 0 where they never did."""
    idle_since: float | None = None
    cpu: float = 0.0
    bytes: int = 0
    processes: str = ""

    @property
    def known_tree_since(self) -> int | None:
        return self.tree_since if self.tree else None


def felt(watch: Observation, load: ProcessLoad | None, now: float) -> Observation:
    """Updated with what the processes have done since; None where that is unknown."""
    if load is None or not load.count:
        return replace(watch, idle_since=None, cpu=0.0, bytes=0, processes="")
    since = watch.idle_since if watch.idle_since is not None else now
    allowed = _NOISE + _NOISE_SHARE * (now - since)
    same = load.processes == watch.processes and load.bytes == watch.bytes
    if same and 0 <= load.cpu - watch.cpu <= allowed:
        return replace(watch, idle_since=since)
    return replace(watch, idle_since=None, cpu=load.cpu, bytes=load.bytes, processes=load.processes)


def looked(watch: Observation, tree: str, number: int, now: float) -> Observation:
    """Updated with the present state of the files, after this event of the journal."""
    if tree == watch.tree:
        return watch
    return replace(watch, tree=tree, tree_since=number, tree_at=now if watch.tree else watch.tree_at)


def worth_keeping(before: Observation | None, now: Observation) -> bool:
    """The counters of a busy process are outdated a moment later; a new daemon measures them again."""
    if before is None:
        return now.idle_since is not None or bool(now.tree)
    return before.tree != now.tree or before.idle_since != now.idle_since
