"""Each request and answer of the golden set is translated into each dialect exactly as stored."""

from __future__ import annotations

import pytest

from legion.gateway.dialects.registry import Dialect
from tests.gateway.golden import kept
from tests.gateway.golden.answers import ANSWERS
from tests.gateway.golden.requests import REQUESTS

ASKING = [(source, target, name) for source, target in kept.FROM_TO for name in REQUESTS[source]]
ANSWERING = [(target, name) for target in Dialect for name in ANSWERS]


@pytest.mark.parametrize(("source", "target", "name"), ASKING)
def test_a_request_becomes_what_it_always_became(source, target, name):
    assert kept.request(source, target, name) == kept.kept(f"{source.value}-to-{target.value}")[name]


@pytest.mark.parametrize(("target", "name"), ANSWERING)
def test_an_answer_becomes_what_it_always_became(target, name):
    assert kept.whole(target, name) == kept.kept(f"answers-in-{target.value}")[name]


@pytest.mark.parametrize(("target", "name"), ANSWERING)
def test_a_streamed_answer_becomes_what_it_always_became(target, name):
    assert kept.stream(target, name) == kept.kept(f"streams-in-{target.value}")[name]


def test_nothing_is_kept_that_is_not_looked_at():
    assert {path.stem for path in kept.FOLDER.glob("*.json")} == set(kept.as_it_is())
    assert all(list(kept.kept(name)) == list(cases) for name, cases in kept.as_it_is().items())
