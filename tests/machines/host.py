"""`python -m tests.machines.host NAMESPACE SECONDS WORDS`: the worker of a host with a network and clocks of its own.

It is forked from the warm process, as all workers are: what makes it a host is done here, without an exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from legion.machine.__main__ import main
from legion.system import kernel
from tests.support import prefork

_NEW_NETWORK, _NEW_TIME = 0x40000000, 0x00000080
_LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace: str, seconds: int) -> None:
    """From now on this process is in that network; its children's clocks show so many seconds more than others."""
    with Path("/run/netns", namespace).open() as network:
        _call(_LIBC.setns(network.fileno(), _NEW_NETWORK))
    _call(_LIBC.unshare(_NEW_TIME))
    Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} 0\nboottime {seconds} 0\n")


def _call(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    enter(sys.argv[1], int(sys.argv[2]))
    worker = os.fork()
    if worker:
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
    kernel.die_with_parent(signal.SIGKILL)
    prefork.prepare()
    raise SystemExit(main(sys.argv[3:]))
