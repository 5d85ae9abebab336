"""A daemon that finds empty folders where programs like to leave things: `outside`, next to its data folder, has them.

Run as a program, it takes the daemon's command line and becomes that daemon, in a mount namespace of its own.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import prefork

ROOT = Path(__file__).parents[2]
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_MOUNTS = """
folder=$1; code=$2; cd "$folder"
mount --make-rprivate / && mkdir -p code && mount --bind "$code" code || exit 1
for place in /tmp /var/tmp /dev/shm; do
    mkdir -p "outside$place" && mount --bind "outside$place" "$place" || exit 1
done
mkdir -p "$folder" "$code" && mount -c --bind . "$folder" && mount -c --bind ./code "$code" || exit 1
mkdir outside/home
"""


def main() -> None:
    folder = Path(sys.argv[sys.argv.index("--data-dir") + 1]).parent
    _leave()
    subprocess.run(["sh", "-c", _MOUNTS, "sh", folder, ROOT], check=True)
    os.environ.update(HOME=str(folder / "outside/home"), TMPDIR="/tmp")
    tempfile.tempdir = None
    os.chdir("/")
    prefork.prepare()
    runpy.run_module("legion.daemon", run_name="__main__", alter_sys=True)


def _leave() -> None:
    """Whoever is not root becomes it in a user namespace, or could mount nothing."""
    user, group = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | (_NEW_USER if user != 0 else 0)) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


if __name__ == "__main__":
    main()
