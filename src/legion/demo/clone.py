"""Clones the person's repository at its committed state into a scratch folder. The original is only read."""

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
"""The table of the person's settings that checks may need."""


@dataclass(frozen=True, kw_only=True)
class RehearsalSource:
    """The person's repository, trust and settings for a rehearsal."""

    root: Path
    branch: str
    trusted: frozenset[str]
    """Hashes of every trusted legion.toml."""
    settings: str
    """The person's settings for checks, as TOML."""

    @property
    def is_dirty(self) -> bool:
        # Otherwise git rewrites its index to be faster the next time.
        return bool(_git("--no-optional-locks", "status", "--porcelain", cwd=self.root))


def source(legion: Legion, cwd: str) -> RehearsalSource:
    """Ask the person's own daemon. Raises NotFound outside of a project, NotAllowed where nothing is trusted."""
    texts = legion.trustable(cwd).texts
    project = legion.status(cwd).project
    if project is None:
        raise BadInput("This folder belongs to no project: run `legion init` in your repository first.")
    trusted = frozenset(text.hash for text in texts if text.trusted)
    if not trusted:
        raise _untrusted()
    return RehearsalSource(root=Path(project.root), branch=project.branch, trusted=trusted, settings=_own_settings())


def clone(wanted: RehearsalSource, folder: Path, base: str = "") -> Path:
    """Clone the committed state of the branch, or of `base`, without a remote."""
    place = folder / wanted.root.name
    # Copies instead of hard links, which would change the times of the original files.
    options = ("clone", "--quiet", "--no-hardlinks", "--single-branch", "--branch", wanted.branch)
    _git(*options, str(wanted.root), str(place), cwd=folder)
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
        # The uncommitted one is in force already.
        shutil.copyfile(own, place / _FILE)
    return place


def adopt(legion: Legion, wanted: RehearsalSource, place: Path) -> Path:
    """`legion init` and `legion trust` for the clone, if the original is trusted. Returns the hub."""
    if not (place / _FILE).exists():
        raise _untrusted()
    hub = legion.add_project(AddProject(path=str(place))).hub
    shown = legion.trustable(str(place)).texts
    if not all(text.hash in wanted.trusted for text in shown):
        raise _untrusted()
    legion.trust(Trust(cwd=str(place), hashes=[text.hash for text in shown]))
    return Path(hub)


def contains(hub: Path, target: str, commit: str) -> bool:
    command = ["git", f"--git-dir={hub}", "merge-base", "--is-ancestor", commit, target]
    return process.run(command, env=_environment()).code == 0


def trees_of(hub: Path, commits: Collection[str]) -> dict[str, str]:
    """The tree of each commit: a receipt counts for every commit with the same tree."""
    return {commit: _git(f"--git-dir={hub}", "rev-parse", f"{commit}^{{tree}}", cwd=hub) for commit in commits}


def _untrusted() -> NotAllowed:
    return NotAllowed(
        f"The committed {_FILE} is not trusted, and its checks would run for real: read it, then run `legion trust`."
    )


def _own_settings() -> str:
    try:
        table = tomllib.loads(user_config_file().read_text("utf-8")).get(_SHARED, {})
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as fault:
        raise BadInput(f"{user_config_file()} cannot be read ({fault}): fix it first.") from None
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]
    return "\n".join([f"[{_SHARED}]", *lines, ""])


def _git(*arguments: str, cwd: Path) -> str:
    try:
        done = process.run(["git", *arguments], cwd=cwd, env=_environment())
    except ProgramMissing:
        raise LegionError("git is not installed: install it and try again.") from None
    if done.code != 0:
        raise LegionError(f"`git {arguments[0]}` failed: {done.complaint}")
    return done.text.strip()


def _environment() -> dict[str, str]:
    """The environment without GIT_ variables, which would point git elsewhere inside a git hook."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
