"""The queue between the head and its machines, as a seam: jobs are placed for one machine and taken on its behalf.

The head decides where a job runs (`domain/machines/placement.py`) and fences it by run and generation. The engine
only stores which jobs wait for which machine, and which machine has taken them. A head on SQLite has no engine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class PlacedJob:
    """One start of a run on one machine. `run` and `generation` together name it; everything else describes it."""

    run: str
    generation: int
    machine: str
    project: int
    priority: int = 0
    """Of the jobs that wait for a machine, the highest is taken first; equal ones in the order of their placing."""

    @property
    def key(self) -> RunKey:
        return self.run, self.generation


RunKey = tuple[str, int]
"""Run and generation: the fence that everything a machine sends has to name."""


class JobEngine(Protocol):
    """All methods may be called from any thread and by several heads at once. They raise EngineUnavailable."""

    def place(self, job: PlacedJob, *, taken: bool = False) -> None:
        """Queue the job for its machine. A second call with the same run and generation changes nothing.

        `taken`: the machine was given it past the queue, which records that.
        """
        ...

    def cancel(self, run: str, generation: int) -> None:
        """Remove the job, whether it waits or is taken. The machine is stopped by the head, not from here."""
        ...

    def take(self, machine: str, most: int, *, running: Collection[RunKey] = ()) -> Sequence[PlacedJob]:
        """Assign up to `most` waiting jobs to the machine; also a sign of life, as `renew` is.

        `running` names what the machine knows that it has. A job that was taken earlier and is missing there is
        returned again, before new ones and beyond `most`: the answer that carried it was lost. So a machine may repeat
        its request, and a head may be killed between the assignment and its answer.
        """
        ...

    def renew(self, machine: str) -> None:
        """Record a sign of life of the machine, by the clock of the database."""
        ...

    def finish(self, run: str, generation: int) -> None:
        """The job has ended, however it ended. Unknown and finished jobs are ignored."""
        ...

    def stalled(self, seconds: float) -> Sequence[PlacedJob]:
        """Taken jobs whose machine gave no sign of life for so long. They stay taken until `finish` or `cancel`."""
        ...

    def prune(self, hours: int) -> None:
        """Delete jobs that ended so long ago. Until then, placing them again changes nothing."""
        ...

    def close(self) -> None: ...


class EngineUnavailable(Exception):
    """The database of the queue did not answer. Nothing is lost: the caller repeats its call later."""
