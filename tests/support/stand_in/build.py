"""Makes the stand-in's one file: a zip of compiled modules with the interpreter in its first line."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.migrated import once
from tests.support.session import session_folder

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else shutil.which("python3")
_PACKAGE = "tests/support/stand_in"
_MODULES = ("line", "model", "session", "tools", "transcript")
_PACK = """
import py_compile, sys, zipfile
source, target, package, *names = sys.argv[1:]
main = f"import {package.replace('/', '.')}.session as session; session.main()"
folders = package.split("/")
files = {"/".join([*folders[:depth], "__init__"]): "" for depth in (1, 2, 3)} | {"__main__": main}
files |= {f"{package}/{name}": open(f"{source}/{name}.py").read() for name in names}
with open(target, "wb") as file:
    file.write(f"#!{sys.executable} -IS\\n".encode())
    with zipfile.ZipFile(file, "w") as packed:
        for name, text in files.items():
            open(f"{target}.py", "w").write(text)
            made = py_compile.compile(f"{target}.py", cfile=f"{target}.pyc", dfile=name, doraise=True)
            packed.write(made, f"{name}.pyc")
"""


def stand_in() -> Path:
    """The folder that holds the program `claude`; made once per session."""
    folder = session_folder() / "stand-in"

    def make() -> None:
        folder.mkdir(exist_ok=True)
        target = folder / "claude"
        assert PYTHON is not None
        subprocess.run([PYTHON, "-c", _PACK, HERE, target, _PACKAGE, *_MODULES], check=True)
        target.chmod(0o755)

    once(folder.with_name("stand-in.made"), make)
    return folder


def path() -> str:
    """PATH with the stand-in before all other programs, unless all scenarios use the real program."""
    before = () if wants_real() else (str(stand_in()),)
    return os.pathsep.join((*before, os.environ["PATH"]))


def program() -> Path | None:
    """The stand-in, for `Company.using`; None where all scenarios use the real program."""
    return None if wants_real() else stand_in() / "claude"


def wants_real() -> bool:
    return os.environ.get("LEGION_REAL_CLAUDE") == "1"
