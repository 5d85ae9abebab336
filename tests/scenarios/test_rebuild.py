"""The database is lost or damaged, and the boards in the hubs bring it back."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.git.hub.board_ref import BoardRef
from legion.store import board_records as records
from legion.store.database.transactions import Store, sqlite_url
from legion.system.crash import Point
from legion.wire.errors import LegionError
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new, squad
from tests.support.repository import Repository
from tests.support.sampling import sampled


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[tuple[Squad, Gate]]:
    """A daemon of this test's own with a gate that its agents can reach."""
    (tmp_path / "gates").mkdir()
    gate = Gate(tmp_path / "gates", "gate")
    with squad(tmp_path, settings=f'[sandbox]\nwrite = ["{tmp_path}/gates"]\n') as one:
        yield one, gate
    gate.close()


COMMITS = "git add -A; git -c user.name=a -c user.email=a@b commit -qm"


def rebuild(legion: Squad, *words: str) -> dict[str, object]:
    done = legion.cli("doctor", "--rebuild", "--yes", "--json", *words, cwd=legion.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def refused(legion: Squad, *words: str) -> str:
    done = legion.cli(*words, cwd=legion.folder)
    assert done.returncode != 0, done.stdout
    return done.stderr.strip().splitlines()[-1]


def lose(legion: Squad) -> None:
    for part in legion.data.root.glob("legion.db*"):
        part.unlink()


def copied(project: Project) -> dict[str, object]:
    """What the hub holds of the board."""
    return {name: json.loads(content) for name, content in BoardRef(project.hub).read().items()}


def stored(legion: Squad) -> dict[str, object]:
    """What the database holds of it."""
    store = Store(sqlite_url(legion.data.database))
    try:
        with store.read() as tx:
            return {name: json.loads(content) for name, content in records.files(tx, 1).items()}
    finally:
        store.close()


def test_a_lost_database_comes_back_with_every_ticket_as_it_was(legion: Squad, repository: Repository):
    project = legion.adopt(repository)
    landed = project.dispatch("lands", f"echo a > a.txt; {COMMITS} one; echo b > b.txt")
    failed = project.dispatch("fails", "exit 3", max_attempts=1, text="a long wish")
    project.until_settled()
    project.pause()
    waits = project.dispatch("waits", "echo c > c.txt", after=[landed], files=["*.txt"], prove=["true"], priority=3)
    pages = {id: project.ticket(id) for id in (landed, failed, waits)}
    legion.end()
    before = copied(project)
    assert before == stored(legion) | {records.HEAD: before[records.HEAD]}
    lose(legion)
    told = rebuild(legion)
    assert [(one["project"], one["tickets"]) for one in told["boards"]] == [("ada", 3)]  # type: ignore[attr-defined]
    after = stored(legion)
    assert {name for name in before if before[name] != after[name]} == {records.HEAD}
    assert before[records.HEAD]["project"] == after[records.HEAD]["project"]  # type: ignore[index]
    assert before[records.HEAD]["trusted"] == after[records.HEAD]["trusted"]  # type: ignore[index]
    legion.start()
    for id, page in pages.items():
        again = project.ticket(id)
        assert (again.ticket, again.runs) == (page.ticket, page.runs)
        assert [one.name for one in again.receipts] == [one.name for one in page.receipts]
    project.resume()
    more = project.dispatch("more", "echo d > d.txt")
    assert more > waits
    project.until_settled()
    assert project.states() == {landed: "done", failed: "failed", waits: "done", more: "done"}
    assert legion.client.undo(landed).tickets
    project.until_settled()
    assert (project.landed("a.txt"), project.landed("c.txt")) == (None, "c\n")


def test_agents_at_work_are_ended_and_go_on_in_their_worktrees(gated: tuple[Squad, Gate], repository: Repository):
    legion, gate = gated
    project = legion.adopt(repository)
    half = f"test -e half.txt || {{ echo half > half.txt; {gate.pause}; }}; echo whole > whole.txt"
    ticket = project.dispatch("works", half)
    gate.arrived()
    (run,) = project.ticket(ticket).runs
    legion.end()
    lose(legion)
    told = rebuild(legion)
    assert told["resumed"] == 1
    assert not [one for one in legion.processes() if "runner" in " ".join(one.cmdline())], "nobody works unseen"
    legion.start()
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
    assert [one.outcome for one in page.runs] == ["lost", "finished"]
    assert page.runs[-1].id > run.id
    assert (project.landed("half.txt"), project.landed("whole.txt")) == ("half\n", "whole\n")


@pytest.mark.parametrize(
    "moment", sampled([(Point.LAND_AFTER_SWAP, 1), (Point.RUN_AFTER_LAUNCH, 3), (Point.GIT_BOARD_BEFORE_SWAP, 1)], 1)
)
def test_whatever_the_kill_cuts_off_the_rebuilt_board_is_the_last_copy_and_goes_on(
    tmp_path: Path, repository: Repository, moment: tuple[Point, int]
):
    point, nth = moment
    legion = Squad(tmp_path).start()
    try:
        project = legion.adopt(repository)
        first = project.dispatch("ticket 1", "echo 1 > 1.txt")
        project.until_settled()
        legion.end()
        legion.start({"LEGION_CRASH_AT": f"{point.value}#{nth}", "LEGION_CRASH_LOG": str(tmp_path / "reached")})
        assert legion.process is not None
        with contextlib.suppress(LegionError):
            project.dispatch_all([new(f"ticket {name}", f"echo {name} > {name}.txt") for name in "abcd"])
            project.until_settled()
        legion.process.wait(60)
        before = copied(project)
        lose(legion)
        rebuild(legion)
        after = stored(legion)
        moved = {name for name in before if before[name] != after[name]} - {records.HEAD}
        assert all(name.startswith(("tickets/", "landings/")) for name in moved)
        for name in moved & before.keys():
            if name.startswith("tickets/"):
                was = before[name]["ticket"]["state"]  # type: ignore[index]
                assert was == "working" or after[name]["ticket"]["state"] == "done"  # type: ignore[index]
        legion.start()
        project.until_settled()
        states = project.states()
        assert states[first] == "done"
        assert set(states.values()) == {"done"}, "what was on the board is done; what never got there is unknown"
        titles = project.landed_titles()
        assert len(titles) == len(set(titles)), "nothing lands twice"
    finally:
        legion.close()


def test_what_landed_after_the_last_copy_is_done_and_can_be_undone(
    legion: Squad, repository: Repository, tmp_path: Path
):
    project = legion.adopt(repository)
    project.pause()
    ticket = project.dispatch("lands unseen", "echo a > a.txt")
    legion.end()
    shutil.copytree(project.hub / "board", tmp_path / "old")
    legion.start()
    project.resume()
    project.until_settled()
    legion.end()
    shutil.rmtree(project.hub / "board")
    shutil.copytree(tmp_path / "old", project.hub / "board")
    lose(legion)
    assert rebuild(legion)["landed"] == 1
    legion.start()
    assert project.state(ticket) == "done"
    project.resume()
    assert legion.client.undo(ticket).tickets
    project.until_settled()
    assert project.landed("a.txt") is None


def test_a_damaged_file_is_kept_beside_the_new_one(legion: Squad, repository: Repository):
    project = legion.adopt(repository)
    ticket = project.dispatch("lands", "echo a > a.txt")
    project.until_settled()
    assert "already" in refused(legion, "doctor", "--rebuild", "--yes"), "a daemon serves it"
    legion.end()
    assert "is sound" in refused(legion, "doctor", "--rebuild", "--yes"), "a sound database is left alone"
    before = copied(project)
    content = bytearray(legion.data.database.read_bytes())
    content[100:9000] = b"x" * 8900
    legion.data.database.write_bytes(content)
    assert "`legion doctor --rebuild`" in refused(legion, "status")
    asked = legion.cli("doctor", "--rebuild", cwd=legion.folder)
    assert asked.returncode != 0
    assert "events that belong to no ticket" in asked.stderr
    assert legion.data.database.read_bytes() == content, "nothing happens before a yes"
    lose(legion)
    assert "doctor --rebuild" in refused(legion, "status"), "no daemon begins anew where boards are known"
    assert copied(project) == before
    legion.data.database.write_bytes(content)
    kept = Path(str(rebuild(legion)["kept"]))
    assert kept.read_bytes() == content
    assert kept.parent == legion.data.root
    legion.start()
    assert project.state(ticket) == "done"
    assert "board.rebuilt" in [line.kind for line in legion.client.history(project.cwd, last=0).lines]


def test_a_copy_holds_no_secret(legion: Squad, repository: Repository):
    """Keys are files of their own, tokens are hashed and stay behind, and what checks print is not copied."""
    repository.commit("more", {"legion.toml": "[checks.test]\nrun = 'printf sk-%s-check printed'\n"})
    project = legion.adopt(repository)
    key = "sk-ant-planted-5e1f0c7d9b3a4826"
    words = ("provider", "add", "anthropic", "--key-stdin")
    assert legion.cli(*words, cwd=repository.root, stdin=key).returncode == 0
    project.dispatch("lands", "echo a > a.txt; printf sk-%s-agent printed")
    project.until_settled()
    token = legion.data.token.read_text().strip()
    legion.end()
    written = b"".join(BoardRef(project.hub).read().values())
    assert b"lands" in written
    for secret in (key, token, "sk-printed-check", "sk-printed-agent"):
        assert secret.encode() not in written
    found = subprocess.run(
        ["git", f"--git-dir={project.hub}", "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=True,
    )
    assert b'"max_attempts"' not in found.stdout, "agents read the hub's objects, and must not find the board there"
