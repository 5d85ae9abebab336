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

from legion.domain import shell
from legion.jobs.context import Context
from legion.system import files

_MOST_CERTIFICATES = 8 << 20


def report(context: Context, repository: Path, root: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Store what the person's shell has. Returns the names of those variables that changed by it."""
    before, new = reported(context, repository), shell.chosen(variables, str(root))
    changed = shell.different(new, before if before is not None else _own(root))
    place = _file(context, repository)
    place.parent.mkdir(exist_ok=True, mode=0o700)
    if new != before:
        files.write_atomic(place, json.dumps(new))
    return changed


def reported(context: Context, repository: Path) -> dict[str, str] | None:
    """What was stored for this repository."""
    try:
        found = json.loads(_file(context, repository).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return {name: found[name] for name in shell.NAMES if isinstance(found.get(name), str)}


def current(context: Context, repository: Path, root: Path) -> dict[str, str]:
    """The variables that count for a repository now."""
    found = reported(context, repository)
    return _own(root) if found is None else found


def unlike_daemon(context: Context, repository: Path, root: Path) -> tuple[str, ...]:
    """The names of those that the person's shell has otherwise than the daemon."""
    return shell.different(current(context, repository, root), _own(root))


def certificates(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of certificates that the variables name. A file with a private key is none of them."""
    named = {Path(variables[name]) for name in shell.CERTIFICATES if name in variables}
    return tuple(sorted(path for path in named if path.is_absolute() and _holds_certificates(path)))


def _holds_certificates(path: Path) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_CERTIFICATES:
            return False
        text = path.read_bytes()
    except OSError:
        return False
    return b"-BEGIN CERTIFICATE-" in text and b"PRIVATE KEY-" not in text


def _own(root: Path) -> dict[str, str]:
    return shell.chosen(os.environ, str(root))


def _file(context: Context, repository: Path) -> Path:
    name = hashlib.sha256(os.fsencode(repository)).hexdigest()[:24]
    return context.data.root / "shells" / f"{name}.json"
