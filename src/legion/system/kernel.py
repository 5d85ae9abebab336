"""Linux calls that Python lacks: prctl, Landlock scopes, heaps. On other systems they do nothing."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_M_ARENA_MAX = -8
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_NS_GET_USERNS = 0xB701
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_WANTS_VERSION = 1
_SCOPE_ABSTRACT_UNIX_SOCKET = 1
_SCOPE_SIGNAL = 2
_FIRST_ABI_WITH_SCOPES = 6

_RIGHTS_BY_ABI = ((1, 0x1FFF & ~0x8), (2, 0x2000), (3, 0x4000), (5, 0x8000))
"""Landlock's rights about files, and since when: without the one to list folders (0x8), since programs look around on
their way up to the root.
"""
READ_RIGHTS = 0x5
"""To execute files and to read them."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(number: int) -> None:
    """This process gets the signal when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def hide_memory() -> None:
    """Forbid processes of the same user to ptrace this one or to read its memory in /proc; write no core file."""
    _prctl(_PR_SET_DUMPABLE, 0)


def share_heaps(count: int) -> None:
    """Let the threads of this process share so many heaps. glibc makes up to eight per processor, and a process with
    many short threads scatters its memory over all of them.
    """
    if _libc is not None and hasattr(_libc, "mallopt"):
        _libc.mallopt(_M_ARENA_MAX, count)


def return_free_memory() -> None:
    """Give the system back what the allocator holds free. By itself it returns only the end of a heap."""
    if _libc is not None and hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that all of them stay known."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def has_our_users(pid: int) -> bool:
    return Path("/proc/self/ns/user").stat().st_ino == Path(f"/proc/{pid}/ns/user").stat().st_ino


def enter_network(pid: int) -> None:
    """This process moves into the network of one that has other users, by way of those.

    Raises OSError. It has to be a process of one thread, and cannot return.
    """
    with Path(f"/proc/{pid}/ns/net").open("rb") as network:
        # Not the users of the process: bubblewrap gives it others once more, which do not own its network.
        users = fcntl.ioctl(network, _NS_GET_USERNS)
        _enter(users)
        os.close(users)
        _enter(network.fileno())


@contextlib.contextmanager
def network_of(pid: int) -> Iterator[None]:
    """This thread is in the network of a process that has our users. Raises OSError."""
    with Path("/proc/thread-self/ns/net").open("rb") as ours, Path(f"/proc/{pid}/ns/net").open("rb") as theirs:
        _enter(theirs.fileno())
        try:
            yield
        finally:
            _enter(ours.fileno())


def _enter(handle: int) -> None:
    if _libc is None or _libc.setns(handle, 0):
        raise OSError(ctypes.get_errno(), "a sandbox's network could not be entered")


def landlock_version() -> int:
    """The kernel's Landlock ABI; 0 where there is none."""
    if _libc is None:
        return 0
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_WANTS_VERSION)))


def file_rights() -> int:
    """The rights about files that Landlock can take away here, as bits; 0 where there is no Landlock."""
    version = landlock_version()
    return sum(rights for since, rights in _RIGHTS_BY_ABI if since <= version)


def scopes() -> int:
    """Landlock's scopes here: what they close are abstract sockets and signals of processes outside."""
    return _SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL if landlock_version() >= _FIRST_ABI_WITH_SCOPES else 0


def scope_self() -> bool:
    """Cut this process and its children off from abstract sockets and signals of all other processes.

    Uses only scopes: file rules would forbid mounting, and with it bubblewrap. File rules that follow later could allow
    no file to change its folder, so a second wall has scopes of its own. Returns whether it worked.
    """
    if _libc is None or not scopes():
        return False
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    attributes = struct.pack("=QQQ", 0, 0, scopes())
    ruleset = _libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    held = bool(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    return held


def _prctl(option: int, value: int) -> None:
    if _libc is not None and _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
