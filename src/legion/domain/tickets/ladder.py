"""The ladder: what changes after a ticket's attempts failed, before a person is asked.

A ticket has a number of attempts in one conversation; that is one rung. The next rung has as many in a new conversation
whose agent gets a summary of what was tried: fresh eyes. Then come stronger models, each with a conversation of its
own; `@codex` or `@codex gpt-5` on the ladder is another program, with its own model or that one. The rung follows from
the count of attempts alone, so nothing is stored; where a rung is left early, its remaining attempts count as if they
had been made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from legion.domain.text import count
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Cause, Fail, Park, Parked, ParkReason, Ticket, TryAgain

_PROGRAM = "@"
"""Starts an entry that names a program."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    model: str
    """Empty: the agent program's own choice."""
    rule: str
    """Why it is like that, for people."""
    driver: str = ""
    """Another program; empty: the ticket's own."""


def rungs(model: str, escalation: Sequence[str], *, fresh_eyes: bool, label: str = "") -> tuple[Rung, ...]:
    """From the first to the last. `model` is the ticket's first model; an unknown one has nothing above it.

    With a `label`, `escalation` is that of the label alone: a model that is not on it has all of it above it.
    """
    first = [Rung(model=model, rule="the first conversation")]
    if fresh_eyes:
        first.append(Rung(model=model, rule="fresh eyes: a new conversation with a summary of what was tried"))
    whose = f"the ladder of {label}" if label else "the ladder"
    above = _above(model, escalation) if not label or _known(model, escalation) else tuple(escalation)
    return (*first, *(_rung(name, whose) for name in above))


def _rung(entry: str, whose: str) -> Rung:
    driver, model = parts(entry)
    kind = "program" if driver else "model"
    return Rung(
        model=model, driver=driver, rule=f"the next {kind} of {whose}: {' '.join(filter(None, (driver, model)))}"
    )


def parts(entry: str) -> tuple[str, str]:
    """The program and the model of an entry of a ladder; either may be empty."""
    if not entry.startswith(_PROGRAM):
        return "", entry
    driver, _, model = entry.removeprefix(_PROGRAM).partition(" ")
    return driver, model.strip()


def label_of(labels: Iterable[str], ladders: Mapping[str, Sequence[str]]) -> str:
    """The ticket's first label that has a ladder of its own; empty where none has."""
    return next((label for label in labels if label in ladders), "")


def place(ticket: Ticket) -> int:
    """The rung of the ticket's latest attempt, counted from 0."""
    return max(0, ticket.used - 1) // ticket.spec.max_attempts


def begins(ticket: Ticket) -> bool:
    """Is the latest attempt the first of a rung above the first?"""
    used = ticket.used - 1
    return used >= ticket.spec.max_attempts and used % ticket.spec.max_attempts == 0


def used_up(ticket: Ticket, ladder: Sequence[Rung]) -> bool:
    return ticket.used >= ticket.spec.max_attempts * len(ladder)


def leaving(ticket: Ticket) -> Ticket:
    """The ticket as if the attempts of its rung were used up: the next one is on the next rung."""
    left = -ticket.used % ticket.spec.max_attempts
    return replace(ticket, skipped=ticket.skipped + left)


def climb(ticket: Ticket, step: Fail, ladder: Sequence[Rung]) -> TryAgain:
    """The next attempt in place of the end. Its reason names the rung where that changes."""
    counted = leaving(ticket) if step.leaves else ticket
    rung = min(counted.used // ticket.spec.max_attempts, len(ladder) - 1)
    new = counted.used % ticket.spec.max_attempts == 0 and not used_up(counted, ladder)
    reason = f"{step.why}; next: {ladder[rung].rule}" if new else step.why
    return TryAgain(reason, step.feedback, step.ground, step.cause, counted.skipped - ticket.skipped)


def _above(model: str, escalation: Sequence[str]) -> tuple[str, ...]:
    if not model:
        # The program's own choice is not known; only the strongest model is certainly no step down.
        return tuple(escalation[-1:])
    known = _known(model, escalation)
    return tuple(escalation[known[-1] + 1 :]) if known else ()


def _known(model: str, escalation: Sequence[str]) -> list[int]:
    """The models above the given one."""
    names = [parts(entry)[1].casefold() for entry in escalation]
    return [at for at, name in enumerate(names) if name and name in model.casefold()]


# Decides what follows a failed attempt: the next one, a backoff before it, or the end.


def has_attempts(ticket: Ticket) -> bool:
    """Are there attempts left after the present one?"""
    return ticket.used < ticket.spec.max_attempts


def next_try(
    ticket: Ticket, reason: str, feedback: str, ground: StartPoint | None = None, cause: Cause = Cause.ATTEMPT
) -> TryAgain | Fail:
    """The next attempt while there are any left, else the end."""
    if has_attempts(ticket):
        return TryAgain(reason, feedback, ground, cause)
    return Fail(f"gave up after {tries_of(ticket)}: {reason}", feedback, ground, cause, why=reason)


def next_try_after_no_change(ticket: Ticket, reason: str, feedback: str, *, again: bool) -> TryAgain | Fail:
    """The next attempt after one that changed nothing. If it is the second one in a row (`again`), a person is
    asked.
    """
    if not again:
        return next_try(ticket, reason, feedback)
    return Fail(f"gave up after {tries_of(ticket)}: {reason}", feedback, why=reason, asks=True)


MOST_FORGIVEN = 20
"""Conflicts of one ticket that cost no attempt, so that a ticket that never wins ends at last."""


def next_try_after_conflict(ticket: Ticket, reason: str, feedback: str, ground: StartPoint) -> TryAgain | Fail:
    """The next attempt after a conflict with what landed meanwhile. That is not the agent's fault: it costs no attempt,
    unless the person wants a single one.
    """
    if ticket.spec.max_attempts > 1 and ticket.skipped > -MOST_FORGIVEN:
        return TryAgain(reason, feedback, ground, Cause.CONFLICT, skips=-1)
    return next_try(ticket, reason, feedback, ground, Cause.CONFLICT)


RESOLUTIONS = 2
"""Failed resolutions after which a neutral hand takes over."""


def failed_resolutions(causes: Iterable[Cause]) -> int:
    """How many attempts in a row did not land after a conflict, by why each was sent back. A review ends the count: the
    change fitted. After enough of them it continues: who took over stays.
    """
    failed: int | None = None
    for cause in causes:
        if cause is Cause.REVIEW and (failed or 0) < RESOLUTIONS:
            failed = None
        elif failed is not None:
            failed += 1
        elif cause is Cause.CONFLICT:
            failed = 0
    return failed or 0


def tries_of(ticket: Ticket) -> str:
    """How many attempts were made since a person last asked for it."""
    return count(ticket.attempt - ticket.spared, "attempt")


AT_ONCE = 3.0
"""Seconds: a program that ends sooner without a trace has probably not started properly."""
_LONGEST_REST = 60.0


def rests_too_long(parked: Parked, now: float) -> bool:
    """No rest ends that late, so the clock was set back since it started."""
    return parked.reason is ParkReason.RESTING and parked.until is not None and parked.until - now > _LONGEST_REST


def rest(ticket: Ticket, why: str, now: float) -> Park:
    """The backoff before the next attempt, where one ended at once and changed nothing. It doubles each time: a program
    that cannot work would otherwise use up all attempts in a second.
    """
    seconds = min(2.0 ** (ticket.attempt - ticket.spared - 1), _LONGEST_REST)
    detail = f"{why}; it rests {seconds:g} s, or until `legion resume {ticket.id}`"
    return Park(ParkReason.RESTING, detail, until=now + seconds)
