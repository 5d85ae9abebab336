"""A trial of the checks: the errors that it plants, how each check did on the code as it is, and whether it noticed.

A check that stays green when the code is broken does not test this tree. Most often [setup] has installed a copy of the
package, and the check tests that copy: every change would land green.

An error that shows at run time leaves [setup] alone, so that a build succeeds and the check itself has to notice.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum

from legion.domain.checks import CheckResult
from legion.domain.failure_causes import reason
from legion.domain.review.path_patterns import extension
from legion.domain.review.source_files import CheckKind, remedy
from legion.domain.text import count, python_statements

WAITS = "the checks were not shown to see the code: `legion inbox` asks about it, `legion doctor` says more"
"""Why tickets of the project wait before they land."""


class Sight(Enum):
    """Whether a check looks at the code."""

    SEES = "sees"
    """It was red when the code was broken."""
    BLIND = "blind"
    """It stayed green when the code was broken."""
    ELSEWHERE = "elsewhere"
    """It stayed green and is no test, linter or type checker, while other checks see the code."""
    RED_BASE = "red base"
    """It is red on the code as it is, so nothing can be shown."""
    NOTHING_TO_BREAK = "nothing to break"
    """No source files were recognised, or [setup] fails with every error."""


@dataclass(frozen=True, kw_only=True)
class TriedCheck:
    name: str
    command: str
    base: CheckResult
    """On the code as it is."""
    seconds: float
    tests: int | None
    """How many ran on the code as it is; None where the runner does not tell."""
    sight: Sight
    words: str = ""
    """The end of its output where it is red on the code as it is."""

    @property
    def line(self) -> str:
        tests = "" if self.tests is None else f", {count(self.tests, 'test')}"
        outcome = {CheckResult.GREEN: "ok", CheckResult.SETUP: "not run, [setup] failed"}.get(self.base, "red")
        return f"{self.name} {self.seconds:.0f} s{tests}, {outcome}"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial of all checks on one commit."""

    key: str
    """The same for the same setup, checks, lock files and packages."""
    commit: str
    at: float
    setup: float | None
    """Seconds; None where there is no [setup]."""
    setup_fault: str
    """The end of its output where it failed on the code as it is."""
    setup_says: str = ""
    """The line of it that says most, with its likely cause."""
    packages: int = 0
    """How many packages setup installed in the tree, as far as its files tell."""
    fetched: int = 0
    """Bytes that setup added to the project's downloads."""
    checks: tuple[TriedCheck, ...]
    files: int
    """How many source files were broken."""
    unseen: tuple[str, ...] = ()
    """Folders of packages that no check notices an error in; empty for the root."""
    unknown: tuple[str, ...] = ()
    """The same, where [setup] failed with every error, so that no check was tried."""
    copies: tuple[str, ...] = ()
    """Copies of source files that [setup] left and that a check runs instead of the tree's own."""

    @property
    def complete(self) -> bool:
        """The code as it is passes every check, so that what was found counts for the changes to come."""
        return not self.setup_fault and all(one.sight is not Sight.RED_BASE for one in self.checks)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why changes should not land on these checks, each a sentence for a person."""
        if not self.complete:
            return ()
        if not self.files:
            return ("no source files were recognised that could be broken, so it is not known whether checks see them",)
        found = [f"`{name}` stays green when the code is broken, so it does not test this tree" for name in self.blind]
        if self.unseen and not self.blind:
            found.append(f"no check notices an error in {_named(self.unseen)}")
        if self.unknown:
            why = "stops [setup], so it is not known whether a check would see it"
            found.append(f"an error in {_named(self.unknown)} {why}")
        if self.copies:
            found.append(f"a check runs `{self.copies[0]}`, a copy that [setup] made before the code was broken")
        return tuple(found)

    def remedy(self, setup: str) -> str:
        """What to do where it is not shown that the checks see the code. `setup` is the project's command, or empty."""
        if not self.complete:
            what = "[setup]" if self.setup_fault else "the check"
            return (
                f"correct {what} in legion.toml and run `legion trust`, or correct the code by a ticket or a commit, "
                "or give this machine what is missing and run `legion doctor --try`"
            )
        if not self.files:
            return "if the checks look at something else than code, trust them"
        if self.empty or self.blind or self.copies:
            return self.empty[0] if self.empty else remedy(setup)
        if self.unknown and not self.unseen:
            return "build it in the check instead of [setup]; or, if its tests do run what [setup] built, trust them"
        return "add tests of it, or a check that runs them"

    @property
    def empty(self) -> tuple[str, ...]:
        """What to write for each check that ran no test."""
        how = "ran no test: name in its `run` where they are, as in `python -m unittest discover -s FOLDER`"
        return tuple(f"`{one.name}` {how}" for one in self.checks if one.tests == 0)

    @property
    def blind(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.checks if one.sight is Sight.BLIND)

    @property
    def sees(self) -> str:
        """For a person: yes, no, or what is missing to know it."""
        if self.setup_fault:
            return "not known: [setup] fails"
        if red := [one.name for one in self.checks if one.sight is Sight.RED_BASE]:
            return f"not known: {', '.join(red)} fails on the code as it is"
        if not self.files:
            return "not known: no source files were recognised"
        known = "no" if self.blind or self.unseen or self.copies else "not known"
        return f"{known}: {'; '.join(self.doubts)}" if self.doubts else "yes"

    @property
    def lines(self) -> tuple[str, ...]:
        """The whole trial, for a person."""
        outcome = "failed" if self.setup_fault else "ok"
        installed = f", {count(self.packages, 'package')}" if self.packages else ""
        installed += f", {self.fetched >> 20} MB fetched" if self.fetched >> 20 else ""
        first = [] if self.setup is None else [f"setup {self.setup:.0f} s{installed}, {outcome}"]
        said = [f"[setup] says: {self.setup_says}"] if self.setup_says else []
        said += [f"{one.name} says: {reason(one.words, None)}" for one in self.checks if one.words]
        tried = [] if self.setup_fault else [one.line for one in self.checks]
        return (*first, *tried, *self.empty, *said, f"sees the code: {self.sees}")


def sight_of(kind: CheckKind, red: bool, others_see: bool) -> Sight:
    """Of a check that was tried on broken code. `red`: it noticed at least once."""
    if red:
        return Sight.SEES
    return Sight.ELSEWHERE if kind is CheckKind.OTHER and others_see else Sight.BLIND


def _named(folders: tuple[str, ...]) -> str:
    return ", ".join(f"`{folder}`" if folder else "the root" for folder in folders)


_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_LAST = (
    re.compile(r"^(?:=+ )?(?=.*\bin [\d.]+)(?P<many>(?:\d+ \w+(?:, )?)+) in [\d.]+ ?s", re.MULTILINE),  # pytest
    re.compile(r"^Tests:\s.*?(\d+) total", re.MULTILINE),  # jest
    re.compile(r"^\s*Tests\s+.*\((\d+)\)\s*$", re.MULTILINE),  # vitest
    re.compile(r"^(?:#|ℹ) tests (\d+)\s*$", re.MULTILINE),  # node --test, tap
    re.compile(r"^\s*(\d+) tests? passed\b", re.MULTILINE),  # ava
    re.compile(r"^(?:\[\w+\] )?Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: \d+\s*$", re.MULTILINE),  # maven
    re.compile(r"^(\d+) tests completed", re.MULTILINE),  # gradle
    re.compile(r"^Total tests: (\d+)", re.MULTILINE),  # dotnet vstest
    re.compile(r"^(\d+) examples?, \d+ failures?", re.MULTILINE),  # rspec
    re.compile(r"^(\d+) runs, \d+ assertions", re.MULTILINE),  # minitest
    re.compile(r"^OK(?:, but .*)? \((\d+) tests?,", re.MULTILINE),  # phpunit
    re.compile(r"^Tests: (\d+), Assertions:", re.MULTILINE),  # phpunit with faults
    re.compile(r"tests passed, \d+ tests failed out of (\d+)"),  # ctest
    re.compile(r"^(?:\d+ doctests?, )?(\d+) tests?, \d+ failures?", re.MULTILINE),  # mix
    re.compile(r"^ok \| (\d+) passed", re.MULTILINE),  # deno
    re.compile(r"^Ran (\d+) tests across", re.MULTILINE),  # bun
)
"""Summaries of a whole run: the last one counts."""

_EACH = (
    re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE),  # unittest
    re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.MULTILINE),  # cargo
    re.compile(r"^\s*(\d+) passing\b", re.MULTILINE),  # mocha
    re.compile(r"^\s*\w+! +- Failed: .* Total:\s+(\d+)", re.MULTILINE),  # dotnet test
)
"""Summaries of parts: all of them together count."""

_EACH_TEST = re.compile(r"^--- (?:PASS|FAIL):", re.MULTILINE)  # go test -v
_NOT_RUN = ("skipped", "deselected", "warning", "warnings")


def tests_ran(output: str) -> int | None:
    """None where no known runner tells it."""
    plain = _COLOURS.sub("", output)
    for pattern in (*_LAST, *_EACH):
        if found := list(pattern.finditer(plain)):
            return sum(map(_number, found if pattern in _EACH else found[-1:]))
    return len(_EACH_TEST.findall(plain)) or (0 if "no tests ran in" in plain else None)


def _number(found: re.Match[str]) -> int:
    many = found.groupdict().get("many")
    if many is not None:
        counted = (part.split(" ") for part in many.split(", ") if part)
        return sum(int(number) for number, what in counted if what not in _NOT_RUN)
    return sum(int(group) for group in found.groups())


PLANTED = "planted by the trial of the checks"

_PYTHON = (
    f'import os as _planted\nif _planted.environ.get("LEGION_CHECK") != "setup":\n    raise RuntimeError("{PLANTED}")\n'
)
_SCRIPT = f'if (globalThis.process?.env?.LEGION_CHECK !== "setup") throw new Error("{PLANTED}");\n'
_TYPED_SCRIPT = _SCRIPT.replace("globalThis.", "(globalThis as any).")
_SHELL = f'[ "${{LEGION_CHECK:-}}" = setup ] || {{ echo "{PLANTED}" >&2; exit 97; }}\n'

_AT_THE_TOP = {
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), _SCRIPT),
    **dict.fromkeys(("ts", "mts", "cts", "tsx"), _TYPED_SCRIPT),
    **dict.fromkeys(("sh", "bash"), _SHELL),
    "rb": f'raise "{PLANTED}" unless ENV["LEGION_CHECK"] == "setup"\n',
    "pl": f'BEGIN {{ die "{PLANTED}" unless ($ENV{{LEGION_CHECK}} // "") eq "setup" }}\n',
    "pm": f'BEGIN {{ die "{PLANTED}" unless ($ENV{{LEGION_CHECK}} // "") eq "setup" }}\n',
    "lua": f'if os.getenv("LEGION_CHECK") ~= "setup" then error("{PLANTED}") end\n',
    "jl": f'get(ENV, "LEGION_CHECK", "") == "setup" || error("{PLANTED}")\n',
    "r": f'if (Sys.getenv("LEGION_CHECK") != "setup") stop("{PLANTED}")\n',
}
"""By extension: what runs before everything else in the file."""

_COMPILED = (
    f"\n/* {PLANTED} */\n#include <stdlib.h>\n#include <string.h>\n"
    "__attribute__((constructor)) static void planted_%s(void) {\n"
    '    const char *at = getenv("LEGION_CHECK");\n    if (!at || strcmp(at, "setup")) __builtin_trap();\n}\n'
)
"""Ends what loads it. The name is the file's own: one file may include another."""

_AT_THE_END = {
    "php": f'\nif (getenv("LEGION_CHECK") !== "setup") throw new \\RuntimeException("{PLANTED}");\n',
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "m", "mm"), f"\n#error {PLANTED}\n"),
    "rs": f'\ncompile_error!("{PLANTED}");\n',
    "pyx": f"\n{_PYTHON}",
    "clj": f'\n(throw (Exception. "{PLANTED}"))\n',
    **dict.fromkeys(("vue", "svelte"), f"\n<script>)({PLANTED}</script>\n"),
}
"""By extension: what follows everything else. All others get a line that no compiler takes."""

_UNREADABLE = f"\n)({PLANTED}\n"
_SOURCES_IN_C = ("c", "cc", "cpp", "cxx")
_NEVER_RUN = (".pyi", ".d.ts", ".d.mts", ".d.cts")
_FIRST_LINES = re.compile(rb"(?:[ \t]*\n|#[^\n]*(?:\n|\Z)|['\"]use [\w ]+['\"];?[ \t]*(?:\n|\Z))*")
"""Lines that must stay first: the interpreter, comments that are instructions, and directives."""


def breaks_at_run_time(path: str, content: bytes) -> bytes | None:
    """The file with an error that shows as soon as it is run, or compiled. None where it never runs."""
    if path.endswith(_NEVER_RUN):
        return None
    kind = extension(path)
    if kind == "py":
        return _in_python(content)
    if kind in _SOURCES_IN_C:
        return content + (_COMPILED % re.sub(r"\W", "_", path, flags=re.ASCII)).encode()
    if (text := _AT_THE_TOP.get(kind)) is not None:
        return _inserted(content, _first_lines(content), text)
    return content + _AT_THE_END.get(kind, _UNREADABLE).encode()


def leaves_setup_alone(path: str, kind: CheckKind) -> bool:
    """Whether a build does not notice the error that is planted for such checks."""
    built = ("pyx", *_SOURCES_IN_C) if kind is CheckKind.TESTS else ()
    return extension(path) in ("py", "php", *built, *_AT_THE_TOP)


def breaks_when_read(path: str, content: bytes) -> bytes:
    """The file with an error that every tool notices that parses it."""
    kind = extension(path)
    if kind in ("php", "vue", "svelte"):
        return content + f"\n<?php )({PLANTED}\n".encode()
    return content + (_AT_THE_END[kind] if kind in ("c", "h") else _UNREADABLE).encode()


def _in_python(content: bytes) -> bytes:
    """After docstring and `from __future__`, which must stay first."""
    body = python_statements(content)
    if body is None:
        return content + b"\n" + _PYTHON.encode()
    line = 0
    for place, statement in enumerate(body):
        words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and place == 0
        if not words and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        line = statement.end_lineno or line
    if line:
        lines = content.splitlines(keepends=True)
        return _inserted(content, sum(map(len, lines[:line])), _PYTHON)
    return _inserted(content, _first_lines(content), _PYTHON)


def _first_lines(content: bytes) -> int:
    found = _FIRST_LINES.match(content)
    return 0 if found is None else found.end()


def _inserted(content: bytes, at: int, text: str) -> bytes:
    before = content[:at]
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    return before + joint + text.encode() + content[at:]
