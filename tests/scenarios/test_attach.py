"""A person at the keyboard: shells in worktrees, screens of interactive agents, attach and detach."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.errors import NotFound, StateConflict
from legion.wire.terminal import NewByHand, OfferWork, OpenShell
from tests.support.legion import Project, adopted_project
from tests.support.looking import until_seen
from tests.support.person_terminal import PersonTerminal, terminals

Person = Callable[..., PersonTerminal]


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with adopted_project() as one:
        yield one


@pytest.fixture
def person(project: Project) -> Iterator[Person]:
    with terminals(project.squad, Path(project.cwd)) as one:
        yield one


def submit(project: Project, ticket: int) -> None:
    done = project.squad.cli("submit", str(ticket), cwd=project.repository.root)
    assert "is submitted" in done.stdout + done.stderr


def test_a_shell_is_in_the_worktree_and_the_sandbox_and_passes_its_exit_code_on(project: Project, person: Person):
    ticket = project.dispatch("Fail", "echo found > note.txt; exit 1", max_attempts=1)
    project.until(ticket, "failed")
    shell = person("shell", str(ticket), columns=87, rows=21)
    shell.shows("A shell in the worktree")
    shell.type("cat note.txt; stty size; ls -d $HOME/* | wc -l; test -e /etc/shadow || echo no-secrets\r")
    shell.shows("found")
    shell.shows("21 87")
    shell.shows("no-secrets")
    shell.resize(61, 19)
    shell.type("echo now $(stty size)\r")
    shell.shows("now 19 61")
    shell.type("touch made-by-hand; exit 9\r")
    assert shell.exit_code() == 9
    assert (project.worktree(ticket) / "made-by-hand").exists()


def test_a_ticket_without_a_worktree_has_no_shell(project: Project):
    later = project.dispatch("Later", "true", after=[project.dispatch("Stuck", "exit 1", max_attempts=1)])
    with pytest.raises(StateConflict, match="has no worktree"):
        project.squad.client.shell(later, OpenShell())


COUNTER = "sh -c 'n=0; while read -r line; do n=$((n+1)); echo \"$line\" >> talk.txt; echo heard-$n-$line; done'"


def test_a_person_works_with_a_program_detaches_returns_and_submits(project: Project, person: Person):
    terminal = person("new", "Talk", "--program", COUNTER)
    ticket = int(terminal.shows(r"Ticket \d+: Talk").split()[1].rstrip(":"))
    terminal.shows("Ctrl-Q detaches")
    terminal.type("one\r")
    terminal.shows("heard-1-one")
    terminal.type("\x11")
    terminal.shows("Detached: `legion attach")
    assert terminal.exit_code() == 0
    project.squad.kill()
    project.squad.start()
    again, looks = person("attach", str(ticket)), person("attach", str(ticket), "--read")
    again.shows("heard-1-one")
    looks.shows("heard-1-one")
    (run,) = project.squad.client.ticket(ticket).runs
    by_run = person("attach", f"run-{run.id}", "--read")
    by_run.shows("heard-1-one")
    again.type("two\r")
    looks.shows("heard-2-two")
    by_run.shows("heard-2-two")
    by_run.type("\x11")
    looks.type("never\r\x11")
    assert looks.exit_code() == 0
    assert project.squad.client.ticket(ticket).ticket.state == "working"
    submit(project, ticket)
    again.shows("legion ticket")
    assert again.exit_code() == 0
    project.until(ticket, "done")
    assert project.landed("talk.txt") == "one\ntwo\n"
    person("attach", f"run-{run.id}").shows(f"Run {run.id} has ended")
    person("attach", "run-9999").shows("no run 9999")


def test_a_pause_saves_the_tree_and_the_work_can_be_had_as_a_branch_and_pushed(project: Project, person: Person):
    (ticket,) = project.squad.client.new_by_hand(NewByHand(cwd=project.cwd, name="Try it", program=COUNTER)).ids
    terminal = person("attach", str(ticket))
    terminal.shows("Ctrl-Q detaches")
    terminal.type("saved\r")
    terminal.shows("heard-1-saved")
    head = project.repository.git("rev-parse", "HEAD")
    project.squad.client.pause_ticket(ticket)
    # At once: it waits until the run has saved its work.
    made = project.squad.client.checkout(ticket, OfferWork())
    assert terminal.exit_code() == 0
    assert made.branch == f"legion/{ticket}-try-it"
    assert project.repository.git("show", f"{made.branch}:talk.txt").endswith("saved")
    project.repository.git("branch", "mine")
    other = project.squad.client.checkout(ticket, OfferWork(branch="mine"))
    assert (other.branch, project.repository.git("rev-parse", "mine", "HEAD").split()) == ("mine-2", [head, head])
    with pytest.raises(StateConflict, match="no remote"):
        project.squad.client.push(ticket, OfferWork())
    remote = project.squad.folder / "remote.git"
    project.repository.git("init", "-q", "--bare", str(remote))
    project.repository.git("remote", "add", "origin", os.path.relpath(remote, project.cwd))
    assert project.squad.client.push(ticket, OfferWork()).remote == "origin"
    assert project.repository.git("ls-remote", "origin", made.branch).split()[0] == made.commit
    project.squad.client.resume_ticket(ticket)
    back = person("attach", str(ticket))
    back.type("more\r")
    back.shows("heard-1-more")
    submit(project, ticket)
    project.until(ticket, "done")
    assert (project.landed("talk.txt") or "").endswith("saved\nmore\n")


def test_submitting_a_paused_ticket_starts_no_program_and_a_branch_can_be_the_start(project: Project):
    program = "sh -c 'echo once >> once.txt; exec cat'"
    git = project.repository.git
    git("switch", "-q", "-c", "started")
    project.repository.commit("started", {"started.txt": "by hand\n"})
    git("switch", "-q", "-")
    with pytest.raises(NotFound, match="no branch 'nowhere'"):
        project.squad.client.new_by_hand(NewByHand(cwd=project.cwd, name="Once", branch="nowhere"))
    wanted = NewByHand(cwd=project.cwd, name="Once", program=program, branch="started")
    (ticket,) = project.squad.client.new_by_hand(wanted).ids
    until_seen(project.squad, lambda: (project.worktree(ticket) / "once.txt").exists(), "its file")
    with pytest.raises(StateConflict, match="works alone"):
        project.squad.client.submit_ticket(project.dispatch("Alone", "true"))
    project.squad.client.pause_ticket(ticket)
    project.until_idle(ticket)
    project.squad.client.submit_ticket(ticket)
    project.until(ticket, "done")
    assert project.landed("once.txt") == "once\n"
    assert project.landed("started.txt") == "by hand\n"
