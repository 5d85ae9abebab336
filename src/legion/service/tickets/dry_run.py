"""Dry runs of a dispatch: everything is checked and created in a transaction that is taken back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from legion.store.board import tickets
from legion.store.database.transactions import Transaction
from legion.wire.dispatch import Dispatch, Dispatched


class DryRun(Exception):  # it is no error
    """Takes back a transaction that showed what a dispatch would do."""

    def __init__(self, tx: Transaction, made: Dispatched) -> None:
        super().__init__()
        self.answer = replace(made, ids=[], keys={}, planned=_planned(tx, sorted(made.ids)))


@contextlib.contextmanager
def undone_if_dry(request: Dispatch) -> Iterator[list[Dispatched]]:
    """Catches the end of a dry run, outside the transaction that it takes back."""
    answers: list[Dispatched] = []
    try:
        yield answers
    except DryRun as over:
        assert request.dry_run, "only a dry run ends like this"
        answers.append(over.answer)


def _planned(tx: Transaction, ids: list[int]) -> list[str]:
    """In the order of their numbers, which follows their edges; those of the request are counted from 1."""
    position = {id: place for place, id in enumerate(ids, start=1)}
    lines = []
    for ticket in tickets.get_many(tx, ids):
        spec = ticket.spec
        after = [f"number {position[one]}" if one in position else f"ticket {one}" for one in spec.after]
        facts = [f"after {', '.join(after)}"] if after else []
        facts += ["checkpoint"] if spec.checkpoint else [f"team {spec.team}"] if spec.team else []
        facts += [f"{spec.max_attempts} attempts"] if not spec.checkpoint else []
        lines.append(f"{position[ticket.id]}. {spec.title} ({', '.join(facts)})")
    return lines
