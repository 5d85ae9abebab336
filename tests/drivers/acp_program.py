"""A small program that speaks the Agent Client Protocol, honestly or not, for tests of the driver.

It knows no library, so that it needs nothing but an interpreter inside the sandbox. The prompt names what it does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

SESSION = "session-1"
number = 1000


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def ask(method: str, **params: object) -> dict[str, Any]:
    """Send a request and return its answer, result or error."""
    global number
    number += 1
    send(id=number, method=method, params={"sessionId": SESSION, **params})
    while True:
        answer = receive()
        if answer.get("id") == number and "method" not in answer:
            return answer


def huge(first: str) -> dict[str, Any]:
    """A request of 20 MB, with its id in front of what makes it long or behind it."""
    params = {"sessionId": SESSION, "path": "big.txt", "content": "x" * (20 << 20)}
    request: dict[str, object] = {"jsonrpc": "2.0", "params": params}
    named = {"id": 77, "method": "fs/write_text_file"}
    sys.stdout.write(json.dumps({**named, **request} if first == "id" else {**request, **named}) + "\n")
    sys.stdout.flush()
    while True:
        answer = receive()
        if answer.get("id") == 77:
            return answer


def update(**facts: object) -> None:
    send(method="session/update", params={"sessionId": SESSION, "update": facts})


def say(text: str) -> None:
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def call(id: str, **facts: object) -> None:
    update(sessionUpdate="tool_call", toolCallId=id, title=id, **facts)


def permission(id: str, kind: str, **facts: object) -> str:
    options = [
        {"optionId": "yes", "name": "y", "kind": "allow_once"},
        {"optionId": "no", "name": "n", "kind": "reject_once"},
    ]
    tool = {"toolCallId": id, "title": id, "kind": kind, **facts}
    answer = ask("session/request_permission", toolCall=tool, options=options)
    return str(answer["result"]["outcome"].get("optionId"))


def work(prompt: str) -> str:
    """One turn; returns its stop reason."""
    for line in prompt.splitlines():
        word, _, rest = line.partition(" ")
        if word.endswith("!"):
            word, rest = word[:-1], json.loads(f'"{rest}"')
        match word:
            case "say":
                say(rest)
            case "bytes":
                sys.stdout.flush()
                sys.stdout.buffer.write(rest.encode().decode("unicode_escape").encode("latin-1") + b"\n")
                sys.stdout.buffer.flush()
            case "huge":
                say(json.dumps(huge(rest)))
            case "huge-answer":
                return "x" * (20 << 20)
            case "raw":
                sys.stdout.write(f"{rest}\n")
                sys.stdout.flush()
            case "edit":
                call("edit-1", kind="edit", status="pending", rawInput={"path": rest}, locations=[{"path": rest}])
                Path(rest).write_text("edited\n")
                diff = {"type": "diff", "path": rest, "oldText": "", "newText": "edited\n"}
                update(sessionUpdate="tool_call_update", toolCallId="edit-1", status="completed", content=[diff])
            case "plan":
                update(sessionUpdate="plan", entries=[{"content": rest, "priority": "high", "status": "pending"}])
            case "run":
                say(f"{rest}: {permission('run-1', 'execute', rawInput={'command': rest})}")
            case "read":
                say(json.dumps(ask("fs/read_text_file", path=rest)))
            case "write":
                path, _, content = rest.partition(" ")
                say(json.dumps(ask("fs/write_text_file", path=path, content=content)))
            case "link":
                target, link = rest.split(" ")
                Path(link).symlink_to(target)
            case "ask":
                method, _, params = rest.partition(" ")
                say(json.dumps(ask(method, **json.loads(params))))
            case "flood":
                sys.stdout.write("x" * int(rest) + "\n")
            case "strange":
                send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": rest}})
                send(id=5, method=rest, params=["?"])
                sys.stdout.write('{"jsonrpc": "2.0", "id": "never asked", "result": 1}\nnot json\n')
            case "until-cancelled":
                while receive().get("method") != "session/cancel":
                    pass
            case "wait":
                while receive().get("method") != "session/cancel":
                    pass
                return "cancelled"
            case "stop-with":
                return rest
            case "die":
                os._exit(int(rest))
            case "(prompt" if "echoes" in sys.argv:
                say(line)
            case "hang":
                signal.pause()
    return "end_turn"


def main() -> None:
    while True:
        message = receive()
        id, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "initialize":
                send(id=id, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            case "session/new":
                odd = [word.removeprefix("session=") for word in sys.argv if word.startswith("session=")]
                send(id=id, result={"sessionId": json.loads(f'"{odd[0]}"') if odd else SESSION})
            case "session/load" if "forgets" in sys.argv:
                send(id=id, error={"code": -32002, "message": "no such session"})
            case "session/load":
                say("an old message, which is part of the history")
                send(id=id, result={})
                if "late" in sys.argv:
                    say("the rest of the history")
            case "session/prompt":
                text = params["prompt"][0]["text"]
                if text.startswith("error! "):
                    send(id=id, error={"code": -32603, "message": json.loads(f'"{text[7:].splitlines()[0]}"')})
                elif "fail" in text.split():
                    send(id=id, error={"code": -32603, "message": "Internal error", "data": {"details": "it broke"}})
                else:
                    send(id=id, result={"stopReason": work(text)})


main()
