"""`python -m legion.daemon --data-dir DIR`: the daemon process, which `legion up` starts in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from legion.system import imports


def main() -> int:
    parser = argparse.ArgumentParser(prog="legion.daemon")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--standby", action="store_true")
    options = parser.parse_args()
    with imports.without_gc():
        # Inside the block: imports take most of the time of a start.
        from legion.daemon.main import serve
    return serve(options.port, options.host, options.data_dir, standby=options.standby)


if __name__ == "__main__":
    raise SystemExit(main())
