"""A private Postgres for the demo, in a folder of its own: a unix socket, no port, and it ends with the demo."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from legion.wire.errors import LegionError

_SETTINGS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "shared_buffers=32MB", "max_connections=100")
_USER, _DATABASE = "legion", "postgres"


@contextmanager
def private_postgres() -> Iterator[str]:
    """Its URL, during the block. Raises LegionError where Postgres is not installed."""
    programs, user = _programs(), _ordinary_user()
    # Postgres refuses to be root, and another user cannot look into the demo's own folder.
    folder = Path(tempfile.mkdtemp(prefix="legion-pg-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        _run(
            programs / "initdb",
            *("-D", str(data), "-U", _USER, "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync"),
            folder=folder,
            user=user,
        )
        options = " ".join(f"-c {setting}" for setting in _SETTINGS)
        start = ("start", "-w", "-t", "60", "-l", str(folder / "log"), "-o", f"-k {folder} {options}")
        _run(programs / "pg_ctl", "-D", str(data), *start, folder=folder, user=user)
        try:
            yield f"postgresql+psycopg://{_USER}@/{_DATABASE}?host={folder}"
        finally:
            with suppress(LegionError):
                _run(programs / "pg_ctl", "-D", str(data), "stop", "-m", "immediate", folder=folder, user=user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The packaged ones come first: those on PATH may be wrappers."""
    packaged = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if packaged:
        return max(packaged, key=lambda folder: int(folder.parent.name))
    found = shutil.which("initdb")
    if found is None:
        raise LegionError(
            "Machines need a board in Postgres: install it (Debian: apt install postgresql) and try again."
        )
    return Path(found).resolve().parent


def _ordinary_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise LegionError("Postgres refuses to run as root, and there is no user postgres: run the demo as another user.")


def _run(program: Path, *words: str, folder: Path, user: pwd.struct_passwd | None) -> None:
    # Output goes to a file: the server keeps a pipe open as long as it lives.
    with (folder / "output").open("wb") as output:
        done = subprocess.run(
            [program, *words],
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    if done.returncode != 0:
        text = " ".join((folder / "output").read_text(errors="replace").split())
        raise LegionError(f"{program.name} failed: {text[-400:]}")
