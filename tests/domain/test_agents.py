"""Agents: a hire never gets what its parent has not, and the tree always adds up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.agents.agent import (
    ROOT,
    Agent,
    Allowance,
    HireTerms,
    Rights,
    Tier,
    below,
    hire,
    means,
    tier_of,
    tree,
)
from legion.domain.errors import NotAllowed
from tests.support.agent_rights import widened

TOOLS = ("Read", "Write", "Bash")

rights = st.builds(
    Rights,
    tools=st.none() | st.frozensets(st.sampled_from(TOOLS)),
    budget=st.none() | st.floats(0.01, 100),
    headcount=st.none() | st.integers(0, 5),
    depth=st.none() | st.integers(0, 4),
    tier=st.sampled_from(Tier),
)
offers = st.builds(
    HireTerms,
    tools=st.none() | st.frozensets(st.sampled_from(TOOLS)),
    budget=st.none() | st.floats(-1, 100),
    headcount=st.none() | st.integers(-1, 5),
    depth=st.none() | st.integers(-1, 4),
    tier=st.none() | st.sampled_from(Tier),
)


def agent(number: int, parent: str = ROOT, *, fired: bool = False) -> Agent:
    return Agent(
        number=number,
        id=f"a{number}",
        project=1,
        parent=parent,
        name="",
        role="",
        task="",
        model="",
        rights=Rights(),
        hired_at=0.0,
        fired_at=1.0 if fired else None,
    )


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        (("small", "gpt-5-codex"), ("", ""), ("small", "gpt-5-codex")),
        (("small", "gpt-5-codex"), ("", "gpt-5"), ("small", "gpt-5")),
        (("small", "gpt-5-codex"), ("claude", ""), ("claude", "")),
        (("", "opus"), ("", ""), ("claude", "opus")),
        (("", "opus"), ("small", ""), ("small", "")),
    ],
)
def test_a_model_is_inherited_only_with_its_program(own, asked, expected):
    hirer = replace(agent(1), driver=own[0], model=own[1])
    assert hirer.program(*asked, default="claude") == expected


@given(rights, st.floats(0, 50), st.floats(0, 50), st.integers(0, 6), offers)
def test_a_hire_never_widens(parent, spent, reserved, heads, offer):
    left = means(parent, spent=spent, reserved=reserved, heads=heads)
    try:
        child = hire(left, [], offer)
    except NotAllowed:
        return
    assert widened(parent, child) == []
    if parent.budget is not None:
        assert child.budget is not None
        assert child.budget <= max(0.0, parent.budget - spent - reserved)
    if parent.headcount is not None:
        assert child.headcount is not None
        assert heads + 1 + child.headcount <= parent.headcount
    if parent.depth is not None:
        assert child.depth is not None
        assert child.depth < parent.depth


def test_a_wider_wish_is_refused_with_what_is_allowed():
    parent = means(Rights(tools=frozenset({"Read"}), budget=2, tier=Tier.SONNET), spent=1, reserved=0.5, heads=0)
    for offer, words in (
        (HireTerms(tools=frozenset({"Read", "Bash"})), "You cannot give Bash, which you do not have: choose from Read"),
        (HireTerms(budget=0.6), "0.50 are left to give"),
        (HireTerms(tier=Tier.OPUS), "choose from haiku, sonnet"),
    ):
        with pytest.raises(NotAllowed, match=words):
            hire(parent, [], offer)
    assert hire(parent, [], HireTerms()) == Rights(tools=frozenset({"Read"}), budget=0.25, tier=Tier.SONNET)


def test_a_full_house_anywhere_above_refuses():
    free = Allowance(rights=Rights(), money=None, heads=None)
    full = Allowance(rights=Rights(headcount=3), money=None, heads=0)
    for places in ((full, []), (free, [free, full])):
        with pytest.raises(NotAllowed, match="3 at once are allowed"):
            hire(places[0], places[1], HireTerms())


def test_the_tree_ends_where_it_is_deep_enough():
    with pytest.raises(NotAllowed, match="as deep as allowed"):
        hire(means(Rights(depth=0), spent=0, reserved=0, heads=0), [], HireTerms())
    assert hire(means(Rights(depth=2), spent=0, reserved=0, heads=0), [], HireTerms()).depth == 1
    deep, shallow = (means(Rights(depth=depth), spent=0, reserved=0, heads=0) for depth in (2, 1))
    with pytest.raises(NotAllowed, match="as deep as allowed"):
        hire(deep, [shallow], HireTerms())


def test_everybody_below_is_found_and_the_fired_are_not():
    team = [agent(1), agent(2, "a1"), agent(3, "a1", fired=True), agent(4, "a2"), agent(5)]
    reports = tree(team)
    assert [one.number for one in below(reports, ROOT)] == [1, 5, 2, 4]
    assert [one.number for one in below(reports, "a1")] == [2, 4]
    assert list(below(reports, "a4")) == []


def test_a_models_name_tells_its_tier():
    assert tier_of("claude-opus-5-5", Tier.HAIKU) is Tier.OPUS
    assert tier_of("haiku", Tier.OPUS) is Tier.HAIKU
    assert tier_of("local-thing", Tier.SONNET) is Tier.SONNET
