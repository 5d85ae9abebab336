"""Containers of podman as sandboxes: they hold what bubblewrap holds, and none is left behind."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
from pathlib import Path

import pytest

from legion.domain.egress import EgressMode, EgressPolicy
from legion.drivers import EndKind, Program
from legion.runner import etc, launch
from legion.runner.bridge import NetworkBridge
from legion.runner.container import ContainerPlace, command
from legion.runner.egress import UpstreamProxy, variables
from legion.runner.journal import JournalKind, read_journal
from legion.runner.launch import LostRun
from legion.runner.probe import probe
from legion.runner.sandbox import Sandbox, SandboxNetwork
from tests.runner.runs import ENV, Workbench, within
from tests.runner.test_bridge import serving
from tests.runner.test_sandbox import HOME

HOSTILE = ["a,b", 'say "hi"', "two words", "co:lon", "line\nbreak", "ümlaut", "=,ro=false"]


@pytest.fixture
def contained(sandboxed: Workbench) -> Workbench:
    state = probe("")
    if not state.works:
        pytest.skip(f"no container can be started here: {state.why}")
    return sandboxed


def box(bench: Workbench, **more: object) -> Sandbox:
    facts = {"home": HOME, "writable": (bench.worktree,), "network": SandboxNetwork.NONE, "image": ""}
    return Sandbox(**{**facts, "etc": etc.sync(bench.root / "etc"), **more})  # type: ignore[arg-type]


def started(bench: Workbench, script: str, sandbox: Sandbox) -> Path:
    env = {**ENV, "LEGION_SECRET": "two\nlines", **variables()}
    return bench.start([], program=Program(argv=("sh", "-c", script), cwd=bench.worktree, env=env), sandbox=sandbox)


def left(bench: Workbench) -> list[str]:
    """The containers of its runs that podman still knows."""
    made = [path.read_text() for path in bench.root.glob("runs/*/container")]
    assert made
    words = ["podman", "ps", "--all", "--quiet", "--no-trunc"]
    known = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return [one for one in made if one in known]


@pytest.mark.parametrize("odd", HOSTILE)
def test_no_path_is_read_as_an_option(odd: str):
    """As podman reads a mount: one line of comma-separated values."""
    binds = (("--ro-bind", f"/srv/{odd}", f"/data/{odd}"), ("--bind", "/a", "/a"))
    place = ContainerPlace(image="base", networked=False, tmp_bytes=1, empty=("/tmp",), binds=binds)
    argv, _ = command(["true"], place, cwd=Path("/"), env={}, folder=None, terminal=False)
    mounts = [
        next(csv.reader(io.StringIO(argv[n + 1], newline=""))) for n, word in enumerate(argv) if word == "--mount"
    ]
    own = ["type=bind", f"src=/srv/{odd}", f"dst=/data/{odd}", "ro=true", "bind-propagation=private"]
    assert mounts[0] == own
    assert "ro=true" not in mounts[1]


def test_it_holds_what_bubblewrap_holds(contained: Workbench):
    (contained.root / "secret.txt").write_text("secret\n")
    script = (
        "echo mine > made.txt; touch /usr/mine /mine 2>/dev/null || echo closed; ls /sys/class/net;"
        f"cat {contained.root}/secret.txt 2>/dev/null || echo hidden; ls -A {HOME}; grep CapEff /proc/self/status;"
        'grep NoNewPrivs /proc/self/status; echo "$LEGION_SECRET"; mount -t tmpfs none /mnt 2>/dev/null || echo stays;'
        "exit 7"
    )
    run = started(contained, script, box(contained))
    assert contained.result(run).exit_code == 7
    said = contained.output(run).split("\n")
    assert said[:4] == ["closed", "lo", "hidden", "CapEff:\t0000000000000000"]
    assert said[4:] == ["NoNewPrivs:\t1", "two", "lines", "stays", ""]
    assert (contained.worktree / "made.txt").read_text() == "mine\n"
    assert left(contained) == []


def test_the_bridge_is_its_only_way_out(contained: Workbench):
    with serving() as open_port, serving() as other:
        ports = ((open_port, "open"), (other, "other"))
        script = "".join(
            f"curl -s --noproxy '*' http://127.0.0.1:{port}/{name} || echo no {name};" for port, name in ports
        )
        script += "curl -s http://10.0.0.1/; getent hosts files.example.org > /dev/null && echo named"
        public = EgressPolicy(mode=EgressMode.PUBLIC)
        bridge = NetworkBridge(egress=public, upstream=UpstreamProxy(), forwards=(open_port,))
        run = started(contained, script, box(contained, bridge=bridge))
        contained.result(run)
        said = contained.output(run).splitlines()
    assert said[:2] == [f"/open 127.0.0.1:{open_port} -", "no other"]
    assert said[2].startswith("Legion: 10.0.0.1:80 is an address and no name.")
    assert said[3:] == ["named"]


def test_a_program_is_interrupted_and_ends(contained: Workbench):
    pipe = contained.pipe("ready")
    script = "trap 'echo interrupted; exit 3' INT; echo go > ready; while :; do sleep 0.1; done"
    run = started(contained, script, box(contained))
    assert pipe.line() == "go"
    assert launch.stop(run)
    assert contained.result(run).outcome is EndKind.STOPPED
    assert contained.output(run) == "interrupted\n"
    assert left(contained) == []


def test_no_container_stays_behind_a_killed_runner(contained: Workbench):
    pipe = contained.pipe("ready")
    run = started(contained, "echo go > ready; while :; do sleep 0.1; done", box(contained))
    assert pipe.line() == "go"
    (runner,) = [one.facts["runner"] for one in read_journal(run) if one.kind == JournalKind.OPENED.value]
    assert isinstance(runner, int)
    os.kill(runner, signal.SIGKILL)
    assert within(lambda: launch.wait(run)) == LostRun()
    assert left(contained) == []


def test_what_cannot_start_says_why(contained: Workbench):
    missing = box(contained, readable=(contained.root / "there",), replaced=((Path("/opt/x"), contained.root / "no"),))
    result = contained.result(started(contained, "true", missing))
    assert result.outcome is EndKind.FAILED_TO_START
    assert "podman could not start a container" in result.message
