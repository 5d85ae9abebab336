"""Tokens become money by the longest name that fits, ours or the person's own."""

from __future__ import annotations

import pytest

from legion.gateway.accounting.prices import PriceList
from legion.gateway.counting.counters import TokenCounts
from tests.gateway.gateways import eventually

MILLION = TokenCounts(input=1_000_000)


@pytest.fixture
def prices(tmp_path):
    return PriceList(tmp_path / "prices.toml")


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("claude-opus-4-20250514", 15.0),
        ("claude-opus-4-1-20250805", 15.0),
        ("claude-opus-4-5-20251101", 5.0),
        ("claude-opus-5-5", 4.0),
        ("claude-sonnet-4-5", 3.0),
        ("claude-sonnet-5", 2.0),
        ("claude-opus-45", None),
        ("claude-next-1", None),
        ("", None),
    ],
)
def test_the_longest_fitting_name_counts(prices, model, usd):
    assert prices.current().cost(model, MILLION) == usd
    assert prices.current().knows(model) == (usd is not None)


def test_every_kind_of_token_has_its_price(prices):
    usage = TokenCounts(
        input=1_000_000, output=1_000_000, cache_read=1_000_000, cache_write=3_000_000, cache_write_1h=1_000_000
    )
    assert prices.current().cost("claude-sonnet-4-5", usage) == pytest.approx(3 + 15 + 0.3 + 2 * 3.75 + 6)


def test_a_long_prompt_may_cost_more(prices):
    short = TokenCounts(input=60_000, cache_read=40_000)
    long = TokenCounts(input=60_000, cache_read=40_001)
    assert prices.current().cost("claude-haiku-5-5", short) == pytest.approx(60_000 * 0.1e-6 + 40_000 * 0.01e-6)
    assert prices.current().cost("claude-haiku-5-5", long) == pytest.approx(60_000 * 0.5e-6 + 40_001 * 0.05e-6)


def test_what_used_nothing_cost_nothing(prices):
    assert prices.current().cost("unknown", TokenCounts()) == 0.0


def test_the_person_may_add_and_replace_prices_at_any_time(prices, tmp_path):
    own = tmp_path / "prices.toml"
    table = "input = 7\noutput = 1\ncache_read = 1\ncache_write = 1\n"
    own.write_text(f"[glm-9]\n{table}[claude-sonnet-4-5]\n{table}")
    assert [prices.current().cost(name, MILLION) for name in ("glm-9", "claude-sonnet-4-5-20250929")] == [7.0, 7.0]
    assert prices.current().cost("claude-opus-5", MILLION) == 5.0
    own.unlink()
    eventually(lambda: prices.current().cost("glm-9", MILLION), lambda cost: cost is None)


@pytest.mark.parametrize(
    "content", ["no toml", "x = 1", "[m]\ninput = 1", "[m]\ninput='a'\noutput=1\ncache_read=1\ncache_write=1"]
)
def test_a_list_of_prices_with_a_mistake_is_told_once_and_changes_nothing(prices, tmp_path, content, caplog):
    (tmp_path / "prices.toml").write_text(content)
    for _ in range(2):
        assert prices.current().cost("claude-opus-5", MILLION) == 5.0
    (reply,) = caplog.messages
    assert reply.startswith(f"{tmp_path / 'prices.toml'} is not a list of prices")
