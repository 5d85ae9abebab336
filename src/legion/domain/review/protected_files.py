"""Protected paths: what a change may touch only where its ticket declares it, or a person approves.

Two kinds of files are protected. Some act by themselves once they have landed (a workflow, a hook, an editor's task),
and no test would show it. Others decide whether work counts as done: tests, check scripts, lock files. Adding a test is
always allowed; changing, removing or disabling an existing one is not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from legion.domain.review.path_patterns import matches

ACTS_BY_ITSELF = (
    "legion.toml",
    ".legion",
    "**/.gitattributes",
    ".gitmodules",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".travis.yml",
    ".drone.yml",
    ".buildkite",
    "Jenkinsfile",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".envrc",
    ".vscode",
    ".devcontainer",
    "**/.claude",
    "**/.mcp.json",
    "**/CLAUDE.md",
    "**/AGENTS.md",
)

LOCK_FILES = (
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.lock",
    "**/bun.lockb",
    "**/deno.lock",
    "**/poetry.lock",
    "**/uv.lock",
    "**/pdm.lock",
    "**/Pipfile.lock",
    "**/requirements*.lock",
    "**/Cargo.lock",
    "**/go.sum",
    "**/Gemfile.lock",
    "**/composer.lock",
    "**/gradle.lockfile",
    "**/mix.lock",
    "**/flake.lock",
)

TESTS = (
    "**/test/**",
    "**/tests/**",
    "**/spec/**",
    "**/__tests__/**",
    "**/test_*.py",
    "**/*_test.py",
    "**/conftest.py",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*_test.go",
    "**/*Test.java",
    "**/*Tests.java",
    "**/*Test.kt",
    "**/*_test.rb",
    "**/*_spec.rb",
    "**/*.bats",
)

PROTECTED = (*ACTS_BY_ITSELF, *LOCK_FILES, *TESTS)

_STEERS_TESTS = ("**/conftest.py", "**/jest.setup.*", "**/setupTests.*", "**/spec_helper.rb", "**/test_helper.rb")
"""Next to the tests, but able to disable them all: even a new one is no mere addition."""

_SHELL = (".sh", ".bash", ".bats")
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php")
_CHECKS_SOMETHING = re.compile(r"check|test|verif|valid|lint|prove|accept|smoke|(?<![a-z])ci(?![a-z])", re.IGNORECASE)
"""In the path of a script: otherwise a check that starts the program itself would protect the program."""
_BETWEEN_COMMANDS = frozenset({"&&", "||", ";", "|", "&"})
_RECIPES = {
    "make": ("**/Makefile", "**/GNUmakefile", "**/*.mk"),
    "just": ("**/justfile",),
    "npm": ("**/package.json",),
    "pnpm": ("**/package.json",),
    "yarn": ("**/package.json",),
    "tox": ("**/tox.ini",),
    "nox": ("**/noxfile.py",),
    "pytest": ("**/pytest.ini",),
}
"""Programs that read the commands to run from a file of the repository."""


@dataclass(frozen=True, kw_only=True)
class TouchedFile:
    """One file of a change."""

    path: str
    only_adds: bool
    """It is new, or nothing that it contained before is gone."""
    new: bool = False


@functools.lru_cache(maxsize=1 << 15)
def is_test(path: str) -> bool:
    """Called several times for every file of a change, and a change may have thousands."""
    return matches(path, TESTS, any_case=True)


def stopped_by(
    changed: Iterable[TouchedFile],
    added: Sequence[str],
    declared: Sequence[str],
    commands: Sequence[str],
    proofs: Sequence[str] = (),
) -> tuple[str, ...]:
    """The paths that need approval. `added` are the project's own patterns, `commands` its checks, `proofs` the
    ticket's own: what decides those may be added for it, but existing files may not be changed.
    """
    always = guarded(added, commands)
    proving = tuple(path for path in deciding(proofs) if path.startswith("**") or _CHECKS_SOMETHING.search(path))
    return tuple(
        file.path
        for file in changed
        if not matches(file.path, declared)
        and (
            matches(file.path, always, any_case=True)
            or _spoils_tests(file)
            or (not file.new and matches(file.path, proving, any_case=True))
        )
    )


def guarded(added: Sequence[str], commands: Iterable[str]) -> tuple[str, ...]:
    """Patterns of files that no ticket changes undeclared; `added` and `commands` are the project's."""
    return (*ACTS_BY_ITSELF, *LOCK_FILES, *added, *deciding(commands))


def deciding(commands: Iterable[str]) -> tuple[str, ...]:
    """Patterns for the files that decide the result of commands: the scripts that they name, and the recipes of
    programs like make. Their author decides what passes.
    """
    found: list[str] = []
    for command in commands:
        begins = True
        for word in command.split():
            name = word.strip("\"'();&|")
            found += _RECIPES.get(name, ())
            if _is_script(name, begins):
                found.append(name.removeprefix("./"))
            begins = word in _BETWEEN_COMMANDS or word.endswith(";")
    return tuple(dict.fromkeys(found))


def _is_script(word: str, begins: bool) -> bool:
    """`begins`: it is the program of a command, not an argument."""
    if word.startswith(("/", "-", "$", "~")):
        return False
    if word.endswith(_SHELL):
        return True
    if is_test(word):
        return False
    named = word.endswith(_SCRIPTS) and _CHECKS_SOMETHING.search(word) is not None
    return named or (begins and "/" in word)


def _spoils_tests(file: TouchedFile) -> bool:
    if not is_test(file.path):
        return False
    return not file.only_adds or matches(file.path, _STEERS_TESTS, any_case=True)


# Files that tools leave behind: compiled modules, caches, reports, installed packages. They are rarely meant.

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
