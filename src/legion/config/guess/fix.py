"""Proposes a legion.toml whose checks see the code, where those of the one in force were shown not to.

It installs the package as editable and puts the tree's own packages first on the path. Where that is done already, the
commands that `legion init` would write now are taken instead.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping

from legion.config.files.project import parse
from legion.config.guess.legion_toml import guess
from legion.config.guess.python import python_path
from legion.config.guess.repository import Folder
from legion.domain.errors import BadInput

_INSTALL = re.compile(
    r"\bpip3? install\b(?![^&|;]*(?:\s-e\b|--editable\b))[^&|;]*?\s(?=['\"]?\.(?:\[[^\]]*\])?['\"]?(?:[\s;&|)]|$))"
)
"""Installs a copy of the project; its end is where the option belongs."""
_STARTS = re.compile(r"(?:cd ([\w./-]+) && )?")
_PYTHON = re.compile(r"(?:^|[\s/;&|])(?:python[\d.]*|pytest|py\.test)(?:\s|$)")
_RUN = re.compile(r"""(\s*run\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*')(.*)""", re.DOTALL)


def fixed(text: str, files: Folder) -> str | None:
    """The text with other commands, and nothing else changed; None where nothing is known that could help."""
    changes = dict(_own_tree(text, files)) or dict(_as_guessed(text, files))
    lines = text.splitlines(keepends=True)
    new = "".join(_changed(line, changes) for line in lines)
    try:
        done = not set(changes) & set(_commands(new).values())
    except BadInput:
        return None
    return new if done and new != text else None


def _own_tree(text: str, files: Folder) -> Iterator[tuple[str, str]]:
    for name, command in _commands(text).items():
        new = _INSTALL.sub(r"\g<0>-e ", command) if not name else _with_path(command, files)
        if new != command:
            yield command, new


def _with_path(command: str, files: Folder) -> str:
    start = _STARTS.match(command)
    if start is None or "PYTHONPATH" in command or not _PYTHON.search(command):
        return command
    return start[0] + python_path(files.inside(start[1]) if start[1] else files) + command[start.end() :]


def _as_guessed(text: str, files: Folder) -> Iterator[tuple[str, str]]:
    guessed = _commands(guess(files.names, files.read, files.has).text)
    for name, command in _commands(text).items():
        if command and guessed.get(name) not in (None, "", command):
            yield command, guessed[name]


def _commands(text: str) -> Mapping[str, str]:
    """By the name of the check; that of [setup] has none. Raises BadInput."""
    config = parse(text)
    return {"": config.setup.run, **{check.name: check.command for check in config.checks}}


def _changed(line: str, changes: Mapping[str, str]) -> str:
    found = _RUN.fullmatch(line)
    if found is None:
        return line
    new = changes.get(tomllib.loads(f"run = {found[2]}")["run"])
    return line if new is None else f"{found[1]}{json.dumps(new, ensure_ascii=False)}{found[3]}"
