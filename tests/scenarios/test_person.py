"""A person who commits, rebases or resets while changes are on their way: it is noticed, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from legion.wire.errors import StateConflict
from legion.wire.mail import AnswerQuestion
from tests.support.gates import Gate
from tests.support.legion import Project


def in_test(make: Callable[..., Project], gate: Gate) -> tuple[Project, int]:
    """A project with two commits of the person in its target, and a change on top that stands at the gate."""
    check = f"if [ -e a.txt ] && [ ! -e mine.txt ]; then {gate.pause}; fi; sh check.sh"
    project = make(f"[checks.test]\nrun = '''{check}'''\n", {"one.txt": "one\n"})
    project.repository.commit("two", {"two.txt": "two\n"})
    project.until_settled(project.dispatch("first", "echo first > first.txt"))
    project.collect()
    ticket = project.dispatch("a", "echo a > a.txt")
    gate.arrived()
    assert project.state(ticket) == "landing"
    return project, ticket


def left_behind(project: Project) -> list[object]:
    lines = project.squad.client.history(project.cwd).lines
    return [line.data["left"] for line in lines if line.kind == "person.seen" and "left" in line.data]


def merge_what_was_dropped(project: Project) -> None:
    """Collecting asks first; the answer is to go on as usual."""
    with pytest.raises(StateConflict, match="was rewritten, and landed work stands on what it dropped") as refused:
        project.collect()
    (number,) = re.findall(r"legion answer (\d+)", refused.value.message)
    project.squad.client.answer(int(number), AnswerQuestion(choice="leave"))


def marks(project: Project, ticket: int) -> list[str]:
    """What was said of a landed ticket since."""
    lines = project.squad.client.history(project.cwd, ticket=ticket).lines
    return [line.kind for line in lines if line.kind in ("landing.left-behind", "landing.brought-back")]


def holds(project: Project, commit: str, ref: str = "refs/legion/target") -> bool:
    return commit in project.hub_git("rev-list", ref).split()


def only_tested_commits_landed(project: Project) -> bool:
    lines = project.squad.client.history(project.cwd).lines
    green = {line.data["commit"] for line in lines if line.kind == "check.receipt" and line.data["verdict"] == "green"}
    trees = {project.hub_git("rev-parse", f"{commit}^{{tree}}") for commit in green}
    moved = [line.data["commit"] for line in lines if line.kind == "target.moved"]
    return bool(moved) and all(project.hub_git("rev-parse", f"{commit}^{{tree}}") in trees for commit in moved)


def test_a_commit_in_the_middle_of_a_test_lands_behind_it(make: Callable[..., Project], gate: Gate):
    project, ticket = in_test(make, gate)
    mine = project.repository.commit("mine", {"mine.txt": "mine\n"})
    gate.open()
    project.until(ticket, "done")
    project.until_true(lambda: holds(project, mine))
    assert (project.landed("a.txt"), project.landed("mine.txt")) == ("a\n", "mine\n")
    assert only_tested_commits_landed(project)
    assert left_behind(project) == []


def test_a_rebase_in_the_middle_of_a_test_is_noticed_and_both_histories_are_kept(
    make: Callable[..., Project], gate: Gate
):
    project, ticket = in_test(make, gate)
    old = project.repository.head()
    project.repository.git("rebase", "--quiet", "--no-ff", "--reset-author-date", "HEAD~2")
    mine = project.repository.commit("mine", {"mine.txt": "mine\n"})
    gate.open()
    project.until(ticket, "done")
    project.until_true(lambda: holds(project, mine))
    files = ("one.txt", "two.txt", "first.txt", "a.txt", "mine.txt")
    assert all(project.landed(name) is not None for name in files)
    assert left_behind(project) == [old]
    assert holds(project, old, f"refs/legion/before/{old}")
    assert not [line for line in project.squad.client.history(project.cwd).lines if line.kind == "landing.left-behind"]
    assert only_tested_commits_landed(project)
    merge_what_was_dropped(project)
    project.collect()
    assert all((project.repository.root / name).exists() for name in files)


def test_a_reset_in_the_middle_of_a_test_is_noticed_and_loses_nothing(make: Callable[..., Project], gate: Gate):
    project, ticket = in_test(make, gate)
    old = project.repository.head()
    project.repository.git("reset", "--quiet", "--hard", "HEAD~1")
    gate.open()
    project.until(ticket, "done")
    project.until_true(lambda: left_behind(project) == [old])
    # The change was made on top of what they had, and is tested with it.
    assert (project.landed("a.txt"), project.landed("first.txt")) == ("a\n", "first\n")
    assert holds(project, old)
    assert only_tested_commits_landed(project)


def test_who_has_all_and_goes_back_takes_the_target_along_and_may_come_forward_again(project: Project):
    first = project.dispatch("first", "echo first > first.txt")
    project.until_settled(first)
    project.collect()
    old = project.repository.head()
    project.repository.git("reset", "--quiet", "--hard", "HEAD~1")
    later = project.dispatch("later", "echo later > later.txt")
    project.until(later, "done")
    assert "no longer in the target" in project.squad.cli("status", cwd=project.repository.root).stdout
    found = {one.name: one.detail for one in project.squad.client.doctor(project.cwd).findings}
    assert f"ticket {first} (" in found["landed and gone"]
    assert marks(project, first) == ["landing.left-behind"]
    assert (project.landed("first.txt"), project.landed("later.txt")) == (None, "later\n")
    assert left_behind(project) == [old]
    assert holds(project, old, f"refs/legion/before/{old}")
    shown = project.squad.cli("events", "--json", cwd=project.repository.root).stdout
    assert f"your branch is at {project.repository.head()[:9]} and left {old[:9]}" in shown
    project.repository.git("reset", "--quiet", "--hard", old)
    project.dispatch("look", "echo look > look.txt")
    project.until_true(lambda: project.landed("first.txt") == "first\n")
    project.until_settled()
    assert marks(project, first) == ["landing.left-behind", "landing.brought-back"]
    assert (project.state(first), project.ticket(first).ticket.reason) == ("done", "")
    project.collect()
    assert all((project.repository.root / name).exists() for name in ("first.txt", "later.txt", "look.txt"))


def test_collect_brings_nothing_back_that_was_dropped_before_the_person_has_decided(project: Project):
    project.until_settled(project.dispatch("first", "echo first > dropped.txt"))
    project.collect()
    project.until_settled(project.dispatch("second", "echo second > second.txt"))
    project.repository.git("reset", "--quiet", "--hard", "HEAD~1")
    dropped = project.repository.git("rev-parse", "HEAD")
    merge_what_was_dropped(project)
    assert project.repository.git("rev-parse", "HEAD") == dropped
    project.collect()
    assert (project.repository.root / "dropped.txt").exists()
