"""Who declares the same files, who waits for whom, and how predictions fared."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.events import Event, EventKind
from legion.domain.landing.conflicts import (
    LANDED,
    ConflictSpan,
    Overlap,
    PredictedConflict,
    PredictionScore,
    claims_of,
    compare,
    coupled,
    may_be_brought,
    ordered,
    overlapping,
    score,
)
from legion.domain.review.path_patterns import matches, meet
from legion.domain.scheduling.decide import BoardSnapshot, ProjectView, decide
from legion.domain.scheduling.job_places import StartJob
from legion.domain.tickets.evidence import Bound
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Change, State, Ticket


def ticket(id: int, *files: str, state: State = State.QUEUED) -> Ticket:
    return Ticket(id=id, project=1, spec=TicketSpec(title="t", text="", files=files), state=state)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("src", "src/a.py", True),
        ("src/", "src/**", True),
        ("src/*.py", "src/a.*", True),
        ("src/*.py", "src/b/a.py", False),
        ("**/*.py", "src/b/a.py", True),
        ("*.py", "src/a.py", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("docs/*", "docs/a/b", False),
        ("**", "anything/at/all", True),
        ("a/**/z", "a/z", True),
        ("a/*/z", "a/**/y/z", True),
        ("[id].ts", "i.ts", False),
        ("src/a.py", "src/A.py", False),
        ("a/a/b", "**/a/a*", True),
    ],
)
def test_two_patterns_meet_where_a_path_fits_both(one: str, other: str, both: bool):
    assert meet([one], [other]) is both
    assert meet([other], [one]) is both


_PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "?"]), min_size=1, max_size=3).map("/".join)
_PATHS = [
    "/".join(parts)
    for size in range(1, 7)
    for parts in product(("a", "b", "ab") if size < 5 else ("a", "b"), repeat=size)
]
"""A plain pattern includes what is below it, so that the shortest path of two patterns may have all parts of both."""


@given(_PATTERNS, _PATTERNS)
def test_a_path_that_fits_both_is_proof_that_they_meet_and_there_is_one_where_they_do(one: str, other: str):
    found = any(matches(path, [one]) and matches(path, [other]) for path in _PATHS)
    assert meet([one], [other]) is found


def test_who_declares_nothing_overlaps_nobody():
    assert overlapping(ticket(1), [ticket(2, "**")]) == ()
    assert overlapping(ticket(1, "**"), [ticket(2)]) == ()
    assert overlapping(ticket(1, "a", "b"), [ticket(1, "a"), ticket(2, "b/c"), ticket(3, "d")]) == (2,)


READY = [ticket(1, "a"), ticket(2, "a"), ticket(3, "b"), ticket(4)]


@pytest.mark.parametrize(
    ("overlap", "at_work", "wanted"),
    [
        (Overlap.OFF, (), [1, 2, 3, 4]),
        (Overlap.ADVICE, (), [1, 3, 4, 2]),
        (Overlap.RULE, (), [1, 3, 4]),
        (Overlap.ADVICE, ("b",), [1, 4, 2, 3]),
        (Overlap.RULE, ("**",), [4]),
    ],
)
def test_advice_lets_others_go_first_and_the_rule_lets_them_wait(
    overlap: Overlap, at_work: tuple[str, ...], wanted: list[int]
):
    working = [ticket(9, *at_work, state=State.WORKING)]
    assert [one.id for one in ordered(READY, working, overlap)] == wanted


@pytest.mark.parametrize("state", list(State))
def test_the_rule_holds_while_the_other_is_on_its_way_into_the_target(state: State):
    view = ProjectView(
        id=1, parallel=9, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False,
        overlap=Overlap.RULE,
    )  # fmt: skip
    tickets = (ticket(1, "a", state=state), ticket(2, "a"))
    live = tuple(one for one in tickets if not one.ended)
    found = decide(BoardSnapshot(projects=(view,), tickets=live, ended={}, jobs=frozenset(), slots=9), 0.0)
    started = {command.subject for command in found.commands if isinstance(command, StartJob) and command.version == 0}
    busy = (State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING, State.QUEUED)
    assert (2 in started) is (state not in busy)


def seen(n: int, mine: int, theirs: int, kind: EventKind = EventKind.CONFLICT_PREDICTED) -> Event:
    return Event(n=n, at=float(n), kind=kind, project=1, ticket=mine, data={"with": theirs})


def sent_back(n: int, ticket: int, cause: str = "conflict") -> Event:
    return Event(n=n, at=float(n), kind=EventKind.TICKET_MOVED, project=1, ticket=ticket, data={"cause": cause})


def test_a_prediction_comes_true_when_either_of_the_pair_is_sent_back_for_a_conflict():
    found = score([seen(1, 1, 2), seen(2, 3, LANDED), sent_back(3, 2), sent_back(4, 3), sent_back(5, 9)])
    assert found == PredictionScore(predicted=2, came_true=2, settled=0, unforeseen=1)


def test_red_checks_are_no_outcome_of_a_prediction_and_a_pair_that_parts_is_settled():
    gone = seen(3, 1, 2, EventKind.CONFLICT_GONE)
    assert score([seen(1, 1, 2), sent_back(2, 1, "checks"), gone]) == PredictionScore(predicted=1, settled=1)
    assert score([seen(1, 1, 2), gone, seen(4, 1, 2), sent_back(5, 1)]) == PredictionScore(predicted=1, came_true=1)
    assert score([]) == PredictionScore()


def test_a_clash_can_be_seen_from_both_sides():
    clash = PredictedConflict(mine=1, theirs=2, places=(ConflictSpan(path="a", mine=(1, 2), theirs=(5, 5)),))
    assert clash.seen_from(1) == clash
    assert clash.seen_from(2).places == (ConflictSpan(path="a", mine=(5, 5), theirs=(1, 2)),)
    assert clash.seen_from(2).seen_from(1) == clash


def clash(mine: int, theirs: int) -> PredictedConflict:
    return PredictedConflict(mine=mine, theirs=theirs, places=())


def test_who_conflicts_with_one_that_lands_is_told_once_wherever_the_landing_is_looked_at():
    """The target moves a moment before its tickets are done."""
    known = frozenset({(1, 2)})
    landing, reading = State.LANDING, State.REVIEWING
    moved = compare([clash(1, 2), clash(2, LANDED)], known, seen=[1, 2], at_work={1: landing, 2: landing})
    assert (moved.new, moved.gone, moved.known) == ((), frozenset(), known)
    done = compare([clash(2, LANDED)], known, seen=[2], at_work={2: landing})
    assert (done.new, done.gone, done.known) == ((), frozenset(), known)
    other = compare([clash(1, 2), clash(2, LANDED)], known, seen=[1, 2], at_work={1: reading, 2: reading})
    assert [one.pair for one in other.new] == [(2, LANDED)], "that came from somebody else"
    assert other.known == {(1, 2), (2, LANDED)}


def test_a_pair_is_gone_only_where_both_could_be_seen():
    known = frozenset({(1, 2), (3, 4), (5, 6)})
    now = compare([], known, seen=[1, 2, 3], at_work=dict.fromkeys((1, 2, 3), State.WORKING))
    assert (now.gone, now.known) == (frozenset({(1, 2)}), frozenset({(3, 4)}))


def test_of_those_that_claim_one_definition_one_works_at_a_time():
    names = {1: frozenset({"a.py::f"}), 2: frozenset({"a.py::f", "a.py::g"}), 3: frozenset({"a.py::g"})}
    tickets = [ticket(number) for number in (1, 2, 3, 4)]

    def waiting(
        at_work: list[int], claims: dict[int, frozenset[str]], *, race: tuple[int, ...] = ()
    ) -> dict[int, tuple[int, ...]]:
        ready = [one for one in tickets if one.id not in at_work]
        busy = [one for one in tickets if one.id in at_work]
        lanes = dict.fromkeys(race, 9)
        return {id: one.behind for id, one in coupled(ready, busy, busy, claims, lanes).items()}

    assert waiting([], {}) == {}
    assert waiting([], names) == {2: (1,)}
    assert waiting([1], names) == {2: (1,)}
    assert waiting([2], names) == {1: (2,), 3: (2,)}
    assert waiting([1, 3], names) == {2: (1, 3)}
    assert waiting([4], names) == {2: (1,)}, "one that claims nothing holds nobody up"
    assert waiting([1], names, race=(1, 2)) == {3: (2,)}, "only one of a race lands"
    assert waiting([1], {1: frozenset({"a.py::A"}), 4: frozenset({"a.py::A.g"})}) == {4: (1,)}, "a part of the whole"
    assert waiting([1], {1: frozenset({"a.py::A.f"}), 4: frozenset({"a.py::A.g"})}) == {}


def test_what_waits_says_for_whom_and_why_and_a_person_may_say_no():
    claims = {1: frozenset({"a.py::f"}), 2: frozenset({"a.py::f"})}
    one, two = ticket(1), ticket(2)
    assert coupled([two], [one], [one], claims)[2].why == "waits for #1, which changes f, too"
    alone = replace(two, spec=replace(two.spec, alone=True))
    assert coupled([alone], [one], [one], claims) == {}
    proven = replace(one, state=State.LANDING, change=Change(base="b", commit="c"), claims=("a.py::f",))
    assert coupled([two], [proven], [proven], claims)[2].stacks
    assert not coupled([two], [proven], [proven], claims, None, {2: 1})[2].stacks, "that one brings its work"
    assert coupled([two], [proven], [proven], claims, None, {2: 3})[2].stacks
    third = coupled([two, ticket(3)], [proven], [proven], {**claims, 3: claims[1]})[3]
    assert (third.behind, third.stacks) == ((1, 2), False), "one at a time"
    assert not coupled([replace(two, base="b")], [proven], [proven], claims)[2].stacks, "its worktree is there"
    assert set(coupled([one], [alone], [alone], claims)) == {1}, "others still wait for it"


def test_a_proposed_change_claims_what_it_touches_and_no_more():
    guess = {1: frozenset({"a.py::f"})}
    working = replace(ticket(1), claims=("a.py::g",))
    assert claims_of(working, guess) == {"a.py::f", "a.py::g"}
    assert claims_of(replace(working, change=Change(base="b", commit="c")), guess) == {"a.py::g"}


@pytest.mark.parametrize(
    ("attempt", "proofs", "bound", "undoes", "landed", "near", "waited"),
    [*product((0, 1), ((), ("p",)), (True, False), (None, 3), (0, 1, 2), ("no", "claim", "file"), (False, True))],
)
def test_proofs_are_tried_before_the_first_attempt_only_where_what_landed_may_have_brought_the_work(
    attempt: int, proofs: tuple[str, ...], bound: bool, undoes: int | None, landed: int, near: str, waited: bool
):
    spec = TicketSpec(
        title="t",
        text="",
        proofs=proofs,
        criteria="it holds",
        bound=(Bound(criterion=0, by="p"),) if bound else (),
        undoes=undoes,
        files=("src/*.py",) if near == "file" else ("docs/**",),
    )
    mine = frozenset({"src/a.py::A" if near == "claim" else "b.py::B"})
    others = [replace(ticket(8 + number), claims=("src/a.py::A.f",) * number) for number in range(landed)]
    told = may_be_brought(replace(ticket(1), spec=spec, attempt=attempt), mine, others, waited=waited)
    could = attempt == 0 and bool(proofs) and bound and undoes is None
    assert told == (could and landed > 0 and (waited or (landed == 2 and near != "no")))
