"""The sandbox: what is inside, what is not, and whether it holds here."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from legion.drivers import Program
from legion.runner.probe import SandboxKind, probe
from legion.runner.sandbox import Sandbox, SandboxNetwork, wrap
from tests.runner.runs import ENV, Workbench

HOME = Path("/home/ada")


def inside(bench: Workbench, script: str, sandbox: Sandbox, **env: str) -> list[str]:
    program = Program(argv=("sh", "-c", script), cwd=bench.worktree, env={**ENV, **env})
    run = bench.start([], program=program, sandbox=sandbox)
    bench.result(run)
    return bench.output(run).splitlines()


def test_only_listed_folders_exist_inside(sandboxed: Workbench):
    (sandboxed.root / "secret").write_text("x")
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    parents = [path for path in (*sandboxed.worktree.parents, HOME) if path != Path("/")]
    top = {path.parts[1] for path in parents}
    system = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "proc", "run", "sbin", "tmp", "usr", "var"}
    assert set(inside(sandboxed, "ls /", sandbox)) <= system | top
    assert inside(sandboxed, f"ls {sandboxed.root}", sandbox) == ["worktree"]
    assert inside(sandboxed, f"ls -A {HOME} /tmp/../run /var/tmp | grep -v :", sandbox) == [""] * 2


def test_what_is_listed_is_readable_or_writable_and_the_deeper_folder_wins(sandboxed: Workbench):
    root = sandboxed.root
    for name in ("tools/bin", "tools/cache", "worktree/.frozen"):
        (root / name).mkdir(parents=True)
        (root / name / "file").write_text("old\n")
    (root / "versions/of/it").mkdir(parents=True)
    (root / "versions/of/it/program").write_text("linked\n")
    link = root / "tools/bin/program"
    link.symlink_to(root / "versions/of/it/program")
    sandbox = Sandbox(
        home=HOME,
        writable=(root / "tools/cache", root / "worktree"),
        readable=(root / "worktree/.frozen", root / "tools", root / "missing", link, link.resolve()),
    )
    assert inside(sandboxed, f"cat {link}", sandbox) == ["linked"]
    script = f"cd {root}; for place in tools/bin tools/cache worktree worktree/.frozen; do echo new > $place/file; done"
    assert len(inside(sandboxed, script + " 2>/dev/null; cat tools/*/file worktree/.frozen/file", sandbox)) == 3
    kept = {
        name: (root / name / "file").read_text().strip() for name in ("tools/bin", "tools/cache", "worktree/.frozen")
    }
    assert kept == {"tools/bin": "old", "tools/cache": "new", "worktree/.frozen": "old"}
    assert (root / "worktree/file").read_text() == "new\n"


def test_the_system_is_read_only_and_the_private_places_are_not(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    places = f"/ /usr /etc /proc /dev /tmp /var/tmp /run /dev/shm {HOME} ."
    script = f"for place in {places}; do touch $place/x 2>/dev/null && echo $place; done"
    assert set(inside(sandboxed, script, sandbox)) - {"/dev"} == {
        "/tmp",
        "/var/tmp",
        "/run",
        "/dev/shm",
        str(HOME),
        ".",
    }
    assert not Path("/tmp/x").exists()


def test_the_private_places_hold_no_more_than_they_may(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), tmp_bytes=1 << 20)
    for place in ("/tmp", "/dev/shm", str(HOME)):
        assert "No space left" in inside(sandboxed, f"head -c 2M /dev/zero 2>&1 >{place}/big", sandbox)[-1]


def test_private_keys_of_the_machine_are_not_inside(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    names = inside(sandboxed, "ls /etc /etc/ssl 2>/dev/null", sandbox)
    assert "passwd" in names
    assert not {"shadow", "gshadow", "ssh", "sudoers", "private"} & set(names)


def test_a_network_of_its_own_reaches_nobody(sandboxed: Workbench):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached || echo alone"
        for network, answer in ((SandboxNetwork.OPEN, "reached"), (SandboxNetwork.NONE, "alone")):
            sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), network=network)
            assert inside(sandboxed, script, sandbox) == [answer]


def test_what_steers_the_loader_reaches_the_program_but_not_bubblewrap():
    env = {"PATH": "/usr/bin", "LD_PRELOAD": "/worktree/evil.so", "LD_LIBRARY_PATH": "/worktree"}
    wrapped = wrap(["true"], Sandbox(home=HOME), cwd=Path("/tmp"), env=env)
    assert wrapped.env == {"PATH": "/usr/bin"}
    assert ("--setenv", "LD_PRELOAD", "/worktree/evil.so") in zip(
        wrapped.argv, wrapped.argv[1:], wrapped.argv[2:], strict=False
    )


def test_the_program_keeps_its_loader_settings(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    assert inside(sandboxed, "echo $LD_LIBRARY_PATH", sandbox, LD_LIBRARY_PATH="/opt/lib") == ["/opt/lib"]


def test_a_program_named_like_an_option_is_a_program(sandboxed: Workbench):
    run = sandboxed.start(["--ro-bind"])
    assert "execvp --ro-bind" in sandboxed.result(run).message


@pytest.mark.parametrize("path", [Path("/"), Path("relative")])
def test_a_sandbox_refuses_to_list_the_root_and_relative_paths(path: Path):
    with pytest.raises(ValueError, match="absolute folder other than the root"):
        Sandbox(home=HOME, writable=(path,))
    with pytest.raises(ValueError, match="absolute folder other than the root"):
        Sandbox(home=path)


def test_the_probe_says_what_holds():
    state = probe()
    assert state.kind is SandboxKind.BUBBLEWRAP
    assert state.works
    assert state.pid_namespace
    assert state.no_capabilities
    assert state.why.startswith("bubblewrap works")


def test_processes_inside_see_only_each_other(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    pids = inside(sandboxed, "echo /proc/[0-9]*", sandbox)[0].split()
    assert "/proc/1" in pids
    assert len(pids) <= 3
    assert f"/proc/{os.getpid()}" not in pids


def test_a_run_has_the_filter_of_system_calls_where_its_sandbox_wants_it(sandboxed: Workbench):
    if not probe().filters_calls:
        pytest.skip("there is no filter for this machine")
    script = "grep -E '^Seccomp:' /proc/self/status; unshare --user true 2> /dev/null || echo refused"
    for filtered, said in ((True, ["Seccomp:\t2", "refused"]), (False, ["Seccomp:\t0"])):
        sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), filtered=filtered)
        assert inside(sandboxed, script, sandbox) == said
