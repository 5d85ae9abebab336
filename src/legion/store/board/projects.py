"""Projects and the trust in their commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from sqlalchemy import bindparam, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import ConfigOrigin, Project
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.projects.c


def _project(row: Stored) -> Project:
    return Project(**vars(row))


_IN_CARE = FixedQuery(
    select(schema.projects).where(_TABLE.removed_at.is_(None), _TABLE.target != "").order_by(_TABLE.id),
    _project,
    remember=None,
)
_GET = FixedQuery(select(schema.projects).where(_TABLE.id == bindparam("wanted")), _project, remember=50)
_TRUST = FixedQuery(
    select(schema.trusted.c.hash).where(
        schema.trusted.c.project == bindparam("of"), schema.trusted.c.hash == bindparam("wanted")
    ),
    lambda row: str(row.hash),
    remember=50,
)


def add(
    tx: Transaction,
    *,
    name: str,
    root: str,
    common_dir: str,
    branch: str,
    worktrees: str,
    config_text: str,
    config_hash: str,
    config_origin: ConfigOrigin,
    target: str,
    person_tip: str | None = None,
    person_absorbed: str | None = None,
    session: str = "",
    base_commit: str | None = None,
) -> Project:
    if by_common_dir(tx, common_dir, session) is not None:
        raise StateConflict(f"The repository at {root} is a project already: use it as it is.")
    project = Project(
        id=tx.next("project"),
        name=name,
        root=root,
        common_dir=common_dir,
        branch=branch,
        worktrees=worktrees,
        config_text=config_text,
        config_hash=config_hash,
        config_origin=config_origin,
        target=target,
        person_tip=person_tip,
        person_absorbed=person_absorbed,
        session=session,
        base_commit=base_commit,
        created_at=tx.now,
    )
    tx.execute(insert(schema.projects), [asdict(project)])
    about = {"name": name, "root": root, "branch": branch, **({"session": session} if session else {})}
    tx.record(EventKind.PROJECT_ADDED, project=project.id, data=about)
    return get(tx, project.id)


def get(tx: ReadTransaction, project: int) -> Project:
    """Also a removed one: its tickets still refer to it."""
    found = _GET.first(tx, wanted=project)
    if found is None:
        raise NotFound(f"There is no project {project}: see `legion status`.")
    return found


def by_common_dir(tx: ReadTransaction, common_dir: str, session: str = "") -> Project | None:
    """A session of the repository, also one whose hub could not be made yet; without a name the default one."""
    mine = (_TABLE.common_dir == common_dir, _TABLE.session == session, _TABLE.removed_at.is_(None))
    row = tx.execute(select(schema.projects).where(*mine)).one_or_none()
    return None if row is None else Project(**row._mapping)


def sessions_of(tx: ReadTransaction, common_dir: str, *, ended: bool = False) -> tuple[Project, ...]:
    """The sessions of a repository, the default one first; or those that ended and are kept in the history."""
    state = (_TABLE.removed_at.is_not(None), _TABLE.session != "") if ended else (_TABLE.removed_at.is_(None),)
    found = select(schema.projects).where(_TABLE.common_dir == common_dir, *state).order_by(_TABLE.id)
    return tuple(Project(**row._mapping) for row in tx.execute(found))


def trusted_hashes(tx: ReadTransaction, project: int) -> tuple[str, ...]:
    found = select(schema.trusted.c.hash).where(schema.trusted.c.project == project)
    return tuple(tx.execute(found).scalars())


def all(tx: ReadTransaction) -> tuple[Project, ...]:
    """Registered projects, oldest first. One whose hub could not be made yet is left out."""
    return _IN_CARE.all(tx)


def save(
    tx: Transaction, project: Project, kind: EventKind | None = None, data: Mapping[str, object] | None = None
) -> Project:
    """Write the record as it is now. Raises StateConflict when it was changed since it was read.

    `kind` is the event to record; None for a change without one.
    """
    saved = replace(project, version=project.version + 1)
    # Setting the id, even to the same value, makes SQLite check everything that refers to it.
    values = {name: value for name, value in asdict(saved).items() if name != "id"}
    mine = update(schema.projects).where(_TABLE.id == project.id, _TABLE.version == project.version)
    if tx.execute(mine.values(values)).rowcount != 1:
        raise StateConflict(f"Project {project.name} was changed meanwhile: read it again.")
    if kind is not None:
        tx.record(kind, project=project.id, data=data)
    tx.tell()
    return saved


def trust(tx: Transaction, project: int, config_hash: str) -> None:
    """The person trusts the commands in the legion.toml with this hash. Repeating it changes nothing."""
    if is_trusted(tx, project, config_hash):
        return
    tx.execute(insert(schema.trusted), [{"project": project, "hash": config_hash, "at": tx.now}])
    tx.record(EventKind.PROJECT_TRUSTED, project=project, data={"hash": config_hash})


def is_trusted(tx: ReadTransaction, project: int, config_hash: str) -> bool:
    return _TRUST.first(tx, of=project, wanted=config_hash) is not None
