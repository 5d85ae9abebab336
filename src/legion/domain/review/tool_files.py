"""Files that tools leave behind: compiled modules, caches, reports, installed packages. They are rarely meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from legion.domain.review.path_patterns import matches

_KINDS = {
    "compiled Python": ("**/__pycache__/**", "**/*.pyc", "**/*.pyo"),
    "a cache": (
        *("**/.pytest_cache/**", "**/.mypy_cache/**", "**/.ruff_cache/**", "**/.hypothesis/**", "**/.tox/**"),
        *("**/.nox/**", "**/.turbo/**", "**/.parcel-cache/**", "**/.gradle/**", "**/.eslintcache", "**/*.tsbuildinfo"),
    ),
    "a report of coverage": (
        *("**/.coverage", "**/.coverage.*", "**/coverage.xml", "**/htmlcov/**", "**/.nyc_output/**", "**/lcov.info"),
        *("**/lcov-report/**", "**/*.gcda", "**/*.gcno", "**/*.profraw"),
    ),
    "installed packages": ("**/node_modules/**", "**/.venv/**", "**/pyvenv.cfg", "**/*.egg-info/**"),
    "built from the source": (
        *("**/target/debug/**", "**/target/release/**", "**/target/classes/**", "**/build/lib/**", "**/.next/**"),
        *("**/.nuxt/**", "**/.svelte-kit/**", "**/*.class", "**/*.o", "**/*.whl", "**/dist-newstyle/**"),
    ),
    "of the system": ("**/.DS_Store", "**/Thumbs.db", "**/*.swp"),
}


@dataclass(frozen=True, kw_only=True)
class ToolFile:
    path: str
    kind: str

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.kind}"


def left_by_tools(
    new: Iterable[str], there: Callable[[], Iterable[str]], declared: Sequence[str]
) -> tuple[ToolFile, ...]:
    """Those of the new files that tools make, unless the repository already holds files of that kind (`there` lists its
    files) or the ticket declares them."""
    found = [one for path in new if not matches(path, declared) and (one := _of(path)) is not None]
    if not found:
        return ()
    usual = {one.kind for path in there() if (one := _of(path)) is not None}
    return tuple(one for one in found if one.kind not in usual)


def _of(path: str) -> ToolFile | None:
    kind = next((kind for kind, globs in _KINDS.items() if matches(path, globs)), None)
    return None if kind is None else ToolFile(path=path, kind=kind)
