"""What a runner of version 1 does for those who look at it from outside. Frozen: later releases must get on with it.

Called with a run's folder. It holds the lock, answers on the socket, rings for news, and ends when it is told to stop.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
from pathlib import Path


def main(folder: Path) -> None:
    os.chdir(folder)
    gate = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(gate, fcntl.LOCK_EX)
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("control.sock")
    listener.listen()
    tell(1, "opened", runner=os.getpid())
    os.close(gate)
    tell(2, "starting")
    tell(3, "started", pid=os.getpid(), since=None)
    print("ready", flush=True)

    callers, told_to_stop = [], False
    while not told_to_stop:
        caller, _ = listener.accept()
        callers.append(caller)
        for line in caller.makefile("rb"):
            ask = json.loads(line)
            assert ask["version"] == 1
            answer = {"version": 1, "ok": True, "run": folder.name, "runner": os.getpid()}
            caller.sendall(json.dumps(answer).encode() + b"\n")
            told_to_stop = ask["ask"] == "stop"
            break
    tell(4, "stopping", grace=None)
    for caller in callers:
        with contextlib.suppress(BrokenPipeError):
            caller.sendall(b'{"version": 1, "bell": true}\n')
    tell(5, "ended", outcome="stopped", exit_code=130)
    Path(".result").write_text(
        json.dumps(
            {
                "version": 1,
                "run": folder.name,
                "outcome": "stopped",
                "exit_code": 130,
                "started_at": 1763000000.5,
                "ended_at": 1763000004.0,
                "output_bytes": 0,
                "message": "The run was stopped as asked.",
            }
        )
    )
    Path(".result").rename("result.json")
    Path("control.sock").unlink()


def tell(number: int, kind: str, **facts: object) -> None:
    line = {"version": 1, "number": number, "time": 1763000000.5, "kind": kind, **facts}
    with Path("journal.jsonl").open("a") as journal:
        journal.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
