"""Reads the commands that a project's CI and its task files run, and tells which of them are not among the checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from legion.config.guess.repository import Folder, table

_FILES = (
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
    ".gitlab-ci.yml",
    "tox.ini",
    "noxfile.py",
    ".pre-commit-config.yaml",
    "justfile",
    "Justfile",
    "Makefile",
)
_TOOLS = (
    *("pytest", "mypy", "pyright", "flake8", "pylint", "bandit", "unittest"),
    *(r"ruff check", r"ruff format --check", r"black --check", r"isort --check(?:-only)?"),
    *("eslint", "tsc", "vitest", "jest", "ava", "tsd", "xo", "prettier --check", "biome (?:ci|check)"),
    *(r"(?:npm|pnpm|yarn|bun) (?:run )?(?:test|lint|typecheck|type-check|check)(?:[:-][\w:-]+)?",),
    *("cargo (?:test|clippy|nextest)", "cargo fmt (?:--all )?(?:-- )?--check", "go (?:test|vet)"),
    *("golangci-lint run", "staticcheck", "ctest", "dotnet (?:test|format)", "rspec", "rubocop", "phpunit", "phpstan"),
)
"""Programs that judge a project and change nothing, with the words that make them do so."""
_STARTS = r"(?:^|[\s;&|\"'`(])"
_RUNS = re.compile(
    rf"{_STARTS}(?:python3? -m |uv run |poetry run |npx |bundle exec |vendor/bin/)?"
    rf"((?:{'|'.join(_TOOLS)})(?![\w.=:,-])[^\n;&|#\"'`)]*)"
)
_SESSION = re.compile(r"session\.run\(([^)]*)\)")
_HOOK = re.compile(r"^\s*-\s*id:\s*(mypy|flake8|ruff|ruff-format|pylint|eslint|bandit)\s*$", re.MULTILINE)
_SAID = re.compile(
    r"^\s*(?:-\s*)?(?:(?:name|id|uses|key|description|envlist|env_list|deps)\b|#).*$|^.*\binstall\b.*$", re.MULTILINE
)
"""Lines that name a tool and do not run it."""
_MOST = 5


def left_out(files: Folder, checks: Sequence[str]) -> tuple[str, ...]:
    """A note about what CI runs beyond the checks; empty where there is nothing."""
    started = set(_task_names(checks))
    scripts = table(files.json("package.json").get("scripts"))
    texts = [*checks, *(str(text) for name, text in scripts.items() if name in started)]
    known = {_tool(command) for text in texts for command in _commands(text)} | started
    found: dict[str, str] = {}
    for name in files.like(*_FILES):
        if name.lower().removesuffix("file") in started:
            continue
        for command in _of_file(name, files.read(name)):
            tool = _tool(command)
            if tool not in known:
                known.add(tool)
                found[command] = name
    if not found:
        return ()
    shown = ", ".join(f"`{command}` ({name})" for command, name in list(found.items())[:_MOST])
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return (f"CI also runs {shown}{more}: not among the checks. Add a [checks.NAME] for what changes must pass.",)


def _of_file(name: str, text: str) -> Iterator[str]:
    if name.endswith(".py"):
        text = "\n".join(re.sub(r"[\"',]+", " ", words).strip() for words in _SESSION.findall(text))
    elif name == ".pre-commit-config.yaml":
        yield from _HOOK.findall(text)
        return
    yield from _commands(_SAID.sub("", text))


def _commands(text: str) -> Iterator[str]:
    for found in _RUNS.finditer(text):
        command = " ".join(found[1].split())
        if command.isascii() and command.isprintable() and "${{" not in command and "{posargs" not in command:
            yield command
        elif command.isascii():
            yield command.split("{")[0].split("$")[0].strip()


def _tool(command: str) -> str:
    """What runs: the program, or the script of a package manager, whichever of them starts it."""
    words = command.split()
    if words[0] in ("npm", "pnpm", "yarn", "bun"):
        return next(word for word in words[1:] if word != "run")
    return " ".join(words[:2]) if words[0] in ("cargo", "go", "dotnet") else words[0]


def _task_names(checks: Iterable[str]) -> Iterator[str]:
    """Task runners, and the tasks that checks start by name: `make lint` covers what CI calls `lint`."""
    for check in checks:
        for runner, task in re.findall(r"\b(make|just|npm run|bun run|pnpm|yarn) ([\w:-]+)", check):
            yield from (runner, task)
