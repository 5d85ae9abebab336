"""`python -m legion.daemon --data-dir DIR`: what `legion up` starts in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from legion.system import imports


def main() -> int:
    words = argparse.ArgumentParser(prog="legion.daemon")
    words.add_argument("--data-dir", type=Path)
    words.add_argument("--host")
    words.add_argument("--port", type=int)
    given = words.parse_args()
    with imports.uncollected():
        # Here, because nearly all of the time of a start is imports.
        from legion.daemon.main import serve  # noqa: PLC0415
    return serve(given.port, given.host, given.data_dir)


if __name__ == "__main__":
    raise SystemExit(main())
