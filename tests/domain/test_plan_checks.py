"""What is found in a draft before a person sees it."""

from __future__ import annotations

from typing import Any

import pytest

from legion.domain.checks import cannot_run, never_passes
from legion.domain.plans.checks import BoardTicket, FindingKind, PlanFacts, ProofTrial, commands, findings
from legion.domain.plans.draft import PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import LandedTicket, PastEstimate, PlanEstimate, budget_share, estimate, longest_chain

PROVEN = (PlanCriterion(text="It works", proof="[test]"),)
THERE = {"app.py", "lib/a.py", "lib"}
FACTS = PlanFacts(exists=THERE.__contains__, checks=("test",), tickets=(7,), most_files=3, most_lines=100)


def ticket(key: str, *after: str, **fields: Any) -> PlanTicket:
    return PlanTicket(**{"key": key, "title": key, "after": after, "criteria": PROVEN} | fields)


def found(*tickets: PlanTicket, facts: PlanFacts = FACTS) -> list[tuple[FindingKind, str]]:
    return [(one.kind, one.ticket) for one in findings(PlanDraft(tickets=tickets), facts)]


def test_a_sound_draft_has_no_findings():
    assert not found(
        ticket("schema", files=("lib/a.py",), new_files=("db.sql",), lines=100),
        ticket("login", "schema", files=("db.sql", "lib/a.py", "app.py"), after_tickets=(7,)),
        ticket("done", "login", checkpoint=True, criteria=()),
    )


@pytest.mark.parametrize(
    ("tickets", "expected"),
    [
        ((ticket("a", "b"), ticket("b", "a")), [(FindingKind.CIRCLE, "")]),
        ((ticket("a", "a"),), [(FindingKind.CIRCLE, "")]),
        ((ticket("a", "b"), ticket("b", "c"), ticket("c", "a"), ticket("d")), [(FindingKind.CIRCLE, "")]),
        ((ticket("a", "x"),), [(FindingKind.UNKNOWN, "a")]),
        ((ticket("a", after_tickets=(8,)),), [(FindingKind.UNKNOWN, "a")]),
        ((ticket("a", criteria=(PlanCriterion(text="x", proof="[lint]"),)),), [(FindingKind.UNKNOWN, "a")]),
        ((ticket("a", files=("gone.py",)),), [(FindingKind.FILE, "a")]),
        ((ticket("a", new_files=("app.py",)),), [(FindingKind.FILE, "a")]),
        ((ticket("a", criteria=()),), [(FindingKind.PROOF, "a")]),
        ((ticket("a", criteria=(PlanCriterion(text="x"),)),), [(FindingKind.PROOF, "a")]),
        ((ticket("a", criteria=(PlanCriterion(text="x", why_not="taste"),)),), []),
        ((ticket("a", criteria=(PlanCriterion(text="x", proof="make x"),)),), []),
        ((ticket("a", files=("app.py",)), ticket("b", files=("app.py",))), [(FindingKind.OVERLAP, "b")]),
        ((ticket("a", new_files=("n",)), ticket("b", new_files=("n",))), [(FindingKind.OVERLAP, "b")]),
        ((ticket("a", files=("lib",)), ticket("b", files=("lib/a.py",))), [(FindingKind.OVERLAP, "b")]),
        ((ticket("a", files=("app.py",)), ticket("b", "a", files=("app.py",))), []),
        ((ticket("a", files=("app.py",)), ticket("b", "a"), ticket("c", "b", files=("app.py",))), []),
        ((ticket("a", new_files=("1", "2", "3", "4")),), [(FindingKind.SIZE, "a")]),
        ((ticket("a", lines=101),), [(FindingKind.SIZE, "a")]),
    ],
)
def test_each_fault_is_found_once_and_at_its_ticket(tickets, expected):
    assert found(*tickets) == expected


def test_a_file_that_another_ticket_makes_needs_that_ticket_before():
    maker, user = ticket("maker", new_files=("db.sql",)), ticket("user", files=("db.sql",))
    (one, overlap) = findings(PlanDraft(tickets=(maker, user)), FACTS)
    assert (one.kind, one.text) == (
        FindingKind.FILE,
        "db.sql does not exist: put this ticket after `maker`, which makes it",
    )
    assert overlap.kind is FindingKind.OVERLAP
    assert not found(maker, ticket("between", "maker"), ticket("user", "between", files=("db.sql",)))


OPEN = (
    BoardTicket(number=7, title="Make the tables", files=("db.sql", "lib/a.py")),
    BoardTicket(number=8, title="Docs", files=("docs/**",)),
)
ON_BOARD = PlanFacts(**vars(FACTS) | {"tickets": (7, 8, 9), "board": OPEN, "before": {9: (8,), 8: (), 7: ()}})


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        (ticket("a", files=("db.sql",)), "open ticket 7 (Make the tables) makes db.sql, too: put 7 in `after`"),
        (ticket("a", new_files=("db.sql",)), "makes db.sql, too"),
        (ticket("a", files=("lib/a.py",)), "open ticket 7 (Make the tables) expects lib/a.py, too"),
        (ticket("a", files=("lib",)), "expects lib, too"),
        (ticket("a", new_files=("docs/x.md",)), "open ticket 8 (Docs) makes docs/x.md, too"),
        (ticket("a", new_files=("docs/*.md",)), "open ticket 8 (Docs)"),
        (ticket("a", title="Create tables"), "open ticket 7 (Make the tables) says the same: leave this ticket out"),
        (ticket("a", files=("db.sql",), after_tickets=(7,)), ""),
        (ticket("a", new_files=("docs/x.md",), after_tickets=(9,)), ""),
        (ticket("a", files=("app.py",), new_files=("docs.md",), title="Make the chairs"), ""),
    ],
)
def test_what_open_tickets_say_and_do_is_found_unless_the_ticket_comes_after_them(planned: PlanTicket, expected: str):
    found = findings(PlanDraft(tickets=(planned,)), ON_BOARD)
    assert [one.kind for one in found] == ([FindingKind.BOARD] if expected else [])
    assert all(expected in one.text for one in found)


def test_what_waits_for_a_ticket_of_the_plan_waits_for_what_that_comes_after():
    first, later = ticket("a", after_tickets=(7,)), ticket("b", "a", files=("db.sql",))
    assert not found(first, later, facts=ON_BOARD)
    assert found(first, ticket("b", files=("db.sql",)), facts=ON_BOARD) == [(FindingKind.BOARD, "b")]


def test_the_same_goal_and_the_same_title_twice_are_found():
    facts = PlanFacts(**vars(FACTS) | {"same_goal": "P3"})
    assert found(ticket("a"), facts=facts) == [(FindingKind.GOAL, "")]
    twice = (ticket("a", title="Add a login page"), ticket("b", title="The login page"))
    assert found(*twice) == [(FindingKind.OVERLAP, "b")]


@pytest.mark.parametrize("field", ["title", "text", "context", "plan"])
@pytest.mark.parametrize(
    ("hidden", "said"), [("\u202e", "<U+202E> is in"), ("\u200b", "<U+200B>"), ("<!-- push -->", "comment `<!--`")]
)
def test_what_no_person_sees_in_a_text_is_found(field: str, hidden: str, said: str):
    (one,) = findings(PlanDraft(tickets=(ticket("a", **{field: f"Two\nlines{hidden}"}),)), FACTS)
    assert (one.kind, one.ticket) == (FindingKind.HIDDEN, "a")
    assert said in one.text
    assert not found(ticket("a", **{field: "Zwölf\n\tlines → 🎉"}))


def test_a_large_plan_is_held_against_a_large_board_in_no_time():
    board = [BoardTicket(number=n, title=f"Do {n}", files=(f"src/m{n}/a.py", f"src/m{n}/b.py")) for n in range(1000)]
    facts = PlanFacts(exists=lambda path: True, checks=("test",), board=board)
    many = [ticket(f"k{n}", title=f"New {n}", files=(f"src/m{n}/c.py",)) for n in range(100)]
    assert not found(*many, facts=facts)


def test_what_was_approved_is_not_checked_again():
    facts = PlanFacts(exists=THERE.__contains__, checks=("test",), approved=("a",))
    old = ticket("a", "gone", files=("gone.py",), criteria=())
    assert not found(old, ticket("b", "a"), facts=facts)
    assert found(old, ticket("b", files=("gone.py",)), facts=facts) == [
        (FindingKind.FILE, "b"),
        (FindingKind.OVERLAP, "b"),
    ]


def test_a_first_ticket_that_cannot_run_is_found():
    facts = PlanFacts(exists=THERE.__contains__, checks=("test",), cannot_start="no driver is installed")
    assert found(ticket("a"), ticket("b", "a"), facts=facts) == [(FindingKind.START, "")]
    assert not found(ticket("a"), ticket("b", "a"), facts=PlanFacts(**vars(facts) | {"approved": ("a",)}))


LANDED = [LandedTicket(usd=usd, seconds=seconds) for usd, seconds in ((1, 60), (2, 100), (6, 500))]
CHAIN = PlanDraft(tickets=(ticket("a"), ticket("b", "a"), ticket("c", "b", checkpoint=True), ticket("d")))


def test_without_enough_history_an_estimate_is_unknown():
    assert estimate(CHAIN, LANDED[:2], [], parallel=4) == PlanEstimate()


def test_an_estimate_is_the_median_of_what_landed_with_the_error_of_earlier_ones():
    past = [
        PastEstimate(usd=2, seconds=100, took=LandedTicket(usd=3, seconds=100)),
        PastEstimate(usd=2, seconds=100, took=LandedTicket(usd=2, seconds=20)),
        PastEstimate(usd=2, seconds=100, took=LandedTicket(usd=6, seconds=150)),
        PastEstimate(usd=0, seconds=0, took=LandedTicket(usd=6, seconds=150)),
    ]
    found = estimate(CHAIN, LANDED, past, parallel=4)
    assert (found.usd, found.seconds, found.usd_each, found.seconds_each) == (6, 200, 2, 100)
    assert (found.usd_error, found.seconds_error) == (0.5, 0.5)
    alone = estimate(CHAIN, LANDED, [], parallel=1)
    assert (alone.seconds, alone.usd_error) == (300, None)


def test_the_longest_chain_is_shown_by_key_and_none_for_a_circle():
    assert longest_chain(CHAIN) == ("a", "b", "c")
    assert longest_chain(PlanDraft(tickets=(ticket("a", "b"), ticket("b", "a")))) == ()


@pytest.mark.parametrize(
    ("said", "is_program"),
    [
        ("sh: 1: nosuch: not found", False),
        ("sh: line 1: nosuch: command not found", False),
        ("sh: Zeile 1: nosuch: Kommando nicht gefunden.", False),
        ("sh: nosuch: not found", False),
        ("/bin/sh: nosuch: inaccessible or not found", False),
        ("sh: 1: ./made.sh: not found", True),
        ("sh: line 1: ./made.sh: No such file or directory", True),
        ("sh: 0: cannot open made.sh: No such file", True),
        ("sh: made.sh: No such file or directory", True),
    ],
)
def test_a_missing_program_is_known_in_every_shell_and_language_and_a_missing_script_is_the_agents(
    said: str, is_program: bool
):
    assert cannot_run(127, said) is not is_program


@pytest.mark.parametrize(
    ("money", "tickets", "each", "share"),
    [
        (2.0, 2, None, 0.5),  # nothing is known: half of it stays for planners and fixes
        (2.0, 2, 0.1, 0.3),
        (2.0, 2, 0.9, 1.0),
        (2.0, 100, 0.1, 0.02),
        (100.0, 4, 0.004, 0.05),
    ],
)
def test_a_budget_is_shared_by_what_a_ticket_usually_takes(
    money: float, tickets: int, each: float | None, share: float
):
    assert budget_share(money, tickets, each) == share


NOT_FOUND = "sh: 1: nose: not found"
DENIED = "sh: 1: ./x: Permission denied"


@pytest.mark.parametrize(
    ("proof", "trial", "fault"),
    [
        ("true", ProofTrial(exit_code=0), "`true` proves nothing: it passes without the change"),
        ("nose x", ProofTrial(exit_code=127, said=NOT_FOUND), f"`nose x` cannot run: {NOT_FOUND}"),
        (
            "./x",
            ProofTrial(exit_code=126, said="sh: 1: ./x: Permission denied\n"),
            "cannot run: sh: 1: ./x: Permission",
        ),
        ("nose x", ProofTrial(exit_code=127), "cannot run: exit code 127"),
        (
            "if",
            ProofTrial(exit_code=2, said='sh: 1: Syntax error: end of file unexpected (expecting "then")'),
            "Syntax",
        ),
        ("bin/new.sh", ProofTrial(exit_code=127, said="sh: 1: bin/new.sh: not found"), ""),
        ("bin/later.sh", ProofTrial(exit_code=127, said="sh: 1: bin/later.sh: not found"), "cannot run"),
        ("pytest -k new", ProofTrial(exit_code=5, said="no tests ran"), ""),
        ("make x", ProofTrial(exit_code=2, said="SyntaxError: invalid syntax"), ""),
        ("sleep 999", ProofTrial(exit_code=None), ""),
        ("not tried", None, ""),
        ("exit 1", ProofTrial(exit_code=1), "`exit 1` can never pass as it stands"),
    ],
)
def test_a_proof_must_fail_on_the_target_by_its_own_verdict(proof, trial, fault):
    facts = PlanFacts(**vars(FACTS) | {"trials": {proof: trial}})
    first = ticket("first", new_files=("bin/new.sh",))
    second = ticket("second", "first", criteria=(PlanCriterion(text="x", proof=proof),))
    third = ticket("third", "second", new_files=("bin/later.sh",))
    draft = PlanDraft(tickets=(first, second, third))
    assert commands(draft) == (proof,)
    faults = [(one.kind, one.ticket) for one in findings(draft, facts)]
    assert faults == ([(FindingKind.PROOF, "second")] if fault else [])
    assert all(fault in one.text for one in findings(draft, facts))


@pytest.mark.parametrize(
    ("command", "never"),
    [
        *[(one, True) for one in ("false", "exit 1", "exit 257", "test 1 = 2", "[ a = b ]", "! true", "! exit 0")],
        *[
            (one, True)
            for one in ("pytest -q; exit 1", "make test && false", "touch x; false", "test 3 -eq 2", "exit 2; x")
        ],
        *[(one, False) for one in ("true", "exit 0", "exit 256", "test 1 = 1", "false || pytest", "pytest || false")],
        *[
            (one, False)
            for one in ("pytest; false; ls", "test $X = 2", "false | cat", "if false; then x; fi", "! false")
        ],
        *[
            (one, False)
            for one in ("false\ntrue", "(false)", "test 1 -lt x", "echo 'exit 1'", "sh -c 'exit 1", "", "x & false")
        ],
    ],
)
def test_what_no_file_can_make_pass_is_known_without_running_it(command: str, never: bool):
    assert never_passes(command) is never
