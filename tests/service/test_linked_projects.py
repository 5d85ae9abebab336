"""Projects that depend on each other: edges between their tickets, and what an agent can read of the other project."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.agents.agent import Agent, Rights
from legion.domain.projects import Project
from legion.domain.scheduling.decide import JobKind, decide
from legion.domain.scheduling.job_places import StartJob
from legion.jobs.workspace import linked_projects
from legion.service.tickets.dispatch import dispatch
from legion.store import snapshot
from legion.store.board import projects
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from legion.wire.errors import BadInput
from legion.wire.plans import NamedEpic
from legion.wire.projects import AddProject, Trust
from legion.wire.sessions import DeleteSession
from legion.wire.tickets import EditTicket
from tests.support.board import Board
from tests.support.repository import Repository

DEPENDS = '[project]\ndepends_on = ["shop", "gone"]\n'


class Pair(Board):
    """`shop` is the project of every board; `app` depends on it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.app = Repository(folder / "app", DEPENDS)
        self.app_cwd = str(self.app.root)
        self.service.add_project(AddProject(path=self.app_cwd))
        hashes = [text.hash for text in self.service.trustable(self.app_cwd).texts]
        self.service.trust(Trust(cwd=self.app_cwd, hashes=hashes))

    def make(self, cwd: str, *tickets: NewTicket) -> Dispatched:
        return self.service.dispatch(Dispatch(cwd=cwd, tickets=list(tickets)))

    def record(self, name: str) -> Project:
        with self.store.read() as tx:
            return next(one for one in projects.all(tx) if one.name == name)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    board = Pair(tmp_path)
    yield board
    board.close()


def agent(title: str, **fields: object) -> NewTicket:
    return NewTicket(title=title, command="true", **fields)  # type: ignore[arg-type]


def test_new_tickets_come_after_the_open_ones_of_the_project_that_theirs_depends_on(pair: Pair):
    pair.put(1, state="done")
    first, second = pair.make(pair.cwd, agent("lib one"), agent("lib two")).ids
    made = pair.make(pair.app_cwd, agent("app", key="a"), agent("later", after_keys=["a"]))
    app, later = made.ids
    assert pair.tickets[app].spec.after == (first, second)
    assert pair.tickets[later].spec.after == (app,)
    assert f"Starts after the open tickets of shop: {first}, {second}." in made.notes
    assert "legion.toml depends on gone, which is no project here: run `legion init` in it." in made.notes


def test_a_ticket_starts_when_the_other_project_has_landed(pair: Pair):
    (lib,) = pair.make(pair.cwd, agent("lib")).ids
    (app,) = pair.make(pair.app_cwd, agent("app")).ids

    def starts() -> set[int]:
        with pair.store.read() as tx:
            found = decide(snapshot.load(tx, 4, {}), 0.0)
        return {one.subject for one in found.commands if isinstance(one, StartJob) and one.kind is JobKind.RUN}

    assert starts() == {lib}
    pair.put(lib, state="done")
    assert starts() == {app}


def test_a_person_may_name_a_ticket_of_any_project_and_an_agent_only_of_its_own(pair: Pair):
    (lib,) = pair.make(pair.cwd, agent("lib")).ids
    (app,) = pair.make(pair.app_cwd, agent("app", after=[lib])).ids
    assert pair.tickets[app].spec.after == (lib,)
    by = Agent(
        number=1, id="a1", project=1, parent="", name="a1", role="", task="", model="", rights=Rights(), hired_at=0.0
    )
    wanted = Dispatch(cwd=pair.cwd, tickets=[agent("back", after=[app])])
    with pytest.raises(BadInput, match=f"Ticket {app} belongs to another project"):
        dispatch(pair.context, wanted, by)


def test_a_circle_over_two_projects_is_refused(pair: Pair):
    (lib,) = pair.make(pair.cwd, agent("lib")).ids
    (app,) = pair.make(pair.app_cwd, agent("app")).ids
    with pytest.raises(BadInput, match="in a circle"):
        pair.service.edit(lib, EditTicket(after=[app]))


def test_an_epic_over_two_projects_is_one_page(pair: Pair):
    (lib,) = pair.make(pair.cwd, agent("lib", epic="v2")).ids
    (app,) = pair.make(pair.app_cwd, agent("app", epic="v2")).ids
    page = pair.service.epic(pair.app_cwd, "v2")
    assert page == pair.service.epic(pair.cwd, "v2")
    assert [(one.id, one.project) for one in page.tickets] == [(lib, "shop"), (app, "app")]
    assert page.waves == [[lib], [app]]
    assert pair.service.stop_epic(NamedEpic(cwd=pair.cwd, epic="v2")).tickets == [lib]


def test_an_agent_clones_what_landed_and_what_is_in_flight(pair: Pair, tmp_path: Path):
    pair.put(1, state="landing")
    given = tmp_path / "given"
    shown = linked_projects.write(pair.context, pair.context.project_of(pair.record("app")), given)
    shop = pair.context.project_of(pair.record("shop"))
    assert shown == (shop.hub.objects,)
    place, clone = given / linked_projects.FOLDER / "shop", tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(place), str(clone)], check=True)

    def at(branch: str) -> str:
        done = subprocess.run(["git", "rev-parse", branch], cwd=clone, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert (at("HEAD"), at("origin/ticket-1")) == (shop.target, pair.change)
    assert linked_projects.write(pair.context, shop, tmp_path / "none") == ()


def test_an_epic_lands_in_the_project_that_another_depends_on_first(pair: Pair, tmp_path: Path):
    for cwd in (pair.cwd, pair.app_cwd):
        pair.service.open_epic_branch(NamedEpic(cwd=cwd, epic="v2"))
    (lib,) = pair.make(pair.cwd, agent("lib", epic="v2")).ids
    made = pair.make(pair.app_cwd, agent("app", epic="v2"))
    assert pair.tickets[made.ids[0]].spec.after == (lib,)
    assert f"Starts after the open tickets of shop: {lib}." in made.notes
    other = pair.make(pair.app_cwd, agent("other"))
    assert pair.tickets[other.ids[0]].spec.after == ()
    app = pair.record("app")
    shown = linked_projects.write(pair.context, pair.context.project_of(app), tmp_path / "given")
    heads = tmp_path / "given" / linked_projects.FOLDER / "shop/refs/heads"
    assert {one.name for one in heads.iterdir()} == {"landed", "epic-v2"}
    assert len(shown) == 2

    def first() -> str:
        with pair.store.read() as tx:
            return linked_projects.unlanded_epic(tx, app, ["shop"], "v2")

    assert first() == "shop", "its branch is open"
    pair.put(lib, state="done")
    pair.service.delete_session(DeleteSession(cwd=pair.cwd, name="epic-v2"))
    assert first() == ""
    (whole,) = pair.make(pair.cwd, agent("whole", epic="v2")).ids
    assert first() == "shop", "a ticket of it has not landed"
    pair.put(whole, state="done")
    assert first() == ""
    shown_tickets = [one.id for one in pair.service.epic(pair.app_cwd, "v2").tickets]
    assert shown_tickets == [lib, made.ids[0], whole], "also what lands the branch there"
