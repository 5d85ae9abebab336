"""Finds keys, tokens and passwords in the lines that a change adds. What is found is never repeated in full."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from legion.domain.review.diffs import FileDiff

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
