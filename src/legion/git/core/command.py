"""The one hardened way to run git.

Nothing of the caller's environment, of the person's settings or of a repository's hooks and monitors takes part.
Knows nothing of hubs or worktrees.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from legion.git.core.errors import FolderGone, GitError, GitMissing, GitTimedOut, GitTooOld
from legion.system.process import FinishedProcess, ProgramMissing, run

MINIMUM = (2, 38, 0)

_TIMEOUT = 600.0

# Repository config ranks below these, so a planted config cannot make our git run anything.
_SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.editor": "false",
    "core.pager": "cat",
    "core.askPass": "false",
    "credential.helper": "",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    # Above this size git streams a file instead of loading it, and never tries to show its lines.
    "core.bigFileThreshold": "32m",
    # What we call saved or landed must survive a power cut, as the store does.
    "core.fsync": "committed,reference",
    "core.fsyncMethod": "batch",
    "core.filesRefLockTimeout": "2500",
    "core.packedRefsTimeout": "2500",
    # Writing files waits for the disk; more workers than cores pay off in big trees and cost nothing in small ones.
    "checkout.workers": "4",
    "checkout.thresholdForParallelism": "2000",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "safe.directory": "*",
}


def git(
    *args: str | os.PathLike[str],
    git_dir: Path | None,
    work_tree: Path | None = None,
    index: Path | None = None,
    objects: Path | None = None,
    borrow: Sequence[Path] = (),
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = _TIMEOUT,
    accept: tuple[int, ...] = (0,),
    settings: Mapping[str, str] | None = None,
    source: Path | None = None,
    sink: Path | None = None,
) -> FinishedProcess:
    """Run git and raise GitError for an exit code that is not in `accept`. It reads `source`, and writes into `sink`,
    where they are given.

    `git_dir=None` lets git find the repository of `cwd`. New objects go to `objects`, and those of `borrow` are
    readable next to them. Paths are literal unless the first argument is `--no-literal-pathspecs`.
    """
    env = environment(settings or {})
    for name, place in (
        ("GIT_DIR", git_dir),
        ("GIT_WORK_TREE", work_tree),
        ("GIT_INDEX_FILE", index),
        ("GIT_OBJECT_DIRECTORY", objects),
    ):
        if place is not None:
            env[name] = os.fspath(place)
    if borrow:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.pathsep.join(os.fspath(place) for place in borrow)
    # Attribute files are looked up from the current folder, so it is the top of the work tree.
    place = cwd or work_tree or git_dir
    if place is not None and not place.exists():
        raise FolderGone(place)
    # By its own option: a program that is started in our folder costs less to start.
    at = () if place is None else ("-C", place)
    try:
        finished = run((git_program(), *at, *args), env=env, stdin=stdin, timeout=timeout, source=source, sink=sink)
    except ProgramMissing:
        raise GitMissing from None
    if finished.timed_out:
        raise GitTimedOut(_shown(args), timeout)
    if finished.code not in accept:
        raise GitError(_shown(args), finished.complaint)
    return finished


def _shown(args: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The command as errors name it."""
    return ("git", *(os.fspath(one) for one in args))


def git_program() -> str:
    """The absolute path of git, or its bare name where PATH has none."""
    return _on_path(os.environ.get("PATH", os.defpath))


@functools.lru_cache(maxsize=4)
def _on_path(path: str) -> str:
    return shutil.which("git", path=path) or "git"


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """All variables of a hardened git."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    # Through the environment the same settings rank as `-c` does, and argv stays readable in errors.
    both = {**_SETTINGS, **settings}
    env["GIT_CONFIG_COUNT"] = str(len(both))
    for number, (key, value) in enumerate(both.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


@functools.cache
def version() -> tuple[int, int, int]:
    """The version of the git program, or GitMissing, or GitTooOld."""
    said = git("version", git_dir=None).text.strip()
    numbers = read_version(said)
    if numbers < MINIMUM:
        raise GitTooOld(said)
    return numbers


def read_version(said: str) -> tuple[int, int, int]:
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
    if found is None:
        raise GitTooOld(said)
    return int(found[1]), int(found[2]), int(found[3] or 0)


def as_text(raw: bytes) -> str:
    """A name out of a repository for people and the store: bytes that are not UTF-8 show as escapes."""
    return raw.decode("utf-8", "backslashreplace")


def fields(raw: bytes) -> list[bytes]:
    """The parts of a NUL-terminated answer."""
    return raw.split(b"\0")[:-1]
