"""kill -9 at every crash point of a forge: nothing is done twice, nothing is lost."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from legion.demo.forge.state import HostedComment
from legion.domain.tickets.ticket import Prove, State
from legion.service.forge import issues, pulls
from legion.store.board import projects, tickets
from legion.system import crash
from legion.system.crash import Point
from legion.wire.forge import AssignIssues, MergePulls
from tests.forge.desk import CONFIG, Desk
from tests.forge.hosting import WRITER, hosting
from tests.store.making import in_a_process
from tests.support.github_app import StandIn
from tests.support.repository import Repository
from tests.support.sampling import sampled

_ROUNDS = 14
_NEVER = 1000


def effects(*, writes: int, pushes: int, refused: int = 0) -> dict[Point, int]:
    """Requests that write, and pushes. One that the forge refuses ends before its second point."""
    return {
        Point.GIT_REMOTE_BEFORE_PUSH: pushes + refused,
        Point.GIT_REMOTE_AFTER_PUSH: pushes,
        Point.FORGE_WRITE_BEFORE_SEND: writes,
        Point.FORGE_WRITE_AFTER_SEND: writes,
    }


class Life:
    """One story at a forge, by a Legion that is killed once on the way."""

    config = CONFIG
    moments: ClassVar[dict[Point, int]]
    """How often the story reaches each point."""

    def __init__(self, desk: Desk, forge: StandIn, point: Point, nth: int) -> None:
        self.desk = desk
        self.forge = forge
        self.hosted = forge.hosted
        self.point = point
        self.nth = nth
        self.log = desk.folder / "crash.log"
        self.died = False
        self.prepare()

    def prepare(self) -> None:
        """What people did before."""
        raise NotImplementedError

    def act(self, desk: Desk) -> None:
        """What Legion does in one round, in a process that may die."""
        raise NotImplementedError

    def people(self) -> bool:
        """What people and CI do next. True when the story is over."""
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def live(self) -> None:
        for _ in range(_ROUNDS):
            self._round()
            if self.people():
                self._round()
                return
        raise AssertionError(f"it is {self.desk.tickets} after {_ROUNDS} rounds")

    def _round(self) -> None:
        if self.died:
            self.act(self.desk)
            return

        def armed() -> None:
            crash.arm(self.point, self.log, nth=self.nth)
            self.act(self.desk.again())

        code = in_a_process(armed)
        assert code in (0, -signal.SIGKILL), code
        self.died = code == -signal.SIGKILL

    def pull(self) -> int | None:
        return next((number for number, one in self.hosted.issues.items() if one.pull is not None), None)

    def sent(self, method: str, end: str, status: int) -> int:
        """How often a request succeeded at the forge."""
        there = Counter((one.method, one.status) for one in self.forge.requests if one.path.endswith(end))
        return there[method, status]

    def check_once(self, pulls: int, states: list[str]) -> None:
        """One pull request of each kind, one comment on each issue, which is informed of its end."""
        assert self.sent("POST", "/pulls", 201) == pulls
        plain = [one for one in self.hosted.issues.values() if one.pull is None]
        assert [one.state for one in plain] == states
        for issue in plain:
            assert len(issue.comments) == 1, "one comment"
            assert "legion:working" not in issue.labels


class Landed(Life):
    """One issue from its label to the landed change; a remark on a line comes back to its agent."""

    moments: ClassVar = {
        Point.FORGE_BEFORE_CLAIM: 1,
        Point.FORGE_AFTER_CLAIM: 1,
        Point.FORGE_AFTER_OFFER: 2,
        **effects(writes=13, pushes=3, refused=1),
    }

    def prepare(self) -> None:
        self.issue = self.hosted.open_issue("Add a greeting", "Please.", labels=("legion:go",))
        self.remark: HostedComment | None = None

    def act(self, desk: Desk) -> None:
        desk.look()
        desk.round()
        if self.ready:
            pulls.merge(desk.context, MergePulls(cwd=desk.cwd))
            desk.round()

    @property
    def ready(self) -> bool:
        found = self.pull()
        return found is not None and any(one.state == "APPROVED" for one in self.hosted.pull(found).reviews)

    def people(self) -> bool:
        number = self.pull()
        if number is None:
            return False
        pull = self.hosted.pull(number)
        if self.remark is None:
            self.remark = self.hosted.remark(number, "Say hello.", author=WRITER, path="a.txt")
        elif pull.head_commit != self.remark.commit and not self.ready:
            self.hosted.check(pull.head_commit, "build", "success")
            self.hosted.review(number, "APPROVED", author=WRITER)
        return bool(pull.merged) and self.desk.tickets[1].state is State.DONE

    def check(self) -> None:
        self.check_once(1, ["closed"])
        assert "**done**" in self.issue.comments[0].body
        assert self.remark is not None
        number = self.pull()
        assert number is not None
        pull = self.hosted.pull(number)
        assert not pull.draft
        assert [one.reply_to for one in pull.remarks] == [None, self.remark.id], "one answer"
        assert [ticket.attempt for ticket in self.desk.tickets.values()] == [2], "one ticket, and each remark once"
        commits = self.hosted.git("rev-list", "--first-parent", "--count", f"{self.desk.shop.head()}..main").stdout
        assert commits.strip() == "1", "one merge"
        assert self.sent("PUT", "/merge", 200) == 1
        assert set(self.hosted.branches()) == {"main", pull.head}


class Withdrawn(Life):
    """Two issues whose tickets a person stops: one has a pull request by then, the other only its branch."""

    moments = effects(writes=11, pushes=4, refused=1)

    def prepare(self) -> None:
        self.first, self.second = (
            self.hosted.open_issue(title, labels=("legion:go",)) for title in ("With a change", "Only claimed")
        )

    def act(self, desk: Desk) -> None:
        desk.look()
        self._stop(desk, "Only claimed")
        desk.work()
        desk.land()
        desk.look()
        if self.pull() is not None:
            self._stop(desk, "With a change")
            desk.look()

    def _stop(self, desk: Desk, title: str) -> None:
        for one in desk.tickets.values():
            if one.spec.title == title:
                desk.actions.stop(one.id, "enough")

    def people(self) -> bool:
        done = {State.STOPPED} == {one.state for one in self.desk.tickets.values()} and len(self.desk.tickets) == 2
        return done and not any("legion:working" in one.labels for one in (self.first, self.second))

    def check(self) -> None:
        self.check_once(1, ["open", "open"])
        number = self.pull()
        assert number is not None
        assert self.hosted.issues[number].state == "closed"
        assert set(self.hosted.branches()) == {"main", "issue-1-with-a-change"}
        assert all("**stopped**" in one.comments[0].body for one in (self.first, self.second))


class WholeEpic(Life):
    """Two issues as one epic, whose branch becomes one pull request."""

    config = CONFIG + 'pulls = "epic"\n'
    moments: ClassVar = {Point.EPIC_BEFORE_END: 1, Point.EPIC_AFTER_END: 1, **effects(writes=14, pushes=5)}

    def prepare(self) -> None:
        self.numbers = [self.hosted.open_issue(title).number for title in ("Tables", "Page")]

    def act(self, desk: Desk) -> None:
        issues.assign(desk.context, AssignIssues(cwd=desk.cwd, issues=self.numbers, epic="v2"))
        desk.look()
        desk.work()
        for session in self._sessions(desk):
            desk.land(session)
        desk.look()
        for one in desk.tickets.values():
            if one.state is State.CHECKING:
                with desk.store.write() as tx:
                    tickets.move(tx, one.id, Prove())
        desk.land()
        desk.look()
        if self.pull() is not None:
            pulls.merge(desk.context, MergePulls(cwd=desk.cwd, no_checks=True, skip_review=True))
            desk.round()

    def _sessions(self, desk: Desk) -> list[int]:
        with desk.store.read() as tx:
            return [one.id for one in projects.sessions_of(tx, projects.get(tx, 1).common_dir) if one.session]

    def people(self) -> bool:
        there = self.desk.tickets.values()
        return any(one.spec.title == "Epic v2" and one.state is State.DONE for one in there)

    def check(self) -> None:
        self.check_once(1, ["closed", "closed"])
        assert self.sent("PUT", "/merge", 200) == 1
        with self.desk.store.read() as tx:
            (session,) = projects.sessions_of(tx, projects.get(tx, 1).common_dir, ended=True)
            made = [one.spec.title for id in (session.id, 1) for one in tickets.of_epic(tx, id, "v2")]
        assert made == ["Tables", "Page", "Epic v2"]
        assert len(self.hosted.branches()) == 2


class Pushed(Life):
    """One issue whose change is pushed to the forge's branch, without a pull request."""

    config = '[landing]\ntarget = "branch"\n'
    moments = effects(writes=5, pushes=3)

    def prepare(self) -> None:
        self.issue = self.hosted.open_issue("Add a greeting", labels=("legion:go",))

    def act(self, desk: Desk) -> None:
        desk.round()

    def people(self) -> bool:
        return self.issue.state == "closed"

    def check(self) -> None:
        self.check_once(0, ["closed"])
        assert "**done**" in self.issue.comments[0].body
        assert self.sent("PATCH", "/issues/1", 200) == 1, "closed once"
        (ticket,) = self.desk.tickets.values()
        assert self.hosted.branches() == {"main": ticket.landed}


LIVES = (Landed, Withdrawn, WholeEpic, Pushed)
MOMENTS = [(life, point, nth) for life in LIVES for point, times in life.moments.items() for nth in range(1, times + 1)]


@contextmanager
def ground(folder: Path, config: str) -> Iterator[tuple[Desk, StandIn]]:
    shop = Repository(folder / "shop", config)
    (folder / "forge").mkdir()
    with hosting(folder / "forge", shop.root) as forge:
        desk = Desk(folder, shop)
        yield desk.connect(forge), forge
        desk.close()


def shown(moment: tuple[type[Life], Point, int]) -> str:
    return f"{moment[0].__name__}-{moment[1].value}-{moment[2]}"


@pytest.mark.parametrize("moment", sampled(MOMENTS, 1), ids=shown)
def test_a_kill_at_a_point_repeats_nothing(tmp_path: Path, moment: tuple[type[Life], Point, int]):
    kind, point, nth = moment
    with ground(tmp_path, kind.config) as (desk, forge):
        life = kind(desk, forge, point, nth)
        life.live()
        assert life.died, f"{point} was not reached so often"
        life.check()


@pytest.mark.soak
@pytest.mark.parametrize("kind", LIVES)
def test_the_moments_are_all_there_are(tmp_path: Path, kind: type[Life]):
    with ground(tmp_path, kind.config) as (desk, forge):
        life = kind(desk, forge, Point.FORGE_BEFORE_CLAIM, _NEVER)
        life.live()
        life.check()
        reached = Counter(life.log.read_text().split())
    assert {point: reached[point.value] for point in kind.moments} == kind.moments
