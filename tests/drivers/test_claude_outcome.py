"""How a run of Claude Code is judged: by its last word and by what we asked of it, never by its exit code."""

from __future__ import annotations

import itertools

import pytest

from legion.drivers import EndKind
from legion.drivers.claude.journal import FinalResult, SessionFacts, judge
from legion.drivers.turns.outcome import StopCause

RESET = 5000.0


def final(text="Done.", *, subtype="success", error=False, reason="completed", status=None, denials=()):
    return FinalResult(subtype=subtype, is_error=error, reason=reason, text=text, status=status, denials=denials)


def api_error(text, status=None):
    return final(text, error=True, reason="api_error", status=status)


@pytest.mark.parametrize(
    ("last", "error", "expected"),
    [
        (final(), "", EndKind.FINISHED),
        (final("I tried.\n\nSTUCK: the API is gone"), "", EndKind.GAVE_UP),
        (final("**STUCK:** no way"), "", EndKind.GAVE_UP),
        (final("I was stuck: but then it worked"), "", EndKind.FINISHED),
        (final("", subtype="error_max_turns", error=True, reason="max_turns"), "", EndKind.FAILED),
        (final("", subtype="error_max_budget_usd", error=True), "", EndKind.OUT_OF_BUDGET),
        (final("", subtype="error_during_execution", error=True, reason="aborted_tools"), "", EndKind.FAILED),
        (api_error("API Error: 400 legion: budget reached: 5.00 of 5.00 USD", 400), "", EndKind.OUT_OF_BUDGET),
        (api_error("API Error: 400 legion: model not allowed: x", 400), "", EndKind.REFUSED),
        (api_error("API Error: Request rejected (429)", 429), "rate_limit", EndKind.LIMITED),
        (api_error("API Error: 529 Overloaded", 529), "overloaded", EndKind.LIMITED),
        (api_error("Not logged in", 401), "authentication_failed", EndKind.REFUSED),
        (api_error("There is an issue with the selected model", 404), "", EndKind.REFUSED),
        (api_error("API Error: 500 Internal server error", 500), "", EndKind.LIMITED),
        (api_error("API Error: 504 legion: provider a did not answer in time", 504), "server_error", EndKind.LIMITED),
        (api_error("API Error: Connection refused"), "server_error", EndKind.LIMITED),
        (api_error("API Error: API returned an empty or malformed response"), "unknown", EndKind.LIMITED),
        (api_error("API Error: the response exceeded the maximum"), "max_output_tokens", EndKind.FAILED),
        (api_error("API Error: 400 prompt is too long", 400), "invalid_request", EndKind.FAILED),
        (None, "", EndKind.FAILED),
    ],
)
def test_the_last_word_decides(last, error, expected):
    assert judge(SessionFacts(final=last, error=error, exit_code=0)).outcome is expected


def test_an_api_failure_that_says_success_is_a_failure():
    last = final("API Error: 400", subtype="success", error=True, reason="api_error", status=400)
    assert judge(SessionFacts(final=last, exit_code=0)).outcome is EndKind.FAILED


@pytest.mark.parametrize("code", [0, 1, 143, None])
def test_the_exit_code_never_matters(code):
    assert judge(SessionFacts(final=final(), exit_code=code)).outcome is EndKind.FINISHED
    assert judge(SessionFacts(final=None, exit_code=code)).outcome is EndKind.FAILED


def test_what_we_asked_for_explains_the_end():
    lasts = [None, final(), final("", subtype="error_during_execution", error=True), api_error("x", 429)]
    for last, (cause, expected) in itertools.product(
        lasts,
        [
            (StopCause.STOP, EndKind.STOPPED),
            (StopCause.TIME, EndKind.TIMED_OUT),
            (StopCause.REFUSAL, EndKind.REFUSED),
            (StopCause.OUTAGE, EndKind.LIMITED),
        ],
    ):
        assert judge(SessionFacts(final=last, cause=cause, timeout=5)).outcome is expected


def test_an_interruption_is_no_failure_but_hides_no_limit():
    aborted = final("", subtype="error_during_execution", error=True, reason="aborted_tools")
    assert judge(SessionFacts(final=aborted, cause=StopCause.INTERRUPT)).outcome is EndKind.INTERRUPTED
    limited = judge(SessionFacts(final=api_error("x", 429), cause=StopCause.INTERRUPT))
    assert limited.outcome is EndKind.LIMITED


def test_a_limit_says_when_it_ends():
    ending = judge(SessionFacts(final=api_error("API Error: 429", 429), resets_at=RESET))
    assert (ending.outcome, ending.until) == (EndKind.LIMITED, RESET)
    assert judge(SessionFacts(final=final(), resets_at=RESET)).until is None


def test_the_reason_for_giving_up_is_kept():
    assert judge(SessionFacts(final=final("Well.\nSTUCK: the file\nis binary"))).message == "the file is binary"


def test_denied_tools_are_named_once_each():
    ending = judge(SessionFacts(final=final(denials=("Bash", "Write", "Bash"))))
    assert ending.outcome is EndKind.FINISHED
    assert ending.message == "The agent reports that it is done; it was denied Bash, Write."
    assert ending.denied == ("Bash", "Write")


def test_a_death_without_a_word_shows_what_it_complained_of():
    ending = judge(SessionFacts(final=None, exit_code=137, stderr="out of memory"))
    assert "exit code 137" in ending.message
    assert "out of memory" in ending.message


def test_what_is_no_text_is_not_shown_to_a_person():
    ending = judge(SessionFacts(final=None, exit_code=0, stderr="\x00\x1b[2J\ufffd\nno such file.\n" + "\ufffdx" * 900))
    assert ending.message == "Claude Code ended without a result (exit code 0): no such file."
    assert len(judge(SessionFacts(final=None, stderr="word " * 900)).message) < 400
