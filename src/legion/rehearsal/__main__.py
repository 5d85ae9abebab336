"""`python -P -m legion.rehearsal SCRIPTS`: plays the scripts of a folder until it is told to end."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from pathlib import Path

import uvicorn

from legion.rehearsal.errors import BadScript
from legion.rehearsal.http.app import Rehearsal
from legion.rehearsal.http.connection import BreakableProtocol
from legion.rehearsal.play.chaos import ModelChaos
from legion.rehearsal.play.player import Play
from legion.rehearsal.protocol.log import RequestLog
from legion.rehearsal.script import parser
from legion.system import files

_LAST_MOMENTS = 1
"""Seconds that open answers get when it is told to end."""


def main() -> int:
    words = argparse.ArgumentParser(prog="legion.rehearsal", description=__doc__)
    words.add_argument("scripts", type=Path, help="folder with NAME.toml files")
    words.add_argument("--port", type=int, default=0, help="port on loopback; 0 for any free one")
    words.add_argument("--default", help="script for conversations without a marker; `generic` fits any ticket")
    words.add_argument("--chaos", type=int, metavar="SEED", help="trouble at random steps, the same for the same seed")
    words.add_argument("--log", type=Path, help="file for one line of JSON per request")
    words.add_argument("--ready", type=Path, help="file that says url and pid once it listens")
    given = words.parse_args()
    try:
        parser.read_all(given.scripts)
        play = Play(given.scripts, given.default, None if given.chaos is None else ModelChaos(given.chaos))
    except BadScript as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 2
    try:
        listener = socket.create_server(("127.0.0.1", given.port), backlog=256)
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else fault
        sys.stderr.write(f"The rehearsal cannot listen on port {given.port} ({reason}): choose another with --port.\n")
        return 1
    if given.ready is not None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        files.write_whole(given.ready, json.dumps({"version": 1, "url": url, "pid": os.getpid()}))
    config = uvicorn.Config(
        Rehearsal(play, RequestLog(given.log)),
        http=BreakableProtocol,
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=_LAST_MOMENTS,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
