"""The SDK at the other end of the pipes: its messages, its answers to requests, and its interrupts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


class Interrupted(Exception):
    """The turn was interrupted."""


def new_id() -> str:
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Line:
    """The SDK at the other end: its messages, its answers to our requests, and its interrupts."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        """`on_message` gets the text of each message when it arrives."""
        self._on_message = on_message
        self.messages: deque[Json] = deque()
        self.hooks: list[str] = []
        self.interrupted = False
        self.over = False
        self.news = threading.Condition()
        self._writing = threading.Lock()
        self._answers: dict[str, Json] = {}
        self._tool: subprocess.Popen[bytes] | None = None
        self._request: socket.socket | None = None

    def send(self, **message: object) -> None:
        with self._writing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def listen(self) -> None:
        for line in sys.stdin:
            self._take(json.loads(line))
        with self.news:
            self.over = True
            self.news.notify_all()

    def ask(self, **request: object) -> Json:
        """A request to the SDK, and its answer. Raises Interrupted."""
        id = new_id()
        self.send(type="control_request", request_id=id, request=request)
        with self.news:
            while id not in self._answers:
                if self.interrupted:
                    raise Interrupted
                if self.over:
                    os._exit(1)
                self.news.wait()
            return self._answers.pop(id)

    def holds(self, *, tool: subprocess.Popen[bytes] | None = None, request: socket.socket | None = None) -> None:
        """What an interrupt ends. Raises Interrupted where it came before."""
        with self.news:
            self._tool, self._request = tool, request
            if self.interrupted:
                self._cut()
                raise Interrupted

    def pause(self, seconds: float) -> None:
        """Until the next request. Raises Interrupted."""
        with self.news:
            self.news.wait_for(lambda: self.interrupted, seconds)
        self.check()

    def check(self) -> None:
        if self.interrupted:
            raise Interrupted

    def _take(self, message: Json) -> None:
        with self.news:
            if message["type"] == "user":
                self._on_message(message["message"]["content"])
                self.messages.append(message)
            elif message["type"] == "control_response":
                self._answers[message["response"]["request_id"]] = message["response"]
            elif message["type"] == "control_request":
                self._control(message["request_id"], message["request"])
            self.news.notify_all()

    def _control(self, id: str, request: Json) -> None:
        if request["subtype"] == "initialize":
            wanted = (request.get("hooks") or {}).get("PreToolUse") or []
            self.hooks = [hook for one in wanted for hook in one["hookCallbackIds"]]
        elif request["subtype"] == "interrupt":
            self.interrupted = True
            self._cut()
        self.send(type="control_response", response={"subtype": "success", "request_id": id, "response": {}})

    def _cut(self) -> None:
        if self._tool is not None and self._tool.poll() is None:
            os.killpg(self._tool.pid, signal.SIGKILL)
        if self._request is not None:
            self._request.shutdown(socket.SHUT_RDWR)
