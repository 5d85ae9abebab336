"""Changes that hold a git repository: refused, or asked about, before they land; also where two changes make one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings
from legion.config.sections.evidence import GuardMode, ProtectionSettings
from legion.domain.questions import SettledBy
from legion.domain.tickets.ticket import Change, Propose, Prove, Start, State, Ticket, TryAgain, Unpark
from legion.git.hub.repository import Hub
from legion.jobs.checks import approvals
from legion.jobs.landing.batch import Batch
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.landing.speculation import Speculation
from legion.jobs.supervise import outcome
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import Saved
from legion.store.board import projects, questions, tickets
from tests.jobs.office import Office
from tests.store.making import add_ticket
from tests.support.repository import Repository

BARE = {"docs2/HEAD": "ref: refs/heads/main\n", "docs2/config": "[core]\n\tfsmonitor = touch x\n"}
PARTS = {"docs2/objects/x": "", "docs2/refs/x": ""}


class Landing:
    """A project with a hub, and changes that were never made by an agent."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.office = Office(folder / "office")
        self.theirs = Repository(folder / "theirs")
        self.base = self.theirs.commit("start", {"README": "hello\n", "legion.toml": "", **files})
        self.hub = Hub.create(
            self.theirs.root / ".git", self.office.context.data.project(self.office.project) / "hub.git"
        )
        self.hub.start_target(self.base)
        with self.office.context.store.write() as tx:
            known = projects.get(tx, self.office.project)
            projects.save(tx, replace(known, config_text="", common_dir=str(self.theirs.root / ".git")))

    @property
    def project(self) -> ProjectContext:
        return self.office.context.project(self.office.project)

    def change(self, files: dict[str, str]) -> Change:
        self.theirs.git("checkout", "-q", "--detach", self.base)
        commit = self.theirs.commit("change", files)
        self.theirs.git("branch", "-f", "sent", commit)
        self.hub.fetch_person(self.theirs.root / ".git", "sent")
        return Change(base=self.base, commit=commit)

    def ticket(self, change: Change) -> Ticket:
        with self.office.context.store.write() as tx:
            number = add_ticket(tx, self.office.project).id
            for step in (Start(self.base), Propose(change), Prove()):
                tickets.move(tx, number, step)
        return self.read(number)

    def read(self, number: int) -> Ticket:
        with self.office.context.store.read() as tx:
            return tickets.get(tx, number)

    def land(self, *numbers: int) -> None:
        speculation = Speculation(self.office.context, MergeQueue(self.office.context, self.office.project))
        batch = [self.read(number) for number in numbers]
        Batch(self.office.context, self.project, batch, with_upstream=False).land(speculation, frozenset())

    def concern(self, change: Change) -> approvals.ApprovalConcern | None:
        return approvals.concern(self.office.context, self.project, self.ticket(change), change)


@pytest.fixture
def landing(tmp_path: Path) -> Iterator[Landing]:
    one = Landing(tmp_path, {})
    yield one
    one.office.close()


def test_a_bare_repository_of_plain_files_is_asked_about_also_where_protection_is_off(landing: Landing):
    about = landing.concern(landing.change({**BARE, **PARTS}))
    assert about is not None
    assert (about.repositories, about.protected) == (("docs2",), ())
    assert "\n- docs2\n" in about.question
    assert about.reason == "it holds a git repository (docs2)"
    user = landing.office.context.user
    off = replace(user, protection=ProtectionSettings(mode=GuardMode.OFF))
    context = replace(landing.office.context, settings=CurrentSettings(off))
    change = landing.change({**BARE, **PARTS})
    assert approvals.concern(context, landing.project, landing.ticket(change), change) is not None
    assert landing.concern(landing.change({"src/objects/a": "", "src/refs/b": "", "src/config": ""})) is None


def test_the_question_is_another_one_where_the_content_is(landing: Landing):
    first, same = (landing.ticket(landing.change({**BARE, **PARTS})) for _ in range(2))
    other = landing.change({**BARE, **PARTS, "docs2/hooks/post-checkout": "touch y\n"})
    context, project = landing.office.context, landing.project
    assert first.change is not None
    assert same.change is not None
    asked = [approvals.concern(context, project, first, one) for one in (first.change, same.change, other)]
    keys = [about.key for about in asked if about is not None]
    assert keys[0] == keys[1] != keys[2]


def test_a_fixture_that_the_target_holds_blocks_only_changes_of_what_git_runs_there(tmp_path: Path):
    one = Landing(tmp_path, {**BARE, **PARTS})
    try:
        assert one.concern(one.change({"README": "more\n", "docs2/description": "x\n"})) is None
        about = one.concern(one.change({"docs2/config": "[core]\n\tpager = touch y\n"}))
        assert about is not None
        assert about.repositories == ("docs2",)
    finally:
        one.office.close()


def test_a_change_of_very_many_files_is_asked_about_by_their_number(landing: Landing):
    change = landing.change({f"many/{number}": "" for number in range(12)})
    user = landing.office.context.user
    for most, asked in ((11, 12), (12, None), (0, None)):
        own = replace(user, protection=ProtectionSettings(most_files=most))
        context = replace(landing.office.context, settings=CurrentSettings(own))
        about = approvals.concern(context, landing.project, landing.ticket(change), change)
        assert (about.many if about is not None else None) == asked
        if about is not None:
            assert "- 12 files: more than `protection.most_files`" in about.question
            assert about.reason == "it changes many files (12)"


def test_a_link_into_a_git_folder_is_asked_about(landing: Landing):
    (landing.theirs.root / "out").symlink_to(".git/hooks")
    about = landing.concern(landing.change({}))
    assert about is not None
    assert about.repositories == ("out",)


def test_a_link_out_of_the_repository_is_asked_about(landing: Landing):
    (landing.theirs.root / "docs").symlink_to("README")
    (landing.theirs.root / "out").symlink_to("/etc/passwd")
    about = landing.concern(landing.change({}))
    assert about is not None
    assert (about.links, about.paths, about.reason) == (("out",), ("out",), "it links out of the repository (out)")
    assert "These links lead out of the repository" in about.question


def test_a_git_folder_under_another_systems_name_goes_back_to_the_agent(landing: Landing):
    change = landing.change({"sub/.g\u200cit/config": "[core]\n"})
    with landing.office.context.store.write() as tx:
        ticket = add_ticket(tx, landing.office.project)
        ticket = tickets.move(tx, ticket.id, Start(landing.base))
    tree = landing.hub.tree_of(change.commit)
    saved = Saved(commit=change.commit, tree=tree, changed=True, nested=(), left_out=())
    step = outcome.judge_change(landing.office.context, landing.project, ticket, saved, ())
    assert isinstance(step, TryAgain)
    assert "it holds files that cannot land (sub/" in step.reason
    assert "takes this name for its own .git" in step.feedback


@pytest.mark.parametrize("allowed", [True, False])
def test_two_changes_that_make_a_repository_together_stop_before_the_second_lands(landing: Landing, allowed: bool):
    first, second = (landing.ticket(landing.change(files)) for files in (BARE, PARTS))
    assert first.change is not None
    assert second.change is not None
    assert landing.concern(first.change) is None
    assert landing.concern(second.change) is None
    landing.land(first.id, second.id)
    assert landing.hub.target() == landing.base, "the batch waits for the question"
    assert (landing.read(first.id).state, landing.read(second.id).state) == (State.LANDING, State.PARKED)
    assert "it holds a git repository (docs2)" in landing.read(second.id).reason
    landing.land(first.id)
    assert landing.read(first.id).state is State.DONE
    with landing.office.context.store.write() as tx:
        (asked,) = [one for one in questions.open_ones(tx) if one.ticket == second.id]
        questions.settle(tx, asked.id, "yes" if allowed else "no", "why", by=SettledBy.PERSON)
        tickets.move(tx, second.id, Unpark())
    landing.land(second.id)
    assert landing.read(second.id).state is (State.DONE if allowed else State.QUEUED)
    assert ("docs2/refs/x" in landing.hub.files(str(landing.hub.target()))) is allowed
