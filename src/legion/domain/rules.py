"""The rules by which things happen, by name, so that every event can give its reason."""

from __future__ import annotations

from enum import Enum

from legion.domain.events import Event, EventKind
from legion.domain.questions import SettledBy
from legion.domain.tickets.ticket import (
    AlreadyThere,
    Approve,
    AskReview,
    Cause,
    Confirm,
    Fail,
    Inspect,
    Land,
    Park,
    ParkReason,
    Propose,
    Prove,
    Recheck,
    Resume,
    Retry,
    Rewind,
    Start,
    StartPointUsed,
    Step,
    Stop,
    Submit,
    TryAgain,
    Unpark,
)


class Rule(Enum):
    """Values are stored; DESCRIPTIONS has a sentence for each."""

    PERSON = "person"
    READY = "ready"
    TREE_DECIDES = "tree-decides"
    PROVEN = "proven"
    ALREADY_THERE = "already-there"
    REVIEWED = "reviewed"
    GREEN_LANDS = "green-lands"
    SMALL_FIRST = "small-first"
    BATCH_LEARNS = "batch-learns"
    RED_GOES_BACK = "red-goes-back"
    CONFLICT_GOES_BACK = "conflict-goes-back"
    REVIEW_GOES_BACK = "review-goes-back"
    ATTEMPT_GOES_BACK = "attempt-goes-back"
    LADDER = "ladder"
    GIVEN_UP = "given-up"
    LOST_IS_NO_FAULT = "lost-is-no-fault"
    ADVICE_FIRST = "advice-first"
    STARTS_FROM_LANDED = "starts-from-landed"
    BLAMELESS = "blameless"
    LIMIT_IS_NO_FAILURE = "limit-is-no-failure"
    REFUSED_WAITS = "refused-waits"
    QUESTION_WAITS = "question-waits"
    GATE = "gate"
    LOW_RISK = "low-risk"
    PERSON_HOOK = "person-hook"
    BUDGET = "budget"
    NO_ROOM = "no-room"
    REST = "rest"
    MERGED_ELSEWHERE = "merged-elsewhere"
    WAITED_ENOUGH = "waited-enough"
    FIXED = "fixed"
    BROKEN_IS_NOT_RED = "broken-is-not-red"
    GOVERNOR = "governor"
    QUIET_HOURS = "quiet-hours"
    PERSON_IS_BUSY = "person-is-busy"
    ONE_BY_ONE = "one-by-one"
    OVERLAP_WAITS = "overlap-waits"
    CONFLICT_WARNING = "conflict-warning"
    FLAKY_BLAMES_NONE = "flaky-blames-none"
    LOOPS_ARE_BROKEN = "loops-are-broken"
    HANGING_IS_CUT_OFF = "hanging-is-cut-off"
    SILENT_IS_WOKEN = "silent-is-woken"
    DEAD_IS_ENDED = "dead-is-ended"
    TARGET_FOLLOWS = "target-follows"
    PERSON_IS_ABSORBED = "person-is-absorbed"
    RED_IS_FIXED_FIRST = "red-is-fixed-first"
    SILENCE_ANSWERS = "silence-answers"
    RACE = "race"
    RESULT_DECIDES = "result-decides"
    MOOT_IS_WITHDRAWN = "moot-is-withdrawn"
    FIRED_IS_REPLACED = "fired-is-replaced"
    REVERSAL_TELLS = "reversal-tells"
    CHECKS_SEE_THE_TREE = "checks-see-the-tree"
    UNNAMED = "unnamed"


WORDS = {
    Rule.PERSON: "a person asked for it, or an agent that may",
    Rule.READY: "everything it comes after is done, and there is room",
    Rule.TREE_DECIDES: "the tree decides, not what the agent reports",
    Rule.PROVEN: "its own proofs are green, or it has none",
    Rule.ALREADY_THERE: "what another ticket brought needs no attempt: proofs that were red before it are green",
    Rule.REVIEWED: "an independent agent reads the change",
    Rule.GREEN_LANDS: "the target moves only to a commit whose checks passed on exactly that commit",
    Rule.SMALL_FIRST: "of equal priority the smaller change goes first, until it was overtaken three times",
    Rule.BATCH_LEARNS: "half as many changes are tried together after two red batches, up to twice as many after green",
    Rule.RED_GOES_BACK: "a change that fails the checks goes back with the output for another attempt",
    Rule.CONFLICT_GOES_BACK: "a change that conflicts with what landed goes back with the lines for another attempt",
    Rule.REVIEW_GOES_BACK: "a change that is not approved goes back with the findings for another attempt",
    Rule.ATTEMPT_GOES_BACK: "an attempt that left nothing fit to land is followed by another",
    Rule.LADDER: "attempts that are used up are followed by fresh eyes, then by stronger models, then by a question",
    Rule.GIVEN_UP: "there is no attempt left, or no further one could help",
    Rule.LOST_IS_NO_FAULT: "a run that was cut off through no fault of the agent resumes as the same attempt",
    Rule.ADVICE_FIRST: "the advisors of a team come before its builder",
    Rule.STARTS_FROM_LANDED: "the next attempt starts from what landed meanwhile",
    Rule.BLAMELESS: "no ticket is blamed for what the target itself fails",
    Rule.LIMIT_IS_NO_FAILURE: "a provider's limit is no failure; work resumes when it is over",
    Rule.REFUSED_WAITS: "a provider that refuses to serve needs a person to fix it",
    Rule.QUESTION_WAITS: "only a person can settle it",
    Rule.GATE: "a change behind the person's gate lands when the person says so",
    Rule.LOW_RISK: "a change of low risk passes a gate that says so",
    Rule.PERSON_HOOK: "a hook of the person sends work back; one that crashes or takes too long decides nothing",
    Rule.BUDGET: "what may be spent is spent",
    Rule.NO_ROOM: "no machine has room for it",
    Rule.REST: "an attempt that ended at once and changed nothing is followed by a rest",
    Rule.MERGED_ELSEWHERE: "with pull requests, a proven change lands when the forge has merged it",
    Rule.WAITED_ENOUGH: "what it waited for has come",
    Rule.FIXED: "a person fixed what it waited for",
    Rule.BROKEN_IS_NOT_RED: "a job that could not be done blames no ticket and is retried",
    Rule.GOVERNOR: "work slows down before a provider's limit and holds at it until its reset",
    Rule.QUIET_HOURS: "no agent starts in the quiet hours",
    Rule.PERSON_IS_BUSY: "nothing new starts while so many tickets wait for a person",
    Rule.ONE_BY_ONE: "agents start one after the other",
    Rule.OVERLAP_WAITS: "a ticket that will change what another changes waits for it, or starts on its proven change",
    Rule.CONFLICT_WARNING: "open changes are merged with each other, and agents are warned of conflicts early",
    Rule.FLAKY_BLAMES_NONE: "a check that fails and passes on the same tree blames no ticket",
    Rule.LOOPS_ARE_BROKEN: "an agent that repeats a call with the same result is nudged, interrupted, then replaced",
    Rule.HANGING_IS_CUT_OFF: "a tool that uses no processor and moves no byte is cut off, then the run",
    Rule.SILENT_IS_WOKEN: "an agent without a call, a process or a model request is nudged, then interrupted",
    Rule.DEAD_IS_ENDED: "a run whose program has died is ended",
    Rule.TARGET_FOLLOWS: "where your branch held all of the target, the target follows it, forward and back",
    Rule.PERSON_IS_ABSORBED: "your own commits go through the same checks, are never rewritten, and delay no ticket",
    Rule.RED_IS_FIXED_FIRST: "what a checkpoint finds is fixed before anything behind it moves",
    Rule.RACE: "of several attempts of one ticket, the best proven one lands and the others are kept",
    Rule.RESULT_DECIDES: "a ticket with a condition starts after that result, and is not needed after any other",
    Rule.SILENCE_ANSWERS: "a question without an answer in time is settled as if it had not been asked",
    Rule.MOOT_IS_WITHDRAWN: "a question is withdrawn with its subject",
    Rule.FIRED_IS_REPLACED: "a fired agent leaves no message unread and no report without a parent",
    Rule.REVERSAL_TELLS: "a proof that passes without the change proves nothing, and is reported",
    Rule.CHECKS_SEE_THE_TREE: "a check that stays green when the code is broken proves nothing",
    Rule.UNNAMED: "the table of moves",
}

_PARKED = {
    ParkReason.PAUSED: Rule.PERSON,
    ParkReason.RED_BASELINE: Rule.BLAMELESS,
    ParkReason.LIMIT: Rule.LIMIT_IS_NO_FAILURE,
    ParkReason.PROVIDER: Rule.REFUSED_WAITS,
    ParkReason.QUESTION: Rule.QUESTION_WAITS,
    ParkReason.BUDGET: Rule.BUDGET,
    ParkReason.NO_MACHINE: Rule.NO_ROOM,
    ParkReason.RESTING: Rule.REST,
    ParkReason.OUTSIDE: Rule.MERGED_ELSEWHERE,
}
_BACK = {
    Cause.CHECKS: Rule.RED_GOES_BACK,
    Cause.CONFLICT: Rule.CONFLICT_GOES_BACK,
    Cause.REVIEW: Rule.REVIEW_GOES_BACK,
    Cause.ATTEMPT: Rule.ATTEMPT_GOES_BACK,
    Cause.SIZE: Rule.ATTEMPT_GOES_BACK,
}
_PLAIN: dict[type[Step], Rule] = {
    Submit: Rule.PERSON,
    Stop: Rule.PERSON,
    Retry: Rule.PERSON,
    Rewind: Rule.PERSON,
    Start: Rule.READY,
    Inspect: Rule.READY,
    StartPointUsed: Rule.STARTS_FROM_LANDED,
    Propose: Rule.TREE_DECIDES,
    Prove: Rule.PROVEN,
    AlreadyThere: Rule.ALREADY_THERE,
    Recheck: Rule.ALREADY_THERE,
    AskReview: Rule.REVIEWED,
    Approve: Rule.REVIEWED,
    Land: Rule.GREEN_LANDS,
    Confirm: Rule.GREEN_LANDS,
    Resume: Rule.LOST_IS_NO_FAULT,
    Unpark: Rule.WAITED_ENOUGH,
    Fail: Rule.GIVEN_UP,
}


def rule_of(step: Step) -> Rule:
    """The rule by which a step is taken, unless the caller names a more exact one."""
    match step:
        case Park(reason):
            return _PARKED.get(reason, Rule.UNNAMED)
        case TryAgain(cause=cause):
            return _BACK.get(cause, Rule.UNNAMED)
        case _:
            return _PLAIN.get(type(step), Rule.UNNAMED)


_OF_KINDS = {
    EventKind.TICKET_CREATED: Rule.PERSON,
    EventKind.AGENT_ADOPTED: Rule.FIRED_IS_REPLACED,
    EventKind.MAIL_RETURNED: Rule.FIRED_IS_REPLACED,
    EventKind.QUESTION_ASKED: Rule.QUESTION_WAITS,
    EventKind.REVERSED: Rule.REVERSAL_TELLS,
    EventKind.EMPTIED: Rule.CHECKS_SEE_THE_TREE,
    EventKind.TRIED: Rule.CHECKS_SEE_THE_TREE,
    EventKind.REVIEW_ASKED: Rule.REVIEWED,
    EventKind.BASELINE_RED: Rule.BLAMELESS,
    EventKind.BASELINE_GREEN: Rule.BLAMELESS,
    EventKind.TARGET_MOVED: Rule.GREEN_LANDS,
    EventKind.PERSON_SEEN: Rule.PERSON_IS_ABSORBED,
    EventKind.ABSORBED: Rule.PERSON_IS_ABSORBED,
    EventKind.NOT_ABSORBED: Rule.PERSON_IS_ABSORBED,
}
_SETTLED = {
    SettledBy.SILENCE.value: Rule.SILENCE_ANSWERS,
    SettledBy.END.value: Rule.MOOT_IS_WITHDRAWN,
    SettledBy.RULE.value: Rule.LOW_RISK,
}


_RENAMED = {
    "tree-counts": Rule.TREE_DECIDES.value,
    "new-ground": Rule.STARTS_FROM_LANDED.value,
    "limits-are-weather": Rule.LIMIT_IS_NO_FAILURE.value,
    "mended": Rule.FIXED.value,
    "clash-is-told": Rule.CONFLICT_WARNING.value,
    "flaky-blames-nobody": Rule.FLAKY_BLAMES_NONE.value,
    "dead-is-buried": Rule.DEAD_IS_ENDED.value,
    "red-is-mended-first": Rule.RED_IS_FIXED_FIRST.value,
    "gone-is-succeeded": Rule.FIRED_IS_REPLACED.value,
}
"""Names of earlier releases, which stored events still have."""


def decided_by(event: Event) -> str:
    """The name of the rule by which it happened; empty for a plain fact."""
    named = event.data.get("rule")
    if isinstance(named, str) and named:
        return _RENAMED.get(named, named)
    if event.kind is EventKind.QUESTION_SETTLED:
        return _SETTLED.get(str(event.data.get("by")), Rule.PERSON).value
    found = _OF_KINDS.get(event.kind)
    return found.value if found is not None else ""
