"""The course of a run, read from its journal: what was new, what came back again, and what tests said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.watchdog import activity
from legion.domain.watchdog.activity import Activity, JournalFact, Tally, gist, tally_of


def journal(*happened: tuple[str, dict[str, object]]) -> list[JournalFact]:
    return [
        JournalFact(number=number, time=float(number), kind=kind, facts=facts)
        for number, (kind, facts) in enumerate(happened, 1)
    ]


def made(*calls: tuple[str, str]) -> Activity:
    """Bash calls that each returned at once: input and result."""
    events: list[tuple[str, dict[str, object]]] = []
    for number, (input, result) in enumerate(calls):
        tests = tally_of(result)
        told = None if tests is None else [tests.failed, tests.passed]
        events.append(("begins", {"call": str(number), "tool": "Bash", "input": input, "digest": input}))
        events.append(("returned", {"call": str(number), "gist": gist(result) or "nothing", "tests": told}))
    return activity.read(journal(*events))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.03s", "1 failed in 12.9s"),
        ("took 3 ms", "took 12 ms"),
        ("12:01:07 ERROR", "12:01:09 ERROR"),
        ("2026-11-15T12:01:07.123Z no", "2026-11-15T12:01:08.004Z no"),
        ("<Foo object at 0x7f12aa90>", "<Foo object at 0x7f9981b0>"),
        ("/tmp/tmpab12/x is missing", "/tmp/tmpzz99/x is missing"),
        ("run 3f2c1d9e-0000-4000-8000-aaaaaaaaaaaa failed", "run 11111111-2222-4333-8444-bbbbbbbbbbbb failed"),
        ("killed, pid 4312", "killed, pid 99"),
    ],
)
def test_a_result_that_differs_by_the_clock_alone_says_the_same(one, other):
    assert gist(one) == gist(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("3 failed", "2 failed"), ("line 12", "line 13"), ("", "x"), ("4 s of 10 files", "4 s of 11 files")],
)
def test_a_result_that_says_something_else_is_another(one, other):
    assert gist(one) != gist(other)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("==== 3 failed, 12 passed in 0.21s ====", Tally(failed=3, passed=12)),
        ("12 passed", Tally(failed=0, passed=12)),
        ("Tests: 1 failed, 4 passed, 5 total", Tally(failed=1, passed=4)),
        ("2 failing\n  1) x", Tally(failed=2, passed=0)),
        ("test result: FAILED. 7 passed; 1 failed; 0 ignored", Tally(failed=1, passed=7)),
        ("1 failed\nlater\n2 passed", Tally(failed=0, passed=2)),
        ("compiled 12 files", None),
        ("", None),
    ],
)
def test_the_sums_that_test_programs_print_are_read(text, found):
    assert tally_of(text) == found


def test_the_same_call_with_the_same_result_is_new_once():
    seen = made(("ls", "a"), ("ls", "a"), ("ls", "b"), ("cat", "a"), ("ls", "a"))
    assert [one.is_new for one in seen.returned] == [True, False, True, True, False]


def test_repeats_count_what_came_back_since_the_last_new_thing():
    again = made(("new", "1"), *[("test", "red")] * 4)
    found = activity.repeats(again.returned, after=0)
    assert found is not None
    assert (found.call.words, found.times) == ("test", 4)
    assert activity.repeats(made(*[("test", "red")] * 4, ("new", "1")).returned, after=0) is None
    assert activity.repeats(made(("a", "1")).returned, after=0) is None


def test_a_circle_of_several_calls_is_seen_too():
    found = activity.repeats(made(*[("edit", "ok"), ("test", "red"), ("undo", "ok")] * 5).returned, after=0)
    assert found is not None
    assert found.times == 5


def test_what_was_before_a_step_does_not_count_again():
    again = made(*[("test", "red")] * 6)
    fourth = again.returned[3].number
    found = activity.repeats(again.returned, after=fourth)
    assert found is not None
    assert found.times == 2
    assert activity.repeats(again.returned, after=again.returned[-1].number) is None


def test_tests_that_stay_red_are_seen_whatever_happens_between():
    changing = made(*[one for n in range(6) for one in ((f"edit {n}", "ok"), ("test", "3 failed in 1.0s"))])
    found = activity.red_again(changing.returned, after=0)
    assert found is not None
    assert (found.call.words, found.times) == ("test", 6)
    moving = made(*[one for n in range(6) for one in ((f"edit {n}", "ok"), ("test", f"{9 - n} failed"))])
    moved = activity.red_again(moving.returned, after=0)
    assert moved is not None
    assert moved.times == 1
    assert activity.red_again(made(*[("test", "3 passed")] * 6).returned, after=0) is None


def test_calls_that_have_not_returned_are_open_until_the_end_of_the_turn():
    begun = journal(("begins", {"call": "1", "tool": "Bash", "input": "make"}), ("begins", {"call": "2"}))
    assert [one.id for one in activity.read(begun).open] == ["1", "2"]
    ended = activity.read([*begun, JournalFact(number=3, time=3.0, kind="result", facts={})])
    assert (ended.open, ended.through) == ((), True)
    again = JournalFact(number=4, time=4.0, kind="told", facts={"id": "x"})
    assert not activity.read([*begun, JournalFact(number=3, time=3.0, kind="result", facts={}), again]).through


def test_a_message_is_delivered_where_it_was_told_and_later_where_it_was_heard():
    told = journal(("told", {"id": "m"}), ("begins", {"call": "1"}), ("heard", {"id": "m"}))
    assert activity.read(told[:2]).delivered == {"m": 1}
    assert activity.read(told).delivered == {"m": 3}


def test_a_question_is_asked_until_it_is_answered():
    asked = journal(("asked", {"question": "q"}))
    assert activity.read(asked).asked_at == 1.0
    assert activity.read([*asked, *journal(("answered", {"question": "q"}))]).asked_at is None


def journal_of(call: str) -> list[tuple[str, dict[str, object]]]:
    return [("begins", {"call": call, "tool": "Bash", "input": "x"}), ("returned", {"call": call})]


def test_what_an_older_runner_does_not_tell_is_held_against_nobody():
    events: list[tuple[str, dict[str, object]]] = [one for n in range(20) for one in journal_of(str(n))]
    seen = activity.read(journal(*events))
    assert all(one.is_new for one in seen.returned)
    assert activity.repeats(seen.returned, after=0) is None
    assert activity.red_again(seen.returned, after=0) is None


KINDS = ("begins", "returned", "called", "asked", "answered", "told", "result", "said", "retry", "unheard-of")
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "call": st.sampled_from(["1", "2", "3"]) | st.none() | st.integers(),
        "question": st.sampled_from(["p", "q"]) | st.none(),
        "digest": st.sampled_from(["a", "b"]) | st.none(),
        "gist": st.sampled_from(["x", "y"]) | st.none(),
        "tests": st.lists(st.integers(0, 3), max_size=3) | st.none() | st.text(max_size=2),
        "tool": st.sampled_from(["Bash", "Read"]) | st.none(),
        "input": st.text(max_size=5) | st.none(),
    },
)


@given(st.lists(st.tuples(st.sampled_from(KINDS), FACTS), max_size=40), st.integers(0, 40))
def test_any_journal_can_be_read_and_no_call_repeats_more_often_than_it_returned(events, after):
    seen = activity.read(journal(*events))
    assert not {one.id for one in seen.open} & {one.call.id for one in seen.returned if one.call in seen.open}
    for found in (activity.repeats(seen.returned, after=after), activity.red_again(seen.returned, after=after)):
        if found is not None:
            same = [one for one in seen.returned if one.call.input == found.call.input]
            assert 1 <= found.times <= len(same)
            assert found.first > after
