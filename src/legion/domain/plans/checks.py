"""Checks a draft as code is checked: order, files, proofs, overlaps, size, and whether its first tickets can start.

Every finding names its ticket and says what to change, so that it can go back to the planner as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations

from legion.domain.checks import cannot_run
from legion.domain.errors import BadInput
from legion.domain.plans.draft import PlanDraft, PlanTicket, earlier
from legion.domain.review.path_patterns import matches, meet
from legion.domain.tickets import board
from legion.domain.tickets.evidence import check_named

MOST_FILES = 25
MOST_LINES = 1500
"""What one ticket may be expected to change."""


class FindingKind(Enum):
    CIRCLE = "circle"
    """Tickets wait for each other."""
    UNKNOWN = "unknown"
    """It names a ticket, a key or a check that does not exist."""
    FILE = "file"
    """A file is neither in the target nor said to be new."""
    PROOF = "proof"
    """A ticket has no criterion, or one without a proof or a reason for that, or a proof that proves nothing."""
    OVERLAP = "overlap"
    """Two tickets that may run at the same time expect the same files."""
    SIZE = "size"
    """A ticket is too large."""
    START = "start"
    """A ticket that could start at once cannot run."""


IMPOSSIBLE = frozenset({FindingKind.CIRCLE, FindingKind.UNKNOWN})
"""A draft with these cannot be dispatched, whatever a person decides."""


@dataclass(frozen=True, kw_only=True)
class PlanFinding:
    kind: FindingKind
    ticket: str
    """Its key; empty where several are concerned."""
    text: str


@dataclass(frozen=True, kw_only=True)
class ProofTrial:
    """What a proof said on the target, where nothing of the plan is done yet."""

    exit_code: int | None
    """None: it was not tried to its end."""
    said: str = ""
    """The end of its output; why it was not tried."""
    tree: str = ""
    """The target's."""


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """What a draft is checked against."""

    exists: Callable[[str], bool]
    """Whether the target has a file or folder of that path or pattern."""
    checks: Collection[str] = ()
    """Names of the project's checks."""
    tickets: Collection[int] = ()
    """Tickets that one may come after."""
    approved: Collection[str] = ()
    """Keys of tickets that were dispatched: they are not checked again."""
    made: Collection[str] = ()
    """Files that tickets of the board are expected to create."""
    cannot_start: str = ""
    """Why no ticket can run as things are, for example a missing program; empty if nothing is wrong."""
    trials: Mapping[str, ProofTrial] = field(default_factory=dict)
    """By command."""
    most_files: int = MOST_FILES
    most_lines: int = MOST_LINES


def findings(draft: PlanDraft, facts: PlanFacts) -> tuple[PlanFinding, ...]:
    """Everything that is wrong with the draft, in the order of its tickets."""
    wrong = [*_order(draft, facts)]
    if any(one.kind in IMPOSSIBLE for one in wrong):
        return tuple(wrong)
    before = earlier(draft)
    new = [one for one in draft.tickets if one.key not in facts.approved]
    for ticket in new:
        wrong += _files(draft, ticket, before[ticket.key], facts)
        coming = {path for one in draft.tickets if one.key in before[ticket.key] for path in one.new_files}
        wrong += _proofs(ticket, facts, {*coming, *ticket.new_files})
        wrong += _size(ticket, facts)
    wrong += _overlaps(draft.tickets, before, facts.approved)
    if facts.cannot_start and any(not one.after for one in new):
        wrong.append(PlanFinding(kind=FindingKind.START, ticket="", text=facts.cannot_start))
    return tuple(wrong)


def _order(draft: PlanDraft, facts: PlanFacts) -> Iterator[PlanFinding]:
    for ticket in draft.tickets:
        if ticket.key in facts.approved:
            continue
        for key in ticket.after:
            if key not in draft.keys:
                text = f"`after` names `{key}`, which is no key of this plan"
                yield PlanFinding(kind=FindingKind.UNKNOWN, ticket=ticket.key, text=text)
        for key in ticket.when.steps if ticket.when else ():
            if key not in draft.keys:
                text = f"`when` names `{key}`, which is no key of this plan"
                yield PlanFinding(kind=FindingKind.UNKNOWN, ticket=ticket.key, text=text)
        for number in ticket.after_tickets:
            if number not in facts.tickets:
                text = f"`after` names ticket {number}, which is not on the board"
                yield PlanFinding(kind=FindingKind.UNKNOWN, ticket=ticket.key, text=text)
        yield from _unknown_checks(ticket, facts)
    try:
        board.refuse_cycles(draft.edges, dict(enumerate(draft.keys)))
    except BadInput as circle:
        yield PlanFinding(kind=FindingKind.CIRCLE, ticket="", text=circle.message.rstrip("."))


def _unknown_checks(ticket: PlanTicket, facts: PlanFacts) -> Iterator[PlanFinding]:
    for one in ticket.criteria:
        name = check_named(one.proof)
        if name is not None and name not in facts.checks:
            there = ", ".join(sorted(facts.checks)) or "none"
            text = f"the proof [{name}] of {one.text!r} is no check of legion.toml (there: {there})"
            yield PlanFinding(kind=FindingKind.UNKNOWN, ticket=ticket.key, text=text)


def _files(draft: PlanDraft, ticket: PlanTicket, before: Collection[str], facts: PlanFacts) -> Iterator[PlanFinding]:
    """A file exists in the target, or a ticket before this one makes it."""
    made = [path for one in draft.tickets if one.key in before for path in one.new_files]
    for path in ticket.files:
        if facts.exists(path) or meet((path,), (*made, *facts.made)):
            continue
        later = next((one.key for one in draft.tickets if one.key != ticket.key and meet((path,), one.new_files)), "")
        hint = f"put this ticket after `{later}`, which makes it" if later else "list it in `new_files`, or correct it"
        yield PlanFinding(kind=FindingKind.FILE, ticket=ticket.key, text=f"{path} does not exist: {hint}")
    for path in ticket.new_files:
        if facts.exists(path) and not matches(path, ticket.files):
            text = f"{path} exists already: list it in `files`"
            yield PlanFinding(kind=FindingKind.FILE, ticket=ticket.key, text=text)


def commands(draft: PlanDraft, approved: Collection[str] = ()) -> tuple[str, ...]:
    """Every proof of tickets that are not approved that is a command of its own, once."""
    new = [ticket for ticket in draft.tickets if not ticket.checkpoint and ticket.key not in approved]
    named = (one.proof for ticket in new for one in ticket.criteria)
    return tuple(dict.fromkeys(proof for proof in named if proof and check_named(proof) is None))


_CANNOT_RUN = (126, 127)
"""How a shell ends that finds no such program, or may not run it."""


def _fault(proof: str, trial: ProofTrial, coming: Collection[str]) -> str:
    """What is wrong with a proof, by what it said on the target; empty where it failed there, as it should.

    `coming`: files that are there when it is run in earnest.
    """
    if trial.exit_code == 0:
        return f"the proof `{proof}` proves nothing: it passes without the change"
    said = trial.said.strip().splitlines()[-1:] or [f"exit code {trial.exit_code}"]
    if cannot_run(trial.exit_code, trial.said) or (
        trial.exit_code in _CANNOT_RUN and not any(path.rpartition("/")[2] in trial.said for path in coming)
    ):
        return f"the proof `{proof}` cannot run: {said[0]}"
    return ""


def _proofs(ticket: PlanTicket, facts: PlanFacts, coming: Collection[str]) -> Iterator[PlanFinding]:
    if ticket.checkpoint:
        return
    if not ticket.criteria:
        text = "it has no criterion: say when it is done"
        yield PlanFinding(kind=FindingKind.PROOF, ticket=ticket.key, text=text)
    for one in ticket.criteria:
        if not one.proof and not one.why_not:
            text = f"no proof for {one.text!r}: add a command, `[check]`, or `why_not`"
            yield PlanFinding(kind=FindingKind.PROOF, ticket=ticket.key, text=text)
        trial = facts.trials.get(one.proof)
        if trial is not None and (text := _fault(one.proof, trial, coming)):
            yield PlanFinding(kind=FindingKind.PROOF, ticket=ticket.key, text=text)


def _size(ticket: PlanTicket, facts: PlanFacts) -> Iterator[PlanFinding]:
    many = len(ticket.touches)
    if many > facts.most_files:
        text = f"it expects {many} files, and {facts.most_files} are the most: split it"
        yield PlanFinding(kind=FindingKind.SIZE, ticket=ticket.key, text=text)
    if ticket.lines > facts.most_lines:
        text = f"it expects {ticket.lines} lines, and {facts.most_lines} are the most: split it"
        yield PlanFinding(kind=FindingKind.SIZE, ticket=ticket.key, text=text)


def _overlaps(
    tickets: Sequence[PlanTicket], before: Mapping[str, Collection[str]], approved: Collection[str]
) -> Iterator[PlanFinding]:
    for one, other in combinations(tickets, 2):
        if one.key in approved and other.key in approved:
            continue
        if one.key in before[other.key] or other.key in before[one.key]:
            continue
        shared = [path for path in one.touches if meet((path,), other.touches)]
        if shared:
            text = f"`{one.key}` and `{other.key}` may run at once and both expect {shared[0]}: order them with `after`"
            yield PlanFinding(kind=FindingKind.OVERLAP, ticket=other.key, text=text)
