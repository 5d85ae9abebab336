"""Writes a ref as the file that git would write: under the lock that git takes, flushed to disk, then renamed.

A process takes some milliseconds for it. Whatever is not plain is left to git.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_ref(git_dir: Path, ref: str, id: str) -> bool:
    """Let a ref name an object that exists. False where git has to do it, and nothing was changed.

    That is so where refs are stored in another way, where a process holds the lock or left it behind, and where a name
    of another ref is a folder of this one.
    """
    place = git_dir / ref
    if (git_dir / "reftable").exists() or _collides(git_dir / "packed-refs", ref.encode()):
        return False
    lock = place.with_name(f"{place.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b"%s\n" % id.encode())
            file.flush()
            os.fsync(file.fileno())
        lock.rename(place)
    except BaseException as error:
        lock.unlink()
        if isinstance(error, OSError):
            return False
        raise
    return True


def _collides(packed: Path, ref: bytes) -> bool:
    """Whether a packed ref is a folder of this one, or the other way round. Loose ones show when the file is made."""
    try:
        known = packed.read_bytes()
    except FileNotFoundError:
        return False
    parts = ref.split(b"/")
    above = (b" %s\n" % b"/".join(parts[:depth]) for depth in range(1, len(parts)))
    return b" %s/" % ref in known or any(one in known for one in above)
