"""What must hold after any crash, each as a function whose name says it, about the real store, hub and folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from legion.config.files.project import parse
from legion.domain.agents.teams import RolePart
from legion.domain.checks import CheckResult
from legion.domain.landing.queue import LandingIntent
from legion.domain.projects import Project
from legion.domain.review.verdicts import ReviewRequest, Ruling
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ticket import State, Ticket
from legion.runner.journal import JournalKind, read_journal
from legion.store.board import landings, projects, receipts, tickets, verdicts
from legion.store.database.transactions import Store
from legion.store.work import claims, runs, usage
from legion.system import files
from legion.system.paths import DataDir

PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where to look: one data folder with one project, whatever worked on it."""

    data: DataDir
    url: str
    repository: Path
    worktrees: Path
    shared: Path
    first_target: str
    """The commit that the target began with."""
    lost_allowed: bool = False
    """Whether a runner was among the killed, so that runs may be lost and begun again."""
    hub: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hub", self.data.project(1) / "hub.git")

    def git(self, *words: str, git_dir: Path | None = None) -> str:
        command = ["git", f"--git-dir={git_dir or self.hub}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def told(self) -> Told:
        store = Store(self.url)
        try:
            with store.read() as tx:
                known = tickets.get_many(tx, tickets.edges(tx, 1))
                counted, spent = tickets.counts(tx, 1), usage.of_project(tx, 1)
                assert counted == Counter(ticket.state for ticket in known)
                assert abs(spent.usd - sum(one.usage.usd for one in usage.spending(tx, 1))) < 1e-6
                history = landings.history(tx, 1, 10_000)[::-1]
                return Told(
                    project=projects.get(tx, 1),
                    tickets=known,
                    runs=tuple(run for ticket in known for run in runs.of_ticket(tx, ticket.id)),
                    readings=tuple(one for ticket in known for one in verdicts.of_ticket(tx, ticket.id)),
                    landings=history,
                    green={
                        landing.commit: {
                            receipt.command
                            for receipt in receipts.for_tree(tx, 1, landing.tree)
                            if receipt.verdict is CheckResult.GREEN
                        }
                        for landing in history
                    },
                    jobs=len(claims.active(tx)),
                )
        finally:
            store.close()


Invariant = Callable[[Scene, "Told"], None]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the store says."""

    project: Project
    tickets: tuple[Ticket, ...]
    runs: tuple[Run, ...]
    readings: tuple[ReviewRequest, ...]
    landings: tuple[LandingIntent, ...]
    green: dict[str, set[str]]
    """The commands with a green receipt for the tree of each landing's commit."""
    jobs: int


def check(scene: Scene, invariants: Sequence[Invariant] | None = None) -> None:
    told = scene.told()
    for invariant in invariants or INVARIANTS:
        invariant(scene, told)


def every_ticket_is_done(scene: Scene, told: Told) -> None:
    assert told.tickets
    states = {ticket.id: (ticket.state.value, ticket.reason) for ticket in told.tickets}
    assert all(ticket.state is State.DONE for ticket in told.tickets), states


def nothing_is_left_in_hand(scene: Scene, told: Told) -> None:
    assert [run for run in told.runs if run.ended_at is None] == []
    assert [landing for landing in told.landings if landing.closed_at is None] == []


def each_change_is_in_the_target_exactly_once(scene: Scene, told: Told) -> None:
    trailer = "%(trailers:key=Ticket,valueonly,separator=%x20)"
    log = scene.git("log", "--first-parent", f"--format={trailer}", "refs/legion/target")
    landed = Counter(int(number) for line in log.splitlines() for number in line.split())
    expected = {ticket.id: 1 for ticket in told.tickets if not ticket.spec.checkpoint}
    assert landed == expected
    members = Counter(number for landing in told.landings if landing.landed for number in landing.tickets)
    assert members == expected


def the_target_only_ever_moved_to_tested_commits(scene: Scene, told: Told) -> None:
    at = scene.first_target
    proofs = {ticket.id: set(ticket.spec.proofs) for ticket in told.tickets}
    checks = {check.command for check in parse(told.project.config_text).checks}
    for landing in told.landings:
        if not landing.landed:
            continue
        assert landing.base == at, "every landing begins where the last one ended"
        assert scene.git("rev-parse", f"{landing.commit}^{{tree}}").strip() == landing.tree
        wanted = checks.union(*(proofs[number] for number in landing.tickets))
        assert wanted <= told.green[landing.commit], f"landing {landing.id} lacks receipts"
        at = landing.commit
    assert scene.git("rev-parse", "refs/legion/target").strip() == at == told.project.target


def every_agent_was_started_once_per_run(scene: Scene, told: Told) -> None:
    lines = (scene.shared / "starts").read_text().splitlines()
    started = Counter(line.split()[0] for line in lines)
    assert set(started.values()) == {1}, started
    known = {run.name: run for run in told.runs}
    assert set(started) <= set(known), "only runs that the store knows were started"
    not_started = [run for name, run in known.items() if name not in started]
    cut_off = (Outcome.LOST, Outcome.STOPPED, Outcome.FAILED)
    assert all(run.outcome in cut_off for run in not_started), not_started


def no_run_was_lost_while_its_runner_lived(scene: Scene, told: Told) -> None:
    lost = [run for run in told.runs if run.outcome is Outcome.LOST]
    assert scene.lost_allowed or not lost, lost
    attempts = Counter((run.ticket, run.attempt, run.role) for run in told.runs)
    assert scene.lost_allowed or set(attempts.values()) == {1}, attempts


def what_each_run_left_is_kept_in_the_hub(scene: Scene, told: Told) -> None:
    refs = scene.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    kept = dict(line.split() for line in refs)
    for run in told.runs:
        if run.part is RolePart.READ:
            assert run.saved is None, "what a reader writes is nobody's"
            continue
        assert run.saved is not None, run
        assert kept[f"refs/legion/wip/{run.ticket}/{run.id}"] == run.saved


def each_change_was_judged_once_by_its_reader(scene: Scene, told: Told) -> None:
    given = Counter((one.ticket, one.attempt) for one in told.readings)
    assert set(given.values()) <= {1}, given
    assert all(one.verdict is not None and one.verdict.ruling is Ruling.APPROVE for one in told.readings)


def no_file_is_gone(scene: Scene, told: Told) -> None:
    """Each agent left a file that git ignores, named after its run. It lies in its worktree or in the trash."""
    started = {line.split()[0] for line in (scene.shared / "starts").read_text().splitlines()}
    found = {path.stem for path in scene.worktrees.rglob("*.ignored") if path.read_text().strip() == path.stem}
    assert started <= found
    assert not scene.git("ls-tree", "-r", "--name-only", "refs/legion/target", "--", "*.ignored")


def no_worktree_is_left_over(scene: Scene, told: Told) -> None:
    assert {place.name for place in scene.worktrees.iterdir()} <= {".owner", ".pool", ".making", ".trash"}
    assert list((scene.worktrees / ".making").iterdir()) == []


def no_job_is_claimed(scene: Scene, told: Told) -> None:
    assert told.jobs == 0


def no_record_is_left_over(scene: Scene, told: Told) -> None:
    """A git that outlives its daemon may write what the next one has just swept."""
    pool = {place.name for place in (scene.worktrees / ".pool").iterdir()}
    records = {place.name for place in (scene.data.project(1) / "pool").iterdir()}
    assert records == {f"{name}.{kind}" for name in pool for kind in ("json", "index")}


def no_process_is_left_over(scene: Scene, told: Told) -> None:
    wait_until_gone(processes_of(scene.data.root.parent, scene.data))


def all_locks_are_free(scene: Scene, told: Told) -> None:
    assert not files.is_locked(scene.data.daemon_lock)
    held = [run for run in scene.data.runs.iterdir() if (run / "lock").exists() and files.is_locked(run / "lock")]
    assert held == []
    # Nobody writes again in a copy of the board that was set aside, nor in the quarantine of a reader that was killed.
    at_rest = ("/board-before-", "/incoming/")
    assert [lock for lock in scene.hub.rglob("*.lock") if not any(part in str(lock) for part in at_rest)] == []


def the_hub_is_sound(scene: Scene, told: Told) -> None:
    scene.git("fsck", "--full", "--strict", "--no-dangling")


def the_persons_branch_has_it_all_and_a_clean_checkout(scene: Scene, told: Told) -> None:
    git_dir = scene.repository / ".git"
    assert scene.git("rev-parse", "HEAD", git_dir=git_dir).strip() == told.project.target
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=scene.repository, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


INVARIANTS: Sequence[Invariant] = (
    every_ticket_is_done,
    nothing_is_left_in_hand,
    each_change_is_in_the_target_exactly_once,
    the_target_only_ever_moved_to_tested_commits,
    every_agent_was_started_once_per_run,
    no_run_was_lost_while_its_runner_lived,
    what_each_run_left_is_kept_in_the_hub,
    each_change_was_judged_once_by_its_reader,
    no_file_is_gone,
    no_process_is_left_over,
    all_locks_are_free,
    the_hub_is_sound,
    the_persons_branch_has_it_all_and_a_clean_checkout,
)
AFTER_TIDYING: Sequence[Invariant] = (*INVARIANTS, no_worktree_is_left_over)
AFTER_A_QUIET_LIFE: Sequence[Invariant] = (*AFTER_TIDYING, no_job_is_claimed, no_record_is_left_over)
"""An end may cut off the last job just as it gives its claim back; the next start puts that right."""


def processes_of(folder: Path, data: DataDir) -> list[psutil.Process]:
    """Whatever names the folder, and the runners, which do not: their journals know them."""
    runners = {
        event.facts["runner"]
        for run in data.runs.iterdir()
        for event in read_journal(run)
        if event.kind == JournalKind.OPENED.value
    }
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            is_runner = process.pid in runners and "legion.runner.forkserver" in words
            if process.pid != os.getpid() and (is_runner or any(str(folder) in word for word in words)):
                found.append(process)
    return found


def wait_until_gone(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            words = process.cmdline()
            handle = os.pidfd_open(process.pid)
            try:
                ready, _, _ = select.select([handle], [], [], PATIENCE)
                assert ready, f"{process.pid} is left over: {words[:1]} ... {words[-3:]}"
            finally:
                os.close(handle)


def fingerprint(scene: Scene) -> str:
    """Everything that a restart could change and must not, once all is done."""
    told = scene.told()
    digest = hashlib.sha256(repr((told.project, told.tickets, told.runs, told.landings)).encode())
    digest.update(scene.git("for-each-ref").encode())
    for place in sorted(scene.worktrees.rglob("*")):
        digest.update(f"{place}\0{place.lstat().st_mode}".encode())
        if place.is_file() and not place.is_symlink():
            digest.update(place.read_bytes())
    return digest.hexdigest()
