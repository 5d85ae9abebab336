"""The project's own files, for the tests that look at the code itself."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "legion"


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or is about to be, in the repository."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True, text=True
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file() and not path.is_symlink()))


def python_files(*folders: str) -> list[Path]:
    return [path for path in project_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def files_with(pattern: str, *folders: str) -> list[Path]:
    """The files whose text matches: a test that looks for one thing need not parse the others."""
    found = re.compile(pattern)
    return [path for path in python_files(*folders) if found.search(text_of(path))]


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text_of(path), filename=str(path))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, and the handlers and cases that hold some; expressions, the most of a tree, not."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        below = getattr(node, name, None)
        for one in below if isinstance(below, list) else ():
            yield one
            yield from statements(one)


def imported_modules(path: Path) -> set[str]:
    """The dotted names of everything a file imports, wherever in the file."""
    names: set[str] = set()
    for node in statements(tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return names


def place(path: Path, line: int | None = None) -> str:
    """How a finding is named: path and line from the root."""
    name = str(path.relative_to(ROOT))
    return name if line is None else f"{name}:{line}"
