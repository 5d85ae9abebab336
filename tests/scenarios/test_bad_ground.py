"""The ground gives way: full and read-only disks, a busy port, a second daemon, an older or newer database."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from legion.wire.dispatch import NewTicket
from tests.service.test_bad_input import assert_one_sentence
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new, squad
from tests.support.looking import until_seen
from tests.support.repository import Repository

NOT_ALLOWED, CONFLICT, FAILED = 4, 5, 1


@contextlib.contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own at this place; only root can have one."""
    place.mkdir(exist_ok=True)
    options = f"size={megabytes}m,mode=0700"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> Path:
    """Use up all the room. Returns the file to delete."""
    filler = disk / "filler"
    handle = os.open(filler, os.O_WRONLY | os.O_CREAT)
    for piece in (b"x" * (1 << 16), b"x"):
        with contextlib.suppress(OSError):
            while True:
                os.write(handle, piece)
    os.close(handle)
    return filler


def test_a_full_disk_under_the_worktrees_is_said_loses_nothing_and_work_goes_on_when_there_is_room(tmp_path: Path):
    with small_disk(tmp_path / "disk", 64) as disk, squad(tmp_path) as legion:
        project = legion.adopt(Repository(disk / "ada"))
        first = project.dispatch("first", "echo 1 > a.txt")
        project.until(first, "done")
        filler = fill(disk)
        tickets = project.dispatch_all([big(n) for n in range(3)])
        full = f"the disk that holds {disk}/ada-legion is full; free some space"
        until_seen(legion, lambda: full in said(project), full)
        filler.unlink()
        project.until_settled(*tickets)
        assert {project.state(ticket) for ticket in tickets} == {"done"}
        assert [project.landed(f"{n}.txt") for n in range(3)] == [f"{n}\n" for n in range(3)]


def big(n: int) -> NewTicket:
    return new(f"big {n}", f"echo {n} > {n}.txt && dd if=/dev/zero of=ballast.{n} bs=1M count=4 && rm ballast.{n}")


def said(project: Project) -> str:
    """What `legion status` says about what the tickets are doing."""
    return "\n".join(line.doing for line in project.squad.client.status(project.cwd).tickets)


def test_a_full_disk_under_the_data_folder_is_said_loses_nothing_and_work_goes_on_when_there_is_room(tmp_path: Path):
    (tmp_path / "gates").mkdir()
    settings = f'[sandbox]\nwrite = ["{tmp_path}/gates"]\n[environment]\nfree_mb = 0\n'
    with small_disk(tmp_path / "data", 64) as disk, squad(tmp_path, settings=settings) as legion:
        project = legion.adopt(Repository(tmp_path / "ada"))
        gate = Gate(tmp_path / "gates", "gate")
        running = project.dispatch("running", f"{gate.pause}; echo 1 > a.txt")
        gate.arrived()
        filler = fill(disk)
        gate.open()
        assert_one_sentence(
            legion.cli("dispatch", "-t", "t", "--command", "true", "x" * 100_000, cwd=project.repository.root),
            75,
            "is full: free some space",
        )
        filler.unlink()
        project.until_settled()
        page = project.ticket(running)
        assert (page.ticket.state, len(page.runs)) == ("done", 1)
        assert project.landed("a.txt") == "1\n"
        assert list(project.states()) == [running]
        gate.close()


@contextlib.contextmanager
def read_only(place: Path) -> Iterator[Path]:
    """A folder that not even root can write."""
    subprocess.run(["mount", "--bind", place, place], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a read-only folder")


@needs_root
def test_a_data_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "data").mkdir()
    with read_only(tmp_path / "data"):
        said = Squad(tmp_path).cli("up", cwd=tmp_path)
        assert_one_sentence(said, NOT_ALLOWED, "cannot use")
        assert "--data-dir" in said.stderr


@needs_root
def test_a_repository_whose_folder_cannot_be_written_is_said_and_not_added(house: Squad, tmp_path: Path):
    (tmp_path / "disk").mkdir()
    repository = Repository(tmp_path / "disk/ada")
    with read_only(tmp_path / "disk"):
        said = house.cli("init", cwd=repository.root)
        assert_one_sentence(said, NOT_ALLOWED, "set another `folder` under [worktrees] in your settings")
    assert house.client.status(str(repository.root)).project is None


@needs_root
def test_legion_toml_that_cannot_be_written_is_said_and_the_repository_not_added(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.git("rm", "-q", "legion.toml")
    repository.commit("no config", {})
    with read_only(repository.root):
        assert_one_sentence(
            house.cli("init", cwd=repository.root), NOT_ALLOWED, "make the folder writable and try again"
        )
    assert house.client.status(str(repository.root)).project is None


def test_a_busy_port_gives_the_next_free_one_which_is_recorded(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = Squad(tmp_path, settings=f"[daemon]\nport = {port}\n")
        try:
            one.start(port=None)
            status = json.loads(one.cli("status", "--json", cwd=tmp_path).stdout)
            used = int(status["daemon"]["url"].rsplit(":", 1)[1])
            assert port < used < port + 100
            assert json.loads(one.data.daemon_record.read_text())["url"] == status["daemon"]["url"]
        finally:
            assert one.cli("down", cwd=tmp_path).returncode == 0
        assert not one.data.daemon_record.exists()
        assert psutil.wait_procs(one.processes(), timeout=30)[1] == []


def test_a_second_daemon_on_the_same_folder_says_so_and_leaves_the_first_alone(house: Squad, tmp_path: Path):
    said = house.cli("serve", "--port", "0", cwd=tmp_path)
    assert_one_sentence(said, CONFLICT, "Another Legion daemon already serves")
    assert house.client.healthy()


def test_a_database_of_a_newer_legion_is_refused_and_left_alone(tmp_path: Path):
    one = Squad(tmp_path)
    with one_daemon(one):
        pass
    with contextlib.closing(sqlite3.connect(one.data.database)) as database:
        database.execute("INSERT INTO schema_version VALUES (999, 'from the future', 0)")
        database.commit()
    before = one.data.database.read_bytes()
    said = one.cli("status", cwd=tmp_path)
    assert_one_sentence(said, FAILED, "was written by a newer Legion (schema 999")
    assert "update Legion" in said.stderr
    assert one.data.database.read_bytes() == before
    assert not one.data.socket.exists()


@contextlib.contextmanager
def one_daemon(one: Squad) -> Iterator[Squad]:
    try:
        yield one.start()
    finally:
        one.end()


def test_an_empty_database_file_is_filled_and_a_damaged_one_is_said(tmp_path: Path):
    one = Squad(tmp_path)
    one.data.prepare()
    one.data.database.touch()
    with one_daemon(one):
        assert one.client.status(None).counts == {}
    one.data.database.write_bytes(b"not a database at all, not at all\n" * 100)
    said = one.cli("serve", cwd=tmp_path)
    (sentence,) = said.stderr.splitlines()
    assert said.returncode == FAILED
    assert "is damaged or no database" in sentence


def test_settings_with_a_mistake_are_said_with_file_and_line(tmp_path: Path):
    one = Squad(tmp_path, settings="[daemon]\nprot = 1\n[protection]\ntrial = false\n")
    said = one.cli("serve", cwd=tmp_path)
    assert said.returncode != 0
    assert f"In {one.settings}, line 2, `daemon.prot` is not a setting" in said.stderr
