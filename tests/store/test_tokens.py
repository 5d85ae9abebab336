"""Tokens: opaque, hashed, of one run, dead with it."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from legion.domain.runs import Outcome
from legion.store.staff import tokens
from legion.store.work import runs
from tests.store.making import add_ticket


@pytest.fixture
def run(store, project):
    with store.write() as tx:
        return runs.start(tx, add_ticket(tx, project.id).id, 1)


def test_a_token_says_whose_it_is_and_is_kept_as_a_hash_alone(store, run):
    with store.write() as tx:
        token = tokens.issue(tx, run=run.id, agent="one")
    with store.read() as tx:
        bearer = tokens.bearer(tx, token)
        kept = [str(value) for row in tx.execute(text("SELECT * FROM tokens")) for value in row]
    assert bearer is not None
    assert (bearer.agent, bearer.ticket, bearer.run, bearer.valid) == ("one", None, run.id, True)
    assert len(token) > 40
    assert not any(token in value or token.removeprefix(tokens.PREFIX) in value for value in kept)


@pytest.mark.parametrize("other", ["", "x", tokens.PREFIX, tokens.PREFIX + "x", "\ud800", tokens.PREFIX + "\ud800"])
def test_what_was_never_issued_is_nobodys(store, run, other):
    with store.write() as tx:
        tokens.issue(tx, run=run.id, agent="one")
    with store.read() as tx:
        assert tokens.bearer(tx, other) is None


def test_the_hash_itself_opens_nothing(store, run):
    with store.write() as tx:
        tokens.issue(tx, run=run.id, agent="one")
    with store.read() as tx:
        kept = tx.execute(text("SELECT hash FROM tokens")).scalar_one()
        assert tokens.bearer(tx, kept) is None
        assert tokens.bearer(tx, tokens.PREFIX + kept) is None


def test_a_run_has_one_token_at_a_time(store, run):
    with store.write() as tx:
        first = tokens.issue(tx, run=run.id, ticket=run.ticket)
        second = tokens.issue(tx, run=run.id, ticket=run.ticket)
    with store.read() as tx:
        old, new = tokens.bearer(tx, first), tokens.bearer(tx, second)
    assert old is not None
    assert new is not None
    assert (old.revoked, old.valid, new.valid, new.ticket) == (True, False, True, run.ticket)


def test_a_token_dies_with_its_run_whoever_forgets_to_revoke_it(store, run):
    with store.write() as tx:
        token = tokens.issue(tx, run=run.id, ticket=run.ticket)
        runs.end(tx, run.id, Outcome.FINISHED)
    with store.read() as tx:
        bearer = tokens.bearer(tx, token)
    assert bearer is not None
    assert (bearer.ended, bearer.revoked, bearer.valid) == (True, False, False)


def test_all_that_an_agent_holds_is_revoked_at_once_and_nobody_elses(store, project, run):
    with store.write() as tx:
        other_run = runs.start(tx, add_ticket(tx, project.id).id, 1)
        mine, other = tokens.issue(tx, run=run.id, agent="one"), tokens.issue(tx, run=other_run.id, agent="two")
        tokens.revoke(tx, agent="one")
    with store.read() as tx:
        first, second = tokens.bearer(tx, mine), tokens.bearer(tx, other)
    assert first is not None
    assert second is not None
    assert (first.valid, second.valid) == (False, True)


def test_a_token_is_of_an_agent_or_of_a_ticket(store, run):
    with store.write() as tx:
        for agent, ticket in (("", None), ("one", 1)):
            with pytest.raises(ValueError, match="for a standing agent or"):
                tokens.issue(tx, run=run.id, agent=agent, ticket=ticket)
        with pytest.raises(ValueError, match="Name the run"):
            tokens.revoke(tx)
