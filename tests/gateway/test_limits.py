"""Limits that providers report, read from the headers of their answers."""

from __future__ import annotations

import pytest

from legion.gateway.accounting.ledger import LimitEntry
from legion.gateway.accounting.limits import Novelty, limit_of

UNIFIED = {
    "anthropic-ratelimit-unified-status": "allowed_warning",
    "anthropic-ratelimit-unified-reset": "1794750000",
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    "anthropic-ratelimit-unified-5h-utilization": "0.83",
    "anthropic-ratelimit-unified-7d-utilization": "0.2",
}


def limit(headers: dict[str, str], status: int) -> LimitEntry | None:
    return limit_of(headers, status, at=1.0, run="r", provider="p")


def test_an_answer_that_says_nothing_of_limits_leaves_none():
    assert limit({"content-type": "text/event-stream"}, 200) is None
    assert limit({"retry-after": "3"}, 500) is None


def test_a_subscription_tells_the_window_that_decides():
    found = limit(UNIFIED, 200)
    assert found is not None
    assert (found.window, found.utilization, found.resets_at, found.retry_after) == ("5h", 0.83, 1794750000, None)


def test_without_a_word_on_which_window_decides_it_is_the_fullest():
    headers = {name: value for name, value in UNIFIED.items() if "claim" not in name}
    found = limit({**headers, "anthropic-ratelimit-unified-7d-utilization": "0.9"}, 200)
    assert found is not None
    assert (found.window, found.utilization) == ("7d", 0.9)


def test_a_key_tells_the_last_reset_of_what_is_used_up():
    found = limit(
        {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-15T06:00:00Z",
            "anthropic-ratelimit-tokens-remaining": "0",
            "anthropic-ratelimit-tokens-reset": "2026-11-15T06:00:30Z",
            "anthropic-ratelimit-output-tokens-remaining": "5",
            "anthropic-ratelimit-output-tokens-reset": "2026-11-15T07:00:00Z",
        },
        429,
    )
    assert found is not None
    assert (found.window, found.resets_at) == ("tokens", 1794722430.0)


@pytest.mark.parametrize("word", ["soon", "nan", "inf", ""])
def test_words_that_are_no_number_are_left_out(word):
    found = limit({"retry-after": word, "anthropic-ratelimit-unified-reset": word}, 429)
    assert found is not None
    assert (found.retry_after, found.resets_at) == (None, None)


def test_only_news_gets_a_line_unless_it_is_a_refusal():
    novelty = Novelty()
    first, refusal = limit(UNIFIED, 200), limit(UNIFIED, 429)
    more = limit({**UNIFIED, "anthropic-ratelimit-unified-5h-utilization": "0.85"}, 200)
    assert first is not None
    assert refusal is not None
    assert more is not None
    assert [novelty.is_new(one) for one in (first, first, refusal, refusal, more, more)] == [1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [("6m0s", 360.0), ("1.5s", 1.5), ("20ms", 0.02), ("1h2m3s", 3723.0), ("soon", None), ("", None)],
)
def test_openai_says_how_long_a_limit_lasts(reply, seconds):
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reply}
    limit = limit_of(headers, 429, at=1000.0, run="r", provider="p")
    assert limit is not None
    assert limit.resets_at == (None if seconds is None else 1000.0 + seconds)
    assert limit_of(headers, 200, at=1000.0, run="r", provider="p") is None
