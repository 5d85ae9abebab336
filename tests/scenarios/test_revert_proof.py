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
    assert (found.tried, found.left, found.idle) == (2, 0, ["test -e words.txt"])
    shown = project.squad.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert "unproven  words.txt:9, 1 line" in shown
    assert "passes without the change  test -e words.txt" in shown
    assert [(one.backing, one.idle) for one in page.evidence][1:] == [("proven", True)]
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


def test_nothing_is_taken_back_unless_the_project_asks_for_it(project: Project):
    page = project.until(project.dispatch("plain", "echo 1 > a.txt", prove=["test -e a.txt"]), "done")
    assert page.reversal is None
