"""Checks a draft as code is checked: order, files, proofs, overlaps, size, and whether its first tickets can start.

Every finding names its ticket and says what to change, so that it can go back to the planner as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations

from legion.domain.checks import cannot_run, never_passes
from legion.domain.errors import BadInput
from legion.domain.plans.answer import GoalPoint, PointState
from legion.domain.plans.draft import PlanDraft, PlanTicket, earlier
from legion.domain.review.path_patterns import matches, meet
from legion.domain.text import hidden_in, reveal
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
    BOARD = "board"
    """An open ticket says the same, or expects or makes the same file, and it does not come after that."""
    GOAL = "goal"
    """An older plan or epic that is not complete has this goal."""
    POINT = "point"
    """What a last reader says of a point of the goal is not what its command says."""
    HIDDEN = "hidden"
    """A text has characters or a comment that a screen does not show."""
    START = "start"
    """A ticket that could start at once cannot run."""


IMPOSSIBLE = frozenset({FindingKind.CIRCLE, FindingKind.UNKNOWN})
"""A draft with these cannot be dispatched, whatever a person decides."""
OF_THE_PERSON = frozenset({FindingKind.GOAL, FindingKind.START})
"""No planner can do anything about these."""


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
class BoardTicket:
    """An open ticket that the plan does not replace."""

    number: int
    title: str
    files: Collection[str] = ()
    """Those that it declares or has changed."""


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
    board: Sequence[BoardTicket] = ()
    before: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """What each ticket of the board comes after."""
    same_goal: str = ""
    """The name of an older plan or epic that has this goal and is not complete."""
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
    known = _Board(facts.board)
    if facts.same_goal:
        text = f"{facts.same_goal} has this goal and is not complete: continue it, or say what this plan adds"
        wrong.append(PlanFinding(kind=FindingKind.GOAL, ticket="", text=text))
    wrong += _repeated(new)
    for ticket in new:
        wrong += _files(draft, ticket, before[ticket.key], facts, known)
        wrong += _on_board(draft, ticket, before[ticket.key], facts, known)
        coming = {path for one in draft.tickets if one.key in before[ticket.key] for path in one.new_files}
        wrong += _proofs(ticket, facts, {*coming, *ticket.new_files})
        wrong += _size(ticket, facts)
        written = (*(text for one in ticket.criteria for text in vars(one).values()), ticket.title, ticket.text)
        if unseen := [sign for text in (*written, ticket.context, ticket.plan) for sign in _unseen(text)]:
            text = f"{reveal(unseen[0])} is in its texts, where no person sees it: leave it out"
            wrong.append(PlanFinding(kind=FindingKind.HIDDEN, ticket=ticket.key, text=text))
    wrong += _overlaps(draft.tickets, before, facts.approved)
    if facts.cannot_start and any(not one.after for one in new):
        wrong.append(PlanFinding(kind=FindingKind.START, ticket="", text=facts.cannot_start))
    return tuple(wrong)


def _unseen(text: str) -> list[str]:
    return [*hidden_in(text), *(["a comment `<!--`"] if "<!--" in text else [])]


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


def _files(
    draft: PlanDraft, ticket: PlanTicket, before: Collection[str], facts: PlanFacts, known: _Board
) -> Iterator[PlanFinding]:
    """A file exists in the target, or a ticket before this one makes it."""
    made = [path for one in draft.tickets if one.key in before for path in one.new_files]
    for path in ticket.files:
        if facts.exists(path) or meet((path,), made) or known.with_file(path):
            continue
        later = next((one.key for one in draft.tickets if one.key != ticket.key and meet((path,), one.new_files)), "")
        hint = f"put this ticket after `{later}`, which makes it" if later else "list it in `new_files`, or correct it"
        yield PlanFinding(kind=FindingKind.FILE, ticket=ticket.key, text=f"{path} does not exist: {hint}")
    for path in ticket.new_files:
        if facts.exists(path) and not matches(path, ticket.files):
            text = f"{path} exists already: list it in `files`"
            yield PlanFinding(kind=FindingKind.FILE, ticket=ticket.key, text=text)


_WORD = re.compile(r"\w+")
_FILLERS = frozenset(_WORD.findall("a an the to of for in on and with add make write create implement new"))
_MOST_NAMED = 3


def words_of(text: str) -> frozenset[str]:
    """What a title or goal says, whatever its order and small words."""
    words = frozenset(_WORD.findall(text.casefold()))
    return words - _FILLERS or words


class _Board:
    """Open tickets by what they say and by their files."""

    def __init__(self, tickets: Sequence[BoardTicket]) -> None:
        self.titles = {one.number: one.title for one in tickets}
        self._said = {one.number: words_of(one.title) for one in tickets}
        self._at: dict[str, set[int]] = {}
        self._below: dict[str, set[int]] = {}
        """By folder: those that expect something in it."""
        for path, number in [(path.rstrip("/"), one.number) for one in tickets for path in one.files]:
            self._at.setdefault(path, set()).add(number)
            for folder in _folders(path):
                self._below.setdefault(folder, set()).add(number)
        self._wild = [path for path in self._at if _is_pattern(path)]

    def same_words(self, title: str) -> list[int]:
        words = words_of(title)
        return [number for number, said in self._said.items() if said == words]

    def with_file(self, path: str) -> list[int]:
        """Those that expect this file or folder, something in it, or a folder that it is in."""
        path = path.rstrip("/")
        patterns = self._at if _is_pattern(path) else self._wild
        met = {path, *_folders(path), *(other for other in patterns if meet((path,), (other,)))}
        return sorted(self._below.get(path, set()).union(*(self._at.get(one, ()) for one in met)))


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def _folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _repeated(tickets: Sequence[PlanTicket]) -> Iterator[PlanFinding]:
    said: dict[frozenset[str], str] = {}
    for one in [one for one in tickets if not one.checkpoint]:
        first = said.setdefault(words_of(one.title), one.key)
        if first != one.key:
            text = f"it says the same as `{first}`: make one ticket of the two, or say in the title how they differ"
            yield PlanFinding(kind=FindingKind.OVERLAP, ticket=one.key, text=text)


def _on_board(
    draft: PlanDraft, ticket: PlanTicket, before: Collection[str], facts: PlanFacts, known: _Board
) -> Iterator[PlanFinding]:
    """What open tickets say or do that it neither waits for nor leaves to them."""
    if ticket.checkpoint:
        return
    named = [one for one in draft.tickets if one.key == ticket.key or one.key in before]
    waits = _closed([number for one in named for number in one.after_tickets], facts.before)
    clashes: dict[int, str] = {}
    for number in known.same_words(ticket.title):
        clashes[number] = "says the same: leave this ticket out, or"
    for path in ticket.touches:
        for number in known.with_file(path):
            does = "expects" if facts.exists(path) else "makes"
            clashes.setdefault(number, f"{does} {path}, too:")
    for number in [one for one in clashes if one not in waits][:_MOST_NAMED]:
        text = f"open ticket {number} ({known.titles[number][:80]}) {clashes[number]} put {number} in `after`"
        yield PlanFinding(kind=FindingKind.BOARD, ticket=ticket.key, text=text)


def _closed(numbers: Collection[int], before: Mapping[int, Sequence[int]]) -> set[int]:
    """With everything that they come after."""
    found, left = set[int](), list(numbers)
    while left:
        number = left.pop()
        if number not in found:
            found.add(number)
            left += before.get(number, ())
    return found


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
    # A part of a pipe that is no program does not decide its exit code.
    named = 127 if trial.exit_code else None
    if cannot_run(named, trial.said) or (
        trial.exit_code in _CANNOT_RUN and not any(path.rpartition("/")[2] in trial.said for path in coming)
    ):
        return f"the proof `{proof}` cannot run: {_last_line(trial)}"
    return ""


def of_points(points: Sequence[GoalPoint], trials: Mapping[str, ProofTrial]) -> tuple[PlanFinding, ...]:
    """Where a reader says something else than its own command, which was run on the target."""
    found = []
    for n, one in enumerate(points, 1):
        trial = trials.get(one.command)
        if trial is None or trial.exit_code is None or one.state is PointState.DIFFERENT:
            continue
        if (trial.exit_code == 0) is not (one.state is PointState.DONE):
            ends = "passes" if trial.exit_code == 0 else f"fails: {_last_line(trial)}"
            text = f"point {n} is said to be {one.state.value}, and its command `{one.command}` {ends}"
            found.append(PlanFinding(kind=FindingKind.POINT, ticket="", text=text))
    return tuple(found)


def shown_point(one: GoalPoint, trial: ProofTrial | None) -> str:
    """A point as a line of text, with what Legion saw of its command."""
    ran = None if trial is None or trial.exit_code is None else "fails" if trial.exit_code else "passes"
    proof = f"`{one.command}` {ran or 'was not run'}" if one.command else ""
    return "; ".join(filter(None, (f"{one.state.value}: {one.text}", proof, one.evidence)))


def _last_line(trial: ProofTrial) -> str:
    return (trial.said.strip().splitlines() or [f"exit code {trial.exit_code}"])[-1]


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
        if never_passes(one.proof):
            text = f"the proof `{one.proof}` can never pass as it stands: no change decides it"
            yield PlanFinding(kind=FindingKind.PROOF, ticket=ticket.key, text=text)
        elif trial is not None and (text := _fault(one.proof, trial, coming)):
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
