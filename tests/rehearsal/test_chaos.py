"""Chaos depends only on its seed, ends by itself, and does not change errors of a script."""

from __future__ import annotations

from legion.rehearsal.play.player import ModelChaos
from legion.rehearsal.script.script import ScriptedTrouble, Step

STEP = Step(say="Done.")


def drawn(seed: int) -> list[Step]:
    chaos = ModelChaos(seed)
    return [chaos.troubled(STEP, str(ticket), 1, number) for ticket in range(50) for number in range(4)]


def test_the_same_seed_draws_the_same_trouble_and_another_seed_another():
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_some_steps_have_trouble_of_every_kind_and_most_have_none():
    troubled = [step for step in drawn(7) if step.trouble is not None]
    assert 20 < len(troubled) < 100
    kinds = {(step.trouble.status, step.trouble.drop) for step in troubled if step.trouble is not None}
    assert len(kinds) == 4


def test_trouble_ends_after_a_time_or_two_and_the_answer_stays():
    for step in drawn(7):
        assert step.say == "Done."
        assert step.trouble is None or (step.trouble.times is not None and step.trouble.times <= 2)
        assert (step.limit is not None) == (step.trouble is not None and step.trouble.status == 429)


def test_a_step_that_has_its_own_trouble_keeps_it():
    own = Step(say="Done.", trouble=ScriptedTrouble(status=500, times=1))
    assert all(ModelChaos(7).troubled(own, str(ticket), 1, 1) is own for ticket in range(50))
