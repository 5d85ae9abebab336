"""The variables of the person's shell that a repository's programs get, as the person's own commands reported them.

They are stored by repository, so that `legion init` can use them before there is a project. Without a report, the
daemon's own variables count.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from legion.domain.projects import CERTIFICATES, chosen, different, with_password
from legion.jobs.board import Board
from legion.store.board import projects
from legion.system import files

_MOST_CERTIFICATES = 8 << 20
_PASSWORDS = "without password"
"""With the stored variables: the names of those that lost one."""


def report(context: Board, repository: Path, root: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Store what the person's shell has. Returns the names of those variables that changed by it."""
    before, new = current(context, repository, root), _chosen(context, root, variables)
    place = _file(context, repository)
    place.parent.mkdir(exist_ok=True, mode=0o700)
    stored = {**new, _PASSWORDS: ",".join(with_password(variables))}
    if stored != _stored(context, repository):
        files.write_atomic(place, json.dumps(stored))
    return different(new, before)


def current(context: Board, repository: Path, root: Path) -> dict[str, str]:
    """The variables that count for a repository now."""
    found = _stored(context, repository)
    return _chosen(context, root, os.environ if found is None else found)


def changed_at(context: Board, repository: Path) -> float:
    """When the shell last reported others; 0 where it never did."""
    place = _file(context, repository)
    return place.stat().st_mtime if place.exists() else 0.0


def without_password(context: Board, repository: Path) -> tuple[str, ...]:
    """The names of the proxies that programs get without user and password."""
    found = _stored(context, repository)
    names = with_password(os.environ) if found is None else found.get(_PASSWORDS, "").split(",")
    return tuple(name for name in names if name and name not in context.user.sandbox.env)


def unlike_daemon(context: Board, repository: Path, root: Path) -> tuple[str, ...]:
    """The names of those that the person's shell has otherwise than the daemon."""
    return different(current(context, repository, root), _chosen(context, root, os.environ))


def certificates(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of certificates that the variables name. A file with a private key is none of them."""
    named = {Path(variables[name]) for name in CERTIFICATES if name in variables}
    return tuple(sorted(path for path in named if path.is_absolute() and _holds_certificates(path)))


def _holds_certificates(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_CERTIFICATES:
            return False
        text = path.read_bytes()
    except OSError:
        return False
    return b"-BEGIN CERTIFICATE-" in text and b"PRIVATE KEY-" not in text


def _stored(context: Board, repository: Path) -> dict[str, str] | None:
    try:
        found = json.loads(_file(context, repository).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _chosen(context: Board, root: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Folders of PATH in the repository or its trees are left out, also behind links: each tree has its own."""
    found = chosen(variables)
    if "PATH" in found:
        with context.store.read() as tx:
            trees = (str(root), str(context.data.root), *(project.worktrees for project in projects.all(tx)))
        above = {f"{place.rstrip('/')}/" for tree in trees for place in _places(tree)}
        folders = dict.fromkeys(folder for folder in found["PATH"].split(":") if folder.startswith("/"))
        found["PATH"] = ":".join(folder for folder in folders if not _is_below(folder, tuple(above)))
    return found


def _is_below(folder: str, above: tuple[str, ...]) -> bool:
    return any(f"{place}/".startswith(above) for place in _places(folder))


def _places(path: str) -> tuple[str, str]:
    """As text, not as `Path`: each run asks for every folder of PATH."""
    return os.path.normpath(path), os.path.realpath(path)


def _file(context: Board, repository: Path) -> Path:
    name = hashlib.sha256(os.fsencode(repository)).hexdigest()[:24]
    return context.data.root / "shells" / f"{name}.json"
