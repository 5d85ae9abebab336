"""kill -9 at every crash point of a forge: nothing is done twice, nothing is lost."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.demo.forge.server import StandIn
from legion.demo.forge.state import HostedComment
from legion.domain.tickets.ticket import State
from legion.service.forge import pulls
from legion.system import crash
from legion.system.crash import Point
from legion.wire.forge import MergePulls
from tests.forge.desk import CONFIG, Desk
from tests.forge.hosting import WRITER, hosting
from tests.store.making import in_a_process
from tests.support.repository import Repository
from tests.support.sampling import sampled

POINTS = [point for point in Point if point.value.startswith(("jobs.forge.", "git.remote."))]
MOMENTS = [(point, nth) for point in POINTS for nth in (1, 2)]
_ROUNDS = 14


class Life:
    """One issue from its label to the landed change, by a Legion that is killed once on the way."""

    def __init__(self, desk: Desk, forge: StandIn, point: Point, nth: int) -> None:
        self.desk = desk
        self.forge = forge
        self.hosted = forge.hosted
        self.point = point
        self.nth = nth
        self.log = desk.folder / "crash.log"
        self.died = False
        self.issue = self.hosted.open_issue("Add a greeting", "Please.", labels=("legion:go",))
        self.remark: HostedComment | None = None

    def live(self) -> None:
        for _ in range(_ROUNDS):
            self._round()
            if self._people() and self.desk.tickets[1].state is State.DONE:
                self._round()
                return
        raise AssertionError(f"it is {self.desk.tickets.get(1)} after {_ROUNDS} rounds")

    def _round(self) -> None:
        if self.died:
            self._act(self.desk)
            return

        def armed() -> None:
            crash.arm(self.point, self.log, nth=self.nth)
            self._act(self.desk.again())

        code = in_a_process(armed)
        assert code in (0, -signal.SIGKILL), code
        self.died = code == -signal.SIGKILL

    def _act(self, desk: Desk) -> None:
        desk.round()
        if self.ready:
            pulls.merge(desk.context, MergePulls(cwd=desk.cwd))
            desk.round()

    @property
    def ready(self) -> bool:
        found = self._pull()
        return found is not None and any(one.state == "APPROVED" for one in self.hosted.pull(found).reviews)

    def _pull(self) -> int | None:
        return next((number for number, one in self.hosted.issues.items() if one.pull is not None), None)

    def _people(self) -> bool:
        """What people and CI do next. True when they have done everything."""
        number = self._pull()
        if number is None:
            return False
        pull = self.hosted.pull(number)
        if self.remark is None:
            self.remark = self.hosted.remark(number, "Say hello.", author=WRITER, path="a.txt")
        elif pull.head_commit != self.remark.commit and not self.ready:
            self.hosted.check(pull.head_commit, "build", "success")
            self.hosted.review(number, "APPROVED", author=WRITER)
        return bool(pull.merged)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[tuple[Desk, StandIn]]:
    shop = Repository(tmp_path / "shop", CONFIG)
    (tmp_path / "forge").mkdir()
    with hosting(tmp_path / "forge", shop.root) as forge:
        desk = Desk(tmp_path, shop)
        yield desk.connect(forge), forge
        desk.close()


@pytest.mark.parametrize("moment", sampled(MOMENTS, 1), ids=lambda moment: f"{moment[0].value}-{moment[1]}")
def test_a_kill_at_a_point_repeats_nothing(ground: tuple[Desk, StandIn], moment: tuple[Point, int]):
    life = Life(*ground, *moment)
    life.live()
    if moment[1] == 1:
        assert life.died, f"{moment[0]} was never reached"
    hosted = life.hosted
    numbers = [number for number, one in hosted.issues.items() if one.pull is not None]
    assert len(numbers) == 1, "one pull request"
    pull = hosted.pull(numbers[0])
    assert len(life.issue.comments) == 1, "one comment"
    assert "**done**" in life.issue.comments[0].body
    assert life.issue.state == "closed"
    assert "legion:working" not in life.issue.labels
    assert life.remark is not None
    assert [one.reply_to for one in pull.remarks] == [None, life.remark.id], "one answer"
    assert [ticket.attempt for ticket in life.desk.tickets.values()] == [2], "one ticket, and each remark once"
    assert (
        hosted.git("rev-list", "--first-parent", "--count", f"{life.desk.shop.head()}..main").stdout.strip() == "1"
    ), "one merge"
    merges = Counter(sent.status for sent in life.forge.requests if sent.path.endswith("/merge"))
    assert merges[200] == 1
    assert set(hosted.branches()) == {"main", pull.head}
