"""Whether a run gets on, by every combination of what can be known of it, and the steps that follow."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.rules import Rule
from legion.domain.watchdog import diagnosis
from legion.domain.watchdog.activity import Activity, Tally, ToolReturn, ToolUse
from legion.domain.watchdog.diagnosis import (
    RANK,
    RULES,
    Dead,
    HangingTool,
    Intervention,
    Looping,
    Progress,
    RunFacts,
    Silent,
    WaitingForPermission,
    WatchdogLimits,
    WatchdogStep,
    judge,
    next_step,
)

NOW = 10_000.0
PATIENCE = WatchdogLimits(repeats=3, hang=60.0, program=120.0, silence=300.0)
LONG_AGO = NOW - 1000.0


def a_call(tool: str = "Bash", number: int = 1, *, since: float = LONG_AGO) -> ToolUse:
    return ToolUse(id=str(number), tool=tool, words="pytest -x", input="i", since=since, number=number)


def came_back(number: int, *, new: bool = False, tool: str = "Bash", tests: Tally | None = None) -> ToolReturn:
    result = f"r{number}" if new else "r"
    return ToolReturn(
        call=a_call(tool, number), number=number, time=float(number), result=result, tests=tests, is_new=new
    )


def same(times: int, *, start: int = 1, tool: str = "Bash") -> tuple[ToolReturn, ...]:
    """The same call so many times; the first time it was new."""
    first = replace(came_back(start, tool=tool), is_new=True)
    return (first, *(came_back(start + n, tool=tool) for n in range(1, times)))


def helped(action: WatchdogStep, *, at: float = LONG_AGO, after: int = 0) -> Intervention:
    return Intervention(
        action=action,
        at=at,
        after=after,
        run=1,
        number=1,
        rule=Rule.LOOPS_ARE_BROKEN,
        sign="s",
        why="w",
        advice="a",
        message="m",
        taken_at=at,
    )


def test_the_same_call_with_the_same_result_and_the_same_files_loops():
    facts = RunFacts(course=Activity(returned=same(3)), tree_since=1)
    assert judge(facts, PATIENCE, NOW) == Looping(call="`pytest -x`", times=3)
    assert judge(facts, PATIENCE, NOW).summary == "loops: 3 times `pytest -x`"


@pytest.mark.parametrize("tree_since", [None, 3, 9])
def test_it_does_not_where_files_may_have_changed(tree_since):
    facts = RunFacts(course=Activity(returned=same(3)), tree_since=tree_since)
    assert isinstance(judge(facts, PATIENCE, NOW), Progress)


def test_a_look_at_a_background_command_that_works_is_no_loop_and_at_one_that_does_nothing_is():
    facts = RunFacts(course=Activity(returned=same(3, tool="BashOutput")), tree_since=1, processes=1)
    assert isinstance(judge(facts, PATIENCE, NOW), Progress)
    assert isinstance(judge(replace(facts, idle_since=LONG_AGO), PATIENCE, NOW), Looping)


@pytest.mark.parametrize(
    "words", ["sleep 30; tail log", "cd a && sleep 5 && gh run view", "for i in 1 2; do sleep 1; done"]
)
def test_who_sleeps_before_it_looks_loops_by_the_clock_and_not_by_the_count(words: str):
    looks = tuple(replace(one, call=replace(one.call, words=words), time=NOW - 10 + one.number) for one in same(9))
    facts = RunFacts(course=Activity(returned=looks), tree_since=1)
    assert isinstance(judge(facts, PATIENCE, NOW), Progress)
    assert isinstance(judge(facts, PATIENCE, looks[1].time + PATIENCE.silence), Looping)
    busy = replace(facts, course=Activity(returned=tuple(replace(one, call=a_call()) for one in looks)))
    assert isinstance(judge(busy, PATIENCE, NOW), Looping)


def test_tests_that_stay_red_loop_though_files_change_but_only_after_longer():
    red = Tally(failed=2, passed=1)
    edits = [came_back(10 * n, tool="Edit", new=True) for n in range(1, 10)]
    checks = [came_back(10 * n + 1, tests=red) for n in range(1, 10)]
    returned = tuple(one for both in zip(edits, checks, strict=True) for one in both)
    assert isinstance(judge(RunFacts(course=Activity(returned=returned[:-1])), PATIENCE, NOW), Progress)
    longer = RunFacts(course=Activity(returned=returned))
    assert judge(longer, PATIENCE, NOW) == Looping(call="`pytest -x`", times=9, files_change=True)


def test_an_agent_that_did_nothing_but_run_its_red_tests_made_the_same_call():
    """Also before its files were looked at: it changed nothing of which the sentence could speak."""
    red = Tally(failed=2, passed=1)
    returned = tuple(replace(one, tests=red) for one in same(9))
    assert isinstance(judge(RunFacts(course=Activity(returned=returned[:8])), PATIENCE, NOW), Progress)
    assert judge(RunFacts(course=Activity(returned=returned)), PATIENCE, NOW) == Looping(call="`pytest -x`", times=9)


def test_a_tool_hangs_when_its_processes_do_nothing_and_not_when_it_prints_nothing():
    quiet = RunFacts(course=Activity(open=(a_call(),), last_at=LONG_AGO), processes=2)
    assert isinstance(judge(quiet, PATIENCE, NOW), Progress)
    assert judge(replace(quiet, idle_since=NOW - 60), PATIENCE, NOW) == HangingTool(call="`pytest -x`", since=NOW - 60)
    assert isinstance(judge(replace(quiet, idle_since=NOW - 59), PATIENCE, NOW), Progress)
    beside = replace(quiet, idle_since=NOW - 60, thinks=True)
    assert isinstance(judge(beside, PATIENCE, NOW), Progress), "a subagent may be at work beside it"


@pytest.mark.parametrize("tool", ["WebFetch", "Task", "mcp__legion__legion-ask", "Read"])
def test_a_tool_without_processes_of_its_own_never_hangs(tool):
    facts = RunFacts(course=Activity(open=(a_call(tool),)), processes=1, idle_since=LONG_AGO, thinks=False)
    assert isinstance(judge(facts, PATIENCE, NOW), Progress)


def test_a_plain_program_hangs_by_its_own_patience():
    facts = RunFacts(talks=False, processes=1, idle_since=NOW - 119)
    assert isinstance(judge(facts, PATIENCE, NOW), Progress)
    assert judge(facts, PATIENCE, NOW + 1) == HangingTool(call="", since=NOW - 119)
    assert isinstance(judge(replace(facts, idle_since=None), PATIENCE, NOW + 9999), Progress)


def test_who_waits_for_a_person_waits_whatever_else_is_true():
    course = Activity(returned=same(9), open=(a_call(),), asked_at=LONG_AGO)
    facts = RunFacts(course=course, tree_since=1, processes=1, idle_since=LONG_AGO, thinks=False)
    assert judge(facts, PATIENCE, NOW) == WaitingForPermission(since=LONG_AGO)
    assert next_step(judge(facts, PATIENCE, NOW), facts, PATIENCE) is None


def test_silence_counts_only_where_the_gateway_says_that_nobody_thinks():
    facts = RunFacts(course=Activity(last_at=NOW - 300), thinks=False)
    assert judge(facts, PATIENCE, NOW) == Silent(since=NOW - 300)
    for thinks in (True, None):
        assert isinstance(judge(replace(facts, thinks=thinks), PATIENCE, NOW), Progress)
    assert isinstance(judge(replace(facts, processes=1), PATIENCE, NOW), Progress), "something works in the background"
    assert isinstance(judge(replace(facts, course=Activity(last_at=NOW - 299)), PATIENCE, NOW), Progress)
    for just_now in (
        replace(facts, thought_at=NOW - 299),
        replace(facts, processes=1, idle_since=NOW - 299),
        replace(facts, started_at=NOW - 299),
    ):
        assert isinstance(judge(just_now, PATIENCE, NOW), Progress)


@pytest.mark.parametrize(
    ("tools", "processes", "silent"),
    [(["Bash"], 0, True), (["Bash"], None, False), (["Bash", "Task"], 0, False), (["WebFetch"], 0, False)],
)
def test_a_command_that_is_not_there_any_more_keeps_nobody(tools, processes, silent):
    course = Activity(open=tuple(a_call(tool, n) for n, tool in enumerate(tools)), last_at=LONG_AGO)
    state = judge(RunFacts(course=course, thinks=False, processes=processes), PATIENCE, NOW)
    assert isinstance(state, Silent) == silent


def test_a_dead_program_gets_a_moment_to_be_buried():
    assert isinstance(judge(RunFacts(dead_since=NOW - 59), PATIENCE, NOW), Progress)
    assert judge(RunFacts(dead_since=NOW - 60), PATIENCE, NOW) == Dead(since=NOW - 60)


STATES = {
    "looping": (Looping(call="x", times=3), [WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END]),
    "hanging": (HangingTool(call="x", since=0.0), [WatchdogStep.INTERRUPT, WatchdogStep.END]),
    "silent": (Silent(since=0.0), [WatchdogStep.NUDGE, WatchdogStep.INTERRUPT, WatchdogStep.END]),
    "dead": (Dead(since=0.0), [WatchdogStep.END]),
    "waiting": (WaitingForPermission(since=0.0), []),
    "progress": (Progress(why="x"), []),
}


@pytest.mark.parametrize(("state", "expected"), STATES.values(), ids=STATES)
def test_the_ladder_of_each_sign_from_the_bottom_to_the_top(state, expected):
    taken: tuple[Intervention, ...] = ()
    found = []
    for _ in range(5):
        action = next_step(state, RunFacts(taken=taken), PATIENCE)
        if action is None:
            break
        found.append(action)
        taken = (*taken, helped(action))
    assert found == expected


@pytest.mark.parametrize(("state", "expected"), STATES.values(), ids=STATES)
def test_a_plain_program_can_only_be_ended(state, expected):
    action = next_step(state, RunFacts(talks=False), PATIENCE)
    assert action is (WatchdogStep.END if expected else None)


@pytest.mark.parametrize("name", [name for name, (_, steps) in STATES.items() if steps])
def test_every_sign_that_leads_to_a_step_names_its_rule(name):
    assert type(STATES[name][0]) in RULES


def test_who_gets_on_after_a_step_starts_at_the_bottom_again_and_who_was_ended_does_not():
    taken = (helped(WatchdogStep.NUDGE, at=NOW - 10, after=5),)
    stuck = RunFacts(taken=taken, course=Activity(returned=same(3, start=6)))
    assert next_step(Looping(call="x", times=3), stuck, PATIENCE) is WatchdogStep.INTERRUPT
    other_files = replace(stuck, tree_at=NOW - 5)
    assert next_step(Looping(call="x", times=3), other_files, PATIENCE) is WatchdogStep.NUDGE
    news = tuple(came_back(n, new=True) for n in range(6, 9))
    assert (
        next_step(Looping(call="x", times=3), replace(stuck, course=Activity(returned=news)), PATIENCE)
        is WatchdogStep.NUDGE
    )
    ended = replace(other_files, taken=(helped(WatchdogStep.END, at=NOW - 10),))
    assert next_step(Looping(call="x", times=3), ended, PATIENCE) is None


def test_each_step_needs_new_facts_behind_the_last_one():
    """Exhaustive: right after any step, no combination of old facts asks for another."""
    courses = [Activity(returned=same(9), open=open_, last_at=LONG_AGO) for open_ in ((), (a_call(),))]
    for course, talks, dead, thinks, idle, action in product(
        courses, (True, False), (None, LONG_AGO), (True, False, None), (None, LONG_AGO), WatchdogStep
    ):
        facts = RunFacts(
            course=course,
            talks=talks,
            dead_since=dead,
            thinks=thinks,
            processes=1,
            idle_since=idle,
            tree_since=1,
            taken=(helped(action, at=NOW, after=9),),
        )
        state = judge(facts, PATIENCE, NOW + 1)
        assert isinstance(state, Progress), (facts, state)


def test_calls_before_the_agent_has_its_message_lead_to_no_further_step():
    """Under load many calls lie between the decision and the message; the agent cannot have taken the advice yet."""
    facts = RunFacts(
        course=Activity(returned=same(9), last_number=9), tree_since=1, taken=(helped(WatchdogStep.NUDGE, after=3),)
    )
    assert isinstance(judge(facts, PATIENCE, NOW), Progress), "it was not told yet"
    told = replace(facts, course=replace(facts.course, delivered={"m": 7}))
    assert isinstance(judge(told, PATIENCE, NOW), Progress), "it was told after its seventh call"
    goes_on = replace(told, course=replace(told.course, returned=same(10), last_number=10))
    assert next_step(judge(goes_on, PATIENCE, NOW), goes_on, PATIENCE) is WatchdogStep.INTERRUPT


TIMES = st.floats(0, 2 * NOW, allow_nan=False)
RETURNS = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from(["Bash", "BashOutput", "Read"]), st.none() | st.just(Tally(failed=1, passed=0))
    ),
    max_size=30,
).map(lambda rows: tuple(came_back(n, new=new, tool=tool, tests=t) for n, (new, tool, t) in enumerate(rows, 1)))
FACTS = st.builds(
    RunFacts,
    course=st.builds(
        Activity,
        returned=RETURNS,
        open=st.lists(st.builds(a_call, st.sampled_from(["Bash", "Task"]), since=TIMES), max_size=2).map(tuple),
        asked_at=st.none() | TIMES,
        last_at=TIMES,
        through=st.booleans(),
    ),
    talks=st.booleans(),
    started_at=TIMES,
    dead_since=st.none() | TIMES,
    thinks=st.sampled_from([True, False, None]),
    thought_at=TIMES,
    processes=st.none() | st.integers(0, 3),
    idle_since=st.none() | TIMES,
    tree_since=st.none() | st.integers(0, 30),
    tree_at=TIMES,
    taken=st.lists(
        st.builds(helped, st.sampled_from(WatchdogStep), at=TIMES, after=st.integers(0, 30)), max_size=3
    ).map(tuple),
)


@given(FACTS, TIMES)
def test_whatever_is_known_one_state_follows_and_a_step_only_ever_goes_up(facts, now):
    state = judge(facts, PATIENCE, now)
    action = next_step(state, facts, PATIENCE)
    if isinstance(state, Progress | WaitingForPermission):
        assert action is None
    below = diagnosis.standing(facts, PATIENCE)
    if action is not None and below is not None:
        assert RANK[action] > RANK[below]
    if facts.course.asked_at is not None and facts.dead_since is None:
        assert isinstance(state, WaitingForPermission)
    if facts.thinks and facts.talks:
        assert not isinstance(state, HangingTool | Silent)
    if facts.idle_since is None or not facts.processes:
        assert not isinstance(state, HangingTool)
    if isinstance(state, Looping) and not state.files_change:
        assert state.times >= PATIENCE.repeats
        assert facts.tree_since is not None or state.times >= 3 * PATIENCE.repeats


@given(FACTS, TIMES)
def test_the_same_facts_give_the_same_answer(facts, now):
    assert judge(facts, PATIENCE, now) == judge(facts, PATIENCE, now)


@pytest.mark.parametrize(
    "facts",
    [
        RunFacts(course=Activity(open=(a_call(),), last_at=LONG_AGO), processes=2, idle_since=NOW - 3600),
        RunFacts(talks=False, processes=1, idle_since=NOW - 3600),
        RunFacts(dead_since=NOW - 3600),
        RunFacts(course=Activity(last_at=NOW - 3600), thinks=False, processes=0),
    ],
    ids=["tool", "program", "dead", "silent"],
)
def test_an_hour_in_which_the_clock_was_set_or_the_machine_slept_proves_nothing(facts: RunFacts):
    assert not isinstance(judge(facts, PATIENCE, NOW), Progress)
    woken = replace(facts, clock_set_at=NOW - 1)
    assert isinstance(judge(woken, PATIENCE, NOW), Progress)
    assert not isinstance(judge(woken, PATIENCE, NOW + 3600), Progress), "later it counts again"
