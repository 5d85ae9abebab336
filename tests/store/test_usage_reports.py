"""A program that counts its own usage is counted once, however often its conversation begins anew or is read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from legion.domain.scheduling.usage import Spending, Usage, total
from legion.store.database.transactions import Store
from legion.store.work import usage
from tests.support.attacks import Attacker, Door, attack
from tests.support.migrated import migrated_store

NAME = "conversation-1"


class Program:
    """Counts from the start of its conversation on, over as many runs as resume it, and writes a journal of each."""

    def __init__(self) -> None:
        self.journals: list[list[tuple[str, Usage]]] = []
        self.truth = Usage()
        self.counted = Usage()

    def run(self, *, fresh: bool) -> None:
        if fresh:
            self.counted = Usage()
        self.journals.append([("fresh" if fresh else "resumed", Usage())])

    def spend(self, tokens: int) -> None:
        new = Usage(input=tokens, output=tokens // 2, cache_read=tokens * 3, usd=float(tokens))
        self.truth += new
        self.counted += new
        self.journals[-1].append(("result", self.counted))


def read(store: Store, program: Program, run: int) -> None:
    """The whole journal, from its first event."""
    for number, (kind, counted) in enumerate(program.journals[run]):
        with store.write() as tx:
            if kind == "fresh":
                usage.count_from_zero(tx, NAME, (run, number))
            if kind == "result":
                spent = Spending(run=run, provider="own", model="m", day=f"2026-01-{1 + number % 3:02}", usage=counted)
                usage.add_report(tx, NAME, (run, number), spent)


def counted(store: Store) -> Usage:
    with store.read() as tx:
        return total(one.usage for one in usage.spending(tx))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return migrated_store(tmp_path / "legion.db")


@attack(Attacker.PROGRAM, Door.MONEY)
@pytest.mark.parametrize("first", [10_000, 300_000], ids=["less than before", "more than before"])
def test_a_conversation_that_begins_anew_is_counted_once(store: Store, first: int):
    program = Program()
    program.run(fresh=True)
    program.spend(100_000)
    read(store, program, 0)
    program.run(fresh=True)
    for tokens in (first, 10_000, 10_000):
        program.spend(tokens)
        read(store, program, 1)
    program.run(fresh=False)
    program.spend(10_000)
    read(store, program, 2)
    assert counted(store) == program.truth


@attack(Attacker.PROGRAM, Door.MONEY)
@pytest.mark.parametrize("number", range(12))
def test_any_history_is_counted_as_it_was(store: Store, seed: int, number: int):
    """Runs that resume or begin anew, reports of any size, and journals that are read again after a restart."""
    chance = random.Random(f"{seed}-{number}")
    program = Program()
    program.run(fresh=True)
    for _ in range(40):
        match chance.choice("rsss.."):
            case "r":
                read(store, program, len(program.journals) - 1)
                program.run(fresh=chance.random() < 0.4)
            case "s":
                program.spend(chance.choice([0, 1, 7, 1000, 500_000]))
            case _:
                read(store, program, len(program.journals) - 1)
    read(store, program, len(program.journals) - 1)
    assert counted(store) == program.truth
