"""The target itself: a red baseline blames nobody, and the person's own commits come in by the same door."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from legion.wire.errors import LegionError, StateConflict
from tests.support.gates import Gate
from tests.support.legion import Project, new


@pytest.fixture
def red(make: Callable[..., Project]) -> Project:
    """A project whose own code fails its checks."""
    return make(files={"old.txt": "BROKEN\n"})


def test_a_red_baseline_blames_no_ticket_and_one_that_mends_it_lands_and_wakes_the_others(red: Project):
    agent = "if [ $LEGION_ATTEMPT = 1 ]; then echo BROKEN > b.txt; else echo fine > b.txt; fi"
    innocent, guilty = red.dispatch_all([new("innocent", "touch a.txt"), new("guilty", agent)])
    state = red.until_settled()
    page = red.ticket(innocent)
    assert (page.ticket.state, page.ticket.attempt, state.stuck) == ("parked", 1, [innocent, guilty])
    assert page.ticket.reason == "the target itself fails `sh check.sh`; `legion status` shows its output"
    assert "the target itself fails its checks" in red.notes()
    assert red.landed("a.txt") is None
    # So are commits of the person, which enter the target once it is green.
    red.repository.commit("mine", {"mine.txt": "mine\n"})
    fix = red.dispatch("fix", "echo fine > old.txt")
    red.until_settled(innocent, fix)
    red.until(innocent, "done")
    # The guilty one is told once the target is green.
    assert red.until(guilty, "done").ticket.attempt == 2
    assert red.states() == {innocent: "done", guilty: "done", fix: "done"}
    assert red.ticket(innocent).ticket.attempt == 1
    red.until_true(lambda: red.landed("mine.txt") == "mine\n")


def test_a_commit_of_the_person_that_mends_the_target_wakes_the_parked_tickets(red: Project):
    innocent = red.dispatch("innocent", "touch a.txt")
    red.until_settled()
    red.repository.commit("mend", {"old.txt": "fine\n"})
    red.until(innocent, "done")
    assert red.landed("old.txt") == "fine\n"


def test_commits_of_the_person_that_are_red_or_conflict_are_not_absorbed_and_that_is_said(project: Project):
    bad = project.repository.commit("oops", {"mine.txt": "BROKEN\n"})
    ticket = project.dispatch("a", "touch a.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    assert project.landed("mine.txt") is None
    assert f"your commit {bad[:8]} is not in the target: your commits fail `sh check.sh`" in project.notes()
    with pytest.raises(StateConflict, match=r"your commits fail `sh check\.sh`"):
        project.collect()
    project.repository.commit("better", {"mine.txt": "fine\n"})
    until_collected(project)
    assert project.landed("mine.txt") == "fine\n"
    assert (project.repository.root / "a.txt").exists()
    assert project.notes() == ""

    project.dispatch("theirs", "echo theirs > README.txt")
    project.until_settled()
    project.repository.commit("mine", {"README.txt": "mine\n"})
    later = project.dispatch("later", "touch b.txt")
    project.until_settled()
    assert project.state(later) == "done"
    assert "your commits conflict with landed changes in README.txt" in project.notes()
    with pytest.raises(StateConflict, match=r"README\.txt"):
        project.collect()
    assert (project.repository.root / "README.txt").read_text() == "mine\n"
    project.repository.git("pull", "-q", "--no-rebase", "-X", "ours", str(project.hub), "refs/legion/target")
    until_collected(project)
    assert project.landed("README.txt") == "mine\n"


def test_nothing_starts_from_old_code_while_the_persons_commits_are_on_their_way(
    make: Callable[..., Project], gate: Gate
):
    project = make(f"[checks.test]\nrun = '''! [ -e slow.txt ] || {gate.pause}'''\n")
    project.repository.commit("mine", {"slow.txt": "mine\n"})
    ticket = project.dispatch("uses it", "cp slow.txt copy.txt && rm slow.txt")
    gate.arrived()
    assert project.ticket(ticket).ticket.doing == "waits while your own commits are checked"
    gate.open()
    project.until_settled()
    assert project.landed("copy.txt") == "mine\n"


def test_waiting_ends_for_those_who_wait_for_what_failed(project: Project):
    failed = project.dispatch("fails", "false", max_attempts=1)
    child = project.dispatch("child", "touch b.txt", after=[failed])
    grandchild = project.dispatch("grandchild", "touch c.txt", after=[child])
    other = project.dispatch("other", "touch d.txt")
    state = project.until_settled()
    assert project.states() == {failed: "failed", child: "queued", grandchild: "queued", other: "done"}
    assert state.stuck == [child, grandchild]
    assert project.ticket(child).ticket.held_up_by == [failed]


def until_collected(project: Project) -> None:
    """`legion collect --wait`."""

    def collected() -> bool:
        try:
            project.collect()
        except LegionError:
            return False
        return True

    project.until_true(collected)
