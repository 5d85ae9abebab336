"""Copies each project's board into its hub, so that a lost database costs at most the last second.

The copy is written within a second of every change, and at the end. It follows the events by number, so that a change
of one ticket among thousands writes one file. A failed write is repeated later; no other part waits for it.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field

from legion.domain.errors import LegionError
from legion.domain.projects import Project
from legion.git.core.errors import GitError
from legion.git.hub.board_ref import BoardRef
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import Trees
from legion.store import board_records, events
from legion.store.board import projects

log = logging.getLogger(__name__)

_PAUSE = 0.75
_AFTER_TROUBLE = 10.0
_LAST_WRITE = 20.0
"""Seconds that a stopping daemon waits for the last write."""


@dataclass(kw_only=True)
class _MirrorState:
    """What the hub holds of a project."""

    board: BoardRef
    tip: str | None
    event: int | None
    """Up to which event; None: there is nothing to continue from."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """Digests of the written files that are compared every time."""


class Mirror(BackgroundLoop):
    def __init__(self, context: Trees) -> None:
        super().__init__(context, "mirror")
        self._copies: dict[int, _MirrorState] = {}
        self._seen = 0
        """The last event that every copy contains."""
        self._active_before: frozenset[int] = frozenset()
        """Projects that changed before the last write: their latest change may have no event."""

    def start(self) -> None:
        self._wake.set()
        super().start()

    def poke(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Write what is left, then end."""
        super().stop()
        self._thread.join(_LAST_WRITE)

    def _repeat(self) -> None:
        while True:
            self._wake.wait()
            # Runs that start now go first, and the changes that follow are written together.
            self._stopping.wait(_PAUSE)
            self._wake.clear()
            last = self._stopping.is_set()
            complete = self.write()
            if last:
                return
            if not complete:
                self._stopping.wait(_AFTER_TROUBLE)
                self._wake.set()

    def write(self) -> bool:
        """Bring every project's copy up to date. False where one has to be written again."""
        complete = True
        try:
            with self.context.store.read() as tx:
                # The number first: an event between the two reads is read again.
                newest = events.last(tx)
                there, active = projects.all(tx), board_records.astir(tx, self._seen)
        except LegionError as trouble:
            log.warning("the copy of the boards failed, will retry: %s", trouble.message)
            return False
        for project in there:
            if project.id in self._copies and project.id not in active | self._active_before:
                continue
            try:
                self._write(project)
            except Exception as trouble:  # a copy that cannot be made must not end the copying of the others
                complete = False
                self._copies.pop(project.id, None)
                log.warning("the copy of the board of %s failed, will retry: %s", project.name, trouble)
        self._seen, self._active_before = newest, active
        return complete

    def _write(self, project: Project) -> None:
        copy = self._copies.get(project.id) or self._resume(project)
        with self.context.store.read() as tx:
            newest = events.last(tx)
            if newest == copy.event:
                return
            found = board_records.files(tx, project.id, copy.event)
        digests = {path: hashlib.sha256(content).digest() for path, content in found.items()}
        changed = {path: found[path] for path in found if copy.contents.get(path) != digests[path]}
        whole = copy.event is None
        if whole or changed.keys() - {board_records.HEAD}:
            message = f"The board of {project.name} at event {newest}\n"
            try:
                copy.tip = copy.board.write(
                    changed, expected=copy.tip, whole=whole, message=message, when=int(self.context.clock())
                )
            except GitError:
                if not copy.board.is_whole():
                    log.warning("the copy of %s was damaged and is kept in %s", project.name, copy.board.set_aside())
                raise
        copy.event = newest
        copy.contents |= {path: digest for path, digest in digests.items() if not path.startswith("tickets/")}
        self._copies[project.id] = copy

    def _resume(self, project: Project) -> _MirrorState:
        """Continue from the copy in the hub, if it is this board at an earlier event."""
        board = BoardRef(self.context.data.project(project.id) / "hub.git")
        tip = board.tip()
        if tip is None:
            if board.exists:
                board.set_aside()
            return _MirrorState(board=board, tip=None, event=None)
        with self.context.store.read() as tx:
            newest = events.last(tx)
        try:
            head = board_records.BoardHead.read(board.read_file(tip, board_records.HEAD) or b"")
        except (ValueError, GitError):
            head = None
        if head is None or (head.project, head.created_at) != (project.id, project.created_at) or head.event > newest:
            log.warning("the hub of %s held another board, which is kept in %s", project.name, board.set_aside())
            return _MirrorState(board=board, tip=None, event=None)
        same = (head.format, head.schema) == (board_records.FORMAT, board_records.SCHEMA)
        return _MirrorState(board=board, tip=tip, event=head.event if same else None)
