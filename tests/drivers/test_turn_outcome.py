"""How a run of turns ended, for every combination that programs were seen to report."""

from __future__ import annotations

import pytest

from legion.drivers import EndKind
from legion.drivers.turns.outcome import GatewayAnswer, StopCause, TurnsFacts, judge

SERVED = GatewayAnswer(status=200, error="", failures=0, failing_for=0, open=0)


def failed(status: int, error: str = "") -> GatewayAnswer:
    return GatewayAnswer(status=status, error=error, failures=1, failing_for=1, open=0)


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (TurnsFacts(title="X", reason="end_turn", text="Done.", gateway=SERVED), EndKind.FINISHED),
        (TurnsFacts(title="X", reason="end_turn", text="Done."), EndKind.FINISHED),
        (TurnsFacts(title="X", reason="end_turn", text="STUCK: no key"), EndKind.GAVE_UP),
        # Copilot reports a limit as an ordinary message.
        (TurnsFacts(title="X", reason="end_turn", text="Error: 429", gateway=failed(429)), EndKind.LIMITED),
        (TurnsFacts(title="X", cause=StopCause.OUTAGE, gateway=failed(529)), EndKind.LIMITED),
        (TurnsFacts(title="X", cause=StopCause.OUTAGE), EndKind.LIMITED),
        (TurnsFacts(title="X", error="Internal error", gateway=failed(500)), EndKind.LIMITED),
        (TurnsFacts(title="X", error="Internal error", gateway=failed(401)), EndKind.REFUSED),
        (TurnsFacts(title="X", cause=StopCause.REFUSAL, gateway=failed(404)), EndKind.REFUSED),
        (TurnsFacts(title="X", cause=StopCause.REFUSAL), EndKind.REFUSED),
        (TurnsFacts(title="X", gateway=failed(400, "budget_reached")), EndKind.OUT_OF_BUDGET),
        (TurnsFacts(title="X", error="Internal error: legion: budget reached"), EndKind.OUT_OF_BUDGET),
        (TurnsFacts(title="X", error="bad", gateway=failed(400)), EndKind.FAILED),
        (TurnsFacts(title="X", error="bad", gateway=SERVED), EndKind.FAILED),
        # Qwen Code asks for a suggestion after the turn, which no script answers.
        (TurnsFacts(title="X", reason="end_turn", text="Done.", gateway=failed(400)), EndKind.FINISHED),
        (TurnsFacts(title="X", reason="end_turn", text="Done.", gateway=failed(401)), EndKind.REFUSED),
        # On a loaded machine, the answer came after the run had given up waiting for it.
        (TurnsFacts(title="X", reason="end_turn", gateway=failed(400), cause=StopCause.REFUSAL), EndKind.FINISHED),
        (TurnsFacts(title="X", reason="cancelled", gateway=failed(400), cause=StopCause.REFUSAL), EndKind.FAILED),
        (TurnsFacts(title="X", error="Rate Limit", limit_signs=("rate limit",)), EndKind.LIMITED),
        (TurnsFacts(title="X", error="Unauthorized", refusal_signs=("unauthorized",)), EndKind.REFUSED),
        # An agent may write about limits.
        (TurnsFacts(title="X", reason="end_turn", text="rate limit", limit_signs=("rate limit",)), EndKind.FINISHED),
        (TurnsFacts(title="X", reason="max_tokens", text="..."), EndKind.FAILED),
        (TurnsFacts(title="X", reason="refusal"), EndKind.FAILED),
        (TurnsFacts(title="X", exit_code=1, stderr="boom"), EndKind.FAILED),
        (TurnsFacts(title="X", reason="cancelled", cause=StopCause.INTERRUPT), EndKind.INTERRUPTED),
        (TurnsFacts(title="X", reason="cancelled", cause=StopCause.STOP, gateway=failed(429)), EndKind.STOPPED),
        (TurnsFacts(title="X", cause=StopCause.TIME, timeout=5), EndKind.TIMED_OUT),
    ],
)
def test_the_end_is_judged(facts: TurnsFacts, kind: EndKind):
    assert judge(facts).outcome is kind


def test_a_program_that_died_is_named_with_the_end_of_its_errors():
    ending = judge(TurnsFacts(title="X", exit_code=3, stderr="warming up\nno room\n"))
    assert ending.message == "X ended without a result (exit code 3): warming up; no room."


def test_denied_tools_are_in_the_message_once():
    ending = judge(TurnsFacts(title="X", reason="end_turn", denied=["execute", "execute"]))
    assert (ending.denied, ending.message) == (
        ("execute",),
        "The agent reports that it is done; it was denied execute.",
    )


def test_only_a_refusal_is_final():
    assert [one for one in (200, 400, 401, 404, 408, 429, 500, 503, 529) if failed(one).is_final] == [400, 401, 404]
