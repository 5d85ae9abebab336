"""`python -m legion.machine --data-dir DIR [LINE]`: the worker process, which `legion machine join` starts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from legion.domain.errors import BadInput, LegionError
from legion.machine.membership import Membership, join
from legion.machine.worker import serve


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="legion.machine")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("line", nargs="?", default="")
    options = parser.parse_args(words)
    try:
        return start(options.data_dir, options.line)
    except LegionError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code


def start(data_dir: Path, line: str) -> int:
    """Join with this line, or work on as the machine that this folder is already."""
    return serve(data_dir, member(data_dir, line))


def member(data_dir: Path, line: str) -> Membership:
    """The machine that this folder is, after it has joined with this line. Raises BadInput where it is none."""
    if line:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return join(data_dir, line)
    known = Membership.read(data_dir)
    if known is None:
        raise BadInput("This folder is no machine yet: pass the line that `legion machine invite` printed on the head.")
    return known


if __name__ == "__main__":
    raise SystemExit(main())
