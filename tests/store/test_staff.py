"""Agents, mail, holdings and repeated calls come back as they were written, on both databases."""

from __future__ import annotations

import pytest

from legion.domain.agents.agent import ROOT, Planning, Rights, Tier
from legion.domain.agents.mail import Delivery, MessageKind
from legion.domain.errors import NotFound, StateConflict
from legion.domain.runs import Outcome
from legion.domain.scheduling.budgets import EpicSpending
from legion.domain.scheduling.usage import AttemptFate, Spending, Usage
from legion.domain.tickets.ticket import Start
from legion.store import snapshot
from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import idempotency, runs, usage
from tests.store.making import COMMIT, add_ticket, stop

RIGHTS = Rights(tools=frozenset({"Read", "Bash"}), budget=10.0, headcount=3, depth=2, tier=Tier.SONNET)


def hire(tx: Transaction, project: int, name: str = "", parent: str = ROOT, rights: Rights = RIGHTS, **more):
    facts = {"role": "tester", "task": "Test.", "model": "sonnet"} | more
    return agents.hire(tx, project=project, parent=parent, name=name, rights=rights, **facts)


def test_an_agent_comes_back_whole_and_is_found_by_what_people_call_it(store, project):
    with store.write() as tx:
        ann = hire(tx, project.id, "ann", plan=Planning.WANTED)
        nameless = hire(tx, project.id)
        with pytest.raises(StateConflict, match="choose another name"):
            hire(tx, project.id, "ann")
    with store.read() as tx:
        assert agents.get(tx, ann.id) == agents.numbered(tx, 1) == ann
        assert (
            agents.find(tx, "ann", by=ROOT)
            == agents.find(tx, ann.id, by=ROOT)
            == agents.find(tx, ann.id[:8], by=ROOT)
            == ann
        )
        assert agents.find(tx, nameless.name, by=ROOT).number == 2
        for word in ("nobody", "", ann.id[:2]):
            with pytest.raises(NotFound):
                agents.find(tx, word, by=ROOT)
    with store.write() as tx:
        agents.fire(tx, ann, by=ROOT)
        again = hire(tx, project.id, "ann")
    with store.read() as tx:
        assert agents.find(tx, "ann", by=ROOT) == again
        assert agents.gone(tx, project.id) == {"agent-1"}
        assert agents.parents(tx) == {nameless.id: ROOT, again.id: ROOT}


def test_money_goes_up_the_tree_when_somebody_is_fired(store, project):
    with store.write() as tx:
        boss = hire(tx, project.id, "boss")
        kid = hire(tx, project.id, "kid", boss.id, Rights(budget=4.0))
        run = runs.start_turn(tx, kid, "p")
        usage.add(tx, [Spending(run=run.id, provider="p", model="m", day="d", usage=Usage(requests=1, usd=1.5))])
    with store.read() as tx:
        means = agents.all_means(tx)
        assert (means[boss.id].money, means[kid.id].money, means[boss.id].heads) == (6.0, 2.5, 2)
    with store.write() as tx:
        agents.fire(tx, kid, by=boss.id)
    with store.read() as tx:
        assert agents.all_means(tx)[boss.id].money == 8.5


def test_a_ticket_takes_its_budget_while_it_lives_and_then_what_it_cost(store, project):
    with store.write() as tx:
        boss = hire(tx, project.id, "boss")
        ticket = add_ticket(tx, dispatcher=boss.id, budget=4.0).id
        run = runs.start(tx, ticket, 1).id
    for usd, left in ((0.0, 6.0), (1.5, 6.0), (4.0, 4.5)):
        with store.write() as tx:
            usage.add(tx, [Spending(run=run, provider="p", model="m", day="d", usage=Usage(usd=usd))])
            assert agents.all_means(tx)[boss.id].money == left, "what it spent, or its budget where that is more"
    with store.write() as tx:
        cheap = add_ticket(tx, dispatcher=boss.id, budget=3.0).id
        assert agents.all_means(tx)[boss.id].money == 1.5
        stop(tx, cheap)
        assert agents.all_means(tx)[boss.id].money == 4.5
        assert agents.own_spending(tx) == {boss.id: 0.0}


def test_mail_is_drained_in_order_and_counted(store, project):
    with store.write() as tx:
        ann = hire(tx, project.id, "ann")
        sent = [mail.send(tx, sender=ROOT, recipient=ann.id, text=f"{n}") for n in range(3)]
        assert mail.have_mail(tx) == {ann.id: 3}
        assert mail.offer(tx, ann.id, "p1")[0].batch == "p1"
        late = mail.send(tx, sender=ROOT, recipient=ann.id, text="late", kind=MessageKind.NOTICE)
    with store.read() as tx:
        assert [one.id for one in mail.of_batch(tx, ann.id, "p1")] == [one.id for one in sent]
        assert [one.id for one in mail.waiting(tx, ann.id)] == [late.id]
        assert [agent.wanted for agent in snapshot.load(tx, 1, {}).agents] == [True]
    with store.write() as tx:
        for one in mail.offered(tx, ann.id):
            mail.move(tx, one, Delivery.HEARD)
        mail.move(tx, late, Delivery.RETURNED)
    with store.read() as tx:
        assert [one.text for one in mail.dead(tx, None, limit=5)] == ["late"]
        assert mail.dead(tx, [ann.id], limit=5) == ()
        assert [one.text for one in mail.between(tx, ann.id, ROOT, limit=2)] == ["2", "late"]
        assert [one.delivery for one in mail.about(tx, [ann.id], limit=9)] == [Delivery.HEARD] * 3 + [Delivery.RETURNED]
        assert mail.have_mail(tx) == {}


def test_turns_are_runs_of_their_agent(store, project):
    with store.write() as tx:
        ann = hire(tx, project.id, "ann")
        for outcome in (Outcome.FINISHED, Outcome.LOST, Outcome.LOST):
            runs.end(tx, runs.start_turn(tx, ann, "p").id, outcome)
        last = runs.start_turn(tx, ann, "p4")
    with store.read() as tx:
        assert [run.generation for run in runs.of_agent(tx, ann.number)] == [1, 1, 2, 3]
        assert (last.name, last.conversation, last.ticket) == ("agent-1-run-4", ann.id, None)
        view = snapshot.load(tx, 1, {})
        assert ([agent.in_a_turn for agent in view.agents], view.open_runs) == ([True], frozenset())


def test_what_turns_cost_counts_for_the_project_and_for_no_ticket_or_epic(store, project):
    with store.write() as tx:
        run = runs.start_turn(tx, hire(tx, project.id, "ann"), "p")
        mine = Spending(run=run.id, provider="p", model="m", day="d", usage=Usage(requests=1, usd=1.5))
        usage.add(tx, [mine])
    with store.read() as tx:
        assert usage.spent(tx) == (EpicSpending(project=project.id, epic="", day="d", usd=1.5),)
        assert usage.spending(tx, project.id) == (mine,)
        (work,) = usage.work(tx, project.id)
        assert (work.run, work.ticket, work.agent, work.fate) == (run.id, None, "ann", AttemptFate.NONE)
        assert usage.work(tx, project.id + 1) == ()


def test_a_ticket_is_held_by_one_agent_at_a_time(store, project):
    with store.write() as tx:
        ann, bob = hire(tx, project.id, "ann"), hire(tx, project.id, "bob")
        ticket = add_ticket(tx, project.id).id
        tickets.move(tx, ticket, Start(COMMIT))
        ticket_holders.hold(tx, ticket, ann.id)
        again = ticket_holders.hold(tx, ticket, bob.id)
        ticket_holders.note(tx, ticket, planted=True)
    with store.read() as tx:
        assert ticket_holders.current(tx, ann.id) is None
        held = ticket_holders.current(tx, bob.id)
        assert held is not None
        assert (held.number, held.planted, held.submitted) == (again.number, True, False)
        assert ticket_holders.tickets(tx) == snapshot.load(tx, 1, {}).held == frozenset({ticket})


def test_a_repeated_call_is_known_by_its_caller(store):
    with store.write() as tx:
        idempotency.remember(tx, "ann", "r1", {"id": "x"})
    with store.read() as tx:
        assert idempotency.recall(tx, "ann", "r1") == {"id": "x"}
        assert idempotency.recall(tx, "bob", "r1") is None
