"""What the data of the last steps still says in the present schema, for `test_migrations`."""

from __future__ import annotations

from legion.domain.machines.machine import CommandKind, PlacementState
from legion.domain.notes import NoteKind
from legion.domain.takeovers import Takeover, TakeoverStage
from legion.domain.tickets.spec import LandingGate
from legion.domain.tickets.ticket import State
from legion.store import epic_sessions
from legion.store.board import goals, notes, receipts, tickets
from legion.store.database import schema
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, devices, leaders
from legion.store.work import adoptions, machines, runs, takeovers, usage


def machine(tx: Transaction) -> None:
    known = machines.of_token(tx, "a token")
    assert known is not None
    assert (known.name, known.labels, known.slots, known.mirrors) == ("desk", ("gpu", "linux"), 8, (1,))
    assert [(one.name, one.state) for one in machines.open_on(tx, known.id)] == [
        ("ticket-1-run-2", PlacementState.TAKEN)
    ]
    assert [(one.run, one.kind, one.facts) for one in machines.commands(tx, known.id)] == [
        ("ticket-1-run-2", CommandKind.TELL, {"id": "m1", "text": "use tabs"})
    ]
    assert [run.machine for run in runs.of_ticket(tx, 1, role="")] == ["", "desk"]
    assert [receipt.machine for receipt in receipts.of_ticket(tx, 1)] == ["desk"]


def places(tx: Transaction) -> None:
    assert tickets.get(tx, 3).spec.on == ("gpu",)
    assert tickets.get(tx, 1).spec.on == ()


def agent_wheel(tx: Transaction) -> None:
    assert takeovers.of_agent(tx, 1) == Takeover(agent=1, owes=True, since=2000.0)


def wheel_run(tx: Transaction) -> None:
    found = takeovers.of_ticket(tx, 1)
    assert found is not None
    assert (found.alone, found.stage) == (1, TakeoverStage.CUT)


def agent_driver(tx: Transaction) -> None:
    assert agents.numbered(tx, 1).driver == "qwen"


def machine_disk(tx: Transaction) -> None:
    desk = machines.get(tx, "desk")
    assert (desk.is_full, desk.lost, desk.lost_at) == (True, 2, 5.0)


def adoption(tx: Transaction) -> None:
    found = adoptions.of_ticket(tx, 1)
    assert found is not None
    assert (found.conversation, found.source, found.at) == ("c-of-ticket", "c-of-person", 1950.0)


def browser_secret(tx: Transaction) -> None:
    """Of the browsers, only the one that never had a cookie is still let in."""
    assert [one.name for one in devices.accepted(tx)] == ["laptop"]


def usage_report(tx: Transaction) -> None:
    row = tx.execute(schema.usage_reports.select().where(schema.usage_reports.c.model == "counted")).one()
    assert (row.conversation, row.run, row.event, row.input, row.usd) == ("c-1", 1, 4, 9_000_000_000, 1.5)


def agent_money(tx: Transaction) -> None:
    """Added up from the runs of before, and as it was stored."""
    assert agents.own_spending(tx)["a-stored"] == 0.5
    assert agents.all_means(tx)["a-manager"].money is not None


def plain_names(tx: Transaction) -> None:
    """Rows that had no place before: a pinned note, an epic with a budget and a gate."""
    pinned = next(one for one in notes.for_agents(tx, 1) if one.pinned)
    assert (pinned.text, pinned.kind, pinned.author) == ("Lock the doors.", NoteKind.MEMORY, "root")
    assert (epic_sessions.budgets(tx)[1, "doors"], epic_sessions.gates(tx)[1, "doors"]) == (2.0, LandingGate.AUTO)


def trusted_check(tx: Transaction) -> None:
    assert [receipt.trusted for receipt in receipts.of_ticket(tx, 1)] == ["ada"]


def sums(tx: Transaction) -> None:
    """Added up from what was there before, and as it was stored."""
    spent = {(one.epic, one.day): one.usd for one in usage.spent(tx) if one.project == 1}
    assert spent.pop(("doors", "2026-02-01")) == 3.0
    assert sum(spent.values()) == sum(one.usage.usd for one in usage.spending(tx, 1)) > 0
    assert tickets.counts(tx, 1)[State.DONE] == 1


def last_reader(tx: Transaction) -> None:
    assert [one.id for one in goals.unread(tx)] == [1]


def claims(tx: Transaction) -> None:
    rows = {row.id: row for row in tx.execute(schema.tickets.select())}
    assert (rows[1].claims, rows[1].lost, rows[1].alone) == (["src/cart.py::Cart.__init__"], True, True)
    assert (rows[2].behind, rows[2].retires, rows[2].retired) == (1, [], "")


def specification_stop(tx: Transaction) -> None:
    plan = goals.get(tx, 1)
    assert (plan.short, plan.stops, plan.depth) == (True, True, "3 points, 40 words")


def last_call(tx: Transaction) -> None:
    assert leaders.get(tx, 1).called


KEPT = {
    "places": places,
    "agent_wheels": agent_wheel,
    "agent_drivers": agent_driver,
    "wheel_runs": wheel_run,
    "browser_secrets": browser_secret,
    "usage_reports": usage_report,
    "machine_disks": machine_disk,
    "agent_spending": agent_money,
    "trusted_checks": trusted_check,
    "plain_names": plain_names,
    "sums": sums,
    "last_readers": last_reader,
    "claims": claims,
    "specification_stops": specification_stop,
    "last_calls": last_call,
}
"""The latest steps, in their order."""
