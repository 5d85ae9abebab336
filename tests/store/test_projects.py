"""Projects: one per repository, changed by whoever read them last, trusted by hash."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from legion.domain.checks import CheckResult
from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.store import events
from legion.store.board import projects
from legion.store.database import schema
from tests.store.making import add_project


def test_a_project_comes_back_as_it_was_added(store):
    with store.write() as tx:
        added = add_project(tx, person_tip="abc", person_absorbed="abc")
    with store.read() as tx:
        assert projects.get(tx, added.id) == added
        assert projects.by_common_dir(tx, added.common_dir) == added
        assert projects.all(tx) == (added,)
    assert (added.id, added.version, added.created_at) == (1, 0, added.created_at)


def test_every_field_of_a_project_is_saved(store, project):
    different = replace(
        project,
        name="b",
        root="/b",
        common_dir="/b/.git",
        branch="b",
        worktrees="/b-w",
        paused=True,
        config_text="b",
        config_hash="b",
        config_origin=next(origin for origin in type(project.config_origin) if origin is not project.config_origin),
        target="b",
        baseline_commit="b",
        baseline_verdict=CheckResult.RED,
        person_tip="b",
        person_absorbed="b",
        person_refused="b",
        created_at=5.0,
        removed_at=6.0,
        workers=2,
        retries=3,
        frozen=True,
        session="b",
        chosen=True,
        base_commit="b",
    )
    unchanged = {f.name for f in fields(Project) if getattr(different, f.name) == getattr(project, f.name)}
    assert unchanged == {"id", "version"}
    with store.write() as tx:
        saved = projects.save(tx, different)
    assert saved == replace(different, version=project.version + 1)
    with store.read() as tx:
        assert projects.get(tx, project.id) == saved
    assert {f.name for f in fields(Project)} == set(schema.projects.c.keys())


def test_saving_what_somebody_else_changed_is_refused(store, project):
    with store.write() as tx:
        projects.save(tx, replace(project, paused=True), EventKind.PROJECT_PAUSED)
    with pytest.raises(StateConflict, match="read it again"), store.write() as tx:
        projects.save(tx, replace(project, target="mine"))
    with store.read() as tx:
        now = projects.get(tx, project.id)
        last = events.after(tx, 0)[-1]
    assert (now.paused, now.target) == (True, project.target)
    assert (last.kind, last.project) == (EventKind.PROJECT_PAUSED, project.id)


def test_a_repository_is_a_project_once_until_it_is_removed(store, project):
    with pytest.raises(StateConflict, match="already"), store.write() as tx:
        add_project(tx)
    with store.write() as tx:
        projects.save(tx, replace(project, removed_at=tx.now), EventKind.PROJECT_REMOVED)
    with store.read() as tx:
        assert projects.all(tx) == ()
        assert projects.by_common_dir(tx, project.common_dir) is None
        assert projects.get(tx, project.id).removed_at is not None
    with store.write() as tx:
        assert add_project(tx).id == 2


def test_an_unknown_project_is_said(store):
    with pytest.raises(NotFound, match="no project 7"), store.read() as tx:
        projects.get(tx, 7)


def test_projects_that_did_not_change_are_not_made_again_however_many_there_are(store):
    """Every request looks for its project in this list."""
    with store.write() as tx:
        for number in range(200):
            add_project(tx, f"shop{number}")
    with store.read() as tx:
        first, second = projects.all(tx), projects.all(tx)
    assert len(first) == 200
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_trust_is_given_by_hash_and_said_once(store, project):
    with store.write() as tx:
        projects.trust(tx, project.id, "hash-1")
        projects.trust(tx, project.id, "hash-1")
        other = add_project(tx, "other")
    with store.read() as tx:
        assert projects.is_trusted(tx, project.id, "hash-1")
        assert not projects.is_trusted(tx, project.id, "hash-2")
        assert not projects.is_trusted(tx, other.id, "hash-1")
        assert [event.kind for event in events.after(tx, 0)].count(EventKind.PROJECT_TRUSTED) == 1
