"""Which conversations are open: by the records and processes of their programs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

from legion.conversations.alive import alive
from legion.conversations.catch_up import catch_up
from legion.conversations.index import Index
from tests.conversations.home import CLAUDE, CODEX, Home


def test_a_conversation_of_claude_code_is_alive_while_its_process_is(tmp_path: Path):
    home = Home(tmp_path / "home").fill()
    with contextlib.closing(Index(tmp_path / "index.db")) as index:
        catch_up(index, home.places)
        every = index.conversations()
    claude = home.places.claude
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]

    def record(pid: int, start: str) -> None:
        facts = {"pid": pid, "sessionId": CLAUDE, "procStart": start}
        home.write(claude / "sessions" / "1.json", json.dumps(facts).encode())

    assert alive(every, claude) == frozenset()
    record(os.getpid(), started)
    home.write(claude / "sessions" / "2.json", b"broken")
    assert alive(every, claude) == {str(home.claude)}
    record(os.getpid(), "1")
    assert alive(every, claude) == frozenset(), "another process has its number now"


def test_the_last_conversation_of_a_program_in_its_folder_is_alive(tmp_path: Path):
    home = Home(tmp_path / "home").fill()
    (shop := tmp_path / "shop").mkdir()
    (program := tmp_path / "codex").symlink_to("/bin/cat")
    process = subprocess.Popen([program], cwd=shop, stdin=subprocess.PIPE)
    try:
        rollout = next((home.root / ".codex").rglob("*.jsonl"))
        text = rollout.read_text().replace("/home/ada/shop", str(shop))
        rollout.write_text(text)
        later = {"timestamp": (time.time() + 5) * 1000, "type": "turn_context", "payload": {}}
        home.append(rollout, json.dumps(later).encode() + b"\n")
        with contextlib.closing(Index(tmp_path / "index.db")) as index:
            catch_up(index, home.places)
            every = index.conversations()
        assert alive(every, home.places.claude) == {str(rollout)}
    finally:
        process.kill()
        process.communicate()
    assert CODEX in str(rollout)
    assert alive(every, home.places.claude) == frozenset()
