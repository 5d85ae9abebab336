"""What people do that nobody thinks of first: rewriting history, deleting folders, changing settings under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.client.legion import Legion
from legion.wire.errors import StateConflict
from legion.wire.projects import AddProject, Trust, Where
from tests.support.gates import Gate
from tests.support.legion import Project, Squad
from tests.support.repository import CHECK, Repository


def test_trust_is_about_the_very_texts_that_were_shown(project: Project):
    client = project.squad.client
    project.repository.write({"legion.toml": CHECK.replace("sh check.sh", "echo evil")})
    shown = client.trustable(project.cwd)
    assert [(text.place, text.trusted) for text in shown.texts] == [("landed", True), ("checkout", False)]
    assert "echo evil" in shown.texts[1].text
    project.repository.write({"legion.toml": CHECK.replace("sh check.sh", "echo worse")})
    with pytest.raises(StateConflict, match="changed since it was shown"):
        client.trust(Trust(cwd=project.cwd, hashes=[shown.texts[1].hash]))


def test_new_checks_that_the_target_fails_park_tickets_once_and_not_in_a_loop(project: Project):
    stricter = "sed -i 's/sh check.sh/test -f wanted.txt/' legion.toml"
    project.until_settled(project.dispatch("stricter", stricter, files=["legion.toml"]))
    project.trust()
    ticket = project.dispatch("a", "echo a > a.txt")
    state = project.until_settled()
    assert state.stuck == [ticket] or project.state(ticket) == "parked"
    seen = len(project.ticket(ticket).history)
    project.dispatch("b", "echo b > b.txt")
    project.until_settled()
    assert len(project.ticket(ticket).history) == seen


def test_an_amended_first_commit_is_taken_as_it_is(house: Squad, tmp_path: Path):
    project = house.adopt(Repository(tmp_path / "young"))
    project.repository.git("commit", "--quiet", "--amend", "-m", "another first")
    ticket = project.dispatch("a", "echo a > a.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    assert "another first" in project.landed_titles()
    project.collect()


def test_deleted_worktree_folders_are_made_again_and_a_change_back_to_an_earlier_tree_has_its_receipts(
    project: Project,
):
    project.until_settled(project.dispatch("there", "echo other > README.txt"))
    # At once: the daemon may be filling its pool there.
    project.worktrees.rename(project.worktrees.with_name(f"{project.worktrees.name}-deleted"))
    back = project.dispatch("and back", "echo hello > README.txt")
    project.until_settled()
    page = project.ticket(back)
    assert page.ticket.state == "done"
    assert [receipt.verdict for receipt in page.receipts] == ["green"]
    assert project.squad.client.doctor(project.cwd).findings


def test_landed_work_that_the_branch_lacks_keeps_the_project(project: Project):
    ticket = project.dispatch("a", "echo agent > README.txt")
    project.until_settled(ticket)
    project.repository.commit("mine", {"README.txt": "person\n"})
    client = project.squad.client
    with pytest.raises(StateConflict, match="landed commits are not on main yet"):
        client.remove_project(project.cwd)
    hub = str(project.hub)
    with pytest.raises(StateConflict, match=f"git fetch {hub} refs/legion/target"):
        _until_refused(client, project)
    project.repository.git("fetch", "--quiet", hub, "refs/legion/target")
    project.repository.git("merge", "--quiet", "-X", "ours", "-m", "settled", "FETCH_HEAD")
    client.remove_project(project.cwd)
    with pytest.raises(StateConflict, match="was removed"):
        client.pause_ticket(ticket)
    assert client.ticket(ticket).ticket.state == "done"
    assert ticket not in [line.id for line in client.status(None, True).tickets], "the board of all forgets it, too"
    project.squad.adopt(project.repository)


def test_work_lands_while_the_repository_is_away_and_one_that_stays_away_can_be_forgotten(project: Project, gate: Gate):
    root, away = project.repository.root, project.repository.root.with_name("away")
    ticket = project.dispatch("a", f"{gate.pause}; echo a > a.txt")
    gate.arrived()
    root.rename(away)
    gate.open()
    client = project.squad.client
    project.until(ticket, "done")
    (line,) = [one for one in client.status(None).projects if one.root == str(root)]
    moved = "its repository is missing: if you moved it, run `legion init` there"
    assert line.notes == [f"{moved}; if you deleted it, `legion init --remove {root}`"]
    taken_over = project.squad.cli("init", str(away), cwd=root.parent)
    assert f"moved here from {root}" in taken_over.stderr + taken_over.stdout
    assert project.squad.cli("collect", cwd=away).returncode == 0
    assert (away / "a.txt").read_text() == "a\n"
    assert client.ticket(ticket).ticket.state == "done", "its tickets are still known"
    away.rename(root)
    project.squad.adopt(project.repository)
    root.rename(away)
    assert project.squad.cli("init", "--remove", str(root), cwd=root.parent).returncode == 0
    assert str(root) not in [one.root for one in client.status(None).projects]
    away.rename(root)
    project.squad.adopt(project.repository)


def test_a_removed_project_can_come_back_and_a_renamed_branch_is_followed_by_init(project: Project):
    client = project.squad.client
    client.remove_project(project.cwd)
    project.squad.adopt(project.repository)
    project.repository.git("branch", "--quiet", "-m", "main", "trunk")
    assert client.add_project(AddProject(path=project.cwd)).branch == "trunk"
    ticket = project.dispatch("a", "echo a > a.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    project.collect()
    assert (project.repository.root / "a.txt").exists()


def test_init_in_another_checkout_of_a_project_answers_with_the_project(project: Project, tmp_path: Path):
    linked = tmp_path / "linked"
    project.repository.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    added = project.squad.client.add_project(AddProject(path=str(linked)))
    assert (added.root, added.branch) == (project.cwd, "main")
    assert not (tmp_path / "linked-legion").exists()


def _until_refused(client: Legion, project: Project) -> None:
    """The person's commit is looked at by the merge queue first."""
    project.dispatch("later", "echo later > later.txt")
    project.until_settled()
    client.collect(Where(cwd=project.cwd))
