"""The project's own files, for the tests that look at the code itself."""

from __future__ import annotations

import ast
import subprocess
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


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def imported_modules(path: Path) -> set[str]:
    """The dotted names of everything a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return names


def place(path: Path, line: int | None = None) -> str:
    """How a finding is named: path and line from the root."""
    name = str(path.relative_to(ROOT))
    return name if line is None else f"{name}:{line}"
