"""A hostile agent fails at everything it tries, as root and as an ordinary user."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import legion
from tests.runner.hostile import ATTEMPTS
from tests.support.attacks import Attacker, Door, attack
from tests.support.session import session_folder, take

HERE = Path(__file__).parent
SOMEBODY = 65534
FIT = "import os, sys; sys.exit(sys.version_info < (3, 11) or not os.access(sys.executable, os.X_OK))"
# The same attempts without a sandbox do their harm, so that we know that they try hard. The rest would hurt the host.
WORKS_OUTSIDE = (
    *("read_the_token", "read_the_ssh_key", "look_around_at_home", "read_another_worktree"),
    *("connect_to_a_host_socket", "connect_to_an_abstract_host_socket", "use_its_own_control_socket"),
    *("kill_a_host_process", "trace_a_host_process", "read_the_environment_of_a_host_process"),
    *("write_beside_its_worktree", "write_into_a_readable_folder", "rewrite_its_briefing"),
)


def as_somebody(uid: int) -> list[str]:
    if os.getuid() == uid:
        return []
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]


def interpreter_for(uid: int) -> str:
    """A Python that this user may run; root's own may lie in root's home."""
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        test = [*as_somebody(uid), candidate, "-c", FIT]
        if Path(candidate).exists() and subprocess.run(test, capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip(f"no Python 3.11 that user {uid} may run")


@functools.cache
def judged(uid: int, how: str, *only: str) -> dict[str, tuple[bool, str]]:
    """All attempts of one user, tried once per test session, whichever of its processes asks first."""
    judgement = session_folder() / f"hostile-{uid}-{how}.json"
    lock = take(judgement.with_suffix(".lock"))
    try:
        if not judgement.exists():
            judgement.write_text(tried(uid, how, *only))
    finally:
        os.close(lock)
    return {attempt: (harm, why) for attempt, (harm, why) in json.loads(judgement.read_text()).items()}


def tried(uid: int, how: str, *only: str) -> str:
    with tempfile.TemporaryDirectory(prefix="legion-hostile-") as name:
        root = Path(name)
        shutil.copytree(Path(legion.__file__).parent, root / "src/legion", ignore=shutil.ignore_patterns("__pycache__"))
        scripts = root / "src/tests/runner"
        scripts.mkdir(parents=True)
        for script in ("hostile.py", "lair.py"):
            shutil.copy(HERE / script, scripts)
        (root / "host").mkdir()
        root.chmod(0o755)
        os.chown(root / "host", uid, -1)
        lair = subprocess.run(
            [*as_somebody(uid), interpreter_for(uid), "-m", "tests.runner.lair", str(root / "host"), how, *only],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert lair.returncode == 0, lair.stderr
        return lair.stdout


@pytest.fixture(params=["root", "user"])
def uid(request: pytest.FixtureRequest) -> int:
    if os.getuid() != 0:
        if request.param == "root":
            pytest.skip("only root can try as root")
        return os.getuid()
    return 0 if request.param == "root" else SOMEBODY


@attack(Attacker.AGENT, Door.SANDBOX)
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_hostile_agent_cannot(attempt: str, uid: int):
    harm, why = judged(uid, "sandboxed")[attempt]
    print(f"{attempt}: {why}")
    assert not harm, f"as user {uid} the agent could {attempt.replace('_', ' ')}: {why}"


@pytest.mark.parametrize("attempt", WORKS_OUTSIDE)
def test_the_same_attempt_succeeds_without_a_sandbox(attempt: str, uid: int):
    harm, why = judged(uid, "bare", *WORKS_OUTSIDE)[attempt]
    assert harm, f"{attempt} proves nothing: it fails without a sandbox too ({why})"
