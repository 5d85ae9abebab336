"""The issues of a milestone in the order of their work: an issue may say which others come before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from legion.domain.forge.issues import ForgeIssue
from legion.domain.tickets import board

_BEFORE = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?(?:after|depends on|blocked by):?[ \t]+(?P<numbers>#\d{1,9}(?:(?:,|[ \t]|and)+#\d{1,9})*)",
    re.IGNORECASE | re.MULTILINE,
)


def issues_before(issue: ForgeIssue) -> tuple[int, ...]:
    """The numbers in lines like `Depends on #3, #4` of its text."""
    found = [int(number) for line in _BEFORE.finditer(issue.body) for number in re.findall(r"\d+", line["numbers"])]
    return tuple(dict.fromkeys(found))


def in_order(issues: Sequence[ForgeIssue]) -> list[tuple[ForgeIssue, tuple[int, ...]]]:
    """Each after those of them that come before it, with their numbers. Raises BadInput for a circle."""
    by_number = {one.number: one for one in issues}
    edges = {one.number: [number for number in issues_before(one) if number in by_number] for one in issues}
    board.refuse_cycles(edges, {number: f"issue {number}" for number in edges})
    return [(by_number[number], tuple(edges[number])) for number in board.topological(edges)]
