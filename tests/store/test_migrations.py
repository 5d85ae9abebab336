"""From any older database to the present one, with its data; never back, and never half a step.

Every shipped step has a file in `data/` with what a database of its schema can hold and one of the step before cannot,
and a function here that reads it in the present schema. A new step needs both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import (
    BigInteger,
    Double,
    Enum,
    Float,
    Integer,
    String,
    Text,
    TypeDecorator,
    create_engine,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from legion.domain.agents.teams import PLAIN, RolePart
from legion.domain.checks import CheckResult
from legion.domain.forge.connections import ClaimStage, ForgeKind, TokenFrom
from legion.domain.forge.pulls import CiResult, PullStage
from legion.domain.notes import NoteKind
from legion.domain.plans.checks import FindingKind
from legion.domain.plans.plan import PlanAuthor, PlanState
from legion.domain.review.verdicts import Severity
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import JobKind
from legion.domain.takeovers import TakeoverMode
from legion.domain.tickets.evidence import Bound
from legion.domain.tickets.spec import LandingGate, ReviewPolicy
from legion.domain.tickets.ticket import ParkReason, State
from legion.domain.watchdog.diagnosis import WatchdogStep
from legion.store import epic_sessions, events, snapshot
from legion.store.board import (
    conditions,
    crews,
    forges,
    goals,
    landings,
    notes,
    plan_approvals,
    projects,
    questions,
    races,
    receipts,
    routines,
    tickets,
    verdicts,
)
from legion.store.database import schema
from legion.store.database.errors import StoreTooNew
from legion.store.database.migrations import SHIPPED, Migration, parse
from legion.store.database.transactions import Store, Transaction
from legion.store.staff import agents, leaders, mail
from legion.store.work import claims, idempotency, runs, takeovers, usage, watchdog
from legion.system.crash import Point
from tests.store import kept_machines
from tests.store.making import add_project, add_ticket, data_of, dies_at, migrate_with_data
from tests.support.sampling import sampled

NEXT = SHIPPED[-1].number + 1


def tables_of(url: str) -> set[str]:
    engine = create_engine(url)
    names = set(inspect(engine).get_table_names())
    engine.dispose()
    return names


# The first and the last always: a database of the last step has the data of all.
DRAWN = sampled(SHIPPED, 10, lambda step: step in (SHIPPED[0], SHIPPED[-1]) and step)


@pytest.fixture(params=DRAWN, ids=lambda step: f"from-{step.number:04}")
def old(request, database_url) -> Iterator[tuple[Store, Migration]]:
    """A database as an older Legion left it, with the data of all its steps, and the last of them."""
    store = Store(database_url)
    migrate_with_data(store, database_url, request.param.number)
    yield store, request.param
    store.close()


def test_old_data_is_migrated_still_says_the_same_and_work_goes_on(old):
    store, last = old
    store.migrate()
    with store.write() as tx:
        for step in SHIPPED[: last.number]:
            KEPT[step.name](tx)
        if last.number < len(SHIPPED):
            assert_tickets_of_then_have_defaults(tx, last)
        assert snapshot.load(tx, 2, {}).ended == {1: State.DONE}
        assert add_ticket(tx, 1, after=(3,)).id == 4
        assert runs.start(tx, 3, 1).id == 3
    with store.read() as tx:
        assert [event.n for event in events.after(tx, 2)] == [3, 4]


def first_board(tx: Transaction) -> None:
    (project,) = projects.all(tx)
    assert (project.name, project.root, project.baseline_verdict) == ("shop", "/home/ada/shop", CheckResult.GREEN)
    assert projects.is_trusted(tx, project.id, "hash-1")
    done, parked, queued = tickets.get_many(tx, (1, 2, 3))
    assert (done.state, done.landed, done.spec.title) == (State.DONE, "c" * 40, "Tills")
    assert done.spec.context == "The old till\nrings twice."
    assert parked.parked is not None
    assert (parked.state, parked.parked.reason, parked.parked.until) == (State.PARKED, ParkReason.LIMIT, 5000.0)
    assert queued.spec.after == (1, 2)
    assert queued.spec.files == ("src/*.py",)
    assert tickets.counts(tx) == {State.DONE: 1, State.PARKED: 1, State.QUEUED: 1}
    assert tickets.dependants(tx, 2) == (3,)
    assert [(run.outcome, run.part) for run in runs.of_ticket(tx, 1, role="")] == [
        (Outcome.LOST, RolePart.BUILD),
        (Outcome.FINISHED, RolePart.BUILD),
    ]
    assert [(claim.kind, claim.subject) for claim in claims.active(tx)] == [(JobKind.LAND, 1)]
    assert [receipt.verdict for receipt in receipts.of_ticket(tx, 1)] == [CheckResult.GREEN]
    assert [dict(landing.tickets) for landing in landings.history(tx, 1, 5)] == [{1: "c" * 40}]
    assert idempotency.recall(tx, 1, "again") == {"ids": [3]}
    assert [event.n for event in events.after(tx, 0)] == [1, 2]


def costs_and_questions(tx: Transaction) -> None:
    assert tickets.get(tx, 1).spec.budget == 2.5
    assert tickets.get(tx, 1).spec.asks
    assert [run.conversation for run in runs.of_ticket(tx, 1, role="")] == ["one-talk", "one-talk"]
    assert usage.of_ticket(tx, 1).input == 9_000_000_000
    assert usage.read_up_to(tx, "gateway") == ("2026-01-02.jsonl", 9_000_000_000)
    assert usage.limits(tx)["anthropic"].resets_at == 5000
    assert questions.get(tx, 1).allowed is True


def agents_and_mail(tx: Transaction) -> None:
    (manager,) = agents.standing(tx)
    assert (manager.id, manager.rights.budget, manager.rights.headcount) == ("a-manager", 5.0, 3)
    assert agents.get(tx, "a-reader").fired_at == 1700.0
    assert [one.text for one in mail.of_batch(tx, "a-manager", "p1")] == ["Lead."]
    assert [run.id for run in runs.of_agent(tx, 1)] == [99]


def tokens_and_facts(tx: Transaction) -> None:
    assert questions.get(tx, 1).facts == {"tool": "Bash"}
    assert tx.execute(schema.tokens.select()).one().agent == "a-manager"


def held_ticket(tx: Transaction) -> None:
    assert tx.execute(schema.claimed_tickets.select()).one().ticket == 3


def undone_ticket(tx: Transaction) -> None:
    assert [ticket.spec.undoes for ticket in tickets.get_many(tx, (1, 3))] == [None, 1]


def evidence(tx: Transaction) -> None:
    proven, plain = tickets.get_many(tx, (1, 2))
    assert proven.spec.bound == (Bound(criterion=0, by="make test"),)
    assert proven.spec.acceptance == ("smoke",)
    assert (plain.spec.bound, plain.spec.acceptance) == ((), ())


def review(tx: Transaction) -> None:
    (reading,) = verdicts.of_ticket(tx, 1)
    assert reading.verdict is not None
    assert [(one.weight, one.place) for one in reading.verdict.findings] == [(Severity.NIT, "till.py:3")]
    assert [judged.met for judged in reading.verdict.criteria] == [True]
    assert [(run.role, run.part) for run in runs.of_ticket(tx, 1)][1:] == [
        ("", RolePart.BUILD),
        ("reviewer", RolePart.READ),
    ]
    assert [ticket.spec.review for ticket in tickets.get_many(tx, (1, 2))] == [None, ReviewPolicy.ALWAYS]


def team(tx: Transaction) -> None:
    kept, plain = tickets.get_many(tx, (1, 2))
    assert (kept.spec.team, kept.spec.labels) == ("pair", ("urgent",))
    crew = crews.get(tx, kept.spec.crew)
    assert [stage.key for stage in crew.stages] == ["lead-advise", "engineer"]
    assert (crew.rounds, crew.advisers[0].tools) == (2, frozenset({"Read"}))
    assert [one.text for one in crews.advice_of(tx, 1)] == ["Begin small."]
    assert crews.get(tx, plain.spec.crew) == PLAIN
    assert crews.get(tx, crews.keep(tx, crew)) == crew
    assert crews.keep(tx, crew) == crews.keep(tx, crew)


def watchdog_steps(tx: Transaction) -> None:
    nudged, ended = watchdog.interventions(tx, [1])[1]
    assert (nudged.action, nudged.taken_at) == (WatchdogStep.NUDGE, 1455.5)
    assert (ended.action, ended.taken_at) == (WatchdogStep.END, None)
    assert watchdog.ended_by(tx, 1) == ended
    assert watchdog.observations(tx, [1, 2])[1].bytes == 9_000_000_000
    assert [one.skipped for one in tickets.get_many(tx, (1, 2))] == [0, 3]


def rewind(tx: Transaction) -> None:
    assert tx.execute(schema.rewinds.select()).one().conversation == "new-talk"


def plan(tx: Transaction) -> None:
    found = plan_approvals.of_ticket(tx, 3)
    assert found is not None
    assert (found.text, found.why, found.decided_by) == ("First the hinges.", "Handles first.", "root")


def device(tx: Transaction) -> None:
    assert tx.execute(schema.devices.select().where(schema.devices.c.id == 1)).one().name == "phone"


def attendance(tx: Transaction) -> None:
    found = takeovers.of_ticket(tx, 3)
    assert found is not None
    assert (found.mode, found.submitted, found.accepts) == (TakeoverMode.PERSON, True, False)


def session(tx: Transaction) -> None:
    (default,) = projects.sessions_of(tx, "/home/ada/shop/.git")
    (other,) = projects.sessions_of(tx, "/home/ada/shop/.git", ended=True)
    assert (default.id, default.session, default.chosen, default.base_commit) == (1, "", False, None)
    assert (other.session, other.chosen, other.base_commit) == ("feature-till", True, "bbbb")
    assert projects.by_common_dir(tx, "/home/ada/shop/.git") == default


def goal(tx: Transaction) -> None:
    found = goals.get(tx, 1)
    assert (found.name, found.state, found.budget) == ("P1", PlanState.PARTLY, 0.5)
    assert found.draft is not None
    assert found.draft.keys == ("doors", "staff")
    assert goals.dispatched(tx, 1) == {"doors": 3}
    assert [(one.author, one.findings[0].kind) for one in goals.rounds(tx, 1)] == [
        (PlanAuthor.PLANNER, FindingKind.SIZE)
    ]
    assert [run.seat for run in runs.of_plan(tx, 1)] == ["plan-1"]
    assert epic_sessions.budgets(tx)[1, "sunday"] == 7.5


def memory(tx: Transaction) -> None:
    found, *_ = notes.for_agents(tx, 1)
    assert (found.text, found.files, found.labels, found.ticket) == (
        "The till rings twice.",
        ("till/**",),
        ("till",),
        1,
    )


def leader(tx: Transaction) -> None:
    found, *_ = notes.for_leaders(tx, 1, closed=True)
    assert (found.kind, found.ticket, found.outcome) == (NoteKind.PROMISE, 1, "They did.")
    assert notes.for_leaders(tx, 1) == ()
    state = leaders.get(tx, 1)
    assert (state.seen, state.shown, state.tokens, state.compacted) == (3, 4, 52000, False)


def lessons(tx: Transaction) -> None:
    (lesson,) = notes.lessons(tx, 1)
    assert (lesson.proposed, lesson.accepted_by, notes.users(tx, lesson.id)) == (False, "root", frozenset({2}))
    (routine,) = routines.of_project(tx, 1)
    assert (routine.name, routine.starts, routine.last_tickets) == ("R1", "every weekday 07:00", (3,))


def specs(tx: Transaction) -> None:
    assert [(one.spec, one.keep_docs) for one in goals.of_project(tx, 1)] == [(False, False), (True, True)]
    assert list(goals.documents_of(tx, 2).values()) == ["# Night"]
    assert [(one.ticket, one.about, one.result.value) for one in conditions.all(tx)] == [(2, (1,), "failed")]


def gates_and_hands(tx: Transaction) -> None:
    (project,) = projects.all(tx)
    assert (project.workers, project.retries, project.frozen) == (3, 2, True)
    assert epic_sessions.gates(tx)[1, "till"] is LandingGate.PERSON
    ticket = tickets.get(tx, 1)
    assert (ticket.spec.gate, ticket.place) == (LandingGate.AUTO, -2)
    (first, *_) = tx.execute(select(schema.mail).order_by(schema.mail.c.number))
    assert (first.archived_at, first.reply_to) == (1950.0, 1)


def race(tx: Transaction) -> None:
    (lane,) = races.of_ticket(tx, 1)
    assert (lane.race, lane.label, lane.lines, lane.won, lane.decided_at) == (1, "codex", 12, True, 1900.0)
    assert races.undecided(tx) == {}
    assert runs.get(tx, 1).driver == "codex"


def forge(tx: Transaction) -> None:
    known = forges.of_project(tx, 1)
    assert known is not None
    expected = (ForgeKind.GITHUB, TokenFrom.ENV, "bot", "legion:go")
    assert (known.kind, known.key_from, known.login, known.intake.label) == expected
    claim, pull = forges.claim_of_ticket(tx, 2), forges.pull_of(tx, 2)
    assert claim is not None
    assert pull is not None
    assert (claim.number, claim.stage, claim.comment) == (7, ClaimStage.CLAIMED, 9_000_000_000)
    assert (pull.stage, pull.ci, pull.number) == (PullStage.OPEN, CiResult.RED, 8)
    assert [one.thread for one in forges.unanswered(tx, 2)] == [9_000_000_001]
    assert tx.execute(schema.requests.select().where(schema.requests.c.scope == "forge")).one().request == "d-1"


KEPT: dict[str, Callable[[Transaction], None]] = {
    "first": first_board,
    "models": costs_and_questions,
    "agents": agents_and_mail,
    "tools": tokens_and_facts,
    "holdings": held_ticket,
    "flow": undone_ticket,
    "evidence": evidence,
    "review": review,
    "teams": team,
    "liveness": watchdog_steps,
    "rewinds": rewind,
    "plans": plan,
    "goals": goal,
    "memories": memory,
    "devices": device,
    "attendances": attendance,
    "races": race,
    "adoptions": kept_machines.adoption,
    "leader": leader,
    "gates": gates_and_hands,
    "forge": forge,
    "sessions": session,
    "lessons": lessons,
    "machines": kept_machines.machine,
    "specs": specs,
    **kept_machines.KEPT,
}
"""What the data of each step still says in the present schema, by the step's name."""


def assert_tickets_of_then_have_defaults(tx: Transaction, last: Migration) -> None:
    """What a later step brought is empty for a ticket that is older than it."""
    ticket, later = tickets.get(tx, 1), {step.name for step in SHIPPED[last.number :]}
    if "evidence" in later:
        assert (ticket.spec.bound, ticket.spec.acceptance) == ((), ())
    if "teams" in later:
        assert crews.get(tx, ticket.spec.crew) == PLAIN
    if "review" in later:
        assert ticket.spec.review is None
        assert [run.part for run in runs.of_ticket(tx, 1)] == [RolePart.BUILD] * 2


def test_every_shipped_step_has_data_to_be_tested_on():
    assert [step.number for step in SHIPPED] == list(range(1, len(SHIPPED) + 1))
    assert [step.name for step in SHIPPED] == list(KEPT)
    for step in SHIPPED:
        assert data_of(step)


def test_the_tables_are_as_the_code_believes(migrated_url):
    engine = create_engine(migrated_url)
    found = inspect(engine)
    for table in schema.metadata.tables.values():
        columns = {column["name"]: column for column in found.get_columns(table.name)}
        assert set(columns) == set(table.columns.keys()), table.name
        for column in table.columns:
            there = columns[column.name]
            if not column.primary_key:
                assert there["nullable"] == column.nullable, f"{table.name}.{column.name}"
            assert isinstance(there["type"], KINDS[type(plain(column.type))]), f"{table.name}.{column.name}"
        assert set(found.get_pk_constraint(table.name)["constrained_columns"]) == set(table.primary_key.columns.keys())
    assert tables_of(migrated_url) == {*schema.metadata.tables, "schema_version"}
    engine.dispose()


def test_migrating_twice_does_nothing(database_url):
    store = Store(database_url)
    assert store.migrate() == SHIPPED
    assert store.migrate() == ()
    store.close()


def test_the_next_step_is_taken_alone_and_keeps_the_data(migrated_url):
    store = Store(migrated_url)
    with store.write() as tx:
        add_project(tx)
        before = add_ticket(tx)
    step = parse(
        f"{NEXT:04}_mood.sql",
        "-- How it feels.\nALTER TABLE tickets ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm';\n\n"
        "UPDATE tickets SET mood = 'eager'\nWHERE live = 1;\n",
    )
    assert store.migrate([*SHIPPED, step]) == (step,)
    with store.read() as tx:
        assert tickets.get(tx, before.id) == before
        assert tx.execute(text("SELECT mood FROM tickets")).scalar_one() == "eager"
    store.close()


def test_a_step_that_fails_half_way_leaves_nothing_of_itself(migrated_url):
    store = Store(migrated_url)
    with store.write() as tx:
        add_project(tx)
    bad = parse(f"{NEXT:04}_bad.sql", "CREATE TABLE half (a INTEGER);\nINSERT INTO nowhere (a) VALUES (1);\n")
    with pytest.raises(DBAPIError):
        store.migrate([*SHIPPED, bad])
    assert "half" not in tables_of(migrated_url)
    good = parse(f"{NEXT:04}_good.sql", "CREATE TABLE half (a INTEGER);\n")
    assert store.migrate([*SHIPPED, good]) == (good,)
    with store.read() as tx:
        assert len(projects.all(tx)) == 1
    store.close()


def test_a_newer_database_is_refused_and_left_alone(migrated_url):
    store = Store(migrated_url)
    newer = parse(f"{NEXT:04}_future.sql", "CREATE TABLE future (a INTEGER);\n")
    store.migrate([*SHIPPED, newer])
    with pytest.raises(StoreTooNew, match="update Legion") as caught:
        store.migrate()
    assert f"schema {NEXT}, this one knows {SHIPPED[-1].number}" in caught.value.message
    assert "future" in tables_of(migrated_url)
    store.close()


def test_a_kill_in_the_middle_of_a_step_leaves_nothing_and_the_next_start_takes_it(database_url):
    dies_at(Point.STORE_MIGRATION_BEFORE_COMMIT, lambda: ignore(Store(database_url).migrate()))
    assert tables_of(database_url) == set()
    dies_at(Point.STORE_MIGRATION_AFTER_COMMIT, lambda: ignore(Store(database_url).migrate()))
    assert "tickets" in tables_of(database_url)
    store = Store(database_url)
    assert store.migrate() == SHIPPED[1:]
    store.close()


KINDS: dict[type, type] = {BigInteger: Integer, Integer: Integer, Double: Float, Text: String}
"""What a column of ours must be found as."""


def plain(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Behind our own decorators; an enum is stored as its text."""
    while isinstance(kind, TypeDecorator):
        kind = kind.impl_instance
    return Text() if isinstance(kind, Enum) else kind


def ignore(_value: object) -> None:
    pass
