"""The sandbox: what is inside, what is not, and whether it holds here."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from legion.drivers import EndKind, Program
from legion.runner.probe import SandboxKind, probe
from legion.runner.sandbox import Sandbox, SandboxNetwork, wrap
from legion.system import kernel
from tests.runner.runs import ENV, Workbench

HOME = Path("/home/ada")
needs_landlock = pytest.mark.skipif(not kernel.file_rights(), reason="this kernel has no Landlock")


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
    state = probe(None)
    assert state.kind is SandboxKind.BUBBLEWRAP
    assert state.works
    assert state.pid_namespace
    assert state.no_capabilities
    assert state.why.startswith("bubblewrap works")


WRONG_BIND = """
cat secret; echo x > new; mv secret moved; ls; sh run; head -c 6 /proc/self/root/media/secret; mkdir folder; rm run
"""


@needs_landlock
@pytest.mark.parametrize("walled", [True, False])
def test_a_mount_that_shows_too_much_is_closed_by_the_second_wall(tmp_path: Path, *, walled: bool):
    wrong, own = tmp_path / "wrong", tmp_path / "own"
    for folder in (wrong, own):
        folder.mkdir()
    (wrong / "secret").write_text("secret")
    (wrong / "run").write_text("echo ran")
    box = Sandbox(home=HOME, writable=(own,), filtered=True, walled=walled)
    wrapped = wrap(["sh", "-c", WRONG_BIND], box, cwd=Path("/media"), env=ENV)
    at = wrapped.argv.index("--remount-ro")
    argv = [*wrapped.argv[:at], "--bind", str(wrong), "/media", *wrapped.argv[at:]]
    said = subprocess.run(argv, env=dict(wrapped.env), capture_output=True, text=True, timeout=60, check=False).stdout
    left = sorted(path.name for path in wrong.iterdir())
    if walled:
        assert (said.split(), left) == (["run", "secret"], ["run", "secret"])
    else:
        assert (said.split(), left) == (["secretmoved", "new", "run", "ran"], ["folder", "moved", "new"])


@needs_landlock
def test_behind_the_second_wall_programs_do_what_they_do_without_it(sandboxed: Workbench):
    script = """
    mkdir -p a/b && echo 1 > a/f && mv a/f a/b/g && ln a/b/g hard && ln -s a/b/g soft && cat hard soft
    mkfifo pipe && (echo 2 > pipe &) && cat pipe; rm -r a pipe
    cat < /dev/null; echo 3 > /dev/null; cat /dev/stdin; cat /proc/self/fd/0; echo $PERL5OPT
    for place in /tmp /var/tmp /run /dev/shm $HOME; do echo 4 > $place/x && truncate -s 0 $place/x || echo $place; done
    ls / > /dev/null && git init -q r && git -C r -c user.name=A -c user.email=a@b commit -qm x --allow-empty && echo 5
    sleep 9 & kill -9 $! && echo 6
    """
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), filtered=True, walled=True)
    given = sandboxed.root / "given"
    given.write_text("given\n")
    env = {**ENV, "HOME": str(HOME), "PERL5OPT": "-MNot::There"}
    program = Program(argv=("sh", "-c", script), cwd=sandboxed.worktree, env=env, stdin=given)
    run = sandboxed.start([], program=program, sandbox=sandbox)
    assert sandboxed.result(run).exit_code == 0
    assert sandboxed.output(run).splitlines() == ["1", "1", "2", "given", "given", "-MNot::There", "5", "6"]


@needs_landlock
@pytest.mark.parametrize("name", ["--ro-bind", "no-such-program", "/etc/passwd"])
def test_a_program_that_cannot_be_started_behind_the_second_wall_is_said_so(sandboxed: Workbench, name: str):
    run = sandboxed.start([name], sandbox=Sandbox(home=HOME, writable=(sandboxed.worktree,), walled=True))
    ended = sandboxed.result(run)
    assert ended.outcome is EndKind.FAILED_TO_START
    assert f"execvp {name}: " in ended.message


def test_processes_inside_see_only_each_other(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,))
    pids = inside(sandboxed, "echo /proc/[0-9]*", sandbox)[0].split()
    assert "/proc/1" in pids
    assert len(pids) <= 3
    assert f"/proc/{os.getpid()}" not in pids


def test_a_run_has_the_filter_of_system_calls_where_its_sandbox_wants_it(sandboxed: Workbench):
    if not probe(None).filters_calls:
        pytest.skip("there is no filter for this machine")
    script = "grep -E '^Seccomp:' /proc/self/status; unshare --user true 2> /dev/null || echo refused"
    for filtered, said in ((True, ["Seccomp:\t2", "refused"]), (False, ["Seccomp:\t0"])):
        sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), filtered=filtered)
        assert inside(sandboxed, script, sandbox) == said
