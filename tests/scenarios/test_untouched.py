"""The person's repository is theirs: byte for byte untouched by everything but collect, whatever they do in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from legion.wire.errors import StateConflict
from legion.wire.projects import AddProject
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new
from tests.support.repository import Repository


def test_a_whole_life_of_tickets_leaves_the_repository_byte_for_byte_as_it_was(
    house: Squad, tmp_path: Path, gate: Gate
):
    repository = Repository(tmp_path / "ada")
    repository.write({"notes.txt": "not committed\n", "README.txt": "changed\n"})
    repository.git("stash", "--quiet")
    repository.write({"notes.txt": "not committed\n", "README.txt": "changed again\n"})
    repository.git("add", "notes.txt")
    before = repository.fingerprint()
    project = house.adopt(repository)
    client = house.client
    good, bad, held = project.dispatch_all(
        [
            new("good", "echo a > README.txt; git stash list > a.txt; git gc -q --prune=now; git tag mine", key="good"),
            new("bad", "echo BROKEN > b.txt", max_attempts=2),
            new("held", f"touch c.txt; {gate.pause}"),
        ]
    )
    gate.arrived()
    client.diff(held)
    project.stop(held)
    project.until_settled()
    project.until_idle(held)
    assert project.states() == {good: "done", bad: "failed", held: "stopped"}
    client.status(project.cwd, True)
    client.graph(project.cwd)
    client.doctor(project.cwd)
    client.config(project.cwd)
    client.worktrees(project.cwd)
    client.drop(bad)
    client.drop(held)
    project.pause()
    project.resume()
    assert repository.fingerprint() == before
    assert project.landed("a.txt") == ""


def test_init_writes_its_own_file_and_nothing_else(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.git("rm", "-q", "legion.toml")
    repository.commit("no config", {})
    before = repository.fingerprint()
    house.client.add_project(AddProject(path=str(repository.root), dry_run=True))
    assert repository.fingerprint() == before
    house.client.add_project(AddProject(path=str(repository.root)))
    (repository.root / "legion.toml").unlink()
    assert repository.fingerprint() == before


def commits(repository: Repository) -> None:
    repository.commit("mine", {"mine.txt": "mine\n"})


def rebases(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "side", "HEAD~1")
    repository.commit("side", {"side.txt": "side\n"})
    repository.git("rebase", "-q", "main")
    repository.git("switch", "-q", "main")


def collects_garbage(repository: Repository) -> None:
    repository.commit("amended", {"amended.txt": "1\n"})
    repository.git("commit", "-q", "--amend", "-m", "amended again")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now", "--aggressive")


def switches_branches(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "other", "HEAD~1")
    repository.commit("elsewhere", {"elsewhere.txt": "1\n"})


def deletes_worktrees(repository: Repository) -> None:
    linked = repository.root.parent / "linked"
    repository.git("worktree", "add", "-q", "-b", "linked", str(linked))
    repository.git("worktree", "remove", "--force", str(linked))
    repository.git("branch", "-q", "-D", "linked")
    repository.git("worktree", "prune", "--expire=now")


def stashes_and_cleans(repository: Repository) -> None:
    repository.write({"half.txt": "half\n", "README.txt": "half\n"})
    repository.git("stash", "--quiet", "--include-untracked")
    repository.git("clean", "-qffdx")


DEEDS = (commits, rebases, collects_garbage, switches_branches, deletes_worktrees, stashes_and_cleans)


def test_agents_go_on_whatever_the_person_does_in_their_repository_meanwhile(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    """All deeds one after the other, each with an agent in the middle of its work that then lands."""
    project = make(files={"second.txt": "2\n"})
    for number, deed in enumerate(DEEDS):
        gate = gates()
        ticket = project.dispatch(deed.__name__, f"{gate.pause}; git log -1 --format=%s; echo {number} > {number}.txt")
        gate.arrived()
        deed(project.repository)
        before = project.repository.fingerprint()
        gate.open()
        project.until_settled()
        assert project.state(ticket) == "done", deed.__name__
        assert project.repository.fingerprint() == before, deed.__name__
        project.repository.git("fsck", "--strict")
    assert [project.landed(f"{number}.txt") for number in range(len(DEEDS))] == [f"{n}\n" for n in range(len(DEEDS))]
    project.hub_git("fsck", "--strict", "--full")


def refused(project: Project, words: str) -> None:
    """Collect says no with these words and changes nothing that the person could see."""
    before = visible(project.repository)
    with pytest.raises(StateConflict, match=words):
        project.collect()
    assert visible(project.repository) == before


def visible(repository: Repository) -> list[str]:
    asked = (
        "for-each-ref",
        "rev-parse HEAD",
        "status --branch --porcelain",
        "diff HEAD",
        "diff --cached",
        "stash list",
    )
    return [repository.git(*words.split(), check=False) for words in asked]


def lands(project: Project, name: str) -> None:
    """There is something to collect."""
    project.until(project.dispatch(name, f"echo landed > {name}.txt; echo {name} > README.txt"), "done")


def test_collect_refuses_what_would_cost_the_person_something_and_else_fast_forwards_their_checkout(project: Project):
    repository = project.repository
    repository.commit("second", {"README.txt": "second\n"})
    lands(project, "landed")

    repository.write({"README.txt": "my own words\n"})
    refused(project, r"README\.txt")
    repository.git("checkout", "-q", "README.txt")
    repository.write({"landed.txt": "my own new file\n"})
    refused(project, r"landed\.txt")
    (repository.root / "landed.txt").unlink()

    repository.git("switch", "-q", "-c", "side")
    repository.commit("side", {"side.txt": "side\n"})
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "--no-commit", "side")
    refused(project, "merge is in progress")
    repository.git("merge", "--abort")

    repository.git("branch", "base", "HEAD~1")
    repository.git("switch", "-q", "base")
    repository.commit("other", {"README.txt": "other\n"})
    repository.git("switch", "-q", "main")
    repository.git("rebase", "-q", "base", check=False)
    refused(project, "being rebased")
    repository.git("rebase", "--abort")

    repository.write({"notes.txt": "mine, not committed\n"})
    done = project.collect()
    assert (done.branch, done.files) == ("main", 2)
    assert repository.head() == done.new
    assert repository.git("status", "--porcelain") == "?? notes.txt"
    assert project.collect().commits == 0


def test_collect_moves_the_branch_wherever_it_is_checked_out_and_says_so_where_it_is_gone(project: Project):
    repository = project.repository
    repository.git("switch", "-q", "-c", "other")
    lands(project, "first")
    done = project.collect()
    assert repository.git("rev-parse", "main") == done.new
    assert not (repository.root / "first.txt").exists()

    linked = repository.root.parent / "linked"
    repository.git("worktree", "add", "-q", str(linked), "main")
    lands(project, "second")
    project.collect()
    assert (linked / "second.txt").read_text() == "landed\n"
    assert not (repository.root / "second.txt").exists()

    repository.git("worktree", "remove", "--force", str(linked))
    lands(project, "third")
    repository.git("branch", "-q", "-D", "main")
    refused(project, "main is not in the repository any more")
