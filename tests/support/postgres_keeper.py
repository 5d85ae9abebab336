"""Runs one private Postgres for a test session: makes it, waits for the session's end, stops it.

A program of its own, so that the server goes away even when the tests are killed. It listens on a unix
socket only and runs as an ordinary user, since Postgres refuses to be root.
Usage: postgres_keeper.py FOLDER. Says "ready" or one line of trouble on stdout.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

SETTINGS = (
    "listen_addresses=''",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=100",
    "autovacuum=off",
)


class Trouble(Exception):
    """Postgres cannot be had here; the message says why."""


def programs() -> Path:
    """The folder of the server's programs. The packaged ones come first: those on PATH may be wrappers."""
    packaged = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if packaged:
        return max(packaged, key=lambda folder: int(folder.parent.name))
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    raise Trouble("Postgres is not installed")


def ordinary_user() -> pwd.struct_passwd | None:
    """Whom to run the server as; None means ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Trouble("Postgres refuses to run as root and there is no user postgres or nobody")


class Server:
    """A cluster in `folder`, which holds its data and its socket."""

    def __init__(self, folder: Path, settings: tuple[str, ...] = SETTINGS) -> None:
        self.folder = folder
        self.settings = settings
        self.data = folder / "data"
        self.bin = programs()
        self.user = ordinary_user()

    def start(self) -> None:
        self.folder.mkdir(mode=0o755)
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "legion", "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.again()

    def again(self) -> None:
        """Start it with the data that it has."""
        options = " ".join(f"-c {setting}" for setting in self.settings)
        log = self.folder / "log"
        self._run("pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", log, "-o", f"-k {self.folder} {options}")

    def stop(self) -> None:
        """At once, data and all; by its process id when it does not listen."""
        try:
            self._run("pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-w", "-t", "10")
        except Trouble:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
                os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def _run(self, program: str, *arguments: str | Path) -> None:
        # Output goes to a file: the server keeps a pipe open as long as it lives.
        said = self.folder / f"{program}.out"
        with said.open("wb") as out:
            finished = subprocess.run(
                [self.bin / program, *arguments],
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
                start_new_session=True,
                user=self.user.pw_uid if self.user else None,
                group=self.user.pw_gid if self.user else None,
                extra_groups=[] if self.user else None,
            )
        if finished.returncode != 0:
            raise Trouble(f"{program} failed: {' '.join(said.read_text(errors='replace').split())}")


def main() -> None:
    session = Path(sys.argv[1])
    alive = os.open(session / "keeper", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)  # freed when this process ends
    life = os.open(session / "life", os.O_RDWR | os.O_CLOEXEC)
    try:
        server = Server(session / "postgres")
        server.start()
    except Trouble as trouble:
        print(trouble, flush=True)
        return
    print("ready", flush=True)
    fcntl.flock(life, fcntl.LOCK_EX)
    server.stop()
    shutil.rmtree(session, ignore_errors=True)


if __name__ == "__main__":
    main()
