"""The forge as it answers people and programs: Legion with the person's own token, rights that change, late answers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.demo.forge.routes import refused
from legion.domain.forge.connections import TokenFrom
from legion.domain.forge.issues import is_ours, marker
from legion.domain.forge.pulls import CiResult, ci_result
from legion.forge.github import GitHub
from legion.jobs.forge import clients
from legion.service.forge import pulls
from legion.store.board import forges
from legion.wire.forge import MergePulls
from tests.forge.desk import CONFIG, Desk
from tests.forge.hosting import OWNER, ROBOT, WRITER, hosting
from tests.support.attacks import Attacker, Door, attack
from tests.support.github_app import Fault, StandIn
from tests.support.repository import Repository


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Desk]:
    """Legion writes with the token of the repository's owner, as `legion forge add github --gh` sets it up."""
    shop = Repository(tmp_path / "shop", CONFIG)
    (tmp_path / "forge").mkdir()
    with hosting(tmp_path / "forge", shop.root) as forge:
        one = Desk(tmp_path / "legion", shop)
        yield one.connect(forge, token="owner-token")
        one.close()


def test_the_person_whose_token_legion_uses_is_heard_and_legions_own_texts_are_not(own: Desk):
    number = own.opened()
    for _ in range(3):
        assert own.look() == ""
    assert own.state() == "parked", "what Legion wrote itself is no remark"
    own.forge.hosted.review(number, "CHANGES_REQUESTED", "Rename it.", author=OWNER)
    own.look()
    assert own.state() == "queued"
    assert "Rename it." in own.tickets[1].feedback
    own.round()
    own.forge.hosted.comment(number, "And the other one.", author=OWNER)
    own.look()
    assert "And the other one." in own.tickets[1].feedback
    own.forge.hosted.comment(1, "/legion stop", author=OWNER)
    own.look()
    assert own.state() == "stopped"


@pytest.mark.parametrize(
    ("body", "ours"),
    [
        (f"News.\n\n{marker('issue ticket=1')}", True),
        (marker("answer line:3"), True),
        (f"> News.\n> {marker('issue ticket=1')}\n\nNo.", False),
        (f"Do not write `{marker('x')}` here.", False),
        ("/legion stop", False),
    ],
)
def test_a_text_is_ours_by_a_marker_on_a_line_of_its_own(body: str, ours: bool):
    assert is_ours(body) is ours


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@attack(Attacker.NETWORK, Door.RIGHTS)
@pytest.mark.parametrize(("before", "after"), [("write", "read"), ("write", ""), ("admin", "read"), ("read", "write")])
def test_rights_at_the_forge_have_an_age(stand_in: StandIn, before: str, after: str):
    clock = Clock()
    github = GitHub("acme/shop", "robot-token", url=stand_in.url, clock=clock)
    stand_in.hosted.rights[WRITER] = before
    assert github.may_write(WRITER) is (before != "read")
    if after:
        stand_in.hosted.rights[WRITER] = after
    else:
        del stand_in.hosted.rights[WRITER]
    clock.now += 61.0
    assert github.may_write(WRITER) is (after == "write")


def test_a_late_answer_of_the_forge_is_no_push_of_a_person(desk: Desk):
    number = desk.opened()
    desk.forge.hosted.comment(number, "Rename it.", author=WRITER)
    desk.look()
    desk.work()
    desk.land()
    desk.forge.stale[f"/repos/acme/shop/pulls/{number}"] = 4
    for _ in range(4):
        desk.look()
    desk.forge.stale.clear()
    assert desk.forge.hosted.pull(number).head_commit == desk.pull(1).pushed
    assert (desk.pull(1).foreign_commit, desk.pull(1).note) == ("", "")
    desk.forge.hosted.comment(number, "Once more.", author=WRITER)
    desk.look()
    assert desk.state() == "queued"


def test_a_pull_request_whose_branch_is_ours_again_is_followed_again(desk: Desk):
    number = desk.opened()
    ours = desk.pull(1).pushed
    with desk.store.write() as tx:
        forges.change_pull(tx, 1, foreign_commit="f" * 40, note="a person pushed to it; Legion leaves it alone")
    desk.look()
    assert (desk.pull(1).pushed, desk.pull(1).foreign_commit, desk.pull(1).note) == (ours, "", "")
    (line,) = pulls.merge(desk.context, MergePulls(cwd=desk.cwd)).pulls
    assert "a person pushed" not in line.merges
    desk.forge.hosted.comment(number, "Rename it.", author=WRITER)
    desk.look()
    assert desk.state() == "queued"


@attack(Attacker.NETWORK, Door.CHECKS)
@pytest.mark.parametrize("kind", ["status", "check"])
@pytest.mark.parametrize("red_at", [0, 29, 30, 99, 100, 149])
def test_a_red_check_counts_on_whichever_page_it_is(stand_in: StandIn, shop: Repository, kind: str, red_at: int):
    commit, hosted = shop.head(), stand_in.hosted
    for number in range(150):
        if kind == "status":
            state = "failure" if number == red_at else "success"
            hosted.status(commit, f"ci-{number}", state, author=WRITER)
        else:
            hosted.check(commit, f"ci-{number}", "failure" if number == red_at else "success")
    found = GitHub("acme/shop", "robot-token", url=stand_in.url).checks(commit)
    assert len(found) == 150
    assert ci_result(found) is CiResult.RED


def test_one_claim_that_cannot_be_completed_holds_up_no_other_issue(desk: Desk):
    desk.forge.hosted.open_issue("First", labels=("legion:go",))
    broken = Fault(answer=refused(422, "Not now"), times=99, match="GET /repos/acme/shop/issues/1/comments")
    desk.forge.faults.append(broken)
    assert "Not now" in desk.look()
    desk.forge.hosted.open_issue("Second", labels=("legion:go",))
    assert "Not now" in desk.look(), "it is said"
    assert [one.spec.title for one in desk.tickets.values()] == ["Second"]
    broken.times = 0
    assert desk.look() == ""
    assert sorted(one.spec.title for one in desk.tickets.values()) == ["First", "Second"]


def test_a_token_that_rotates_leaves_no_client_behind(desk: Desk, tmp_path: Path):
    with desk.store.read() as tx:
        connection = forges.of_project(tx, 1)
    assert connection is not None
    file = tmp_path / "token"
    rotating = replace(connection, key_from=TokenFrom.FILE, key_value=str(file))
    seen = []
    for number in range(5):
        file.write_text(f"token-{number}")
        seen.append(weakref.ref(clients.open_forge(desk.context, rotating)))
    gc.collect()
    assert [one() is not None for one in seen] == [False, False, False, False, True]
    assert clients.open_forge(desk.context, rotating) is seen[-1]()


def test_another_legion_with_the_same_account_is_not_taken_for_a_person(desk: Desk):
    """Its texts carry markers, too."""
    number = desk.opened()
    desk.forge.hosted.comment(number, f"Legion: ticket 9 is **done**.\n\n{marker('issue ticket=9')}", author=ROBOT)
    desk.look()
    assert desk.state() == "parked"
