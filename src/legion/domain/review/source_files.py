"""Which files of a repository are its source, and which checks do not notice that the source is gone.

A check that stays green when every source file is empty does not test this tree. Most often [setup] has installed a
copy of the package, and the check tests that copy: every change would land green.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
_COPIES = re.compile(
    r"\bpip3? install\b(?![^&|;]*(?:\s-e\b|--editable\b))[^&|;]*\s['\"]?\.(?:\[[^\]]*\])?(?=[\s'\";&|]|$)"
)


def source_files(paths: Iterable[str], commands: Sequence[str]) -> tuple[str, ...]:
    """Of the tracked paths, those that the program consists of. `commands` are the checks: an emptied script of theirs
    would pass, so what a check names is not source.
    """
    named = (*deciding(commands), *_named(commands))
    return tuple(path for path in paths if _is_code(path) and not matches(path, named))


def _is_code(path: str) -> bool:
    if extension(path) not in _CODE or is_test(path):
        return False
    return not matches(path, _OF_TOOLS) and not matches(path, (*_NOT_THE_PROGRAM, *_TESTS))


def _named(commands: Iterable[str]) -> list[str]:
    """The files that commands start by name: `manage.py`, or the module after `-m`."""
    found = []
    for command in commands:
        words = [word.strip("\"'();&|") for word in command.split()]
        for before, word in zip(["", *words], words, strict=False):
            if before == "-m":
                place = word.replace(".", "/")
                found += [f"**/{place}.py", f"**/{place}/__main__.py"]
            elif extension(word) in _CODE and not word.startswith("/"):
                found.append(f"**/{word.removeprefix('./')}")
    return found


def blind(passes: Mapping[Check, bool | None]) -> tuple[Check, ...]:
    """The checks that prove nothing, where `passes` tells which of them are green although the source is empty; None is
    a check that was not tried.

    A linter may be green on empty files. A check that runs tests may not, and at least one check has to notice.
    """
    green = [check for check, passed in passes.items() if passed]
    if len(green) == len(passes):
        return tuple(green)
    return tuple(check for check in green if _TESTING.search(f"{check.name} {check.command}"))


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
