"""Protected paths: what a change may touch only where its ticket declares it, or a person said yes.

Two kinds of files are guarded. Some act by themselves once they have landed (a workflow, a hook, an editor's task), and
no test would show it. Others decide whether work counts as done: tests, check scripts, lock files. To add a test is
always fine; to change, remove or switch off one that is there is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.paths import matches

ACTS_BY_ITSELF = (
    "legion.toml",
    ".legion",
    "**/.gitattributes",
    ".gitmodules",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    "azure-pipelines.yml",
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
"""Beside the tests, but able to switch them all off: even a new one is no mere addition."""

_SCRIPTS = (".sh", ".bash", ".bats")


@dataclass(frozen=True, kw_only=True)
class Touched:
    """One file of a change."""

    path: str
    only_adds: bool
    """It is new, or nothing that stood in it before is gone."""


def is_test(path: str) -> bool:
    return matches(path, TESTS, any_case=True)


def stopped_by(
    changed: Iterable[Touched], added: Sequence[str], declared: Sequence[str], commands: Sequence[str]
) -> tuple[str, ...]:
    """The paths for which somebody has to be asked. `added` are the project's own patterns, `commands` its checks."""
    guarded = (*ACTS_BY_ITSELF, *LOCK_FILES, *added, *scripts_of(commands))
    return tuple(
        file.path
        for file in changed
        if not matches(file.path, declared) and (matches(file.path, guarded, any_case=True) or _spoils_tests(file))
    )


def scripts_of(commands: Iterable[str]) -> tuple[str, ...]:
    """The shell scripts that checks name: whoever writes them decides what is green."""
    words = [word.strip("\"'();&|").removeprefix("./") for command in commands for word in command.split()]
    return tuple(dict.fromkeys(word for word in words if word.endswith(_SCRIPTS) and not word.startswith("/")))


def _spoils_tests(file: Touched) -> bool:
    if not is_test(file.path):
        return False
    return not file.only_adds or matches(file.path, _STEERS_TESTS, any_case=True)
