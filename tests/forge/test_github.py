"""The client of GitHub against the stand-in: pages, ETags, limits, trouble, and effects that are found again."""

from __future__ import annotations

import pytest

from legion.demo.forge.routes import GitHubAnswer, refused
from legion.domain.forge.pulls import CiResult, PullState, ci_result
from legion.forge.errors import (
    ForgeLimited,
    ForgeMoved,
    ForgeProblem,
    ForgeRefused,
    ForgeUnreachable,
    MergeRefused,
    NoPulls,
)
from legion.forge.github import GitHub
from legion.forge.plain import PlainRemote
from tests.forge.hosting import ROBOT, STRANGER, WRITER
from tests.support.github_app import Fault, StandIn


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def github(stand_in: StandIn, clock: Clock) -> GitHub:
    return GitHub("acme/shop", "robot-token", url=stand_in.url, clock=clock)


def test_it_reads_every_page_and_leaves_pull_requests_out(stand_in: StandIn, github: GitHub):
    for number in range(130):
        stand_in.hosted.open_issue(f"Issue {number}", labels=("go",))
    stand_in.hosted.open_pull("A pull", "", head="main", base="main", author=ROBOT, draft=False)
    stand_in.hosted.label(131, "go")
    assert sorted(one.number for one in github.issues("go")) == list(range(1, 131))


def test_a_second_look_costs_nothing_of_the_limit(stand_in: StandIn, github: GitHub):
    stand_in.hosted.open_issue("One", labels=("go",))
    first = github.issues("go")
    used = stand_in.used
    assert github.issues("go") == first
    assert stand_in.used == used
    assert stand_in.requests[-1].status == 304
    stand_in.hosted.label(1, "more")
    assert github.issues("go")[0].labels == ("go", "more")


LIMITS = {
    "retry-after": (GitHubAnswer(status=403, body={}, headers={"Retry-After": "7"}), 7),
    "429": (GitHubAnswer(status=429, body={}, headers={"Retry-After": "90"}), 90),
    "reset": (
        GitHubAnswer(status=403, body={}, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1500"}),
        500,
    ),
    "silent": (refused(403, "You have exceeded a secondary rate limit."), 60),
}


@pytest.mark.parametrize("kind", LIMITS)
def test_a_limit_closes_the_forge_until_its_end(stand_in: StandIn, github: GitHub, clock: Clock, kind: str):
    answer, wait = LIMITS[kind]
    stand_in.faults.append(Fault(answer=answer))
    with pytest.raises(ForgeLimited) as limited:
        github.issues("go")
    assert limited.value.until == clock.now + wait
    asked = len(stand_in.requests)
    clock.now += wait - 1
    with pytest.raises(ForgeLimited):
        github.issues("go")
    assert len(stand_in.requests) == asked, "it does not even ask"
    clock.now += 1
    assert github.issues("go") == ()


def test_a_silent_limit_doubles_the_wait(stand_in: StandIn, github: GitHub, clock: Clock):
    for wait in (60, 120, 240):
        stand_in.faults.append(Fault(answer=refused(403, "secondary rate limit")))
        with pytest.raises(ForgeLimited) as limited:
            github.issues("go")
        assert limited.value.until == clock.now + wait
        clock.now += wait


def test_trouble_of_the_forge_is_no_trouble_of_ours(stand_in: StandIn, github: GitHub):
    stand_in.faults.append(Fault(answer=refused(502, "Server Error")))
    with pytest.raises(ForgeUnreachable):
        github.repository()
    gone = GitHub("acme/shop", "robot-token", url="http://127.0.0.1:9")
    with pytest.raises(ForgeUnreachable, match=r"127\.0\.0\.1 cannot be reached"):
        gone.repository()


def test_a_comment_whose_answer_was_lost_is_found_again(stand_in: StandIn, github: GitHub):
    stand_in.hosted.open_issue("One")
    stand_in.hosted.comment(1, "I pretend: <!-- mark -->", author=STRANGER)
    stand_in.faults.append(Fault(answer=refused(502, "lost"), match="POST", after=True))
    with pytest.raises(ForgeUnreachable):
        github.say(1, "Hello <!-- mark -->", known=None, mark="<!-- mark -->")
    made = github.say(1, "Hello again <!-- mark -->", known=None, mark="<!-- mark -->")
    assert [(one.id, one.author) for one in stand_in.hosted.issues[1].comments][1:] == [(made, ROBOT)]
    stand_in.hosted.issues[1].comments.clear()
    assert github.say(1, "Hello <!-- mark -->", known=made, mark="<!-- mark -->") != made
    assert len(stand_in.hosted.issues[1].comments) == 1


def test_a_pull_request_whose_answer_was_lost_is_found_though_the_list_lags(stand_in: StandIn, github: GitHub, shop):
    stand_in.hosted.git("branch", "topic", "main")
    commit = stand_in.hosted.git("commit-tree", "main^{tree}", "-p", "main", "-m", "x").stdout.strip()
    stand_in.hosted.git("update-ref", "refs/heads/topic", commit)
    assert github.pull_of("topic") is None
    stand_in.faults.append(Fault(answer=refused(502, "lost"), match="POST", after=True))
    with pytest.raises(ForgeUnreachable):
        github.open_pull(title="A", body="", branch="topic", base="main", draft=False)
    stand_in.stale["/repos/acme/shop/pulls"] = 1
    assert github.pull_of("topic") is None, "the list lags"
    found = github.open_pull(title="A", body="", branch="topic", base="main", draft=True)
    assert [found.number] == [number for number, one in stand_in.hosted.issues.items() if one.pull is not None]
    assert found.state is PullState.OPEN


def test_a_merge_names_the_commit_and_the_forge_has_the_last_word(stand_in: StandIn, github: GitHub):
    commit = stand_in.hosted.git("commit-tree", "main^{tree}", "-p", "main", "-m", "x").stdout.strip()
    stand_in.hosted.git("update-ref", "refs/heads/topic", commit)
    stand_in.hosted.required = ["build"]
    made = github.open_pull(title="A", body="", branch="topic", base="main", draft=True)
    assert made.draft
    with pytest.raises(MergeRefused):
        github.merge(made, "merge")
    github.set_draft(made, False)
    with pytest.raises(MergeRefused, match='Required status check "build" is expected'):
        github.merge(made, "merge")
    stand_in.hosted.check(commit, "build", "success")
    moved = stand_in.hosted.git("commit-tree", "main^{tree}", "-p", commit, "-m", "y").stdout.strip()
    stand_in.hosted.git("update-ref", "refs/heads/topic", moved)
    with pytest.raises(MergeRefused, match="Head branch was modified"):
        github.merge(made, "merge")
    stand_in.hosted.merge_queue = True
    assert github.merge(github.pull(made.number) or made, "merge") == ""
    assert stand_in.hosted.pull(made.number).queued


def test_checks_and_statuses_count_together_and_none_is_not_green(stand_in: StandIn, github: GitHub, shop):
    commit = shop.head()
    assert ci_result(github.checks(commit)) is CiResult.NONE
    stand_in.hosted.check(commit, "docs", "skipped")
    stand_in.hosted.status(commit, "legion/checks", "success", author=ROBOT)
    assert ci_result(github.checks(commit)) is CiResult.NONE
    stand_in.hosted.check(commit, "build", None)
    assert ci_result(github.checks(commit)) is CiResult.PENDING
    stand_in.hosted.check(commit, "build", "success")
    assert ci_result(github.checks(commit)) is CiResult.GREEN
    stand_in.hosted.status(commit, "old-ci", "failure", "broke", author=WRITER)
    assert ci_result(github.checks(commit)) is CiResult.RED
    stand_in.hosted.status(commit, "old-ci", "success", author=WRITER)
    stand_in.hosted.check(commit, "build", "timed_out")
    assert ci_result(github.checks(commit)) is CiResult.RED


def test_each_refusal_is_one_sentence_without_the_token(stand_in: StandIn, github: GitHub):
    stand_in.hosted.rights[ROBOT] = "read"
    with pytest.raises(ForgeRefused, match="may not do that in acme/shop") as refusal:
        github.set_label(1, "x", there=True)
    assert "robot-token" not in refusal.value.message
    with pytest.raises(ForgeRefused, match="refuses the token"):
        GitHub("acme/shop", "wrong", url=stand_in.url).repository()
    with pytest.raises(ForgeMoved, match="no repository acme/other"):
        GitHub("acme/other", "robot-token", url=stand_in.url).repository()
    stand_in.hosted.rename("store")
    with pytest.raises(ForgeMoved, match="was renamed or moved"):
        github.repository()
    with pytest.raises(ForgeProblem, match="not encrypted"):
        GitHub("acme/shop", "robot-token", url="http://forge.example.com")
    assert all(sent.path.startswith("/repos/") or sent.path == "/user" for sent in stand_in.requests)


def test_the_token_is_no_argument_of_git(github: GitHub):
    assert "robot-token" not in github.remote.url


def test_a_plain_remote_has_branches_only():
    plain = PlainRemote("/nowhere", default_branch=lambda _: "main", branch_tip=lambda *_: None)
    assert plain.repository().default_branch == "main"
    with pytest.raises(NoPulls):
        plain.issues("go")
