"""A tree of standing agents: every level hires the next one by its own tools, and every result comes up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.models import company
from tests.support.staff import Staff, tool

WORD = "The word is heron."
_MOST_RESULTS = 200
"""A manager has a turn for whatever its reports have to say, and they for theirs."""


def grow(staff: Staff, widths: list[int]) -> int:
    """Scripts for a tree: everybody on a level hires so many below. Returns how many there will be."""
    count = row = 1
    for level, width in enumerate(widths):
        # The names of agents are their numbers: nobody else has them, whoever is first.
        hires = ", ".join([tool("legion-hire", task=f"rehearsal: level{level + 1}")] * width)
        staff.script(f"level{level}", f"calls = [{hires}]", 'say = "Hired."', filler=_MOST_RESULTS)
        row *= width
        count += row
    staff.script(f"level{len(widths)}", 'say = "A leaf."')
    return count


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("widths", [[1, 2, 4], [3, 4, 3]], ids=["12-agents", "52-agents"])
def test_a_tree_grows_by_itself_and_every_message_arrives_once(tmp_path: Path, widths: list[int]):
    with company(tmp_path, settings="[daemon]\nslots = 8\n", stand_in=True) as here:
        staff = Staff(here)
        many = grow(staff, widths)
        top = staff.hire("level0")
        here.project.until_true(lambda: len(staff.lines()) == many, patience=1500)
        staff.until_idle(patience=1500)
        assert "agents" in here.told("broadcast", WORD)
        staff.until_idle(patience=1500)
        lines = staff.lines()
        parents = {line.id: line.parent for line in lines.values()}
        depths = [depth(parents, line.id) for line in lines.values()]
        assert max(depths) == len(widths) + 1
        for name in lines:
            assert [one.delivery for one in staff.mail_of(name) if one.text == WORD] == ["heard"]
        staff.check()
        staff.fire(top.name, subtree=True)
        assert all(line.fired_at is not None for line in staff.lines().values())


def depth(parents: dict[str, str], id: str) -> int:
    return 1 + depth(parents, parents[id]) if id in parents else 0
