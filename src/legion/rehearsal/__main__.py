"""`python -P -m legion.rehearsal SCRIPTS`: serves the scripts of a folder until SIGTERM."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from pathlib import Path

import uvicorn

from legion.rehearsal.http.app import BreakableProtocol, Rehearsal
from legion.rehearsal.play.player import ModelChaos, Play, PromptCache
from legion.rehearsal.protocol.log import RequestLog
from legion.rehearsal.script import parser
from legion.rehearsal.script.script import BadScript
from legion.system import files

_GRACE = 1
"""Seconds that open answers get when the process ends."""


def main() -> int:
    arguments = argparse.ArgumentParser(prog="legion.rehearsal", description=__doc__)
    arguments.add_argument("scripts", type=Path, help="folder with NAME.toml files")
    arguments.add_argument("--port", type=int, default=0, help="port on loopback; 0 for any free one")
    arguments.add_argument(
        "--default", help="script for conversations without a marker; `generic` works for any ticket"
    )
    arguments.add_argument(
        "--chaos", type=int, metavar="SEED", help="errors at random steps, the same for the same seed"
    )
    arguments.add_argument("--cached", action="store_true", help="count tokens as a provider with a prompt cache")
    arguments.add_argument("--log", type=Path, help="file for one line of JSON per request")
    arguments.add_argument("--ready", type=Path, help="file for url and pid, written once it listens")
    options = arguments.parse_args()
    try:
        parser.read_all(options.scripts)
        chaos = None if options.chaos is None else ModelChaos(options.chaos)
        play = Play(options.scripts, options.default, chaos, PromptCache() if options.cached else None)
    except BadScript as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        listener = socket.create_server(("127.0.0.1", options.port), backlog=256)
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else fault
        sys.stderr.write(
            f"The rehearsal cannot listen on port {options.port} ({reason}): choose another with --port.\n"
        )
        return 1
    if options.ready is not None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        files.write_atomic(options.ready, json.dumps({"version": 1, "url": url, "pid": os.getpid()}))
    config = uvicorn.Config(
        Rehearsal(play, RequestLog(options.log)),
        http=BreakableProtocol,
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
