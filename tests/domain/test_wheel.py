"""A run that opens for a person is never the run that is interrupted for them."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.takeovers import Takeover, TakeoverStage


@pytest.mark.parametrize(("alone", "stage", "run"), list(product((None, 1, 2), TakeoverStage, (1, 2, 3))))
def test_each_run_is_interrupted_or_opens_or_after_a_withdrawal_neither(
    alone: int | None, stage: TakeoverStage, run: int
):
    wheel = Takeover(alone=alone, stage=stage)
    if stage is TakeoverStage.WITHDRAWN:
        assert not wheel.opens(run)
        assert not wheel.may_interrupt(run)
    else:
        assert wheel.opens(run) is not wheel.may_interrupt(run)
        assert wheel.may_interrupt(run) is (run == alone)
