"""A loop that waits for something waits on every way round: one that starts again before that would spin."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.codebase import files_with, place, tree

_WAITS = frozenset(("wait", "wait_for", "sleep", "select", "acquire", "_ended_within"))
"""Calls that take time. The last one sleeps until a deadline."""


def calls(loop: ast.While) -> list[int]:
    """The lines of calls that wait."""
    return sorted(
        node.lineno
        for node in ast.walk(loop)
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in _WAITS
    )


def restarts(node: ast.AST) -> Iterator[int]:
    """The lines of each `continue` of this loop, without those of loops and functions in it."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, part, []):
            if isinstance(one, ast.Continue):
                yield one.lineno
            elif not isinstance(one, ast.While | ast.For | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from restarts(one)


def test_no_loop_starts_again_before_it_has_waited():
    found = [
        f"{place(path)}:{line}"
        for path in files_with(r"\bcontinue\b", "src")
        for loop in ast.walk(tree(path))
        if isinstance(loop, ast.While) and (waits := calls(loop))
        for line in restarts(loop)
        if line < waits[0]
    ]
    assert not found, f"these would spin; wait first, or end the loop: {found}"
