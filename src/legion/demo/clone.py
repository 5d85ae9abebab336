"""A scratch clone of the person's repository, as it is committed. Theirs is read and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from legion.client.legion import Legion
from legion.system import process
from legion.system.paths import user_config_file
from legion.system.process import ProgramMissing
from legion.wire.errors import BadInput, LegionError, NotAllowed
from legion.wire.projects import AddProject, Trust

_FILE = "legion.toml"
_SHARED = "sandbox"
"""The table of the person's settings that their checks may need."""


@dataclass(frozen=True, kw_only=True)
class RehearsalSource:
    """What of the person's is rehearsed with."""

    root: Path
    branch: str
    trusted: frozenset[str]
    """The hashes of each legion.toml that they trust."""
    settings: str
    """Their own settings that hold for checks, as TOML."""

    @property
    def is_dirty(self) -> bool:
        # Git would write its index anew, only to be faster the next time.
        return bool(_git("--no-optional-locks", "status", "--porcelain", cwd=self.root))


def source(legion: Legion, cwd: str) -> RehearsalSource:
    """Ask the person's own daemon. Raises NotFound where this is no project, NotAllowed where nothing is trusted."""
    texts = legion.trustable(cwd).texts
    project = legion.status(cwd).project
    if project is None:
        raise BadInput("This folder belongs to no project: run `legion init` in your repository first.")
    trusted = frozenset(text.hash for text in texts if text.trusted)
    if not trusted:
        raise _untrusted()
    return RehearsalSource(root=Path(project.root), branch=project.branch, trusted=trusted, settings=_own_settings())


def clone(wanted: RehearsalSource, folder: Path, base: str = "") -> Path:
    """The committed state of their branch, or an earlier one, in a new repository, which knows no way back."""
    place = folder / wanted.root.name
    # Copies instead of hard links, which would change the times of their files.
    words = ("clone", "--quiet", "--no-hardlinks", "--single-branch", "--branch", wanted.branch)
    _git(*words, str(wanted.root), str(place), cwd=folder)
    _git("remote", "remove", "origin", cwd=place)
    if base:
        try:
            _git("reset", "--quiet", "--hard", base, cwd=place)
        except LegionError:
            raise BadInput(
                f"The commit {base[:12]} that this was recorded on is not in {wanted.branch}: try `legion collect`."
            ) from None
    own = wanted.root / _FILE
    if not (place / _FILE).exists() and own.exists():
        # Theirs is in force although it is not committed yet.
        shutil.copyfile(own, place / _FILE)
    return place


def adopt(legion: Legion, wanted: RehearsalSource, place: Path) -> Path:
    """`legion init` and `legion trust` for the clone, by the trust that they gave the original. Answers the hub."""
    if not (place / _FILE).exists():
        raise _untrusted()
    hub = legion.add_project(AddProject(path=str(place))).hub
    shown = legion.trustable(str(place)).texts
    if not all(text.hash in wanted.trusted for text in shown):
        raise _untrusted()
    legion.trust(Trust(cwd=str(place), hashes=[text.hash for text in shown]))
    return Path(hub)


def contains(hub: Path, target: str, commit: str) -> bool:
    words = ["git", f"--git-dir={hub}", "merge-base", "--is-ancestor", commit, target]
    return process.run(words, env=_environment()).code == 0


def trees_of(hub: Path, commits: Collection[str]) -> dict[str, str]:
    """The tree of each commit: receipts count for the same tree, whatever commit it came with."""
    return {commit: _git(f"--git-dir={hub}", "rev-parse", f"{commit}^{{tree}}", cwd=hub) for commit in commits}


def _untrusted() -> NotAllowed:
    return NotAllowed(
        f"The committed {_FILE} is not trusted, and its checks would really run: read it and run `legion trust` first."
    )


def _own_settings() -> str:
    try:
        table = tomllib.loads(user_config_file().read_text("utf-8")).get(_SHARED, {})
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as fault:
        raise BadInput(f"{user_config_file()} cannot be read ({fault}): mend it first.") from None
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]
    return "\n".join([f"[{_SHARED}]", *lines, ""])


def _git(*words: str, cwd: Path) -> str:
    try:
        done = process.run(["git", *words], cwd=cwd, env=_environment())
    except ProgramMissing:
        raise LegionError("git is not installed: install it and try again.") from None
    if done.code != 0:
        raise LegionError(f"`git {words[0]}` failed: {done.complaint}")
    return done.text.strip()


def _environment() -> dict[str, str]:
    """Without what would point git elsewhere, as it does inside a git hook."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
