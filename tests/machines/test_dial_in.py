"""What a machine may ask of its head: over real TLS, with the machine's own client, and no daemon."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from sqlalchemy import update

from legion import __version__
from legion.daemon.machine_server import MachineListener
from legion.domain.events import EventKind
from legion.domain.machines.machine import PROTOCOL, LeaseTimes, Machine, MachineState, PlacementState
from legion.domain.runs import Run
from legion.git.hub.repository import Hub
from legion.jobs.machine_runs import beats, ends, packs, remote
from legion.jobs.machines.long_polls import BeatFacts
from legion.jobs.machines.part import MachinePart
from legion.jobs.workspace import quota
from legion.jobs.workspace.quota import QuotaExceeded
from legion.machine.link import Fenced, HeadLink, HeadRefused, HeadUnreachable, NotAMachine, OffsetGap, OutOfDate
from legion.machine.membership import join
from legion.machine.mirror import Mirrors
from legion.service.machines import steer
from legion.service.machines.dial_in import DialIn
from legion.store import events
from legion.store.board import projects
from legion.store.database import schema
from legion.store.database.errors import StoreUnreachable
from legion.store.work import machines
from legion.system.crash import Point
from legion.system.paths import DataDir
from legion.wire.machines import MachineJoin, MachineRunEnd, MirrorTarget, RemoveMachine
from tests.machines.heads import EmptyEngine, Head, beat, killed_at


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    yield one
    one.close()


def of(run: Run, what: str) -> str:
    return f"/runs/{run.name}/{run.generation}/{what}"


def put(link: HeadLink, run: Run, file: str, offset: int, piece: bytes, late: str = "") -> int:
    query = {"offset": str(offset), **({"late": "1"} if late else {})}
    return int(link.call("PUT", of(run, file), query=query, body=piece).json()["size"])


def test_an_invitation_works_once_and_in_time_and_no_secret_is_stored(head: Head, tmp_path: Path):
    line = head.line("desk")
    desk = join(tmp_path, line)
    assert join(tmp_path, line) == desk, "a service may pass the line at each start"
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(NotAMachine, match="used already"):
        join(other, line)
    with pytest.raises(NotAMachine, match="older than 15 minutes"):
        join(other, head.line("late", seconds=-1.0))
    code = line.partition("#")[2].partition("/")[0]
    stored = b"".join(file.read_bytes() for file in head.board.data.root.glob("legion.db*"))
    assert code.encode() not in stored
    assert desk.token.encode() not in stored


def test_another_certificate_than_the_invitations_is_refused_before_anything_is_sent(head: Head, tmp_path: Path):
    line = head.line("desk")
    with pytest.raises(NotAMachine, match="another fingerprint"):
        join(tmp_path, line[:-64] + "0" * 64)
    assert join(tmp_path, line).name == "desk", "the code was not used up"


def test_a_token_opens_nothing_but_the_runs_of_its_machine(head: Head):
    desk, lap = head.machine("desk"), head.machine("lap")
    run = head.taken(1, "desk")
    own, other = head.link(desk), head.link(lap)
    assert put(own, run, "output", 0, b"mine") == 4
    for ask in (
        lambda: put(other, run, "output", 4, b"theirs"),
        lambda: other.call("GET", of(run, "pack")),
        lambda: other.call("POST", of(run, "end"), content=asdict(MachineRunEnd())),
        lambda: other.call("POST", of(run, "late"), query={"commit": head.board.base}),
        lambda: other.call("POST", of(run, "gateway/v1/messages")),
    ):
        with pytest.raises(Fenced):
            ask()
    with pytest.raises(HeadRefused, match="given no run"):
        other.call("GET", "/projects/1/pack", query={"commit": head.board.base})
    with pytest.raises(HeadRefused, match="has moved on"):
        own.call("GET", "/projects/1/pack", query={"commit": head.board.change})
    for path in ("/../../v1/status", of(run, "tools/v1/status"), of(run, "result")):
        with pytest.raises(HeadRefused):
            own.call("POST" if "tools" in path else "PUT", path)
    with pytest.raises(HeadRefused, match="full id"):
        own.call("GET", of(run, "pack"), query={"have": "refs/legion/target"})
    stranger = HeadLink(desk.url, authority=desk.authority, token="x" * 43)
    with pytest.raises(NotAMachine):
        stranger.call("POST", "/beat", content=beat())
    stranger.close()


def test_files_arrive_by_offset_and_within_limits(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    assert put(link, run, "journal", 0, b'{"a": 1}\n') == 9
    with pytest.raises(OffsetGap) as gap:
        put(link, run, "journal", 0, b'{"a": 1}\n')
    assert gap.value.size == 9
    assert put(link, run, "journal", 9, b"more") == 13
    piece, size = b"x" * (1 << 20), 0
    for _ in range(4):
        size = put(link, run, "complaints", size, piece)
    with pytest.raises(HeadRefused, match="larger than 4 MB"):
        put(link, run, "complaints", size, b"x")


def late(head: Head, run: Run, change: str) -> None:
    with head.board.store.read() as tx:
        machine = machines.get(tx, "desk")
    ends.accept_late(head.board.context, machine, run=run.name, generation=run.generation, commit=change)


def test_a_snapshot_counts_until_the_run_has_an_end_and_a_full_disk_is_explained(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    change, context = head.board.change, head.board.context
    put(link, run, "pack", 0, pack_of(head, change))
    link.call("POST", of(run, "snapshot"), query={"commit": change})
    saved = remote.saved(context, context.project(1), head.board.tickets[1], run)
    assert (saved and saved.commit, saved and saved.changed) == (change, True)
    assert put(link, run, "pack", 0, b"") == 0, "the next pack starts from the beginning"
    end = MachineRunEnd(saved={"commit": change}, over_quota=[300, 200])
    link.call("POST", of(run, "end"), content=asdict(end))
    assert quota.exceeded(context, run) == QuotaExceeded(bytes=300, limit=200)
    with pytest.raises(Fenced, match="ended"):
        link.call("POST", of(run, "snapshot"), query={"commit": change})


def test_everything_of_an_old_generation_is_refused_and_its_tree_is_kept_as_late_work(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    with pytest.raises(Fenced):
        link.call("PUT", f"/runs/{run.name}/{run.generation + 1}/output", query={"offset": "0"}, body=b"x")
    with pytest.raises(Fenced, match="no late work"):
        link.call("POST", of(run, "late"), query={"commit": head.board.base})
    with head.board.store.write() as tx:
        machines.move(tx, run.id, PlacementState.LAPSED, "its machine was not heard")
    change = head.board.change
    for ask in (
        lambda: put(link, run, "output", 0, b"late words"),
        lambda: link.call("POST", of(run, "end"), content=asdict(MachineRunEnd(saved={"commit": change}))),
    ):
        with pytest.raises(Fenced, match="lapsed"):
            ask()
    put(link, run, "pack", 0, pack_of(head, change), late="yes")
    assert killed_at(Point.MACHINE_LATE_AFTER_KEEP, lambda: late(head, run, change))
    for _ in range(2):
        link.call("POST", of(run, "late"), query={"commit": change})
    with head.board.store.read() as tx:
        warnings = [one for one in events.of_ticket(tx, 1) if one.kind is EventKind.WARNING]
    assert [one.data["commit"] for one in warnings] == [change], "reported once, however often it was sent"
    hub = head.board.context.hub(1)
    assert hub.kept("late") == {f"late/{run.name}/1": change}
    assert not (head.board.data.runs / run.name / "result.json").exists()
    with head.board.store.read() as tx:
        placed = machines.placed(tx, run.id)
    assert placed is not None
    assert placed.state is PlacementState.LAPSED


def test_an_end_is_accepted_once_and_its_repetition_changes_nothing(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    change = head.board.change
    put(link, run, "pack", 0, pack_of(head, change))
    for _ in range(2):
        link.call("POST", of(run, "end"), content=asdict(MachineRunEnd(saved={"commit": change})))
    assert head.board.context.hub(1).kept("wip") == {f"wip/1/{run.id}": change}
    with head.board.store.write() as tx:
        assert not machines.move(tx, run.id, PlacementState.LAPSED), "both ends are final"


def test_hostile_packs_do_not_reach_the_hub(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    git = head.board.repository.git
    unrelated = git("commit-tree", "-m", "unrelated", git("rev-parse", "change^{tree}"))
    blob = git("hash-object", "-w", "README.txt")
    hooks = plumb(head, "mktree", f"100644 blob {blob}\tconfig\n")
    evil_tree = plumb(head, "mktree", f"040000 tree {hooks}\t.git\n")
    evil = git("commit-tree", "-m", "evil", "-p", head.board.base, evil_tree)
    whole = pack_of(head, head.board.change)
    hub = head.board.context.hub(1)
    hostile = {
        "garbage": (b"PACK of lies", head.board.change),
        "cut": (whole[:-25], head.board.change),
        "other-commit": (whole, "f" * 40),
        "not-on-base": (pack_of(head, unrelated), unrelated),
        "dot-git": (pack_of(head, evil), evil),
        "no-id": (whole, "refs/legion/target"),
    }
    for name, (pack, commit) in hostile.items():
        put(link, run, "pack", 0, pack)
        with pytest.raises(HeadRefused):
            link.call("POST", of(run, "end"), content=asdict(MachineRunEnd(saved={"commit": commit})))
        assert hub.kept("wip") == {}, name
        (head.board.data.runs / run.name / "arriving.pack").unlink(missing_ok=True)
    # The hub has the change already, from the person's own branch.
    for object in (unrelated, evil):
        assert hub.resolve(object) is None
    put(link, run, "pack", 0, whole)
    link.call("POST", of(run, "end"), content=asdict(MachineRunEnd(saved={"commit": head.board.change})))
    assert hub.kept("wip") == {f"wip/1/{run.id}": head.board.change}


def test_every_change_of_a_machines_state_is_an_event(head: Head):
    head.link("desk")
    with head.board.store.read() as tx:
        before = events.last(tx)
    steps = (steer.pause, steer.pause, steer.resume, steer.drain)
    for step in steps:
        step(head.board.context, "desk")
    steer.remove(head.board.context, "desk", RemoveMachine())
    with head.board.store.read() as tx:
        found = [event for event in events.after(tx, before) if event.kind is EventKind.MACHINE_STATE]
    assert [(event.data["machine"], event.data["from"], event.data["to"]) for event in found] == [
        ("desk", "active", "paused"),
        ("desk", "paused", "active"),
        ("desk", "active", "draining"),
        ("desk", "draining", "removed"),
    ]


def test_a_removed_machine_is_out_while_it_waits(head: Head):
    link = head.link("desk")
    refused = threading.Event()

    def wait() -> None:
        try:
            link.call("POST", "/beat", content=beat(wait=25.0))
        except NotAMachine:
            refused.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    with head.board.store.commits() as committed:
        committed.wait(0.5)
    with head.board.store.write() as tx:
        machines.set_state(tx, "desk", MachineState.REMOVED)
    waiting.join(10.0)
    assert refused.is_set()


def test_a_machine_fetches_a_moved_target_before_a_job_needs_it(head: Head):
    desk = head.machine("desk")
    link = head.link(desk)
    job = packs.job_of(head.board.context, head.taken(1, "desk").name)
    (head.folder / "machine-desk" / "runs" / job.run.name).mkdir(parents=True)
    mirrors = Mirrors(DataDir(head.folder / "machine-desk"), link)
    mirrors.prepare(job)
    known = [MirrorTarget(project=project, commit=commit) for project, commit in mirrors.targets().items()]
    assert known == [MirrorTarget(project=1, commit=head.board.base)]
    answers = []
    wanted = {**beat(wait=25.0), "targets": [asdict(one) for one in known], "mirrors": [1]}
    waiting = threading.Thread(target=lambda: answers.append(link.call("POST", "/beat", content=wanted).json()))
    waiting.start()
    with head.board.store.write() as tx:
        projects.save(tx, replace(projects.get(tx, 1), target=head.board.change))
    waiting.join(10.0)
    assert answers[0]["targets"] == [{"project": 1, "commit": head.board.change}]
    mirrors.follow(1, head.board.change)
    with head.board.store.write() as tx:
        machines.set_state(tx, "desk", MachineState.REMOVED)
    # No request is left to make: the head answers none of this machine's.
    mirrors.prepare(replace(job, base=head.board.change, target=head.board.change))
    hub = Hub(head.folder / "machine-desk" / "projects" / "1" / "hub.git")
    assert hub.target() == head.board.change
    assert list(hub.kept("mirror").values()) == [head.board.change], "the target stands for what it contains"
    again = Mirrors(DataDir(head.folder / "machine-desk"), link)
    again.prepare(job)


@pytest.mark.parametrize("apart", [-2, 2], ids=["too-old", "too-new"])
def test_a_release_that_is_too_far_apart_keeps_its_lease_and_gets_the_update_to_make(head: Head, apart: int):
    link = head.link("desk")

    def notice(protocol: int) -> str:
        return str(link.call("POST", "/beat", content=beat(protocol=protocol)).json()["notice"])

    assert "update" in notice(PROTOCOL + apart)
    with head.board.store.read() as tx:
        assert machines.get(tx, "desk").protocol == PROTOCOL + apart
    assert notice(PROTOCOL + apart // 2) == ""


def test_only_a_beat_after_which_more_fits_on_the_machine_wakes_the_scheduler(head: Head):
    """A ticket that no machine takes is parked until then."""
    link = head.link("desk")

    def wakes(content: dict[str, object]) -> bool:
        with head.board.store.commits() as committed:
            link.call("POST", "/beat", content=content)
        return committed.is_set()

    assert not wakes(beat())
    assert [wakes(beat(protocol=PROTOCOL + one)) for one in (2, 2, 0, 0)] == [True, False, True, False]
    assert [wakes({**beat(), "toolchain": one}) for one in ("new", "new", None)] == [True, False, False]
    with head.board.store.write() as tx:
        tx.execute(update(schema.machines).values(heard_at=tx.now - LeaseTimes().quiet))
    assert [wakes(beat()), wakes(beat())] == [True, False], "it was silent"


@pytest.mark.parametrize("apart", [-2, 2], ids=["too-old", "too-new"])
def test_a_release_that_is_too_far_apart_cannot_join(head: Head, apart: int):
    code = head.line("desk").partition("#")[2].partition("/")[0]
    wanted = MachineJoin(code=code, version=__version__, protocol=PROTOCOL + apart, boot="b")
    with pytest.raises(OutOfDate, match="update"):
        head.link("other").call("POST", "/join", content=asdict(wanted))
    with head.board.store.read() as tx:
        assert machines.find(tx, "desk") is None


def plumb(head: Head, *words: str) -> str:
    """git with a text on stdin, in the person's repository."""
    *command, text = words
    argv = ["git", "-C", str(head.board.repository.root), *command]
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=True).stdout.strip()


def pack_of(head: Head, commit: str) -> bytes:
    argv = ["git", "-C", str(head.board.repository.root), "pack-objects", "--revs", "--thin", "--stdout", "-q"]
    known = f"{commit}\n^{head.board.base}\n".encode()
    return subprocess.run(argv, input=known, capture_output=True, check=True).stdout


def test_a_job_whose_answer_was_lost_is_sent_again_to_the_same_process_only(head: Head):
    """A copy of the machine's folder has the same token: it must not start what the first may still work on."""
    link = head.link("desk")
    run = head.taken(1, "desk")
    with head.board.store.write() as tx:
        machines.take(tx, run.id, "first")

    def jobs(worker: str, running: list[dict[str, object]]) -> list[str]:
        content = {**beat(), "worker": worker, "running": running}
        answer = link.call("POST", "/beat", content=content).json()
        assert answer["stop"] == []
        return [job["run"]["conversation"] for job in answer["jobs"]]

    assert jobs("first", []) == [run.conversation]
    assert jobs("copy", []) == []
    assert jobs("first", [{"run": run.name, "generation": run.generation}]) == []
    with head.board.store.read() as reading:
        placed = machines.placed(reading, run.id)
    assert placed is not None
    assert placed.beats == 1, "only a beat that names the run renews its lease"


def test_a_run_that_ended_while_a_beat_waits_has_left_its_slot(head: Head):
    link = head.link("desk")
    run = head.taken(1, "desk")
    engine = EmptyEngine()
    context = replace(head.board.context, machines=MachinePart(engine=engine))
    facts = BeatFacts(
        boot="b",
        worker="w",
        version=__version__,
        protocol=PROTOCOL,
        running=frozenset({(run.name, run.generation)}),
        mirrors=frozenset(),
        acks=frozenset(),
        free=9,
        toolchain=None,
    )
    with head.board.store.read() as tx:
        desk = machines.get(tx, "desk")
    beats.answer(context, desk, facts)
    link.call("POST", of(run, "end"), content=asdict(MachineRunEnd(failed="no program")))
    answer = beats.answer(context, desk, facts)
    assert engine.rooms == [1, 2]
    assert answer.stop == (), "its report was accepted: there is nothing to end"


class CutOffDialIn(DialIn):
    """A head whose database does not answer."""

    def machine(self, token: str) -> Machine:
        raise StoreUnreachable("The database postgresql://legion@secret-host/board does not answer.")


def test_a_database_that_does_not_answer_is_not_named_to_machines(head: Head):
    desk = head.machine("desk")
    listener = MachineListener(head.board.data, CutOffDialIn(head.board.context))
    link = HeadLink(listener.open("127.0.0.1", 0), authority=desk.authority, token=desk.token)
    with pytest.raises(HeadUnreachable, match="cannot answer now") as away:
        link.call("POST", "/beat", content=beat())
    assert "secret-host" not in away.value.message
    link.close()
    listener.stop()


def test_a_connection_that_the_head_closed_while_idle_costs_no_beat(head: Head):
    link = head.link("desk")
    link.call("POST", "/beat", content=beat())
    (idle,) = link._open
    # As the machine finds it after the head's patience with idle connections.
    idle.sock.shutdown(socket.SHUT_RDWR)
    assert link.call("POST", "/beat", content=beat()).json()["jobs"] == []
