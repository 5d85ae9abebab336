"""Conditions on results: their form, what agents report, and when they hold."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.errors import BadInput
from legion.domain.plans import draft as drafts
from legion.domain.plans.checks import FindingKind, PlanFacts, findings
from legion.domain.plans.conditions import ResultCondition, SeenResult, StepResult, holds, parse, reported
from legion.domain.plans.draft import MalformedDraft
from legion.domain.plans.expansion import expand
from legion.domain.plans.template import read, resolve
from legion.domain.tickets.ticket import ENDED, State

TEMPLATE = """
[variables.areas]
type = "list"
default = ["a", "b"]
[variables.deep]
type = "flag"
default = true
[[step]]
key = "audit"
for = "area in areas"
title = "Audit {{area}}"
[[step]]
key = "fix"
title = "Fix"
when = "audit.result == 'findings'"
[[step]]
key = "ask"
title = "Ask"
when = "not audit.landed"
[[step]]
key = "end"
title = "End"
needs = ["fix"]
"""


@pytest.mark.parametrize(
    "text", ["a.failed", "not a.landed", "a.result == 'so so'", "a.result != 'x'", "a-1,b_2.landed"]
)
def test_a_condition_is_written_as_it_is_read(text: str):
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["a", "a.done", "a.failed == 'x'", "a.result", "not a.result == 'x'", "a.result == ''", "A.failed", ".failed"],
)
def test_other_forms_are_no_condition(text: str):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("Done.\nRESULT: findings", "findings"),
        ("RESULT: one\nRESULT: two", "two"),
        ("**Result: Clean.**", "Clean"),
        ("The RESULT: is near", ""),
        ("", ""),
    ],
)
def test_the_last_result_of_a_message_counts(message: str, word: str):
    assert reported(message) == word


@pytest.mark.parametrize("result", StepResult, ids=lambda one: one.value)
@pytest.mark.parametrize("negated", [False, True])
def test_a_condition_is_decided_once_and_for_all_when_its_tickets_have_ended(result: StepResult, negated: bool):
    """Over all pairs of states: what is decided early stays decided, whatever the others become."""
    states = [*State, None]
    for one, other in product(states, states):
        seen = [SeenResult(state=one, word="x"), SeenResult(state=other)]
        decided = holds(result, "x", negated, seen)
        if all(state is None or state in ENDED for state in (one, other)):
            assert decided is not None
        if decided is not None:
            for later in [*ENDED, None] if other is not None and other not in ENDED else [other]:
                assert holds(result, "x", negated, [seen[0], SeenResult(state=later)]) is decided
    done, failed = SeenResult(state=State.DONE, word="X"), SeenResult(state=State.FAILED)
    expected = {StepResult.LANDED: (True, False), StepResult.FAILED: (False, True), StepResult.WORD: (True, False)}[
        result
    ]
    both = (holds(result, "x", negated, [done]), holds(result, "x", negated, [failed]))
    flipped = result is StepResult.WORD and negated
    assert both == ((False, False) if flipped else tuple(one is not negated for one in expected))


def test_a_step_waits_for_the_results_of_all_tickets_of_a_loop():
    template = resolve("t", {"t": read("t", TEMPLATE, "t.toml")})
    made = expand(template, {}, lambda pattern: [])
    assert [(one.key, str(one.when or ""), one.after) for one in made.tickets] == [
        ("audit-1", "", ()),
        ("audit-2", "", ()),
        ("fix", "audit-1,audit-2.result == 'findings'", ()),
        ("ask", "not audit-1,audit-2.landed", ()),
        ("end", "", ("fix",)),
    ]
    assert drafts.read(drafts.record(made)) == made
    empty = expand(template, {"areas": ""}, lambda pattern: [])
    assert [(one.key, one.after) for one in empty.tickets] == [("end", ())], "what waits for no ticket is left out"


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("gone.failed", "`when` of step fix names 'gone', no step of it"),
        ("end.failed", "in a circle"),
        ("audit.done", "`when` must be like"),
    ],
)
def test_a_template_with_a_wrong_condition_is_refused(when: str, message: str):
    text = TEMPLATE.replace("audit.result == 'findings'", when)
    with pytest.raises(BadInput, match=message):
        resolve("t", {"t": read("t", text, "t.toml")})


def test_a_draft_is_checked_for_what_its_conditions_name():
    tables = [{"key": "a", "title": "A"}, {"key": "b", "title": "B", "when": "c.failed"}]
    found = findings(drafts.read({"tickets": tables}), PlanFacts(exists=lambda path: True))
    assert [(one.kind, one.text) for one in found] == [
        (FindingKind.UNKNOWN, "`when` names `c`, which is no key of this plan")
    ]
    both = {"key": "b", "title": "B", "after": ["a"], "when": "a.failed"}
    with pytest.raises(MalformedDraft, match="it comes after `a`, and `when` starts it only if that did not land"):
        drafts.read({"tickets": [tables[0], both]})
    landed = {**both, "when": "a.landed"}
    assert drafts.read({"tickets": [tables[0], landed]}).tickets[1].when == ResultCondition(
        steps=("a",), result=StepResult.LANDED
    )
