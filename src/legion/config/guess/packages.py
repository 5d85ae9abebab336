"""Finds the packages of a repository that holds several, and what each of them depends on.

A package depends on another if its manifest names it, or if one of its files refers to a path inside it. Where that
is not clear, every package counts: a check that runs too often proves more, not less.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from legion.config.base.settings import NAME
from legion.config.guess.repository import Folder, table

MOST_PACKAGES = 24
_MOST_FILES = 500
"""More are not read for one package; it then depends on everything."""
_DEEPEST = 3
_MANIFESTS = (
    *("package.json", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "go.mod", "Cargo.toml", "pom.xml"),
    *("build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "mix.exs", "Package.swift", "CMakeLists.txt"),
    *("deno.json", "deno.jsonc", "Makefile"),
)
_NOT_OWN = re.compile(
    r"(^|/)(\..*|node_modules|vendor|third_party|examples?|samples?|fixtures?|testdata|templates?|tests?|__tests__|docs?"
    r"|benchmarks?|dist|build|target)(/|$)"
)
"""Folders whose manifests belong to no package of this repository."""
_UPWARDS = re.compile(r"(?:\.\./)+[\w@./-]*")


def package_folders(root: Folder) -> list[str]:
    """Folders with a manifest, none inside another, and every folder at the root: each may be a package."""
    found: list[str] = []
    named = {posixpath.dirname(name) for name in root.names if posixpath.basename(name) in _MANIFESTS}
    named |= {name.split("/")[0] for name in root.names if name.count("/") == 1}
    for folder in sorted(named - {""}, key=lambda name: (name.count("/"), name)):
        parts = folder.split("/")
        if len(parts) <= _DEEPEST and all(map(NAME.fullmatch, parts)) and not _NOT_OWN.search(folder):
            found.append(folder)
    return found


def dependencies(root: Folder, packages: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """For each package its own folder and those of all that it depends on; empty where any may matter."""
    folders = list(packages)
    names = {folder: set(_names(root.inside(folder))) for folder in folders}
    direct = {folder: _direct(root, folder, names) for folder in folders}
    return {folder: _closed(folder, direct) for folder in folders}


def _closed(folder: str, direct: Mapping[str, set[str] | None]) -> tuple[str, ...]:
    reached, todo = {folder}, [folder]
    while todo:
        below = direct[todo.pop()]
        if below is None:
            return ()
        todo += sorted(below - reached)
        reached |= below
    return (folder, *sorted(reached - {folder}))


def _direct(root: Folder, folder: str, names: Mapping[str, set[str]]) -> set[str] | None:
    """None where there are too many files to tell."""
    inside = root.inside(folder)
    if len(inside.names) > _MOST_FILES:
        return None
    manifests = "\n".join(map(inside.read, inside.those(*_MANIFESTS)))
    words = set(re.findall(r"[\w@./-]+", manifests))
    found = {other for other, theirs in names.items() if theirs & words}
    for name in inside.names:
        here = posixpath.dirname(f"{folder}/{name}")
        for path in set(_UPWARDS.findall(inside.read(name))):
            place = posixpath.normpath(posixpath.join(here, path))
            if place == "." or place.startswith(".."):
                continue
            found |= {other for other in names if f"{place}/".startswith(f"{other}/") or other.startswith(f"{place}/")}
    return found - {folder}


def _names(files: Folder) -> Iterator[str]:
    """What others call this package."""
    tables = [
        files.json("package.json"),
        files.json("composer.json"),
        table(files.toml("pyproject.toml").get("project")),
        table(files.toml("Cargo.toml").get("package")),
    ]
    yield from (name for one in tables if isinstance(name := one.get("name"), str) and name)
    yield from re.findall(r"^module\s+(\S+)", files.read("go.mod"), re.MULTILINE)
    yield from re.findall(r"<artifactId>([^<]+)<", files.read("pom.xml"))[:2]


def short_names(folders: Iterable[str]) -> dict[str, str]:
    """The last part of each folder where it is the only one of that name, else all parts."""
    known = [PurePosixPath(folder) for folder in folders]
    last = [folder.name for folder in known]
    return {str(one): one.name if last.count(one.name) == 1 else str(one).replace("/", "-") for one in known}


# Reads the commands that a project's CI and its task files run, and tells which of them are not among the checks.

EVIDENCE = (
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
    for name in files.like(*EVIDENCE):
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
