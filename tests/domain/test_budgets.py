"""Budgets of many: which is spent, what a person gave beside, and one question for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from legion.domain.scheduling.budgets import Budgets, EpicSpending, balance, scope_of

TODAY = "2026-11-15"


def spent(usd: float, *, project: int = 1, epic: str = "", day: str = TODAY) -> EpicSpending:
    return EpicSpending(project=project, epic=epic, day=day, usd=usd)


def test_each_budget_is_about_its_own_spending():
    costs = [spent(1.0), spent(2.0, epic="login"), spent(4.0, project=2), spent(8.0, day="2026-11-14")]
    left = balance(Budgets(day=7.0, project=11.0, epic=2.0), costs, TODAY)
    assert [one.scope for one in left.empties(1, "login")] == [f"day:{TODAY}", "project:1", "epic:1:login"]
    assert [one.scope for one in left.empties(2, "login")] == [f"day:{TODAY}"]
    assert [one.total for one in left.empties(1, "login")] == [7.0, 11.0, 2.0]
    assert balance(Budgets(epic=2.0), costs, TODAY).empty(1, "") is None


def test_what_a_person_gives_counts_for_its_own_budget_and_the_next_question_is_another():
    costs = [spent(3.0, epic="login")]
    first = balance(Budgets(epic=2.0), costs, TODAY).empty(1, "login")
    assert first is not None
    more = {scope_of(first.key): first.usd}
    assert balance(Budgets(epic=2.0), costs, TODAY, more).empty(1, "login") is None
    again = balance(Budgets(epic=2.0), [spent(4.0, epic="login")], TODAY, more).empty(1, "login")
    assert again is not None
    assert (again.scope, again.most) == (first.scope, 4.0)
    assert again.key != first.key
    assert "of $4 is spent ($4.00), and work waits for it. Shall it get $2 more?" in again.question


def test_another_day_is_another_question_and_a_project_none():
    keys = [
        {one.key for one in balance(Budgets(day=1.0, project=1.0), [spent(2.0, day=day)], day).empties(1, "")}
        for day in (TODAY, "2026-11-16")
    ]
    assert len(keys[0] | keys[1]) == 3


@given(
    st.builds(Budgets, day=st.floats(0, 5), project=st.floats(0, 5), epic=st.floats(0, 5)),
    st.lists(
        st.builds(spent, st.floats(0, 3), project=st.integers(1, 2), epic=st.sampled_from(["", "a:b"])), max_size=6
    ),
    st.sampled_from(["", "a:b"]),
)
def test_as_much_again_is_less_spent_and_never_the_same_question(budgets, costs, epic):
    left = balance(budgets, costs, TODAY)
    for one in left.empties(1, epic):
        assert one.total >= one.most
        assert scope_of(one.key) == one.scope
        richer = balance(budgets, costs, TODAY, {one.scope: one.usd}).empties(1, epic)
        assert one.key not in {other.key for other in richer} or one.usd < 1e-6
