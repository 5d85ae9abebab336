"""What a word names where a ticket and a standing agent are both possible."""

from __future__ import annotations

import pytest

from legion.wire.text import names_a_ticket


@pytest.mark.parametrize("word", ["1", "12", "#12", "1234567", "#96975878", "#" + "9" * 18])
def test_a_short_number_is_a_ticket(word: str):
    assert names_a_ticket(word)


@pytest.mark.parametrize("word", ["", "#", "tess", "96975878", "96975878-1f", "1a", "#1a", "#" + "9" * 19, "\u0661"])
def test_anything_else_is_an_agent_also_the_beginning_of_an_id_in_digits_alone(word: str):
    assert not names_a_ticket(word)
