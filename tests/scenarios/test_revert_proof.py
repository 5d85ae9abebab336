"""Proof by reversal: lines that nobody misses and proofs that were green before are shown, in the time there is."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.legion import Project

CONFIG = '[checks.test]\nrun = "sh check.sh"\n[reversal]\nseconds = 60\n[agents]\nattempts = 1\n'
AGENT = """
sed -i 's/one/ONE/; s/nine/NINE/' words.txt
mkdir -p tests && echo 'grep -q ONE words.txt' > tests/one.sh
"""
WORDS = {"words.txt": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"}
PROOF = "sh tests/one.sh"


def test_lines_that_no_proof_needs_are_shown_and_so_is_a_proof_that_was_green_before(make: Callable[..., Project]):
    project = make(CONFIG, files=WORDS)
    ticket = project.dispatch(
        "shout",
        AGENT,
        prove=[PROOF, "Words stay :: test -e words.txt"],
        criteria="One is loud\nWords stay",
        files=["tests/**"],
    )
    page = project.until(ticket, "done")
    found = page.reversal
    assert found is not None
    assert [(one.path, one.line, one.lines) for one in found.unproven] == [("words.txt", 9, 1)]
    assert (found.tried, found.left, found.idle, found.red) == (2, 0, ["test -e words.txt"], [PROOF])
    shown = project.squad.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert "unproven  words.txt:9, 1 line" in shown
    assert "passes without the change  test -e words.txt" in shown
    assert [(one.backing, one.idle) for one in page.evidence][1:] == [("green", True)]
    assert ", which also passes" in shown
    assert {receipt.verdict for receipt in page.receipts} == {"green"}
    assert project.landed("words.txt") == WORDS["words.txt"].replace("one", "ONE").replace("nine", "NINE")


def test_without_proofs_the_checks_are_tried(make: Callable[..., Project]):
    project = make(CONFIG, files=WORDS)
    page = project.until(project.dispatch("shout", "sed -i 's/one/ONE/' words.txt"), "done")
    assert page.reversal is not None
    assert [one.path for one in page.reversal.unproven] == ["words.txt"]


def test_what_there_was_no_time_for_is_counted_and_lands_all_the_same(make: Callable[..., Project]):
    project = make(CONFIG.replace("60", "2"), files=WORDS)
    slow = "grep -q ONE words.txt || sleep 60"
    page = project.until(project.dispatch("shout", "sed -i 's/one/ONE/; s/nine/NINE/' words.txt", prove=[slow]), "done")
    assert page.reversal is not None
    assert (page.reversal.tried, page.reversal.left, page.reversal.idle) == (0, 2, [])


CRITERIA = "It is there\nIt says so\nTests hold\nIt is elegant"
MIXED = ["1 :: test -e a.txt", "2 :: sh says.sh", "3 :: [test]"]


def test_by_default_a_criterion_is_proven_only_by_a_command_that_fails_without_the_change(make: Callable[..., Project]):
    project = make('[checks.test]\nrun = "test ! -e never"\n[agents]\nattempts = 1\n', files=WORDS)
    ticket = project.dispatch("plain", "echo 1 > a.txt; echo true > says.sh", prove=MIXED, criteria=CRITERIA)
    page = project.until(ticket, "done")
    assert [(one.backing, one.idle) for one in page.evidence] == [
        ("proven", False),
        ("green", True),
        ("green", True),
        ("claimed", False),
    ]
    found = page.reversal
    assert found is not None
    assert (found.red, found.tried, found.left) == (["test -e a.txt"], 0, 0), "pieces only where the project asks"
    assert {one.command: one.without for one in page.receipts} == {
        "test -e a.txt": "red",
        "sh says.sh": "green",
        "test ! -e never": "green",
    }
    shown = project.squad.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert "proven  It is there" in shown
    assert "red without the change" in shown
    assert "fails without the change, as it should: test -e a.txt" in shown


def test_a_project_may_leave_it_out_and_then_nothing_is_called_proven(make: Callable[..., Project]):
    project = make('[checks.test]\nrun = "true"\n[reversal]\nproofs = 0\n', files=WORDS)
    ticket = project.dispatch("plain", "echo 1 > a.txt", prove=["1 :: test -e a.txt"], criteria="It is there")
    page = project.until(ticket, "done")
    assert (page.reversal, [one.backing for one in page.evidence]) == (None, ["green"])
