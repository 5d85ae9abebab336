"""Finds an agent program on this machine: its file, its version, and the folders that it needs inside a sandbox."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from legion.drivers.profile import ProgramFile, ProgramUnusable
from legion.drivers.programs.description import ProgramDescription
from legion.system import files
from legion.system.paths import user_cache_dir

_VERSION_TIMEOUT = 30.0
_UNPACK_TIMEOUT = 300.0
_CANNOT_RUN = (126, 127)
"""Exit codes of a shell: the program, or the interpreter that its first line names, is missing."""
_VERSION = re.compile(rb"(\d+(?:\.\d+)+)")


def find(program: ProgramDescription, *, patience: float = _VERSION_TIMEOUT) -> ProgramFile:
    """`patience`: seconds to print its version. Raises ProgramUnusable: it is missing, too old, or does not run."""
    path = path_of(program)
    version = version_of(path, program, patience)
    least = program.program.least
    if least and version and _numbers(version) < _numbers(least):
        raise ProgramUnusable(f"{path} is version {version}, and {least} is needed: update {program.title}.")
    return ProgramFile(path=path, version=version, bundled=False)


def path_of(program: ProgramDescription) -> Path:
    """Its file, without a start of it. Raises ProgramUnusable where it is missing."""
    word = program.program.run[0]
    path = shutil.which(str(Path(word).expanduser()))
    if path is None:
        how = program.program.install
        advice = f"install it with `{how}`" if how else "install it, or fix `program.run` in its file"
        raise ProgramUnusable(
            f"{program.title} is not installed (no program {word!r} on the PATH that Legion was started with): "
            f"{advice}. If it is installed, run `legion down` and `legion up` where your PATH has it."
        )
    return Path(path)


def version_of(path: Path, program: ProgramDescription, patience: float = _VERSION_TIMEOUT) -> str:
    """As the program prints it; empty where it prints none, or not in time: the machine may be busy."""
    arguments = program.program.version
    if not arguments:
        return ""
    status = path.stat()
    variables = tuple(unpacked(path, program).items())
    try:
        changed = (status.st_mtime_ns, status.st_size)
        return _read_version(str(path), arguments, variables, program.title, patience, changed)
    except _Slow:
        return ""


def unpacked(path: Path, program: ProgramDescription) -> dict[str, str]:
    """The variable that names the folder with the unpacked program, once it is there; nothing for most programs."""
    part = program.unpack
    if not part.run:
        return {}
    status = path.resolve().stat()
    mark = hashlib.sha256(f"{path.resolve()} {status.st_mtime_ns} {status.st_size}".encode()).hexdigest()[:16]
    folder = user_cache_dir() / "programs" / f"{program.name}-{mark}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = files.lock(folder.with_suffix(".lock"), patience=_UNPACK_TIMEOUT)
        try:
            if not folder.is_dir():
                _unpack(path, program, folder)
        finally:
            held.release()
    return {part.folder: str(folder)}


def _unpack(path: Path, program: ProgramDescription, folder: Path) -> None:
    part = program.unpack
    half = folder.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(mode=0o700)
    _run(path, part.run, {part.folder: str(half), **part.environment}, program.title, _UNPACK_TIMEOUT)
    half.rename(folder)


@lru_cache(maxsize=64)
def _read_version(
    path: str,
    arguments: tuple[str, ...],
    variables: tuple[tuple[str, str], ...],
    title: str,
    patience: float,
    _changed: tuple[int, int],
) -> str:
    """Read once for every program file: starting the program takes a moment."""
    done = _run(Path(path), arguments, dict(variables), title, patience)
    if done.returncode in _CANNOT_RUN:
        raise ProgramUnusable(f"{path} does not run (exit code {done.returncode}): install {title} again.")
    found = _VERSION.search(done.stdout) or _VERSION.search(done.stderr)
    return found[1].decode() if found else ""


class _Slow(ProgramUnusable):
    """It did not answer in time; nothing is remembered of that."""


def _run(
    path: Path, arguments: tuple[str, ...], variables: Mapping[str, str], title: str, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Without the person's home folder: the program would read and write its own files there."""
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env["PATH"] = search_path(path, env.get("PATH", ""))
    with tempfile.TemporaryDirectory() as home:
        try:
            return subprocess.run(
                [str(path), *arguments],
                env={**env, "HOME": home, **variables},
                cwd=home,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as slow:
            raise _Slow(f"{path} did not answer within {timeout:g} s: try again when fewer programs run.") from slow
        except OSError as trouble:
            raise ProgramUnusable(f"{path} does not run ({trouble.strerror}): install {title} again.") from trouble


def search_path(program: Path, path: str) -> str:
    """PATH with the program's own folder in front, where its interpreter may be."""
    folder = str(program.parent)
    return path if folder in path.split(os.pathsep) else f"{folder}{os.pathsep}{path}"


def needed_folders(program: Path) -> tuple[Path, ...]:
    """The program's file and its installation, as the sandbox has to show them."""
    found = [program.absolute(), program.resolve()]
    for path in tuple(found):
        if "node_modules" in path.parts:
            found.append(Path(*path.parts[: path.parts.index("node_modules") + 1]))
        elif (path.parent.parent / "pyvenv.cfg").is_file():
            found.append(path.parent.parent)
    return tuple(dict.fromkeys(found))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
