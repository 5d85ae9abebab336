"""A decision stands on what the transaction that acts on it has read: what was read before may have changed.

Of a row that was read outside, the block that writes compares the version, or reads it once more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.codebase import SOURCE, files_with, place, tree

ROOMS = ("service", "jobs")
STEPS = ("tickets.move", "escalation.apply_step")
LOOKS_AGAIN = (".version", "expected_version", "tickets.get(", "_moved(")
REPLACED = {
    "service/forge/connections.py": "a connection that is new",
    "jobs/forge/notices.py": "one pass over a forge at a time",
}
"""Rows that are written as they were read before."""


def blocks() -> Iterator[tuple[Path, ast.With]]:
    """The write transactions of what is done for people and by jobs."""
    for path in files_with(r"store\.write\(", "src"):
        if path.relative_to(SOURCE).parts[0] in ROOMS:
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.With) and "store.write()" in ast.unparse(node.items[0].context_expr):
                    yield path, node


def calls(block: ast.With, *names: str) -> Iterator[ast.Call]:
    yield from (one for one in ast.walk(block) if isinstance(one, ast.Call) and ast.unparse(one.func) in names)


def names_in(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def test_a_row_is_changed_as_its_transaction_read_it():
    found = [
        place(path, call.lineno)
        for path, block in blocks()
        if str(path.relative_to(SOURCE)) not in REPLACED
        for call in calls(block, "replace")
        if call.args and not names_in(call.args[0]) & names_in(block, ast.Store)
    ]
    assert not found, f"read the row in the transaction, and replace that: {found}"


def test_a_job_moves_no_ticket_that_has_moved_meanwhile():
    found = [
        place(path, call.lineno)
        for path, block in blocks()
        if path.is_relative_to(SOURCE / "jobs") and not any(word in ast.unparse(block) for word in LOOKS_AGAIN)
        for call in calls(block, *STEPS)
        if not set().union(*map(names_in, call.args)) & names_in(block, ast.Store) - {"tx"}
    ]
    assert not found, f"compare the version of the ticket in the transaction: {found}"


def test_the_exceptions_still_exist():
    assert all((SOURCE / name).is_file() for name in REPLACED)
