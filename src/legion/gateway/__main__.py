"""`python -m legion.gateway FOLDER`: what the daemon starts in the background."""

from __future__ import annotations

import argparse
import logging
import select
import sys
from pathlib import Path

from legion.domain.errors import LegionError
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.lifecycle import DEFAULT_PORT, GRACE, IDLE
from legion.system import imports


def main() -> int:
    words = argparse.ArgumentParser(prog="legion.gateway")
    words.add_argument("folder", type=Path)
    words.add_argument("--port", type=int, default=DEFAULT_PORT)
    words.add_argument("--idle", type=float, default=IDLE)
    words.add_argument("--grace", type=float, default=GRACE)
    words.add_argument("--ready", type=int)
    given = words.parse_args()
    with imports.uncollected():
        # Here, because nearly all of the time of a start is imports.
        from legion.gateway.http.server import ServerOptions, report_start, serve  # noqa: PLC0415
    if given.ready is not None and _unheard(given.ready):
        # Whoever started us is gone, and perhaps the folder with them: nothing is made anew.
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    # Its words about bad requests repeat what was sent.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    spec = ServerOptions(
        folder=GatewayFolder(given.folder.absolute()),
        port=given.port,
        idle=given.idle,
        grace=given.grace,
        ready=given.ready,
    )
    try:
        serve(spec)
    except LegionError as error:
        report_start(spec.ready, f"error: {error.message}")
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    return 0


def _unheard(ready: int) -> bool:
    """Whether nobody reads at the other end of the pipe any more."""
    looking = select.poll()
    looking.register(ready, 0)
    return any(state & select.POLLERR for _, state in looking.poll(0))


if __name__ == "__main__":
    raise SystemExit(main())
