"""Mail: in order, offered under one name, heard once; what cannot be delivered goes back."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.agents.mail import (
    CALM,
    LONGEST,
    MOST_IN_A_PROMPT,
    PING_PONG,
    Delivery,
    Message,
    MessageKind,
    moved,
    next_batch,
    quarrels,
)
from legion.domain.errors import StateConflict


def message(
    number: int, *, sender: str = "a", recipient: str = "b", kind: MessageKind = MessageKind.TELL, text: str = "x"
) -> Message:
    return Message(
        number=number, id=f"m{number}", sender=sender, recipient=recipient, kind=kind, text=text, sent_at=float(number)
    )


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Delivery, Delivery)))
def test_only_these_steps_are_legal(before, after):
    legal = {
        (Delivery.WAITING, Delivery.OFFERED),
        (Delivery.WAITING, Delivery.HEARD),
        (Delivery.WAITING, Delivery.RETURNED),
        (Delivery.OFFERED, Delivery.HEARD),
        (Delivery.OFFERED, Delivery.WAITING),
        (Delivery.OFFERED, Delivery.RETURNED),
    }
    one = Message(**{**vars(message(1)), "delivery": before, "batch": "p"})
    if (before, after) in legal:
        assert moved(one, after, now=5.0, batch="q").delivery is after
    else:
        with pytest.raises(StateConflict, match="cannot become"):
            moved(one, after, now=5.0)


def test_what_was_offered_in_vain_waits_without_a_name():
    offered = moved(message(1), Delivery.OFFERED, now=1.0, batch="p")
    assert offered.batch == "p"
    assert moved(offered, Delivery.WAITING, now=2.0).batch == ""
    heard = moved(offered, Delivery.HEARD, now=3.0)
    assert (heard.batch, heard.heard_at) == ("p", 3.0)


@given(st.lists(st.integers(0, 3 * LONGEST), min_size=1, max_size=30))
def test_a_mailbox_is_drained_in_order_and_never_stuck(lengths):
    waiting = [message(number, text="x" * length) for number, length in enumerate(lengths)]
    drained: list[Message] = []
    while waiting:
        batch = next_batch(reversed(waiting))
        assert batch
        assert sum(min(len(one.text), LONGEST) for one in batch) <= max(MOST_IN_A_PROMPT, LONGEST)
        drained += batch
        waiting = waiting[len(batch) :]
    assert [one.number for one in drained] == list(range(len(lengths)))


def test_two_that_only_answer_each_other_quarrel():
    pairs = itertools.cycle([("a", "b"), ("b", "a")])
    talk = [message(number, sender=s, recipient=r) for number, (s, r) in zip(range(PING_PONG), pairs, strict=False)]
    assert quarrels(talk, 20.0)
    assert not quarrels(talk[1:], 20.0)
    assert not quarrels([*talk[:-1], message(99, sender="b", recipient="a", kind=MessageKind.RESULT)], 20.0)
    assert not quarrels([*talk[:-2], message(98), message(99)], 20.0)
    twice = [again for one in talk for again in (one, one)]
    assert quarrels(twice, 20.0)
    assert not quarrels(twice[2:], 20.0)
    assert not quarrels([message(number) for number in range(60)], 60.0), "one who talks alone"


def test_after_an_hour_of_silence_two_begin_anew():
    pairs = itertools.cycle([("a", "b"), ("b", "a")])
    talk = [message(number, sender=s, recipient=r) for number, (s, r) in zip(range(PING_PONG), pairs, strict=False)]
    assert not quarrels(talk, CALM + 20.0)
    later = replace(talk[0], number=99, sent_at=CALM + 20.0)
    assert not quarrels([*talk, later], CALM + 21.0)
    slow = [replace(one, sent_at=one.number * CALM) for one in talk]
    assert quarrels(slow, slow[-1].sent_at)
