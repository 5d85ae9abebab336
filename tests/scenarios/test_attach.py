"""A person at the keyboard: shells in worktrees, screens of interactive agents, attach and detach."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.wire.errors import StateConflict
from legion.wire.terminal import OpenShell
from tests.support.legion import Project, Squad
from tests.support.person_terminal import PersonTerminal
from tests.support.repository import CHECK, Repository

Person = Callable[..., PersonTerminal]


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        squad = Squad(Path(folder))
        squad.start()
        try:
            yield squad.adopt(Repository(Path(folder) / "shop", CHECK))
        finally:
            squad.close()


@pytest.fixture
def person(project: Project) -> Iterator[Person]:
    opened = []

    def at(*words: str, **size: int) -> PersonTerminal:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "LEGION_CONFIG": str(project.squad.settings),
            **project.squad.found_by(),
        }
        argv = [sys.executable, "-m", "legion", *words]
        opened.append(PersonTerminal(argv, cwd=Path(project.cwd), env=env, **size))
        return opened[-1]

    yield at
    for one in opened:
        one.close()


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
