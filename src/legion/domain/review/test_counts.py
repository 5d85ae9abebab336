"""Counts the tests that ran, by the output of the runners that tell it."""

from __future__ import annotations

import re

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
    for pattern in _LAST:
        found = list(pattern.finditer(plain))
        if found:
            return _number(found[-1])
    for pattern in _EACH:
        found = list(pattern.finditer(plain))
        if found:
            return sum(_number(one) for one in found)
    return len(_EACH_TEST.findall(plain)) or (0 if "no tests ran in" in plain else None)


def _number(found: re.Match[str]) -> int:
    many = found.groupdict().get("many")
    if many is not None:
        counted = (part.split(" ") for part in many.split(", ") if part)
        return sum(int(number) for number, what in counted if what not in _NOT_RUN)
    return sum(int(group) for group in found.groups())
