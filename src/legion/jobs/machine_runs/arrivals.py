"""Files of runs on machines, as they arrive piece by piece: journal, output, the runner's log, and the pack."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path

from legion.domain.errors import BadInput
from legion.domain.machines.machine import Machine
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.machine_runs import fence
from legion.runner.spec import DEFAULT_OUTPUT_BYTES, RunFolder
from legion.system import files

MOST_PIECE = 8 << 20
"""Bytes of one request."""
MOST_JOURNAL = 512 << 20
MOST_LOG = 4 << 20
MOST_PACK = 512 << 20
PACK = "arriving.pack"


class ArrivingFile(Enum):
    JOURNAL = "journal"
    OUTPUT = "output"
    COMPLAINTS = "complaints"
    PACK = "pack"

    def path(self, folder: Path) -> Path:
        known = RunFolder(folder)
        places = {
            ArrivingFile.JOURNAL: known.journal,
            ArrivingFile.OUTPUT: known.output,
            ArrivingFile.COMPLAINTS: known.complaints,
            ArrivingFile.PACK: folder / PACK,
        }
        return places[self]

    @property
    def most(self) -> int:
        limits = {
            ArrivingFile.JOURNAL: MOST_JOURNAL,
            # The runner adds a line where it cuts the output.
            ArrivingFile.OUTPUT: DEFAULT_OUTPUT_BYTES + MOST_PIECE,
            ArrivingFile.COMPLAINTS: MOST_LOG,
            ArrivingFile.PACK: MOST_PACK,
        }
        return limits[self]


class WrongOffset(Exception):
    """The piece does not continue the file; `size` is where it has to."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the file has {size} bytes")
        self.size = size


def _writing(context: Board, run: str) -> AbstractContextManager[None]:
    """Two pieces of one file must not mix. A lock file, since another process may serve machines too."""
    return files.waiting_lock(context.data.runs / run / "arriving.lock")


def append(
    context: Context,
    machine: Machine,
    *,
    run: str,
    generation: int,
    file: ArrivingFile,
    offset: int,
    piece: bytes,
    late: bool = False,
) -> int:
    """Add the piece and return the new size. Raises StaleRun, WrongOffset, BadInput.

    An empty piece asks for the size, as machines of an older release do first; a newer one starts at 0 and is corrected
    by WrongOffset. A pack is started again by deleting it, see `drop_pack`.
    """
    with context.store.read() as tx:
        check = fence.late if late and file is ArrivingFile.PACK else fence.current
        check(tx, machine, run, generation)
    folder = context.data.runs / run
    with _writing(context, run):
        path = file.path(folder)
        size = path.stat().st_size if path.exists() else 0
        if not piece:
            return size
        if offset != size:
            raise WrongOffset(size)
        if size + len(piece) > file.most:
            raise BadInput(f"The {file.value} of run {run} is larger than {file.most >> 20} MB, which is the limit.")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(handle, rest) :]
        finally:
            os.close(handle)
    context.machines.bells.ring(run, grown=True)
    return size + len(piece)


def drop_pack(context: Board, run: str) -> None:
    """What arrived is damaged or was used: the next piece starts at 0."""
    with _writing(context, run):
        (context.data.runs / run / PACK).unlink(missing_ok=True)
