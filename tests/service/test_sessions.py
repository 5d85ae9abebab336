"""Sessions over the real service and real git: several targets of one repository, each bound to a branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.store.board import projects
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotFound, StateConflict
from legion.wire.mail import AnswerQuestion
from legion.wire.projects import AddProject
from legion.wire.sessions import BindSession, DeleteSession, NamedSession, NewSession
from tests.support.board import Board


@pytest.fixture
def shop(tmp_path: Path) -> Board:
    board = Board(tmp_path)
    board.repository.git("branch", "feature/login")
    return board


def named(board: Board, name: str) -> NamedSession:
    return NamedSession(cwd=board.cwd, name=name)


def folder(board: Board, name: str) -> str:
    return next(one.folder for one in board.service.sessions(board.cwd).sessions if one.name == name)


def dispatch(board: Board, title: str, cwd: str = "") -> int:
    return board.service.dispatch(Dispatch(cwd=cwd or board.cwd, tickets=[NewTicket(title=title)])).ids[0]


def said_of_sessions(board: Board, cwd: str) -> list[str]:
    made = board.service.dispatch(Dispatch(cwd=cwd, tickets=[NewTicket(title="x")]))
    return [note for note in made.notes if "session" in note]


def titles(board: Board, cwd: str) -> list[str]:
    return [one.title for one in board.service.status(cwd).tickets]


def test_branches_are_listed_with_the_newest_commit_first(shop: Board, monkeypatch: pytest.MonkeyPatch):
    assert set(shop.service.branches(shop.cwd).branches) == {"main", "change", "feature/login"}
    for year, branch in ((2040, "change"), (2041, "main"), (2042, "feature/login")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{year}-01-01T00:00:00Z")
        made = shop.repository.git("commit-tree", "-m", branch, "main^{tree}")
        shop.repository.git("update-ref", f"refs/heads/{branch}", made)
    assert shop.service.branches(shop.cwd).branches == ["feature/login", "main", "change"]


def test_each_session_has_its_own_branch_target_and_tickets(shop: Board):
    before = shop.repository.fingerprint()
    first = dispatch(shop, "On main")
    made = shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    assert [(one.name, one.branch, one.acting) for one in made.sessions] == [
        ("default", "main", False),
        ("feature-login", "feature/login", True),
    ]
    assert folder(shop, "feature-login").endswith("shop-legion/@feature-login")
    second = dispatch(shop, "On the branch")
    third = dispatch(shop, "On main again", folder(shop, "default"))
    assert titles(shop, shop.cwd) == titles(shop, folder(shop, "feature-login")) == ["On the branch"]
    assert sorted(titles(shop, folder(shop, "default"))) == ["On main", "On main again"]
    assert {shop.tickets[n].project for n in (first, third)} != {shop.tickets[second].project}
    assert shop.repository.fingerprint() == before

    shop.service.switch_session(named(shop, "default"))
    assert sorted(titles(shop, shop.cwd)) == ["On main", "On main again"]
    assert shop.service.switch_session(named(shop, "feature/login")).notes == ["Your checkout stays on main."]
    assert titles(shop, shop.cwd) == ["On the branch"]


def test_a_session_takes_over_what_was_trusted(shop: Board):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    (line,) = [one for one in shop.service.projects().projects if one.session]
    assert (line.trusted, line.name, line.branch) == (True, "shop", "feature/login")


def test_dispatch_and_status_say_where_work_goes_when_another_branch_is_checked_out(shop: Board):
    assert said_of_sessions(shop, shop.cwd) == []
    shop.repository.git("checkout", "--quiet", "feature/login")
    offer = "`legion session new feature/login` makes a session for feature/login"
    said = f"work goes to session default on main; your checkout is on feature/login: {offer}"
    assert said_of_sessions(shop, shop.cwd) == [f"W{said[1:]}."]
    project = shop.service.status(shop.cwd).project
    assert project is not None
    assert said in project.notes
    shop.service.new_session(NewSession(cwd=shop.cwd))
    assert said_of_sessions(shop, shop.cwd) == []
    shop.service.switch_session(named(shop, "default"))
    (note,) = said_of_sessions(shop, shop.cwd)
    assert "`legion session switch feature-login` acts on feature/login." in note
    assert said_of_sessions(shop, folder(shop, "default")) == []


def test_a_branch_is_made_only_on_request_and_never_moved(shop: Board):
    with pytest.raises(NotFound, match="--base-branch main"):
        shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/new"))
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/new", base="main"))
    assert shop.repository.git("rev-parse", "feature/new") == shop.base
    with pytest.raises(StateConflict, match="is bound to feature/new already"):
        shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/new", name="other"))
    with pytest.raises(StateConflict, match="exists already"):
        shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login", base="main"))
    for name in ("default", "../x", "a/b", "@x"):
        with pytest.raises(BadInput, match="cannot be the name of a session"):
            shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login", name=name))


def test_complete_collects_and_ends_and_the_history_keeps_it(shop: Board):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    ticket = dispatch(shop, "Open")
    with pytest.raises(StateConflict, match=f"have not ended \\({ticket}\\)"):
        shop.service.complete_session(named(shop, "feature-login"))
    shop.service.stop(ticket)
    with pytest.raises(StateConflict, match=r"has sessions \(feature-login\)"):
        shop.service.remove_project(shop.cwd)
    done = shop.service.complete_session(named(shop, "feature-login"))
    assert done.message == "Session feature-login is complete. feature/login already contains all landed work."
    assert [one.name for one in shop.service.sessions(shop.cwd).sessions] == ["default"]
    assert shop.service.sessions(shop.cwd).sessions[0].acting
    listed = shop.service.sessions(shop.cwd, True).sessions
    assert [(one.name, one.ended_at is not None) for one in listed] == [("default", False), ("feature-login", True)]
    shop.service.drop_session(named(shop, "feature-login"))
    assert len(shop.service.sessions(shop.cwd, True).sessions) == 1
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    assert len(shop.service.sessions(shop.cwd).sessions) == 2


def test_landed_work_is_not_deleted_by_mistake(shop: Board):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    with shop.store.read() as tx:
        row = next(one for one in projects.all(tx) if one.session)
    hub = shop.context.hub(row.id)
    hub.fetch_branch(Path(row.common_dir), "change")
    hub.move_target(shop.change, expected=row.target)
    with pytest.raises(StateConflict, match="1 landed commit is not on feature/login yet"):
        shop.service.delete_session(DeleteSession(cwd=shop.cwd, name="feature-login"))
    done = shop.service.delete_session(DeleteSession(cwd=shop.cwd, name="feature-login", uncollected=True))
    place = Path(done.notes[0].split("its hub is in ")[1].rstrip("."))
    assert place.is_dir()
    assert shop.repository.git("rev-parse", "feature/login") == shop.base


def test_a_deleted_a_renamed_and_a_rewritten_branch_each_have_a_way_and_lose_nothing(shop: Board):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    shop.repository.git("branch", "-m", "feature/login", "feature/renamed")
    project = shop.service.status(shop.cwd).project
    assert project is not None
    assert any("its branch feature/login is gone" in note for note in project.notes)
    shop.service.bind_session(BindSession(cwd=shop.cwd, name="feature-login", branch="feature/renamed"))
    assert shop.service.sessions(shop.cwd).sessions[1].branch == "feature/renamed"
    with pytest.raises(StateConflict, match="exists; there is nothing"):
        shop.service.recreate_session(named(shop, "feature-login"))

    shop.repository.git("branch", "-D", "feature/renamed")
    shop.service.recreate_session(named(shop, "feature-login"))
    assert shop.repository.git("rev-parse", "feature/renamed") == shop.base

    shop.repository.git("branch", "-f", "feature/renamed", "change")
    shop.service.rebuild_session(named(shop, "feature-login"))
    assert shop.service.sessions(shop.cwd).sessions[1].target == shop.change
    shop.repository.git("branch", "-f", "feature/renamed", "main")
    done = shop.service.rebuild_session(named(shop, "feature-login"))
    assert f"refs/legion/before/{shop.change}" in done.notes[0]
    with pytest.raises(StateConflict, match="is bound to main already"):
        shop.service.bind_session(BindSession(cwd=shop.cwd, name="feature-login", branch="main"))


def rewritten(shop: Board) -> list[str]:
    project = shop.service.status(shop.cwd).project
    assert project is not None
    return [note.partition(":")[0] for note in project.notes if "rewritten" in note]


def test_a_branch_that_changed_under_its_session_is_asked_about_once_and_the_answer_acts(shop: Board):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    shop.repository.git("branch", "-m", "feature/login", "feature/renamed")
    for title in ("a", "b"):
        dispatch(shop, title)
    (asked,) = shop.service.inbox().questions
    assert (asked.kind, asked.choices, asked.default) == ("branch", ["recreate", "bind", "leave"], "leave")
    assert "The branch feature/login of session feature-login is gone." in asked.words
    with pytest.raises(BadInput, match="Say which branch"):
        shop.service.answer(asked.id, AnswerQuestion(choice="bind"))
    done = shop.service.answer(asked.id, AnswerQuestion(choice="bind", why="feature/renamed"))
    assert "is bound to feature/renamed" in done.message
    assert shop.service.inbox().questions == []

    with shop.store.read() as tx:
        row = next(one for one in projects.all(tx) if one.session)
    hub = shop.context.hub(row.id)
    hub.fetch_branch(Path(row.common_dir), "change")
    hub.move_target(shop.change, expected=row.target)
    shop.repository.git("checkout", "--quiet", "--orphan", "fresh")
    shop.repository.git("commit", "--quiet", "-m", "other history")
    shop.repository.git("branch", "-f", "feature/renamed", "fresh")
    assert rewritten(shop) == [f"its branch feature/renamed was rewritten and no longer contains {shop.base[:9]}"]
    dispatch(shop, "c")
    assert rewritten(shop) == [], "it is a question now"
    (asked,) = shop.service.inbox().questions
    assert asked.choices == ["rebase", "rebuild", "leave"]
    assert f"no longer contains {shop.base[:9]}" in asked.words
    shop.service.answer(asked.id, AnswerQuestion(choice="rebuild"))
    assert shop.service.sessions(shop.cwd).sessions[1].target == shop.repository.git("rev-parse", "fresh")
    assert hub.kept("before")[f"before/{shop.change}"] == shop.change
    assert shop.service.inbox().questions == []


def test_a_repository_that_moved_takes_its_sessions_along(shop: Board, tmp_path: Path):
    shop.service.new_session(NewSession(cwd=shop.cwd, branch="feature/login"))
    Path(shop.cwd).rename(tmp_path / "store")
    shop.service.add_project(AddProject(path=str(tmp_path / "store")))
    there = shop.service.sessions(str(tmp_path / "store")).sessions
    assert [one.name for one in there] == ["default", "feature-login"]


def test_a_ticket_starts_from_a_branch_of_the_person_or_of_a_remote(shop: Board):
    shop.repository.git("update-ref", "refs/remotes/origin/theirs", shop.change)
    for branch in ("change", "theirs", "origin/theirs"):
        new = NewTicket(title="Go on", branch=branch)
        number = shop.service.dispatch(Dispatch(cwd=shop.cwd, tickets=[new])).ids[0]
        ticket = shop.tickets[number]
        hub = shop.context.hub(ticket.project)
        assert (ticket.base, ticket.plant) == (shop.base, hub.tree_of(shop.change))
        assert f"the work of the branch {branch}" in ticket.feedback
    with pytest.raises(NotFound, match="there is no branch nowhere"):
        shop.service.dispatch(Dispatch(cwd=shop.cwd, tickets=[NewTicket(title="x", branch="nowhere")]))
