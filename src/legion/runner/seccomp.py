"""The filter of system calls in the sandbox, as a program for the kernel's seccomp.

It refuses what no build or test needs and what the kernel's past holes were reached through: user namespaces, mounts,
keyrings, kernel modules, tracing of the kernel, rings (io_uring), sockets to the host of a virtual machine. Debugging
one's own processes stays possible. bubblewrap loads it.
"""

from __future__ import annotations

import errno
import functools
import os
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

_CLONE_NEWUSER = 0x10000000
_TERMINAL_INPUT = (0x5412, 0x541C)
"""The ioctl requests TIOCSTI and TIOCLINUX, which type into a terminal."""
_X32 = 0x40000000
"""Numbers from here on are x86_64's second set of system calls."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The numbers of system calls on one kind of machine."""

    arch: int
    """As the kernel names it for seccomp."""
    clone: int
    unshare: int
    ioctl: int
    socket: int
    refused: tuple[int, ...]
    has_x32: bool = False


_NEW_MOUNTS = (428, 429, 430, 431, 432, 433, 442)
"""open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr: the same number everywhere."""
_UNREADABLE = (425, 426, 427, 435)
"""io_uring_setup, io_uring_enter, io_uring_register, clone3: what they do is in memory, which no filter can read. Where
a kernel does not know them, programs take others. The same number everywhere.
"""
_AF_VSOCK = 40
"""Sockets between a virtual machine and its host, which are in no network namespace."""

MACHINES = {
    "x86_64": Architecture(
        arch=0xC000003E,
        clone=56,
        unshare=272,
        ioctl=16,
        socket=41,
        refused=(
            *(165, 166, 155, 308),  # mount, umount2, pivot_root, setns
            *(248, 249, 250, 103),  # add_key, request_key, keyctl, syslog
            *(321, 298, 323),  # bpf, perf_event_open, userfaultfd
            *(246, 320, 175, 313, 176),  # kexec_load, kexec_file_load, init_module, finit_module, delete_module
            *(167, 168, 169, 304, 172, 173),  # swapon, swapoff, reboot, open_by_handle_at, iopl, ioperm
            *_NEW_MOUNTS,
        ),
        has_x32=True,
    ),
    "aarch64": Architecture(
        arch=0xC00000B7,
        clone=220,
        unshare=97,
        ioctl=29,
        socket=198,
        refused=(
            *(40, 39, 41, 268),  # mount, umount2, pivot_root, setns
            *(217, 218, 219, 116),  # add_key, request_key, keyctl, syslog
            *(280, 241, 282),  # bpf, perf_event_open, userfaultfd
            *(104, 294, 105, 273, 106),  # kexec_load, kexec_file_load, init_module, finit_module, delete_module
            *(224, 225, 142, 265),  # swapon, swapoff, reboot, open_by_handle_at
            *_NEW_MOUNTS,
        ),
    ),
}


class _Answer(Enum):
    """Where a jump leads: the three results, and the checks of arguments."""

    ALLOW = 0x7FFF0000
    REFUSE = 0x00050000 | errno.EPERM
    ABSENT = 0x00050000 | errno.ENOSYS


_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Places in the facts about a call; of arguments the lower half, since both machines write that first."""


@dataclass(frozen=True)
class _Step:
    """One instruction. A jump leads to the answer if its comparison holds (or if not, with `unless`), else on; without
    an answer it leads behind the next return.
    """

    code: int
    value: int
    to: _Answer | None = None
    unless: bool = False


@functools.cache
def program() -> bytes | None:
    """The filter for this machine, or None where the numbers of its system calls are not known here."""
    machine = MACHINES.get(platform.machine())
    return None if machine is None else assemble(machine)


def handle(filter: bytes) -> int:
    """An open file with the filter, for one bubblewrap."""
    opened = os.memfd_create("seccomp")
    os.write(opened, filter)
    os.lseek(opened, 0, os.SEEK_SET)
    return opened


def assemble(machine: Architecture) -> bytes:
    """A call of another kind of machine (32-bit programs) is answered as if the kernel did not know it."""
    calls = [
        _Step(_LOAD, _ARCH),
        _Step(_EQUALS, machine.arch, _Answer.ABSENT, unless=True),
        _Step(_LOAD, _NUMBER),
        *([_Step(_AT_LEAST, _X32, _Answer.ABSENT)] if machine.has_x32 else []),
        *(_Step(_EQUALS, number, _Answer.ABSENT) for number in _UNREADABLE),
        *(_Step(_EQUALS, number, _Answer.REFUSE) for number in machine.refused),
    ]
    for call, argument, comparison, values in (
        (machine.clone, _FIRST_ARGUMENT, _HAS_BITS, (_CLONE_NEWUSER,)),
        (machine.unshare, _FIRST_ARGUMENT, _HAS_BITS, (_CLONE_NEWUSER,)),
        (machine.ioctl, _SECOND_ARGUMENT, _EQUALS, _TERMINAL_INPUT),
        (machine.socket, _FIRST_ARGUMENT, _EQUALS, (_AF_VSOCK,)),
    ):
        calls += _on_argument(call, argument, comparison, values)
    return _encode(calls)


def _on_argument(call: int, argument: int, comparison: int, values: Sequence[int]) -> list[_Step]:
    """Refuse the call where its argument is one of the values, and allow it otherwise. Other calls skip all of it."""
    checks = [_Step(comparison, value, _Answer.REFUSE) for value in values]
    return [_Step(_EQUALS, call, unless=True), _Step(_LOAD, argument), *checks, _Step(_RETURN, _Answer.ALLOW.value)]


def _encode(steps: Sequence[_Step]) -> bytes:
    """The instructions, followed by one return for each answer."""
    answers = {answer: len(steps) + position for position, answer in enumerate(_Answer)}
    encoded = []
    for position, step in enumerate(steps):
        if step.code in (_LOAD, _RETURN):
            encoded.append((step.code, 0, 0, step.value))
            continue
        if step.to is None:
            away = next(at for at in range(position + 1, len(steps)) if steps[at].code == _RETURN) - position
        else:
            away = answers[step.to] - position - 1
        encoded.append((step.code, *((0, away) if step.unless else (away, 0)), step.value))
    encoded += [(_RETURN, 0, 0, answer.value) for answer in _Answer]
    return b"".join(struct.pack("=HBBI", *one) for one in encoded)
