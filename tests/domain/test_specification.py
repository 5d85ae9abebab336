"""How much of a specification a goal gets, and the stages that follow from it."""

from __future__ import annotations

import itertools

import pytest

from legion.domain.plans.plan import PlanState
from legion.domain.plans.specification import Depth, SpecStage, depth_of, next_stage, stage_states, stages

THERE = {"app/cart.py", "app", "web/", "web", "README.md"}


@pytest.mark.parametrize(
    ("goal", "depth", "why"),
    [
        ("Fix the typo in README.md", Depth.NONE, "1 point, 5 words; names README.md"),
        ("Users can log out.", Depth.NONE, "1 point, 4 words"),
        ("Version 3.11 and e.g. nothing/there", Depth.NONE, "2 points, 5 words"),
        ("Say hello. Say bye. Say why", Depth.SHORT, "3 points, 6 words"),
        ("Do:\n- a cart\n- a till\n* a door\n", Depth.SHORT, "3 points, 10 words"),
        ("Encrypt what is stored.", Depth.SHORT, "1 point, 4 words; says encrypt"),
        (
            "Migrate app/cart.py, then web/. Keep logins.",
            Depth.FULL,
            "2 points, 6 words; names app/cart.py, web; says migrate",
        ),
        ("word " * 400, Depth.FULL, "1 point, 400 words"),
        ("\n".join(f"{n}. thing" for n in range(6)), Depth.FULL, "6 points, 12 words"),
        ("...", Depth.NONE, "0 points, 1 word"),
    ],
)
def test_the_depth_follows_from_points_places_length_and_risks(goal: str, depth: Depth, why: str):
    assert depth_of(goal, THERE.__contains__) == (depth, why)


@pytest.mark.parametrize("short", [False, True])
def test_stages_follow_each_other_whatever_was_written(short: bool):
    wanted = stages(short=short)
    for size in range(len(wanted) + 1):
        for written in itertools.permutations(wanted, size):
            after = next_stage(written, short=short)
            assert after == next((one for one in SpecStage if one in wanted and one not in written), None)
            for state, planned in itertools.product(PlanState, (False, True)):
                shown = stage_states(written, state, planned=planned, short=short)
                assert list(shown) == [*(one.value for one in wanted), "plan"]
                assert all(shown[one.value].value == "done" for one in written)
