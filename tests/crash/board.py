"""One small board that passes every crash point, and the person who works with it.

The person repeats everything after a crash, as people do: nothing here asks how far the last try got. There is no
daemon and no HTTP, but all that the daemon wires together is real.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.config.files import user as settings
from legion.daemon.main import locked, wired
from legion.domain.errors import LegionError, Retryable
from legion.jobs.background.housekeeping import Housekeeper, tidy
from legion.jobs.context import Context
from legion.jobs.scheduling.scheduler import Scheduler
from legion.service.projects import collect, registry, trust
from legion.service.shared.commit_signal import CommitSignal
from legion.service.tickets import dispatch
from legion.service.views import wait
from legion.store.database.transactions import sqlite_url
from legion.system.paths import DataDir
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import AddProject, Trust
from tests.support.repository import Repository
from tests.support.settings import without_trial

PATIENCE = 90.0

CONFIG = """\
[setup]
run = "mkdir -p deps && cp lock.txt deps/ready"
key = ["lock.txt"]

[checks.test]
run = "sh check.sh"

[agents]
parallel = 4
attempts = 4
"""
CHECK = "test -f deps/ready && ! grep -rl BROKEN --include='*.txt' .\n"
"""Red without setup, and as soon as a text file holds the word."""

PROOF = "test -s a.txt"

BEGIN = """
run=$(basename "$(dirname "$(dirname "$LEGION_BRIEFING")")")
echo "$run" > "$run.ignored"
echo "$run $LEGION_TICKET $LEGION_ATTEMPT" >> "$SHARED/starts"
"""
"""Every agent leaves a file that no commit will ever hold, and says that it was started."""

COMMITS = """
echo a > a.txt
git add a.txt && git commit --quiet -m 'My own commit' || true
echo later > later.txt
git init --quiet nested && echo nested > nested/kept.txt
"""
MENDS = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > m.txt; else echo fine > m.txt; fi'
CLASHES = """
if grep -q '<<<<<<<' README.txt; then
    sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' README.txt
elif ! grep -qx "$LEGION_TICKET was here" README.txt; then
    echo "$LEGION_TICKET was here" > README.txt
fi
"""


READS = """
echo '{"verdict": "approve", "summary": "Fine.", "read": ["m.txt"]}'
"""


@dataclass(frozen=True)
class Ground:
    """The folders of one case."""

    folder: Path
    database: str = ""
    """A Postgres URL; empty for SQLite."""

    @property
    def repository(self) -> Path:
        return self.folder / "ada"

    @property
    def worktrees(self) -> Path:
        return self.folder / "ada-legion"

    @property
    def data(self) -> DataDir:
        return DataDir(self.folder / "data")

    @property
    def shared(self) -> Path:
        """The one folder outside of their worktrees that agents and checks may write."""
        return self.folder / "shared"

    @property
    def reader(self) -> Path:
        """The program that reads changes."""
        return self.shared / "reader.sh"

    @property
    def settings(self) -> Path:
        return self.folder / "config.toml"

    @property
    def url(self) -> str:
        return self.database or sqlite_url(self.data.database)

    @property
    def hub(self) -> Path:
        return self.data.project(1) / "hub.git"


def prepare(ground: Ground) -> None:
    """What is there before Legion comes."""
    ground.shared.mkdir(parents=True)
    ground.settings.write_text(without_trial(settings_text(ground)))
    ground.reader.write_text(agent(ground, READS))
    ada = Repository(ground.repository, CONFIG)
    ada.commit("setup", {"check.sh": CHECK, "lock.txt": "1\n", ".gitignore": "*.ignored\n"})


def settings_text(ground: Ground) -> str:
    database = f"[daemon]\ndatabase = {json.dumps(ground.database)}\n" if ground.database else ""
    reader = f'[drivers.reader]\nrun = "sh {ground.reader}"\n\n[reviewer]\ndriver = "reader"\n'
    return f"[sandbox]\nwrite = [{json.dumps(str(ground.shared))}]\n\n[worktrees]\npool = 2\n\n{database}{reader}"


def agent(ground: Ground, script: str) -> str:
    return f"SHARED='{ground.shared}'\n{BEGIN}\n{script}"


def board(ground: Ground) -> list[NewTicket]:
    return [
        NewTicket(title="commits", key="commits", command=agent(ground, COMMITS), prove=[PROOF]),
        NewTicket(title="mends", command=agent(ground, MENDS), review="always"),
        NewTicket(title="one", command=agent(ground, CLASHES)),
        NewTicket(title="other", command=agent(ground, CLASHES)),
        NewTicket(title="look", checkpoint=True, after_keys=["commits"]),
    ]


def work(ground: Ground) -> None:
    """One life of the daemon: from wherever the last one was cut off to the end."""
    with alive(ground) as (context, news, conductor, keeper):
        cwd = str(ground.repository)
        adopt(context, cwd)
        commit_by_hand(ground)
        _tidy(context, cwd)
        asked = dispatch.dispatch(context, Dispatch(cwd=cwd, tickets=board(ground), request="the board"))
        conductor.start()
        keeper.start()
        _until_settled(context, news, asked.ids)
        _collect(context, news, cwd)
        _tidy(context, cwd)


def look_again(ground: Ground) -> None:
    """A life of the daemon in which nobody asks for anything."""
    with alive(ground) as (context, _, conductor, _keeper):
        conductor.start()
        assert conductor.decide_once() is None, "nothing is left to wait for"
        _tidy(context, str(ground.repository))


@contextlib.contextmanager
def alive(ground: Ground) -> Iterator[tuple[Context, CommitSignal, Scheduler, Housekeeper]]:
    user = settings.load(ground.settings)
    with locked(ground.data), wired(user, ground.data, "http://127.0.0.1:9") as all_parts:
        yield all_parts


def adopt(context: Context, cwd: str) -> None:
    """`legion init` and `legion trust`."""
    registry.add(context, AddProject(path=cwd))
    shown = trust.trustable(context, cwd)
    trust.trust(context, Trust(cwd=cwd, hashes=[text.hash for text in shown.texts]))


def commit_by_hand(ground: Ground) -> None:
    mine = ground.repository / "mine.txt"
    if not mine.exists():
        mine.write_text("mine\n")
        for words in (["add", "mine.txt"], ["commit", "--quiet", "-m", "mine"]):
            subprocess.run(["git", *words], cwd=ground.repository, check=True)


def _tidy(context: Context, cwd: str) -> None:
    # As the housekeeper does: what it does not get done costs only speed.
    with contextlib.suppress(LegionError):
        tidy(context, context.project_of(registry.find(context, cwd)))


def _until_settled(context: Context, news: CommitSignal, ids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    last = 0
    while not (state := wait.wait(context, news, None, ids, last, 5.0)).settled:
        last = state.last_event
        assert time.monotonic() < deadline, [(line.id, line.state, line.reason) for line in state.tickets]


def _collect(context: Context, news: CommitSignal, cwd: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = news.last()
        try:
            collect.collect(context, cwd)
        except Retryable:
            assert time.monotonic() < deadline, "the person's own commits were not absorbed in time"
            news.wait(seen, 5.0)
        else:
            return
