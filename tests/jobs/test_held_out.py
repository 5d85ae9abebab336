"""Held-out acceptance: code under test runs in its process, and can send what it reads there to no other program."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings
from legion.config.sections.evidence import Acceptance, AcceptanceNetwork
from legion.config.sections.machine import NetworkMode, SandboxSettings
from legion.domain.checks import CheckResult
from legion.jobs.checks import candidates, execution
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.support.repository import Repository
from tests.support.settings import PLAIN_SETTINGS

SENDS = """\
import os, socket, sys
words = open(os.environ["LEGION_ACCEPTANCE"] + "/expected.txt").read()
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as line:
    line.sendall(words.encode())
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def run_acceptance(
    folder: Path, listener: socket.socket, network: AcceptanceNetwork | None, sandbox: NetworkMode
) -> bool:
    """Whether the code under test could send."""
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "expected.txt").write_text("forty-two\n")
    theirs = Repository(folder / "shop", "")
    theirs.commit("source", {"app.py": SENDS})
    theirs.git("branch", "change")
    board = Board(folder)
    try:
        port = listener.getsockname()[1]
        one = Acceptance(run=f"python3 app.py {port}", folder=secrets)
        one = one if network is None else replace(one, network=network)
        user = replace(PLAIN_SETTINGS, acceptance={"answer": one}, sandbox=SandboxSettings(network=sandbox))
        object.__setattr__(board.context, "settings", CurrentSettings(user))
        ticket = board.put(1, acceptance=["answer"])
        project = board.context.project(1)
        tested = execution.test(board.context, project, project.target, candidates.wanted(board.context, ticket))
        return tested.receipts[-1].verdict is CheckResult.GREEN
    finally:
        board.context.launcher.close()
        board.close()


@attack(Attacker.AGENT, Door.CHECKS)
@pytest.mark.parametrize(
    ("network", "sandbox"),
    [(None, NetworkMode.HOST), (AcceptanceNetwork.NONE, NetworkMode.HOST), (AcceptanceNetwork.OPEN, NetworkMode.NONE)],
)
def test_acceptance_has_no_network(
    tmp_path: Path, listener: socket.socket, network: AcceptanceNetwork | None, sandbox: NetworkMode
):
    assert not run_acceptance(tmp_path, listener, network, sandbox)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_person_may_give_one_acceptance_the_network(tmp_path: Path, listener: socket.socket):
    assert run_acceptance(tmp_path, listener, AcceptanceNetwork.OPEN, NetworkMode.HOST)
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(20)
        assert connection.recv(100) == b"forty-two\n"
