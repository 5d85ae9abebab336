"""`legion plugin mcp --stdio`: Legion's tools for a program that starts its MCP servers itself.

Each message is passed on to the daemon, which keeps no session: so it may end and start again in between, and its port
does not matter.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from legion.cli.base.command import CommandCall
from legion.client.http import DaemonAddress, DaemonConnection, NotRunning
from legion.system.paths import DataDir
from legion.wire.errors import LegionError, NotAllowed

_AT_ONCE = 8
_PATIENCE = 3600.0
"""Seconds: some tools wait for a person."""
_ACCEPT = "application/json, text/event-stream"
_FAILED = -32603


class Bridge:
    """Reads requests from a stream, and writes the daemon's answers to another, in any order."""

    def __init__(self, call: CommandCall, output: TextIO) -> None:
        self._call = call
        self._output = output
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._cwd = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())

    def run(self, requests: BinaryIO) -> None:
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="mcp") as pool:
            for raw in requests:
                try:
                    message = json.loads(raw)
                except ValueError:
                    continue
                # Without an id it is a notification, which needs no answer and means nothing without a session.
                if isinstance(message, dict) and "id" in message and "method" in message:
                    pool.submit(self._answer, message)

    def _answer(self, message: dict[str, Any]) -> None:
        try:
            answer = self._ask(message)
        except LegionError as error:
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": _FAILED, "message": error.message}}
        with self._writing:
            self._output.write(json.dumps(answer) + "\n")
            self._output.flush()

    def _ask(self, message: dict[str, Any]) -> object:
        try:
            return self._send(self._connection(), message)
        except NotRunning:
            with self._starting:
                self._call.again_or_start()
            return self._send(self._connection(), message)

    def _send(self, connection: DaemonConnection, message: dict[str, Any]) -> object:
        found: object = connection.ask(
            "POST", "/mcp", query={"cwd": self._cwd}, body=message, timeout=_PATIENCE, accept=_ACCEPT
        )
        return found

    def _connection(self) -> DaemonConnection:
        data = DataDir(self._call.data_dir)
        try:
            token = data.plugin_token.read_text().strip()
        except FileNotFoundError:
            raise NotAllowed(
                "The token of Legion's tools is gone: run `legion plugin mcp`, or `legion plugin install`."
            ) from None
        if not data.socket.exists():
            raise NotRunning("Legion is not running.")
        return DaemonConnection(DaemonAddress(socket=str(data.socket), token=token))


def tools_token(data: DataDir) -> Path:
    """The file of a token that opens Legion's tools and nothing else; the daemon reads it at each call."""
    data.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        handle = os.open(data.plugin_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"legion-plugin-{secrets.token_urlsafe(32)}\n")
    return data.plugin_token


def serve(call: CommandCall) -> None:
    Bridge(call, sys.stdout).run(sys.stdin.buffer)
