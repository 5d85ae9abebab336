"""Additions of a change that a person should see first: secrets, hidden characters, conflict markers, large files.

A secret is never repeated in full.
A line that looks like one marker may be wanted. Three of them in order are the rest of a merge, except in documents and
tests, which may be about merging.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from legion.domain.review.diffs import FileDiff
from legion.domain.review.path_patterns import extension, matches
from legion.domain.review.protected_files import is_test
from legion.domain.text import hidden_in

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
        ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})"),
        ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("a Slack token", r"\bxox[abeprs]-[0-9A-Za-z-]{20,}"),
        ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{30,}"),
        ("an OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40,}"),
        ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
        ("a Stripe key", r"\b[rs]k_live_[0-9A-Za-z]{20,}"),
        ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
        ("a token of Legion", r"\blegion-(?:agent-|plugin-)?[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
        ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        ("a password in an address", r"\b[a-z][a-z0-9+.-]*://[^/\s:@\"'<{$]+:[^/\s:@\"'<{$]{8,}@"),
    )
)
_ASSIGNED = re.compile(
    r"(?i)(?:secret|token|api_?key|passwo?r?d|credential)[a-z0-9_]*[\"']?\s*[:=]{1,2}>?\s*[\"']([A-Za-z0-9+/=_.~-]{24,})[\"']"
)
"""A long text that is assigned to a name which says that it is secret."""
_PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|dummy|change-?me|your[-_]|x{4,}|fake|redacted|0{8,}|12345678|abcdef|:(?:passw(?:or)?d|secret)@"
)
_DIGIT = re.compile(r"[0-9]")
_RANDOM = 3.5
"""Bits per character: below that, an assigned text is a sentence or a name, not a key."""


@dataclass(frozen=True, kw_only=True)
class SecretFound:
    path: str
    line: int
    kind: str
    hint: str
    """Its first characters, enough to recognise it."""
    text: str = field(repr=False)
    """To tell two secrets apart; it is never shown or stored."""

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.kind} in line {self.line} ({self.hint}…)"


def secrets_in(files: Iterable[FileDiff]) -> tuple[SecretFound, ...]:
    """Each secret once per file, in the order of the change."""
    found: dict[tuple[str, str], SecretFound] = {}
    for file in files:
        for line in file.added:
            for kind, text in _matches(line.text):
                one = SecretFound(path=file.path, line=line.number, kind=kind, hint=text[:4], text=text)
                found.setdefault((file.path, text), one)
    return tuple(found.values())


def _matches(line: str) -> list[tuple[str, str]]:
    known = [(kind, match[0]) for kind, shape in _SHAPES for match in shape.finditer(line)]
    known = [(kind, text) for kind, text in known if not _PLACEHOLDER.search(text)]
    if known:
        return known[:1]
    assigned = [match[1] for match in _ASSIGNED.finditer(line)]
    return [
        ("a long random text under a secret's name", text)
        for text in assigned
        if not _PLACEHOLDER.search(text) and _DIGIT.search(text) and _entropy(text) >= _RANDOM
    ]


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LargeFile:
    path: str
    bytes: int

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.bytes / _MEGABYTE:.0f} MB"


def too_large(sizes: Iterable[tuple[str, int]], declared: Sequence[str], limit_mb: float) -> tuple[LargeFile, ...]:
    """The files above the limit that the ticket does not declare. A limit of 0 is none."""
    if not limit_mb:
        return ()
    found = (LargeFile(path=path, bytes=size) for path, size in sizes if size > limit_mb * _MEGABYTE)
    return tuple(file for file in found if not matches(file.path, declared))


_MOST = 200
"""Findings of a change; the first ones suffice for a decision."""
_NAMED = 3
_BYTE_ORDER_MARK = "\ufeff"
_DISGUISES = (range(0x202A, 0x202F), range(0x2066, 0x206A), range(0xE0000, 0xE0080))
"""Reorder what is shown, or hold a text that only programs read. Other findings may be a slip."""


@dataclass(frozen=True, kw_only=True)
class HiddenCharacter:
    path: str
    line: int
    code: str
    """U+202E"""

    @property
    def disguises(self) -> bool:
        """Is it of those that have no place in a source file, so that a person is asked?"""
        return any(int(self.code[2:], 16) in one for one in _DISGUISES)

    @property
    def sentence(self) -> str:
        return f"{self.path}:{self.line} has {self.code}"


def hidden_characters(files: Iterable[FileDiff]) -> tuple[HiddenCharacter, ...]:
    """Those that the change adds: a line that had them before and changes elsewhere is none."""
    found: list[HiddenCharacter] = []
    for file in files:
        before = Counter(letter for line in file.removed for letter in hidden_in(line.text))
        for line in file.added:
            # The mark of the encoding at the start of a file is no disguise.
            text = line.text.removeprefix(_BYTE_ORDER_MARK) if line.number == 1 else line.text
            for letter in dict.fromkeys(hidden_in(text.removesuffix("\r"))):
                before[letter] -= 1
                if before[letter] < 0:
                    found.append(HiddenCharacter(path=file.path, line=line.number, code=f"U+{ord(letter):04X}"))
    return tuple(found[:_MOST])


class HiddenPlace(Protocol):
    """A finding, here or as it travels to clients."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...

    @property
    def code(self) -> str: ...


def warning(found: Sequence[HiddenPlace]) -> str:
    """One sentence; empty where there is nothing to warn of."""
    if not found:
        return ""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = ", ".join(f"{one.code} in {one.path}:{one.line}" for one in found[:_NAMED])
    return f"The change adds characters that a screen does not show: {named}{more}."


_PLANTED = re.compile(r"(?:<{7,} target|>{7,} change)\b")
_OPENS, _MIDDLE, _CLOSES = re.compile(r"<{7}(?: |$)"), re.compile(r"={7}$"), re.compile(r">{7}(?: |$)")
_DOCUMENTS = frozenset({"md", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "html", "tex", "patch", "diff"})


def may_hold(patch: str) -> bool:
    """A quick look at the text of a patch: false for nearly every change, so that only the others are parsed."""
    return _IN_PATCH.search(patch) is not None


_IN_PATCH = re.compile(r"^\+(?:<{7,}|>{7,})(?: |$)", re.MULTILINE)


def marked(files: Iterable[FileDiff]) -> tuple[str, ...]:
    """The paths of the files in which conflict markers were added."""
    return tuple(file.path for file in files if _is_marked(file.path, [line.text for line in file.added]))


def _is_marked(path: str, added: Sequence[str]) -> bool:
    if any(_PLANTED.match(line) for line in added):
        return True
    if extension(path) in _DOCUMENTS or is_test(path):
        return False
    wanted = [_OPENS, _MIDDLE, _CLOSES]
    for line in added:
        if wanted and wanted[0].match(line):
            wanted.pop(0)
    return not wanted
