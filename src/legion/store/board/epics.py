"""Budgets, gates and branches of epics that have one of their own."""

from __future__ import annotations

from sqlalchemy import delete, insert, select

from legion.domain.projects import Project, is_session_of_epic
from legion.domain.tickets.policy import LandingGate
from legion.store.board import projects
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency

_REQUEST = "epic-branch:"
_TABLE = schema.epics.c
_GATES = schema.epic_gates.c
_ALL = FixedQuery(select(schema.epics), lambda row: ((row.project, row.name), row.budget), remember=100)
_ALL_GATES = FixedQuery(select(schema.epic_gates), lambda row: ((row.project, row.name), row.gate), remember=100)


def budgets(tx: ReadTransaction) -> dict[tuple[int, str], float]:
    """Dollars by project and name."""
    return dict(_ALL.all(tx))


def set_budget(tx: Transaction, project: int, name: str, usd: float | None) -> None:
    """None: the epic has the limit of the settings again."""
    tx.execute(delete(schema.epics).where(_TABLE.project == project, _TABLE.name == name))
    if usd is not None:
        tx.execute(insert(schema.epics), [{"project": project, "name": name, "budget": usd}])
    # Tickets may be able to start now.
    tx.tell()


def gates(tx: ReadTransaction) -> dict[tuple[int, str], LandingGate]:
    """By project and name."""
    return dict(_ALL_GATES.all(tx))


def set_gate(tx: Transaction, project: int, name: str, gate: LandingGate | None) -> None:
    """None: the project's gate is in force again."""
    tx.execute(delete(schema.epic_gates).where(_GATES.project == project, _GATES.name == name))
    if gate is not None:
        tx.execute(insert(schema.epic_gates), [{"project": project, "name": name, "gate": gate}])
    tx.tell()


# Branches. The session of an epic is known by its name, and the ticket that lands it by the request that made it.


def request_of(session: Project) -> str:
    """The request that makes the ticket of a session, so that there is one."""
    return f"{_REQUEST}{session.id}"


def lands_a_branch(request: str) -> bool:
    """Whether a request makes the ticket that lands a whole branch."""
    return request.startswith(_REQUEST)


def ticket_of(tx: ReadTransaction, parent: int, session: Project) -> int | None:
    """The ticket of the default session that lands the branch of an ended one."""
    made = idempotency.recall(tx, parent, request_of(session))
    return None if made is None else int(made["ids"][0])


def unlanded_session(tx: ReadTransaction, parent: Project, epic: str) -> Project | None:
    """One that ended while its ticket was not made yet: a crash came between."""
    ended = [one for one in projects.sessions_of(tx, parent.common_dir, ended=True) if one.base_commit != one.target]
    mine = [one for one in ended if is_session_of_epic(one.session, epic) and ticket_of(tx, parent.id, one) is None]
    return mine[-1] if mine else None


def session_behind(tx: ReadTransaction, parent: int, ticket: int, epic: str) -> Project | None:
    """The ended session whose branch a ticket lands; None for any other ticket."""
    ended = projects.sessions_of(tx, projects.get(tx, parent).common_dir, ended=True) if epic else ()
    mine = [one for one in ended if is_session_of_epic(one.session, epic)]
    return next((one for one in mine if ticket_of(tx, parent, one) == ticket), None)
