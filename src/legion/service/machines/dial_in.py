"""The requests of machines to the head: join, beat, fetch the code of a job, send its files.

Nothing else is reachable with that token, and everything here is about runs that this very machine was given.

It decides nothing: the rows of placed runs do. It follows the head by the generation of the lease, so a copy of the
folder, or the folder of an earlier head, serves no machine.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion import __version__
from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound, Retryable
from legion.domain.events import EventKind
from legion.domain.machines.machine import Machine, PlacedRun, ProtocolFit, protocol_fit
from legion.gateway import lifecycle
from legion.gateway.access.admission import token_of
from legion.gateway.files import passes
from legion.gateway.files.folder import GatewayFolder
from legion.jobs.context import Context
from legion.jobs.machine_runs import arrivals, beats, ends, fence, packs
from legion.jobs.machine_runs.arrivals import ArrivingFile, WrongOffset
from legion.jobs.machine_runs.beats import BeatAnswer
from legion.jobs.machines.head_addresses import HeadAddresses
from legion.jobs.machines.long_polls import BeatFacts, WaitingBeat
from legion.jobs.machines.travel import TOKEN, RelayDoor, passed_back
from legion.store.board import projects
from legion.store.database import head_lease
from legion.store.database.transactions import ReadTransaction, Store
from legion.store.staff import tokens
from legion.store.work import machines
from legion.store.work.machines import MachineNews
from legion.wire.machines import (
    MachineAnswer,
    MachineBeat,
    MachineCommand,
    MachineJoin,
    MachineJoined,
    MachineLeaseTimes,
    MachineRunEnd,
    MirrorTarget,
    RunRef,
)

__all__ = ["TOKEN", "MachineNews", "MachineOld", "RelayDoor", "WrongOffset", "passed_back"]

BAD_CODE = (
    "This invitation was used already, or is older than 15 minutes: run `legion machine invite` on the head again."
)
UNKNOWN = "This machine was removed from its head, or never joined it: run `legion machine invite` on the head again."
_MOST_TEXT = 200
_MOST_DISK_MB = (1 << 31) - 1
"""What a column holds."""


class MachineOld(LegionError):
    """The two releases are too far apart: 426."""

    code = "update_needed"


class DialIn:
    """The head as its machines see it. Safe to call from many threads."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._addresses = HeadAddresses(context.data)

    @property
    def store(self) -> Store:
        """For the signal after a commit."""
        return self._context.store

    def join(self, wanted: MachineJoin) -> MachineJoined:
        """Raises NotAllowed for a code that is not valid now, and MachineOld."""
        if far := _too_far(wanted.protocol):
            raise MachineOld(far)
        with self._context.store.write() as tx:
            joined = machines.join(
                tx,
                wanted.code,
                boot=wanted.boot[:_MOST_TEXT],
                version=wanted.version[:_MOST_TEXT],
                protocol=wanted.protocol,
                toolchain=wanted.toolchain[:_MOST_TEXT],
            )
            if joined is not None:
                tx.record(EventKind.MACHINE_JOINED, data={"machine": joined[1].name})
        if joined is None:
            raise NotAllowed(BAD_CODE)
        token, machine = joined
        return MachineJoined(name=machine.name, token=token, lease=self._times(), version=__version__)

    def machine(self, token: str) -> Machine:
        """The machine with this token. Raises NotAllowed for one that was removed."""
        with self._context.store.read() as tx:
            found = machines.of_token(tx, token) if token else None
        if found is None:
            raise NotAllowed(UNKNOWN)
        return found

    def beat(self, machine: Machine, wanted: MachineBeat) -> MachineAnswer:
        """A sign of life. A machine whose release is too far away keeps its runs and gets no others."""
        facts = _facts(wanted)
        beats.note(self._context, machine, facts)
        return self._answer(machine, facts, beats.answer(self._context, machine, facts))

    def look_again(self, token: str, wanted: MachineBeat) -> MachineAnswer:
        """For a beat whose answer waits: what there is to do now, without another sign of life. Raises NotAllowed."""
        facts, machine = _facts(wanted), self.machine(token)
        return self._answer(machine, facts, beats.answer(self._context, machine, facts))

    def waiting(
        self, machine: Machine, wanted: MachineBeat, wake: Callable[[], None]
    ) -> AbstractContextManager[WaitingBeat]:
        """For a beat whose answer waits: it may be given a job, and `wake` is called then, in any thread."""
        return self._context.machines.beats.waiting(machine.id, _facts(wanted), wake)

    def grant(self, machine: Machine, job: dict[str, Any]) -> MachineAnswer:
        """The answer to a beat that was given this job. What else there is comes with the next one."""
        return MachineAnswer(jobs=[job], lease=self._times(), heads=self._addresses.of(machine.id))

    def news(self) -> Mapping[int, MachineNews]:
        """What concerns each machine now, by its number, with the targets of its mirrors."""
        with self._context.store.read() as tx:
            found = machines.news(tx)
            targets = {one.id: one.target for one in projects.all(tx)}
        return {
            number: replace(one, facts=(one.facts, *(targets.get(mirror) for mirror in one.mirrors)))
            for number, one in found.items()
        }

    def append(
        self, machine: Machine, *, run: str, generation: int, file: str, offset: int, piece: bytes, late: bool
    ) -> int:
        """Raises StaleRun, WrongOffset, BadInput."""
        try:
            kind = ArrivingFile(file)
        except ValueError:
            raise BadInput(f"A run has no file {file[:_MOST_TEXT]!r} that a machine sends.") from None
        return arrivals.append(
            self._context, machine, run=run, generation=generation, file=kind, offset=offset, piece=piece, late=late
        )

    def pack(self, machine: Machine, *, run: str, generation: int, have: Collection[str]) -> Path:
        return packs.outgoing(self._context, machine, run=run, generation=generation, have=have)

    def target_pack(self, machine: Machine, *, project: int, commit: str, have: Collection[str]) -> bytes:
        return packs.ahead(self._context, machine, project=project, commit=commit, have=have)

    def end(self, machine: Machine, *, run: str, generation: int, end: MachineRunEnd) -> None:
        ends.accept(
            self._context,
            machine,
            run=run,
            generation=generation,
            result=end.result,
            saved=end.saved,
            failed=end.failed[:2000],
            unsaved=end.unsaved[:2000],
            setup_failed=end.setup_failed,
            over_quota=end.over_quota,
            tree=end.tree[:4096],
        )

    def snapshot(self, machine: Machine, *, run: str, generation: int, commit: str) -> None:
        """Raises StaleRun, BadInput."""
        ends.accept_snapshot(self._context, machine, run=run, generation=generation, commit=commit)

    def late(self, machine: Machine, *, run: str, generation: int, commit: str) -> None:
        ends.accept_late(self._context, machine, run=run, generation=generation, commit=commit)

    def relayed(
        self,
        machine: Machine,
        *,
        run: str,
        generation: int,
        door: RelayDoor,
        method: str,
        path: str,
        headers: Mapping[str, str],
    ) -> str:
        """The URL for a request of this run's agent. Raises StaleRun, NotFound, and NotAllowed for the token of another
        run.
        """
        with self._context.store.read() as tx:
            placed = fence.current(tx, machine, run, generation)
            if not door.opens(method, path):
                raise NotFound("Nothing is relayed to this path: agents reach the gateway and Legion's tools.")
            if not self._is_of_run(tx, placed, door, token_of(headers)):
                raise NotAllowed(f"This token is not of run {placed.name}.")
        return f"{self._place(placed, door)}{path}"

    def _is_of_run(self, tx: ReadTransaction, placed: PlacedRun, door: RelayDoor, token: str) -> bool:
        if door is RelayDoor.TOOLS:
            known = tokens.bearer(tx, token)
            return known is not None and known.run == placed.run
        found = passes.holder(GatewayFolder(self._context.data.gateway), token)
        # The gateway refuses a pass that it does not know in the words of the program's own API.
        return found is None or found.run == placed.name

    def _place(self, placed: PlacedRun, door: RelayDoor) -> str:
        if door is RelayDoor.TOOLS:
            return self._context.url
        address = lifecycle.address(GatewayFolder(self._context.data.gateway))
        if address is None:
            raise NotAllowed("The gateway of the head does not run now.")
        return address.url

    def _answer(self, machine: Machine, facts: BeatFacts, answer: BeatAnswer) -> MachineAnswer:
        return MachineAnswer(
            jobs=list(answer.jobs),
            stop=[RunRef(run=run, generation=generation) for run, generation in answer.stop],
            commands=[
                MachineCommand(id=one.id, run=one.run, kind=one.kind.value, facts=one.facts) for one in answer.commands
            ],
            lease=self._times(),
            targets=[MirrorTarget(project=project, commit=commit) for project, commit in answer.targets.items()],
            heads=self._addresses.of(machine.id),
            notice=_too_far(facts.protocol),
        )

    def _times(self) -> MachineLeaseTimes:
        times = self._context.machines.times
        return MachineLeaseTimes(beat=times.beat, quiet=times.quiet, stop=times.stop, reap=times.reap)


def _facts(wanted: MachineBeat) -> BeatFacts:
    return BeatFacts(
        boot=wanted.boot[:_MOST_TEXT],
        worker=wanted.worker[:_MOST_TEXT],
        version=wanted.version[:_MOST_TEXT],
        protocol=wanted.protocol,
        running=frozenset((one.run, one.generation) for one in wanted.running),
        mirrors=frozenset(wanted.mirrors),
        acks=frozenset(wanted.acks),
        free=0 if _too_far(wanted.protocol) else max(0, wanted.free),
        toolchain=wanted.toolchain,
        disk_free_mb=None if wanted.disk_free_mb is None else min(max(wanted.disk_free_mb, 0), _MOST_DISK_MB),
        disk_floor_mb=min(max(wanted.disk_floor_mb, 0), _MOST_DISK_MB),
        targets=None if wanted.targets is None else {one.project: one.commit for one in wanted.targets},
    )


def _too_far(protocol: int) -> str:
    """What to update where the two releases are too far apart; empty where they are not."""
    match protocol_fit(protocol):
        case ProtocolFit.OLD:
            return f"The head runs Legion {__version__}, which is too new for this machine: update Legion here."
        case ProtocolFit.NEW:
            return f"The head runs Legion {__version__}, which is too old for this machine: update the head."
        case ProtocolFit.SERVED:
            return ""


class SecondHead(DialIn):
    def __init__(self, context: Context, *, host: str) -> None:
        """`host`: the name of this host, to compare with that of the head."""
        super().__init__(context)
        self._host = host
        self._is_with_head = True
        self._generation: int | None = None
        self._lock = threading.Lock()

    def machine(self, token: str) -> Machine:
        """The machine with this token. Raises NotAllowed, and Retryable while another folder is the head's."""
        self.follow()
        return super().machine(token)

    def _place(self, placed: PlacedRun, door: RelayDoor) -> str:
        """Gateway and tools listen on the loopback of the head's host: its address for machines passes on to them."""
        if not self._is_with_head:
            url = self._addresses.of_head()
            if not url:
                raise Retryable("The head serves no machines now: try again.")
            return f"{url}/machine/v1/runs/{placed.name}/{placed.generation}/{door.value}"
        if door is RelayDoor.GATEWAY:
            return super()._place(placed, door)
        try:
            return str(json.loads(self._context.data.daemon_record.read_bytes())["url"])
        except (FileNotFoundError, ValueError, KeyError):
            raise Retryable("The head does not serve now: try again.") from None

    def follow(self) -> None:
        """Write from now on under the generation of the head that serves this folder. Raises Retryable."""
        with self._context.store.read() as tx:
            last, holder = head_lease.last(tx)
        with self._lock:
            if last == self._generation:
                return
            if last == 0 or last != self._context.data.generation_of_head:
                raise Retryable(
                    f"The head that serves this database has another data folder than {self._context.data.root}, or "
                    "has not started yet: start it with `legion up`, or name its folder with --data-dir."
                )
            self._context.store.fence(last)
            self._is_with_head = head_lease.is_on(holder, self._host)
            self._generation = last
