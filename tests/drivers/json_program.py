"""A small program that prints JSON lines as Codex does: the prompt on its stdin says what it does."""

from __future__ import annotations

import json
import os
import signal
import sys


def send(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def item(**facts: object) -> None:
    send(type="item.completed", item={"id": "item_1", **facts})


def main() -> None:
    odd = [word.removeprefix("session=") for word in sys.argv if word.startswith("session=")]
    send(type="thread.started", thread_id=json.loads(f'"{odd[0]}"') if odd else "thread-1")
    if "resume" in sys.argv:
        item(type="agent_message", text=f"resumed {sys.argv[-1]}")
    for line in sys.stdin.read().splitlines():
        word, _, rest = line.partition(" ")
        if word.endswith("!"):
            word, rest = word[:-1], json.loads(f'"{rest}"')
        match word:
            case "bytes":
                sys.stdout.flush()
                sys.stdout.buffer.write(rest.encode().decode("unicode_escape").encode("latin-1") + b"\n")
                sys.stdout.buffer.flush()
            case "flood":
                sys.stdout.write("x" * int(rest) + "\n")
            case "raw":
                sys.stdout.write(f"{rest}\n")
                sys.stdout.flush()
            case "say":
                item(type="agent_message", text=rest)
            case "run":
                started = {"id": "item_2", "type": "command_execution", "command": rest}
                send(type="item.started", item=started)
                done = {**started, "exit_code": 0, "aggregated_output": "ok", "status": "completed"}
                send(type="item.completed", item=done)
            case "wait":
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                signal.pause()
            case "noise":
                sys.stdout.write("not json\n[1]\n")
            case "fail":
                send(type="turn.failed", error={"message": rest})
                os._exit(1)
            case "die":
                os._exit(3)
    send(type="turn.completed", usage={"input_tokens": 7})
    if "stay" in sys.argv:
        signal.pause()


main()
