"""`python -m legion.gateway FOLDER`: the gateway process, which the daemon starts in the background."""

from __future__ import annotations

import argparse
import logging
import select
import sys
from pathlib import Path

from legion.domain.errors import LegionError
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.lifecycle import DEFAULT_PORT, GRACE, IDLE, RECEIVE
from legion.system import imports, loops


def main() -> int:
    parser = argparse.ArgumentParser(prog="legion.gateway")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--idle", type=float, default=IDLE)
    parser.add_argument("--grace", type=float, default=GRACE)
    parser.add_argument("--receive", type=float, default=RECEIVE)
    parser.add_argument("--ready", type=int)
    options = parser.parse_args()
    with imports.without_gc():
        # Inside the block: imports take most of the time of a start.
        from legion.gateway.http.server import ServerOptions, report_start, serve  # noqa: PLC0415
    if options.ready is not None and _is_abandoned(options.ready):
        # The process that started this one is gone, perhaps with the folder, which must not be created again.
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    # aiohttp quotes bad requests in its log, and these may hold tokens.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    spec = ServerOptions(
        folder=GatewayFolder(options.folder.absolute()),
        port=options.port,
        idle=options.idle,
        grace=options.grace,
        receive=options.receive,
        ready=options.ready,
    )
    loops.watch(spec.folder.root, lambda: loops.end_process(spec.folder.root))
    try:
        serve(spec)
    except LegionError as error:
        report_start(spec.ready, f"error: {error.message}")
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    return 0


def _is_abandoned(ready: int) -> bool:
    """Whether the other end of the pipe is closed."""
    poll = select.poll()
    poll.register(ready, 0)
    return any(state & select.POLLERR for _, state in poll.poll(0))


if __name__ == "__main__":
    raise SystemExit(main())
