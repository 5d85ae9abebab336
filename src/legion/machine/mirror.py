"""The mirrors of the head's hubs: fetches the code of a job, and sends a change back, in pieces that can be resumed."""

from __future__ import annotations

from pathlib import Path

from legion.git.hub import machine_packs
from legion.git.hub.repository import Hub
from legion.jobs.machines.travel import MachineJob
from legion.machine.errors import OffsetGap
from legion.machine.link import HeadLink
from legion.system import crash, files
from legion.system.crash import Point

_PIECE = 4 << 20
_SHA256 = 64


def prepare(link: HeadLink, hub_path: Path, job: MachineJob) -> Hub:
    """The mirror with everything that the job needs. Raises a MachineError, or GitError for a damaged pack."""
    object_format = "sha256" if len(job.base) == _SHA256 else "sha1"
    mirror = machine_packs.make_mirror(hub_path, object_format=object_format)
    if machine_packs.lacks(mirror, job.commits):
        pack = _fetch(link, job, machine_packs.mirrored(mirror))
        crash.reach(Point.MACHINE_FETCH_AFTER_PACK)
        machine_packs.receive(mirror, pack, commits=job.commits, target=job.target)
    else:
        machine_packs.set_target(mirror, job.target)
    return mirror


def _fetch(link: HeadLink, job: MachineJob, have: tuple[str, ...]) -> bytes:
    pack = bytearray()
    path = f"/runs/{job.run.name}/{job.run.generation}/pack"
    while True:
        query = {"have": ",".join(have), "offset": str(len(pack))}
        answer = link.call("GET", path, query=query, patience=60.0)
        pack += answer.body
        if len(pack) >= int(answer.headers.get("legion-size", "0")) or not answer.body:
            return bytes(pack)


def send(link: HeadLink, mirror: Hub, job: MachineJob, folder: Path, commit: str, *, late: bool) -> None:
    """Send what leads to the commit. A head that has a part of the same pack gets the rest."""
    if commit in (job.base, job.start):
        return
    # The same bytes at each try: git may pack the same objects in another way.
    file = folder / f"leaving-{commit}.pack"
    if not file.exists():
        have = [one for one in (job.base, job.start, job.target) if one is not None]
        files.write_atomic(file, machine_packs.change_pack(mirror, head=commit, have=have))
    pack = file.read_bytes()
    path = f"/runs/{job.run.name}/{job.run.generation}/pack"
    query = {"late": "1"} if late else {}
    offset = int(link.call("PUT", path, query={**query, "offset": "0"}, body=b"").json()["size"])
    while offset < len(pack):
        piece = pack[offset : offset + _PIECE]
        try:
            size = link.call("PUT", path, query={**query, "offset": str(offset)}, body=piece, patience=60.0)
            offset = int(size.json()["size"])
        except OffsetGap as gap:
            offset = gap.size
