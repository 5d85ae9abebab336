"""What runs spent and what providers said: summed up, each line of the ledger once."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from legion.domain.runs import Outcome
from legion.domain.scheduling.usage import ProviderLimit, Spending, Usage
from legion.store.database.transactions import Store
from legion.store.work import runs, usage
from tests.store.making import add_ticket, migrate_with_data
from tests.support.attacks import Attacker, Door, attack

DAY = "2026-01-02"
SOME = Usage(requests=2, failed=1, unpriced=1, input=10, output=20, cache_read=30, cache_write=40, usd=0.5, seconds=1.5)


@pytest.fixture
def run(store, project) -> int:
    with store.write() as tx:
        number: int = runs.start(tx, add_ticket(tx, project.id).id, 1).id
    return number


def spent(run: int, *, model: str = "large", day: str = DAY, amount: Usage = SOME) -> Spending:
    return Spending(run=run, provider="anthropic", model=model, day=day, usage=amount)


def test_spending_adds_up_field_by_field(store, run):
    with store.write() as tx:
        usage.add(tx, [spent(run), spent(run)])
        usage.add(tx, [spent(run, model="small"), spent(run, day="2026-01-03")])
    with store.read() as tx:
        assert usage.of_runs(tx, [run]) == {run: SOME + SOME + SOME + SOME}
        assert usage.of_runs(tx, [run])[run].cache_write == 160


def test_a_ticket_costs_what_all_its_runs_cost(store, project, run):
    with store.write() as tx:
        ticket = runs.get(tx, run).ticket or 0
        second = runs.start(tx, ticket, 2).id
        stranger = runs.start(tx, add_ticket(tx, project.id).id, 1).id
        usage.add(tx, [spent(run), spent(second), spent(stranger)])
    with store.read() as tx:
        assert usage.of_ticket(tx, ticket) == SOME + SOME
        assert usage.of_project(tx, project.id) == usage.of_project(tx, None) == SOME + SOME + SOME
        assert usage.of_project(tx, project.id + 1) == Usage(), "another project spent nothing"
        assert usage.of_runs(tx, [stranger, 999]) == {stranger: SOME}


@attack(Attacker.AGENT, Door.MONEY)
def test_what_an_agents_tickets_spend_is_the_agents_too(store, project, run):
    with store.write() as tx:
        its = runs.start(tx, add_ticket(tx, project.id, dispatcher="a-manager").id, 1).id
        usage.add(tx, [spent(run), spent(its), spent(its, model="small")])
    with store.read() as tx:
        assert {name: (one.own, one.given) for name, one in usage.by_agents(tx).items()} == {"a-manager": (0.0, 1.0)}


def test_the_place_in_a_ledger_moves_with_what_was_read(store):
    with store.read() as tx:
        assert usage.read_up_to(tx, "gateway") == ("", 0)
    with store.write() as tx:
        usage.have_read(tx, "gateway", "a.jsonl", 5)
        usage.have_read(tx, "gateway", "b.jsonl", 5_000_000_000)
        usage.have_read(tx, "other", "c.jsonl", 1)
    with store.read() as tx:
        assert usage.read_up_to(tx, "gateway") == ("b.jsonl", 5_000_000_000)


def test_the_last_word_of_a_provider_about_its_limit_counts(store):
    first = ProviderLimit(provider="anthropic", at=1.0, status=429, span="five hours", utilization=1.0, resets_at=9.0)
    last = ProviderLimit(provider="anthropic", at=2.0, status=200, span="five hours", utilization=0.1, resets_at=None)
    other = ProviderLimit(provider="other", at=1.5, status=529, span="", utilization=None, resets_at=None)
    with store.write() as tx:
        for said in (first, other, last):
            usage.note_limit(tx, said)
    with store.read() as tx:
        assert usage.limits(tx) == {"anthropic": last, "other": other}


def test_only_the_days_of_a_window_are_read(store, run):
    with store.write() as tx:
        for day, usd in (("2026-01-30", 1.0), ("2026-01-31", 2.0), ("2026-02-01", 4.0)):
            usage.add(tx, [spent(run, day=day, amount=Usage(usd=usd))])
    with store.read() as tx:
        assert [one.usage.usd for one in usage.spending(tx, since="2026-01-31")] == [2.0, 4.0]
        assert len(usage.work(tx, since=2e9)) == 1, "it goes on"
    with store.write() as tx:
        runs.end(tx, run, Outcome.FINISHED)
        ended = runs.get(tx, run).ended_at
        assert ended is not None
        assert [len(usage.work(tx, since=moment)) for moment in (ended, ended + 1)] == [1, 0]


def test_what_agents_spent_is_added_up_from_the_runs_of_before(database_url):
    store = Store(database_url)
    migrate_with_data(store, database_url, 32)
    with store.write() as tx:
        tx.execute(text("UPDATE tickets SET dispatcher = 'a-reader'"))
        tx.execute(text("UPDATE goals SET dispatcher = 'a-reader'"))
        more = "INSERT INTO usage SELECT {}, provider, model, day, 0, 0, 0, 0, 0, 0, 0, {}, 0 FROM usage WHERE run = 2"
        for run, usd in ((99, 0.25), (97, 0.5)):
            tx.execute(text(more.format(run, usd)))
    store.migrate()
    with store.read() as tx:
        spent = usage.by_agents(tx)
        assert (spent["a-manager"].own, spent["a-manager"].given) == (0.25, 0.0)
        assert (spent["a-reader"].own, spent["a-reader"].given) == (0.0, 2.0)
    store.close()
