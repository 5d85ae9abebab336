"""Epics: their budgets and gates, their sessions that ended, and the tickets that land their branches.

The session of an epic is known by its name, and the ticket that lands it by the request that made it.
"""

from __future__ import annotations

from sqlalchemy import insert, select, update

from legion.domain.projects import Project, is_session_of_epic
from legion.domain.tickets.spec import LandingGate
from legion.store.board import projects
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency

_REQUEST = "epic-branch:"
_ENDING = "epic-ending:"
_WANTED = "epic-wanted:"


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


def want(tx: Transaction, parent: int, session: Project) -> None:
    """Record that a person wants the branch of a session to land as soon as it may."""
    if not is_wanted(tx, parent, session):
        idempotency.remember(tx, parent, f"{_WANTED}{session.id}", {})


def is_wanted(tx: ReadTransaction, parent: int, session: Project) -> bool:
    return idempotency.is_known(tx, parent, f"{_WANTED}{session.id}")


def want_no_more(tx: Transaction, parent: int, session: Project) -> None:
    idempotency.forget(tx, parent, f"{_WANTED}{session.id}")


def wanted(tx: ReadTransaction) -> list[tuple[int, int]]:
    """The project and the session of each branch that a person wants to land."""
    return [(parent, int(name.removeprefix(_WANTED))) for parent, name in idempotency.starting_with(tx, _WANTED)]


def end_to_land(tx: Transaction, parent: int, session: Project) -> None:
    """Record that a session ends because its branch lands, so that a crash before its ticket is made is noticed."""
    if not ends_to_land(tx, parent, session):
        idempotency.remember(tx, parent, f"{_ENDING}{session.id}", {})


def ends_to_land(tx: ReadTransaction, parent: int, session: Project) -> bool:
    return idempotency.is_known(tx, parent, f"{_ENDING}{session.id}")


def interrupted(tx: ReadTransaction, parent: Project) -> tuple[Project, ...]:
    """Sessions that ended in order to land, and whose ticket a crash prevented."""
    ended = projects.sessions_of(tx, parent.common_dir, ended=True)
    landing = [one for one in ended if ends_to_land(tx, parent.id, one)]
    return tuple(one for one in landing if ticket_of(tx, parent.id, one) is None)


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


_TABLE = schema.epics.c
_ALL = FixedQuery(select(schema.epics), lambda row: row, remember=None)


def names(tx: ReadTransaction, project: int) -> tuple[str, ...]:
    """Of the epics that tickets of a project belong to."""
    table = schema.tickets.c
    found = select(table.epic).where(table.project == project, table.epic != "", table.dropped_at.is_(None)).distinct()
    return tuple(tx.execute(found.order_by(table.epic)).scalars())


def budgets(tx: ReadTransaction) -> dict[tuple[int, str], float]:
    """Dollars by project and name."""
    return {(row.project, row.name): row.budget for row in _ALL.all(tx) if row.budget is not None}


def set_budget(tx: Transaction, project: int, name: str, usd: float | None) -> None:
    """None: the epic has the limit of the settings again."""
    _set(tx, project, name, {"budget": usd})


def gates(tx: ReadTransaction) -> dict[tuple[int, str], LandingGate]:
    """By project and name."""
    return {(row.project, row.name): row.gate for row in _ALL.all(tx) if row.gate is not None}


def set_gate(tx: Transaction, project: int, name: str, gate: LandingGate | None) -> None:
    """None: the project's gate is in force again."""
    _set(tx, project, name, {"gate": gate})


def _set(tx: Transaction, project: int, name: str, values: dict[str, object]) -> None:
    same = update(schema.epics).where(_TABLE.project == project, _TABLE.name == name)
    if tx.execute(same.values(values)).rowcount == 0:
        tx.execute(insert(schema.epics), [{"project": project, "name": name, "budget": None, "gate": None} | values])
    # Tickets may be able to start now.
    tx.tell()
