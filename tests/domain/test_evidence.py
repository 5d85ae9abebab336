"""Which criterion is proven by what: bindings are found or refused, and only what landed is proven."""

from __future__ import annotations

import pytest

from legion.domain.checks import CheckResult, Receipt
from legion.domain.errors import BadInput
from legion.domain.tickets.evidence import Backing, Bound, bind, criteria_of, weigh

CRITERIA = "- Logout ends the session\n2. An old token is refused\n\n* Nothing else breaks"


def receipt(number: int, command: str, verdict: CheckResult = CheckResult.GREEN) -> Receipt:
    return Receipt(
        id=number, project=1, ticket=1, name="n", command=command, commit="c" * 40, tree="t" * 40, verdict=verdict,
        exit_code=0, duration=1.0, made_at=1.0, tail="", output="", digest="",
    )  # fmt: skip


def test_criteria_are_lines_without_bullets():
    assert criteria_of(CRITERIA) == ("Logout ends the session", "An old token is refused", "Nothing else breaks")


def test_a_proof_is_bound_by_words_by_number_or_not_at_all():
    proofs = ["LOGOUT  ends :: pytest a::b", "2 :: curl x", "nothing else :: [test]", "make lint", "1 :: make lint"]
    commands, bound = bind(CRITERIA, proofs)
    assert commands == ("pytest a::b", "curl x", "make lint")
    assert bound == (
        Bound(criterion=0, by="pytest a::b"),
        Bound(criterion=1, by="curl x"),
        Bound(criterion=2, by="[test]"),
        Bound(criterion=0, by="make lint"),
    )


@pytest.mark.parametrize(
    ("criteria", "proof", "why"),
    [
        (CRITERIA, "login :: true", "no line"),
        (CRITERIA, "s :: true", "more than one line"),
        (CRITERIA, "4 :: true", "no line"),
        ("", "logout :: true", "no line"),
        (CRITERIA, "logout ::  ", "no command"),
    ],
)
def test_a_binding_that_means_no_line_or_several_is_refused(criteria, proof, why):
    with pytest.raises(BadInput, match=why):
        bind(criteria, [proof])


def test_a_whole_line_is_meant_even_where_another_holds_it():
    assert bind("it works\nit works offline", ["it works :: true"])[1] == (Bound(criterion=0, by="true"),)


def backings(receipts: list[Receipt], landed_on: list[Receipt] | None, red: list[str] | None = None) -> list[Backing]:
    bound = [Bound(criterion=0, by="prove"), Bound(criterion=2, by="[test]")]
    return [one.backing for one in weigh(CRITERIA, bound, {"test": "make test"}, receipts, landed_on, None, red)]


def test_only_a_green_receipt_of_what_landed_proves():
    green, red = receipt(1, "prove"), receipt(2, "prove", CheckResult.RED)
    test = receipt(3, "make test")
    assert backings([], None) == [Backing.OPEN, Backing.CLAIMED, Backing.OPEN]
    assert backings([green], None) == [Backing.GREEN, Backing.CLAIMED, Backing.OPEN]
    assert backings([green, red], None) == [Backing.RED, Backing.CLAIMED, Backing.OPEN]
    assert backings([green, test], [green, test]) == [Backing.PROVEN, Backing.CLAIMED, Backing.PROVEN]
    assert backings([green, test], [green, test], []) == [Backing.GREEN, Backing.CLAIMED, Backing.GREEN]
    assert backings([green, test], [green, test], ["prove"]) == [Backing.PROVEN, Backing.CLAIMED, Backing.GREEN]
    assert backings([red], [red]) == [Backing.CLAIMED, Backing.CLAIMED, Backing.CLAIMED]
    assert backings([green, test], [test]) == [Backing.CLAIMED, Backing.CLAIMED, Backing.PROVEN]


def test_a_check_that_is_gone_proves_nothing():
    (one,) = weigh("a", [Bound(criterion=0, by="[old]")], {}, [receipt(1, "make test")], [receipt(1, "make test")])
    assert (one.backing, one.by) == (Backing.CLAIMED, "[old]")
