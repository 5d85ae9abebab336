"""`legion up --service`: the daemon belongs to the person's supervisor, and `legion down --service` takes that back.

The supervisor is a stand-in for `systemctl --user` that reads the unit that was written, and does what it says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from legion.client.discovery import find, read_record
from legion.system.supervisors import ServiceHost, daemon_service
from tests.support.legion import Squad

_SYSTEMCTL = """\
#!/bin/sh
echo "$*" >> "$HOME/said"
[ "$2" = enable ] || exit 0
[ ! -e "$HOME/no-session" ] || { echo "Failed to connect to bus" >&2; exit 1; }
line=$(sed -n 's/^ExecStart=//p' "$XDG_CONFIG_HOME/systemd/user/legion.service")
eval "setsid $line --port 0 </dev/null >/dev/null 2>&1 &"
"""


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """The variables of a person whose own systemd runs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "systemctl").write_text(_SYSTEMCTL)
    (tools / "systemctl").chmod(0o755)
    (tmp_path / "run/systemd").mkdir(parents=True)
    return {
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "PATH": f"{tools}:/usr/bin:/bin",
    }


@pytest.fixture
def legion(one: Squad, person: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    def call(*words: str) -> str:
        done = one.cli(*words, cwd=tmp_path, extra=person)
        return done.stdout if "--json" in words else done.stdout + done.stderr

    return call


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Squad]:
    """A daemon runs already; it ends, and the supervisor's takes its place."""
    made = Squad(tmp_path)
    made.start()
    yield made
    made.close()
    if (record := read_record(made.data.root)) is not None and psutil.pid_exists(record.pid):
        psutil.Process(record.pid).kill()


def test_a_supervisor_runs_the_daemon_and_doctor_says_so(
    one: Squad, legion: Callable[..., str], tmp_path: Path
) -> None:
    said = legion("up", "--service")
    unit = tmp_path / ".config/systemd/user/legion.service"
    assert f"Written: {unit}" in said
    assert "loginctl enable-linger" in said
    assert (tmp_path / "said").read_text().splitlines() == ["--user daemon-reload", "--user enable --now legion"]
    record = read_record(one.data.root)
    assert record is not None
    assert "serve" in psutil.Process(record.pid).cmdline()
    # A second time nothing is started beside it.
    legion("up")
    assert read_record(one.data.root) == record
    findings = json.loads(legion("doctor", "--json"))["findings"]
    (after,) = [finding for finding in findings if finding["name"] == "after a reboot"]
    assert str(unit) in after["detail"]
    removed = legion("down", "--service")
    assert f"Removed: {unit}" in removed
    assert not unit.exists()
    assert (tmp_path / "said").read_text().splitlines()[-1] == "--user disable --now legion"
    assert read_record(one.data.root) is None or not psutil.pid_exists(record.pid)


def test_without_a_session_of_systemd_legion_starts_all_the_same(
    one: Squad, legion: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "no-session").touch()
    said = legion("up", "--service")
    assert "`systemctl --user enable --now legion` failed: Failed to connect to bus. Legion starts without it" in said
    assert "It starts when you log in" not in said
    assert find(one.data.root) is not None
    legion("down")


def test_the_unit_leaves_runs_alone_and_ends_with_legion_down(tmp_path: Path) -> None:
    host = ServiceHost(home=tmp_path, platform="linux", systemd=True, config_home=tmp_path, path="/bin")
    made = daemon_service(tmp_path / "my data", host)
    assert made is not None
    lines = made.text.splitlines()
    assert any(
        line.startswith("ExecStart=") and line.endswith(f'--data-dir "{tmp_path}/my data" serve') for line in lines
    )
    assert {"KillMode=process", "Restart=on-failure", "RestartPreventExitStatus=5"} <= set(lines)
    bare = ServiceHost(home=tmp_path, platform="linux", systemd=False, config_home=tmp_path, path="/bin")
    assert daemon_service(tmp_path, bare) is None
