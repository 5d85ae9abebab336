"""Tickets that change the same code: what another one brought needs no attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.conftest import shared_project
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    yield from shared_project(house, tmp_path_factory.mktemp("coupled"), {"menu.txt": "soup\n"})


def both_at_work(project: Project, gates: Callable[[], Gate], first: str, second: str, prove: str) -> tuple[int, int]:
    """Both start from the same target, and the first lands before the second proposes anything."""
    gate = gates()
    other, mine = project.dispatch_all(
        [
            new("tea and coffee", first),
            new("coffee", f"[ $LEGION_ATTEMPT != 1 ] || {gate.pause}; {second}", prove=[prove]),
        ]
    )
    gate.arrived()
    project.until(other, "done")
    gate.open()
    project.until_settled(other, mine)
    return other, mine


def test_a_ticket_whose_conflicting_work_has_landed_with_another_is_done_by_it(
    project: Project, gates: Callable[[], Gate]
):
    write = "printf 'soup\\ntea\\ncoffee\\n' > menu.txt"
    other, mine = both_at_work(project, gates, write, "echo coffee >> menu.txt", "grep -q coffee menu.txt")
    page = project.ticket(mine)
    assert (page.ticket.state, len(page.runs)) == ("done", 1)
    assert f"ticket {other} brought it" in page.ticket.reason
    assert "grep -q coffee menu.txt" in {one.command for one in page.receipts if one.verdict == "green"}
    assert project.landed("menu.txt") == "soup\ntea\ncoffee\n"


def test_a_ticket_that_finds_its_work_landed_and_changes_nothing_is_done_by_the_other(
    project: Project, gates: Callable[[], Gate]
):
    prove = "grep -q wine wine.txt"
    other, mine = both_at_work(project, gates, "echo wine > wine.txt", "true", prove)
    page = project.ticket(mine)
    assert (page.ticket.state, len(page.runs)) == ("done", 1)
    assert f"ticket {other} brought it" in page.ticket.reason


@pytest.mark.parametrize("prove", ["true", "grep -q juice juice.txt"], ids=["green before", "red after"])
def test_proofs_that_show_nothing_make_no_empty_change_done(project: Project, gates: Callable[[], Gate], prove: str):
    name = prove.partition(" ")[0]
    _, mine = both_at_work(project, gates, f"echo {name} > {name}.txt", "true", prove)
    page = project.ticket(mine)
    assert page.ticket.state in ("failed", "parked")
    assert "changed nothing" in page.ticket.reason
