"""`python -P -m legion.conversations --index FILE ...`: brings the index up to date, and ends with its parent."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from pathlib import Path

from legion.conversations.catch_up import catch_up
from legion.conversations.index import Index
from legion.conversations.places import ConversationPlaces
from legion.system import files

_NICE = 10
_PATIENCE = 5.0


def main() -> int:
    arguments = argparse.ArgumentParser(prog="legion.conversations", description=__doc__)
    for name in ("index", "lock", *ConversationPlaces.__dataclass_fields__):
        arguments.add_argument(f"--{name}", type=Path)
    given = vars(arguments.parse_args())
    index, lock = given.pop("index"), given.pop("lock")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICE)
    held = files.lock(lock, patience=_PATIENCE)
    try:
        with contextlib.closing(Index(index)) as opened:
            catch_up(opened, ConversationPlaces(**given))
    finally:
        held.release()
    return 0


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    raise SystemExit(main())
