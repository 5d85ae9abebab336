"""A finished conversation is asked while its ticket lands: its worktree may go at any moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.drivers import Driver, Program
from legion.drivers.profile import Capabilities, DriverProfile, PreparedRun, RunRequest
from legion.drivers.registry import CommandDriver
from legion.jobs import ask
from legion.jobs.ask import AskedConversation, NotAnswered
from tests.jobs.office import Office


class LandingProfile(DriverProfile):
    """Its worktree goes to the trash after the run was prepared, as a landing may have it."""

    name = "landing"
    title = "a program whose ticket lands"
    kind = "command"
    capabilities = Capabilities(rewinds=True)
    answer = "echo It was green."

    def __init__(self) -> None:
        self.trees: list[Path] = []

    def load(self) -> Driver:
        return CommandDriver()

    def take_transcript(self, transcript: Path, conversation: str, state: Path, tree: Path) -> None:
        """It answers without one."""

    def prepare(self, request: RunRequest) -> PreparedRun:
        self.trees.append(request.tree)
        if len(self.trees) == 1:
            request.tree.rename(request.tree.with_name("trash"))
        return PreparedRun(program=Program(argv=("sh", "-c", self.answer), cwd=request.tree, env=request.env))


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.context.launcher.close()
    one.close()


def conversation(office: Office, tmp_path: Path, driver: DriverProfile) -> AskedConversation:
    tree = tmp_path / "worktree"
    tree.mkdir()
    transcript = tmp_path / "transcript.jsonl"
    project = office.context.project(office.project)
    return AskedConversation(project=project, driver=driver, transcript=transcript, id="c", tree=tree)


def test_a_worktree_that_goes_before_the_answer_is_not_needed_for_it(office: Office, tmp_path: Path):
    driver = LandingProfile()
    asked = conversation(office, tmp_path, driver)
    answer = ask.ask(office.context, asked, "Was it green?")
    assert answer.text == "It was green."
    assert driver.trees[0] == asked.tree
    assert len(driver.trees) == 2, "asked again, without the worktree"


def test_a_failure_of_its_own_is_reported_once(office: Office, tmp_path: Path):
    class Failing(LandingProfile):
        answer = "exit 3"

    driver = Failing()
    with pytest.raises(NotAnswered, match="exit code 3"):
        ask.ask(office.context, conversation(office, tmp_path, driver), "Was it green?")
    assert len(driver.trees) == 2
