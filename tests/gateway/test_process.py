"""One gateway per folder: it survives the process that started it, ends in order, and loses little in a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import legion
from legion.gateway import lifecycle
from legion.gateway.accounting.ledger import RequestEntry
from legion.gateway.files.folder import GatewayFolder
from tests.gateway.gateways import eventually, everything, forked, forked_child, running, started
from tests.gateway.upstream import STOP, delta, start, text

SOURCE = str(Path(legion.__file__).parent.parent)


def ended(*words: str) -> subprocess.CompletedProcess[str]:
    """A gateway that does not begin."""
    argv = [sys.executable, "-P", "-m", "legion.gateway", *words]
    return subprocess.run(argv, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, text=True, timeout=60)


def test_however_many_ask_there_is_one_gateway(tmp_path):
    folder = GatewayFolder(tmp_path / "gateway")
    assert lifecycle.address(folder) is None
    assert lifecycle.end(folder) is False
    with forked(), ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: lifecycle.ensure(folder, 0), range(4)))
    try:
        (address,) = found
        assert lifecycle.address(folder) == address
        record = json.loads(folder.record.read_text())
        assert record["version"] == 1
        assert (record["url"], record["pid"], record["release"]) == (address.url, address.pid, legion.__version__)
    finally:
        assert lifecycle.end(folder) is True
    assert lifecycle.address(folder) is None


def test_a_second_gateway_says_that_there_is_one(tmp_path):
    with running(tmp_path / "gateway") as gateway:
        second = ended(str(gateway.folder.root), "--port", "0")
        assert second.returncode == 5
        assert second.stderr == f"Another gateway already serves {gateway.folder.root}: use it, or end it first.\n"
        assert gateway.ask("", b"", path="/health", method="GET")[0] == 200


def test_it_outlives_whoever_started_it(tmp_path):
    code = (
        "import sys; from pathlib import Path; from legion.gateway import lifecycle;"
        "from legion.gateway.files.folder import GatewayFolder;"
        "print(lifecycle.ensure(GatewayFolder(Path(sys.argv[1])), 0).pid)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "gateway")]
    starter = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, check=True, timeout=60
    )
    folder = GatewayFolder(tmp_path / "gateway")
    try:
        address = lifecycle.ensure(folder, 0)
        assert address.pid == int(starter.stdout)
        assert os.getsid(address.pid) == address.pid
    finally:
        lifecycle.end(folder)


def test_a_folder_that_cannot_be_used_is_told_in_one_sentence(tmp_path):
    folder = GatewayFolder(tmp_path / "gateway")
    folder.prepare()
    folder.lock.mkdir()
    started = ended(str(folder.root))
    assert (started.returncode, started.stderr.count("\n")) == (4, 1)
    assert started.stderr.startswith(f"The gateway cannot use {folder.root} (Is a directory)")


def test_a_port_that_is_taken_gives_way_to_the_next(tmp_path, upstream):
    taken = int(upstream.url.rpartition(":")[2])
    folder = GatewayFolder(tmp_path / "gateway")
    with forked():
        found = lifecycle.ensure(folder, taken)
    lifecycle.end(folder)
    assert int(found.url.rpartition(":")[2]) in range(taken + 1, taken + 100)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_gateway_listens_where_agents_knew_the_last_one(tmp_path, how):
    folder = GatewayFolder(tmp_path / "gateway")
    with forked():
        first = lifecycle.ensure(folder, 0)
        os.kill(first.pid, how)
        psutil.wait_procs([psutil.Process(first.pid)] if psutil.pid_exists(first.pid) else [], timeout=60)
        eventually(lambda: lifecycle.address(folder), lambda found: found is None)
        second = lifecycle.ensure(folder, 0)
    try:
        assert second.pid != first.pid
        assert second.url == first.url
    finally:
        lifecycle.end(folder)


def test_it_tells_the_names_of_its_variables_and_nothing_that_they_hold(tmp_path):
    variables = {"ADAS_KEY": "sk-planted", "ADAS_EMPTY": " "}
    with started(tmp_path / "gateway", env=variables) as (gateway, _child):
        found = lifecycle.address(gateway.folder)
        assert found is not None
        assert found.variables & set(variables) == {"ADAS_KEY"}
        assert "sk-planted" not in gateway.folder.record.read_text()


def test_one_that_is_replaced_has_the_new_environment_at_the_old_place(tmp_path, monkeypatch):
    folder = GatewayFolder(tmp_path / "gateway")
    with forked():
        first = lifecycle.ensure(folder, 0)
    monkeypatch.setenv("ADAS_KEY", "sk-planted")
    try:
        with forked(), ThreadPoolExecutor(3) as pool:
            replaced = pool.submit(lifecycle.replace, folder, 0)
            eventually(lambda: lifecycle.address(folder), lambda found: found != first)
            others = [pool.submit(lifecycle.ensure, folder, 0) for _ in range(2)]
            second = replaced.result()
            assert {other.result() for other in others} == {second}
        assert (second.url, second.pid != first.pid) == (first.url, True)
        assert second.variables - first.variables == {"ADAS_KEY"}
    finally:
        lifecycle.end(folder)


def test_a_record_of_a_release_that_told_no_names_is_read(tmp_path):
    with running(tmp_path / "gateway") as gateway:
        facts = json.loads(gateway.folder.record.read_text())
        del facts["variables"]
        gateway.folder.record.write_text(json.dumps(facts))
        found = lifecycle.address(gateway.folder)
        assert found is not None
        assert (found.pid, found.variables) == (gateway.pid, frozenset())


def test_a_kill_costs_at_most_what_ended_in_the_last_second(tmp_path, upstream):
    with forked_child(tmp_path / "gateway") as (gateway, child):
        gateway.provide(upstream.url)
        run, token = gateway.grant()
        for _ in range(20):
            assert gateway.ask(token)[0] == 200
        gateway.entries(run, 20)
        for _ in range(5):
            gateway.ask(token)
        child.kill()
        child.wait(60)
        assert 20 <= len(gateway.entries(run, 20)) <= 25


def test_a_kill_does_not_reset_a_budget(tmp_path, upstream):
    def script(exchange):
        exchange.begin(start(input_tokens=0), delta(output_tokens=100_000), STOP)
        exchange.finish()

    upstream.script = script
    with forked_child(tmp_path / "gateway") as (gateway, child):
        gateway.provide(upstream.url)
        run, token = gateway.grant(budget_usd=1.5)
        assert gateway.ask(token)[0] == 200
        gateway.entries(run, 1)
        child.kill()
        child.wait(60)
    with forked_child(tmp_path / "gateway") as (gateway, child):
        assert gateway.refused(token)[2].startswith("legion: budget reached: 1.50 of 1.50 USD are spent;")


def test_a_stream_that_runs_when_the_gateway_is_asked_to_end_may_end_too(tmp_path, upstream):
    ending = threading.Event()

    def script(exchange):
        exchange.begin(start(input_tokens=10))
        assert ending.wait(60)
        exchange.piece(text("the rest") + delta(output_tokens=20) + STOP)
        exchange.finish()

    upstream.script = script
    with forked_child(tmp_path / "gateway") as (gateway, child):
        gateway.provide(upstream.url)
        run, token = gateway.grant()
        with gateway.asking(token) as answer:
            answer.read1(65536)
            child.send_signal(signal.SIGTERM)
            eventually(lambda: lifecycle.address(gateway.folder), lambda found: found is None)
            ending.set()
            assert answer.read().endswith(STOP)
        assert child.wait(60) == 0
        (entry,) = gateway.lines(run)
        assert isinstance(entry, RequestEntry)
        assert (entry.cut, entry.output, entry.error) == (False, 20, "")


def test_a_stream_that_does_not_end_in_time_is_cut_and_counted(tmp_path, upstream):
    hold = threading.Event()

    def script(exchange):
        exchange.begin(start(input_tokens=10, output_tokens=3))
        hold.wait(60)

    upstream.script = script
    with forked_child(tmp_path / "gateway", "--grace", "0.2") as (gateway, child):
        gateway.provide(upstream.url)
        run, token = gateway.grant()
        with gateway.asking(token) as answer:
            answer.read1(65536)
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
        hold.set()
        (entry,) = [line for line in everything(gateway.folder) if line.run == run]
        assert isinstance(entry, RequestEntry)
        assert (entry.cut, entry.input, entry.output, entry.error) == (True, 10, 3, "gateway_ended")


def test_the_daemon_side_loads_none_of_the_big_libraries():
    names = (
        "files.folder",
        "files.passes",
        "files.address",
        "access.provider",
        "access.routing",
        "accounting.ledger",
        "recording.tape",
        "lifecycle",
    )
    modules = ", ".join(f"legion.gateway.{name}" for name in names)
    big = {"aiohttp", "uvicorn", "orjson", "yarl", "asyncio"}
    code = f"import sys, {modules}; print(*sorted({big} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, check=True, capture_output=True)
    assert loaded.stdout.split() == []


def test_a_gateway_whose_starter_died_meanwhile_does_not_begin(tmp_path: Path):
    reading, writing = os.pipe()
    os.close(reading)
    folder = tmp_path / "gateway"
    argv = [sys.executable, "-P", "-m", "legion.gateway", str(folder), "--port", "0", "--ready", str(writing)]
    env = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run(argv, env=env, pass_fds=(writing,), timeout=60)
    os.close(writing)
    assert done.returncode == 0
    assert not folder.exists()
