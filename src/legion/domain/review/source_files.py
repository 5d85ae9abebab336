"""Which files of a repository are its source, which packages they form, and which checks look at them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from legion.domain.checks import Check
from legion.domain.review.path_patterns import extension, matches
from legion.domain.review.protected_files import deciding, is_test

_CODE = frozenset(
    (
        *("py", "pyx", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte"),
        *("go", "rs", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "m", "mm", "swift", "zig", "nim"),
        *("java", "kt", "kts", "scala", "groovy", "clj", "cljs", "cs", "fs", "vb"),
        *("rb", "php", "pl", "pm", "lua", "r", "jl", "ex", "exs", "erl", "hs", "ml", "mli", "elm", "dart"),
        *("sh", "bash"),
    )
)
"""Extensions of files that programs consist of."""

_OF_TOOLS = (
    *("**/setup.py", "**/noxfile.py", "**/fabfile.py", "**/tasks.py", "**/SConstruct", "**/wscript"),
    *("**/*.config.js", "**/*.config.mjs", "**/*.config.cjs", "**/*.config.ts", "**/*.conf.js", "**/*.setup.js"),
    *("**/*rc.js", "**/*rc.cjs", "**/*rc.mjs", "**/gulpfile.*", "**/Gruntfile.*", "**/karma.conf.*"),
    *("**/build.rs", "**/build.zig", "**/*.gradle.kts", "**/mix.exs", "**/Package.swift"),
    *("**/.*/**", "**/.*"),
)
"""Settings of tools that are written in a programming language, and everything in hidden folders."""

_NOT_THE_PROGRAM = (
    *("**/doc/**", "**/docs/**", "**/example/**", "**/examples/**", "**/samples/**"),
    *("**/bench/**", "**/benchmark/**", "**/benchmarks/**", "**/fixtures/**", "**/testdata/**", "**/testing/**"),
    *("**/vendor/**", "**/third_party/**", "**/node_modules/**"),
)

_TESTS = (
    *("**/test.*", "**/tests.*", "**/spec.*", "**/*_tests.py", "**/*-test.*", "**/test-*.*", "**/*_spec.*"),
    *("**/jest.setup.*", "**/setupTests.*", "**/*Spec.*", "**/*Test.*", "**/*Tests.*"),
)
"""Names of tests that are not protected as such, because some of them are used for other files, too."""

_TESTING = re.compile(
    r"(?<![a-z])(?:tests?|testing|pytest|unittest|tox|nox|jest|vitest|mocha|ava|tap|rspec|spec|phpunit|ctest|bats)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_READING = re.compile(
    r"(?<![a-z])(?:[a-z]*lint(?:er|ing)?|xo|ruff|flake8|mypy|pyright|tsc|vue-tsc|tsd|clippy|fmt|gofmt|rustfmt|format|"
    r"prettier|black|isort|vet|rubocop|phpstan|psalm|shellcheck|biome|standard|checkstyle|detekt|dialyzer|credo|"
    r"type-?check|check-types|types)(?![a-z])",
    re.IGNORECASE,
)
_DECLARES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle"),
    *("build.gradle.kts", "composer.json", "mix.exs", "Package.swift", "pubspec.yaml", "deno.json", "deno.jsonc"),
    *("*.csproj", "*.fsproj", "*.gemspec", "*.cabal"),
)
"""Names of files that make their folder a package."""
_LOCKS = (
    *("*.lock", "*.lockb", "*.lockfile", "*-lock.json", "*-lock.yaml", "*requirements*.txt", "npm-shrinkwrap.json"),
    *("go.sum", "gradle.properties", "Gemfile", "pnpm-workspace.yaml", "tox.ini", "noxfile.py"),
)
_STARTS = re.compile(r"python[\d.]*|node|deno|bun|run|tsx|ts-node|(?:ba|da|z)?sh|ruby|perl|php|lua|Rscript|julia")
"""Programs that run the file that is named after them."""
_STARTS_SCRIPT = re.compile(r"\b(?:npm|pnpm|yarn|bun)(?: run| -s| --silent)* ([\w:.-]+)")
_PARTS = re.compile(r"&&|\|\|?|;|\n")
_COPIES = re.compile(
    r"\bpip3? install\b(?![^&|;]*(?:\s-e\b|--editable\b))[^&|;]*\s['\"]?\.(?:\[[^\]]*\])?(?=[\s'\";&|]|$)"
)


def source_files(paths: Iterable[str], commands: Sequence[str]) -> tuple[str, ...]:
    """Of the tracked paths, those that the program consists of. `commands` are the checks: a broken script of theirs is
    no broken program, so what a check names is not source.
    """
    named = (*(one for one in deciding(commands) if "*" not in one), *_named(commands))
    return tuple(path for path in paths if _is_code(path) and not matches(path, named))


def _is_code(path: str) -> bool:
    if extension(path) not in _CODE or is_test(path):
        return False
    return not matches(path, _OF_TOOLS) and not matches(path, (*_NOT_THE_PROGRAM, *_TESTS))


def _named(commands: Iterable[str]) -> list[str]:
    """The files that commands start by name: `manage.py` behind an interpreter, or the module after `-m`."""
    found = []
    for command in commands:
        before = ""
        for word in (one.strip("\"'();&|") for one in command.split()):
            if before == "-m":
                place = word.replace(".", "/")
                found += [f"**/{place}.py", f"**/{place}/__main__.py"]
            elif extension(word) in _CODE and "*" not in word and _STARTS.fullmatch(before.rpartition("/")[2]):
                found.append(f"**/{word.removeprefix('./')}")
            # What an option says about the interpreter stays in front of the file.
            before = word if word == "-m" or not word.startswith("-") else before
    return found


class CheckKind(Enum):
    TESTS = "tests"
    """It runs the code."""
    READER = "reader"
    """It reads the code: linters, type checkers, formatters."""
    OTHER = "other"
    """It may look at something else: documents, licences, dependencies."""


def kind_of(check: Check, scripts: Mapping[str, str]) -> CheckKind:
    """`scripts`: what the package manager runs by name. A `test` that only reads the code is no test of it."""
    words = f"{check.name} {check.command}"
    parts = _PARTS.split(_expanded(check.command, scripts))
    if all(_READING.search(part) and not _TESTING.search(part) for part in parts):
        return CheckKind.READER
    if _TESTING.search(words):
        return CheckKind.TESTS
    return CheckKind.READER if _READING.search(words) else CheckKind.OTHER


def _expanded(command: str, scripts: Mapping[str, str], depth: int = 5) -> str:
    """With the text of each script in place of the words that start it."""

    def text(found: re.Match[str]) -> str:
        script = scripts.get(found[1])
        return found[0] if script is None or not depth else _expanded(script, scripts, depth - 1)

    return _STARTS_SCRIPT.sub(text, command)


def packages(paths: Sequence[str], source: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The source files by the nearest folder above them that declares a package; the root is empty."""
    declared = {folder for path in paths for folder, _, name in [path.rpartition("/")] if matches(name, _DECLARES)}
    found: dict[str, list[str]] = {}
    for path in source:
        folder = path.rpartition("/")[0]
        while folder and folder not in declared:
            folder = folder.rpartition("/")[0]
        found.setdefault(folder, []).append(path)
    return {folder: tuple(files) for folder, files in found.items()}


def layout(packages: Mapping[str, Iterable[str]]) -> list[tuple[str, list[str]]]:
    """Of each package the folders that its code is imported from: the topmost ones with source, and its own."""
    found = {package: {path.rpartition("/")[0] for path in paths} for package, paths in packages.items()}
    return [(package, sorted(_topmost(package, folders))) for package, folders in sorted(found.items())]


def _topmost(package: str, folders: set[str]) -> Iterable[str]:
    above = folders - {package}
    return [one for one in folders if not any(one.startswith(f"{other}/") for other in above)]


def reads_setup(path: str) -> bool:
    """Whether the file decides what [setup] installs: a lock file or the declaration of a package."""
    name = path.rpartition("/")[2]
    return matches(name, _LOCKS) or matches(name, _DECLARES)


def remedy(setup: str) -> str:
    """What to change, for a person. `setup` is the project's command, or empty."""
    if _COPIES.search(setup):
        return (
            "[setup] installs a copy of the package, and the check tests that copy: install it with "
            "`pip install -e .`, or set PYTHONPATH in the check"
        )
    if setup:
        return "look whether [setup] installs or builds a copy that is tested instead of the files of the tree"
    return "make the check run the tests of this tree"
