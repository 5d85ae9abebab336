"""The page of a ticket says which criterion is proven by what, and which is only claimed."""

from __future__ import annotations

import json

import pytest

from legion.wire.errors import BadInput
from tests.support.legion import Project

CRITERIA = "The answer is there\nIt is 42\nNothing breaks\nIt is elegant\nIt says so itself"
PROOFS = ["1 :: test -s answer.txt", "is 42 :: grep -qx 42 answer.txt", "nothing :: [test]", "5 :: sh says.sh"]


NONSENSE = [("who :: true", "no line of the criteria"), ("1 :: [lint]", "no check 'lint'. Known checks: test")]


def test_each_criterion_stands_where_its_command_says(project: Project):
    for proof, why in NONSENSE:
        with pytest.raises(BadInput, match=why):
            project.dispatch("x", "true", criteria=CRITERIA, prove=[proof])
    assert project.states() == {}
    wrong = project.dispatch("wrong", "echo 41 > answer.txt", criteria=CRITERIA, prove=PROOFS, max_attempts=1)
    page = project.until(wrong, "failed")
    assert [one.backing for one in page.evidence] == ["green", "red", "open", "claimed", "red"], "it is not done"

    agent = (
        'echo true > says.sh; if [ "$LEGION_ATTEMPT" = 1 ]; then echo 41 > answer.txt; else echo 42 > answer.txt; fi'
    )
    ticket = project.dispatch("answer", agent, criteria=CRITERIA, prove=PROOFS, max_attempts=2)
    page = project.until(ticket, "done")
    assert page.prove == ["test -s answer.txt", "grep -qx 42 answer.txt", "sh says.sh"]
    assert [(one.backing, one.by) for one in page.evidence] == [
        ("proven", "test -s answer.txt"),
        ("proven", "grep -qx 42 answer.txt"),
        ("green", "sh check.sh"),
        ("claimed", ""),
        ("green", "sh says.sh"),
    ]
    assert [one.own for one in page.evidence] == [False, False, False, False, True]
    trees = {project.hub_git("rev-parse", f"{one.commit}^{{tree}}") for one in page.evidence if one.commit}
    assert trees == {project.hub_git("rev-parse", f"{page.landed}^{{tree}}")}
    cwd = project.repository.root
    shown = project.squad.cli("ticket", str(ticket), cwd=cwd).stdout
    assert "proven  It is 42" in shown
    assert "claimed It is elegant" in shown
    for where in (shown, project.squad.cli("status", cwd=cwd).stdout):
        assert "1 criterion without proof" in where
    told = json.loads(project.squad.cli("ticket", str(ticket), "--json", cwd=cwd).stdout)
    assert [one["backing"] for one in told["evidence"]] == ["proven", "proven", "green", "claimed", "green"]
