"""What the end of a person's hook means."""

from __future__ import annotations

from legion.domain.checks import HookKind, HookResult, judge


def test_only_exit_code_2_sends_back_and_a_crash_or_the_time_limit_decides_nothing():
    assert judge(0, stderr="ignored", timed_out=False, seconds=1) == HookResult()
    assert judge(2, stderr=" No. \n", timed_out=False, seconds=1) == HookResult(blocks=True, text="No.")
    assert judge(2, stderr="", timed_out=False, seconds=1).text == "The hook gave no reason."
    for code in (1, 3, -9, 127):
        crashed = judge(code, stderr="x", timed_out=False, seconds=1)
        assert (crashed.blocks, crashed.trouble) == (False, f"it ended with {code}: x")
    late = judge(2, stderr="No.", timed_out=True, seconds=2.5)
    assert (late.blocks, late.trouble) == (False, "it took longer than 2.5 s")


def test_hooks_have_the_names_of_claude_codes_teams():
    assert [kind.event for kind in HookKind] == ["TaskCreated", "TaskCompleted", "TeammateIdle", "BeforeLand"]
