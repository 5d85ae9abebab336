"""Reads a source's files: with a limit of size, and with one sentence for everything that is broken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import UnreadableSource

_LARGEST = 20 * 2**20


def text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableSource(f"{path} is larger than {_LARGEST // 2**20} MB and was not read.")
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as trouble:
        raise UnreadableSource(f"{path} cannot be read ({trouble.strerror}).") from None


def json_of(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(text_of(path))
    except (json.JSONDecodeError, RecursionError) as wrong:
        raise UnreadableSource(f"{path} is not valid JSON: {_first_line(wrong)}.") from None


def yaml_of(text: str, name: str) -> Any:  # noqa: ANN401 - whatever the text holds
    # Imported here: no other command needs it.
    import yaml  # type: ignore[import-untyped]  # it ships no types

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise UnreadableSource(f"{name} is not valid YAML: {_first_line(wrong)}.") from None


def _first_line(wrong: Exception) -> str:
    return " ".join(str(wrong).split())[:200] or type(wrong).__name__


def table(value: object) -> Mapping[str, Any]:
    """The value if it is a table, else an empty one: a wrong part of a file must not hide the rest."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A text or a number as text; lists as lines; everything else is empty."""
    if isinstance(value, list):
        return "\n".join(one for one in map(text, value) if one)
    return str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def texts(value: object) -> list[str]:
    return [one for one in map(text, items(value)) if one]


def is_inside(folder: str, root: Path) -> bool:
    """Whether a folder that a source names is `root` or below it."""
    try:
        return Path(folder).expanduser().resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def same_folder(folder: str, root: Path) -> bool:
    try:
        return Path(folder).expanduser().resolve() == root.resolve()
    except (OSError, RuntimeError, ValueError):
        return False
