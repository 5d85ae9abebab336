"""Joining a head, and the record of it: the head's address and authority, this machine's name and its token."""

from __future__ import annotations

import functools
import json
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from legion import __version__
from legion.domain.errors import BadInput, StateConflict
from legion.domain.machines.machine import PROTOCOL, LeaseTimes
from legion.machine.link import HeadLink, fetch_authority
from legion.system import files, toolchain
from legion.system.process import ProgramMissing, run
from legion.wire.machines import MachineJoin

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ASK_KERNEL = ("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")


def boot() -> str:
    """Changes with every start of the system, and with nothing else."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return f"{platform.node()}-{_session()}"


@functools.cache
def _session() -> str:
    """As macOS names it; empty elsewhere."""
    try:
        return run(_ASK_KERNEL).text.strip()
    except ProgramMissing:
        return ""


_LINE = re.compile(r"(https://[^\s/#]+)/?#([A-Za-z0-9_-]{16,128})/([0-9a-fA-F]{64})")
FILE = "machine.json"
_HEADS = "heads.json"
"""A file of its own: an older release does not know it."""


@dataclass(frozen=True, kw_only=True)
class Membership:
    name: str
    url: str
    token: str
    authority: str
    lease: LeaseTimes

    def link(self, root: Path | None = None) -> HeadLink:
        return HeadLink(self.url, authority=self.authority, token=self.token, others=known_heads(root) if root else ())

    @classmethod
    def read(cls, root: Path) -> Membership | None:
        try:
            known = json.loads((root / FILE).read_bytes())
        except FileNotFoundError:
            return None
        return cls(**{**known, "lease": LeaseTimes(**known["lease"])})


def known_heads(root: Path) -> list[str]:
    """All addresses of the head, as it last named them."""
    try:
        return [str(one) for one in json.loads((root / _HEADS).read_bytes())]
    except (FileNotFoundError, ValueError):
        return []


def remember_heads(root: Path, urls: Sequence[str]) -> None:
    files.write_atomic(root / _HEADS, json.dumps(list(urls)))


def join(root: Path, line: str) -> Membership:
    """Become a machine of the head that made this line. Raises BadInput, StateConflict or a MachineError.

    A line that this folder has used already changes nothing, so a service may pass it at each start.
    """
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise BadInput("This is no invitation: pass the line that `legion machine invite` printed, in quotes.")
    url, code, fingerprint = found.groups()
    known = Membership.read(root)
    used = root / "machine.line"
    if known is not None:
        if used.exists() and used.read_text() == line.strip():
            return known
        raise StateConflict(
            f"This folder belongs to machine {known.name} of {known.url} already: use another with --data-dir, "
            f"or delete {root / FILE} to join again."
        )
    authority = fetch_authority(url, fingerprint)
    wanted = MachineJoin(
        code=code, version=__version__, protocol=PROTOCOL, boot=boot(), toolchain=toolchain.fingerprint()
    )
    link = HeadLink(url, authority=authority)
    try:
        joined = link.call("POST", "/join", content=asdict(wanted)).json()
    finally:
        link.close()
    times = LeaseTimes(**{name: float(joined["lease"][name]) for name in ("beat", "quiet", "stop", "reap")})
    made = Membership(name=str(joined["name"]), url=url, token=str(joined["token"]), authority=authority, lease=times)
    files.write_atomic(root / FILE, json.dumps(asdict(made)))
    files.write_atomic(used, line.strip())
    return made
