"""Finds weakened tests in a diff by signs that need little knowledge of the language, and hunks that no test covers.

A sign is a hint for people and never a proof: an assertion may have moved into a helper. Lines that moved unchanged
within the change are no sign.

Of hunks it asks two questions, without a model. Do the proofs fail on the old code with only the new tests added? And
does any proof fail if one hunk of the change is reverted?
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.review.diffs import DiffLine, FileDiff
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import deciding, is_test
from legion.domain.text import count


class Sign(Enum):
    FEWER_ASSERTIONS = "fewer assertions"
    SKIP = "skip added"
    FILE_REMOVED = "test file removed"
    SILENCED = "failure silenced"
    """A command whose failure no longer counts."""


@dataclass(frozen=True, kw_only=True)
class Weakening:
    sign: Sign
    path: str
    line: int | None
    """In the file as it is now; None where the line is gone."""
    words: str
    """The line itself, or how many are gone."""


_COMMENT = re.compile(r"^\s*(#(?!\[)|//|/\*|\*|--|<!--|;|%|rem\b)", re.IGNORECASE)

_ASSERTION = re.compile(
    r"""
      ^\s*assert\w*\s                                        # Python, Java, Minitest
    | \bassert\w*\s*[(!]                                    # assertEqual(, assert_eq!, assertThat(, assert(
    | \b(?:assert|require|expect|should|must|verify)\.\w+   # testify, chai
    | \bexpect\s*[({]                                       # Jest, RSpec
    | \.(?:should|must_equal|wont_equal|must_be|to_not|not_to)\b
    | \b(?:refute|flunk)\w*\b
    | \.assert_(?:called|not_called|has_calls|any_call|awaited)\w*\(
    | \b(?:pytest\.raises|assertRaises|should_panic|verify\()
    | \bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow|is|not|deepEqual|throws|like)\(
    """,
    re.VERBOSE,
)
_SHELL_ASSERTION = re.compile(r"(?:^|[;&|!]\s*|\bif\s+|^\s*)(?:test\s|\[\[?\s|grep\s|diff\s|cmp\s|assert\w*\b)")
_EMPTY_ASSERTION = re.compile(
    r"""
      \bassert(?:_?true|_?that|\.ok)?[\s(!]+(?:true|1|not\s+false)\s*[),;]*\s*(?:["',].*)?$
    | \bassert\s+(?P<a>\w+)\s*==\s*(?P=a)\s*$
    | \bassert\w*[(!]+\s*(?P<b>[\w"']+)\s*,\s*(?P=b)\s*\)
    | \bexpect\((?P<c>[\w"']+)\)\.(?:to\.?\w*|toBe|toEqual|toStrictEqual)[.\w]*\(\s*(?P=c)\s*\)
    | \bexpect\(true\)\.toBeTruthy
    """,
    re.VERBOSE | re.IGNORECASE,
)

_SKIP = re.compile(
    r"""
      \bpytest\.(?:mark\.)?(?:skip|skipif|xfail)\b | \bpytest\.importorskip\(
    | @(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b | \.skipTest\( | \bSkipTest\b
    | \b__test__\s*=\s*False | \bcollect_ignore(?:_glob)?\b
    | \b(?:it|test|describe|context|suite|specify|bench)\.(?:skip|todo|only|failing|fixme)\b
    | \b(?:xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe|fcontext)\s*[(\s]["'`(]
    | \bt\.(?:Skip|Skipf|SkipNow)\( | ^\s*//\s*(?:go:build|\+build)\s+ignore
    | \#\[ignore\b | \#\[cfg\(any\(\)\)\]
    | @(?:Ignore|Disabled)\b | \bassume(?:True|False|That)\(
    | ^\s*(?:skip|pending)\b(?!\s*[=:.])
    """,
    re.VERBOSE,
)

_SILENCED = re.compile(
    r"""
      \|\|\s*(?:true|:|/bin/true|exit\s+0|echo\b|return\s+0)(?![\w-])
    | ;\s*(?:true|:|exit\s+0)\s*(?:["'`,)]|$)
    | \bset\s+\+e\b
    | \bcontinue-on-error\s*:\s*(?!false) | \ballow_failure\s*:\s*(?!false) | \bcontinueOnError\s*:\s*(?!false)
    | --(?:passWithNoTests|exit-zero|deselect|no-verify|suppress-no-test-exit-code)\b
    | --ignore[=\s]\S*test | -k\s*["']?not\b
    | -DskipTests\b | -Dmaven\.test\.skip
    """,
    re.VERBOSE,
)
_IGNORED_BY_MAKE = re.compile(r"^\t\s*@?-\s*@?[\w./$]")

_COMMAND_FILES = (
    "legion.toml",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".pre-commit-config.yaml",
    ".husky",
    ".githooks",
    "**/Makefile",
    "**/*.mk",
    "**/justfile",
    "**/Taskfile.yml",
    "**/Rakefile",
    "**/package.json",
    "**/tox.ini",
    "**/noxfile.py",
    "**/pytest.ini",
    "**/setup.cfg",
    "**/pyproject.toml",
    "**/pom.xml",
    "**/build.gradle",
    "**/build.gradle.kts",
)
"""Files that contain check commands."""

_SHELL = (".sh", ".bash", ".bats")
_LONGEST = 2000
"""Characters of a line that are searched: lines are untrusted, and a search must be bounded."""


def weakenings(change: Sequence[FileDiff], commands: Sequence[str]) -> tuple[Weakening, ...]:
    """All signs in a change, in the order of its files. `commands` are the checks and proofs that will judge it."""
    came = _texts(line for file in change for line in _asserting(file, file.added))
    went = _texts(line for file in change for line in _asserting(file, file.removed))
    moved = came & went
    found: list[Weakening] = []
    for file in change:
        found += _fewer(file, moved)
        if _holds_tests(file.path):
            found += _lines(file, Sign.SKIP, _SKIP)
        if _holds_commands(file.path, commands):
            found += _lines(file, Sign.SILENCED, _SILENCED)
            if matches(file.path, ("**/Makefile", "**/*.mk"), any_case=True):
                found += _lines(file, Sign.SILENCED, _IGNORED_BY_MAKE)
    return tuple(found)


def _fewer(file: FileDiff, moved: Counter[str]) -> list[Weakening]:
    went = _texts(_asserting(file, file.removed))
    came = _texts(_asserting(file, file.added))
    lost = (went - moved).total()
    if file.gone and is_test(file.path):
        whole = bool(went) and lost == 0
        return [] if whole else [Weakening(sign=Sign.FILE_REMOVED, path=file.path, line=None, words=_count(lost))]
    less = lost - (came - moved).total()
    if less <= 0:
        return []
    return [Weakening(sign=Sign.FEWER_ASSERTIONS, path=file.path, line=None, words=f"{less} fewer than before")]


def _count(lost: int) -> str:
    return f"with {count(lost, 'assertion')}" if lost else "no assertion was in it"


def _lines(file: FileDiff, sign: Sign, pattern: re.Pattern[str]) -> list[Weakening]:
    """Added lines with the sign in them, except those that were in the file before."""
    before = _texts(file.removed)
    found = []
    for line in file.added:
        text = line.text.strip()
        begins = line.text[:_LONGEST]
        if not pattern.search(begins) or (_COMMENT.match(begins) and not pattern.match(begins)):
            continue
        if before[text]:
            before[text] -= 1
            continue
        found.append(Weakening(sign=sign, path=file.path, line=line.number, words=text[:200]))
    return found


def _texts(lines: Iterable[DiffLine]) -> Counter[str]:
    return Counter(line.text.strip() for line in lines)


def _asserting(file: FileDiff, lines: Iterable[DiffLine]) -> list[DiffLine]:
    """The lines of a file that assert something. Its path is classified once, however many lines there are."""
    if not _holds_tests(file.path):
        return []
    pattern = _SHELL_ASSERTION if file.path.endswith(_SHELL) else _ASSERTION
    return [line for line in lines if _asserts(line.text[:_LONGEST], pattern)]


def _asserts(text: str, pattern: re.Pattern[str]) -> bool:
    if _COMMENT.match(text) or _EMPTY_ASSERTION.search(text):
        return False
    return pattern.search(text) is not None


def _holds_tests(path: str) -> bool:
    """Rust keeps tests in the file that they test."""
    return is_test(path) or path.endswith(".rs")


def _holds_commands(path: str, commands: Sequence[str]) -> bool:
    named = (*_COMMAND_FILES, *deciding(commands))
    return matches(path, named, any_case=True) or (is_test(path) and path.endswith(_SHELL))


_DOCUMENTS = ("**/*.md", "**/*.rst", "**/*.adoc", "**/LICENSE", "docs")
_NO_CODE = re.compile(r"^\s*(?:#(?!\[).*|//.*|/?\*.*|--.*)?$")
MOST_HUNKS = 200


@dataclass(frozen=True, kw_only=True)
class RevertHunk:
    """One hunk of one file, which can be reverted alone."""

    path: str
    line: int
    lines: int
    """How many lines it added, or removed if it added none."""
    patch: str


@dataclass(frozen=True, kw_only=True)
class RevertProof:
    """The result for one change."""

    idle: tuple[str, ...]
    """Commands that pass without the change, too."""
    red: tuple[str, ...]
    """Commands that fail without it, as they should."""
    unproven: tuple[RevertHunk, ...]
    tried: int
    left: int
    """Hunks for which no time was left."""


def revertable_hunks(change: Iterable[FileDiff]) -> tuple[RevertHunk, ...]:
    """Hunks that may be reverted: code, but no tests, no documents, and no binary files."""
    return tuple(
        RevertHunk(
            path=file.path,
            line=hunk.place,
            lines=len(hunk.added) or len(hunk.removed),
            patch=f"{file.header}\n{hunk.text}",
        )
        for file in change
        if not is_test(file.path) and not matches(file.path, _DOCUMENTS, any_case=True)
        for hunk in file.hunks
        if any(not _NO_CODE.match(line.text) for line in (*hunk.added, *hunk.removed))
        and "\N{REPLACEMENT CHARACTER}" not in f"{file.header}{hunk.text}"
    )[:MOST_HUNKS]


def new_tests(change: Sequence[FileDiff], commands: Iterable[str]) -> tuple[str, ...]:
    """The test files that the change adds or adds to, and the scripts and recipes of its that these commands run."""
    scripts = deciding(commands)
    added = [file.path for file in change if file.added and not file.gone]
    return tuple(path for path in added if is_test(path) or matches(path, scripts, any_case=True))
