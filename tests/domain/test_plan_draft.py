"""Reading drafts: from a planner's answer, from a person's file, and back."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.errors import BadInput
from legion.domain.plans import draft as drafts
from legion.domain.plans import toml_text
from legion.domain.plans.answer import PlanQuestion, parse
from legion.domain.plans.draft import MalformedDraft, PlanCriterion, PlanDraft, PlanTicket, earlier, keep_approved

TICKET: dict[str, Any] = {"key": "login", "title": "A page to log in"}


def plan(**fields: Any) -> dict[str, Any]:
    return {"tickets": [TICKET | fields]}


def test_every_field_is_read():
    found = drafts.read(
        {
            "summary": "Users can log in.",
            "risks": "Sessions.",
            "drop": [4],
            "tickets": [
                {"key": "schema", "title": "Tables  for\nusers"},
                {
                    **TICKET,
                    "text": "A form.",
                    "context": "See app/.",
                    "plan": "First the route.",
                    "criteria": ["It is quick", {"text": "It has a form", "proof": "[test]", "why_not": ""}],
                    "files": ["./app/views.py", "app/views.py"],
                    "new_files": ["app/login.py"],
                    "after": ["schema", 7, "schema"],
                    "checkpoint": False,
                    "labels": ["ui"],
                    "lines": 120,
                    "priority": 5,
                },
            ],
        }
    )
    assert found.tickets[0].title == "Tables for users"
    assert found.tickets[1] == PlanTicket(
        key="login",
        title="A page to log in",
        text="A form.",
        context="See app/.",
        plan="First the route.",
        criteria=(PlanCriterion(text="It is quick"), PlanCriterion(text="It has a form", proof="[test]")),
        files=("app/views.py",),
        new_files=("app/login.py",),
        after=("schema",),
        after_tickets=(7,),
        labels=("ui",),
        lines=120,
        priority=5,
    )
    assert (found.summary, found.risks, found.drops) == ("Users can log in.", "Sessions.", (4,))
    assert found.edges == {0: [], 1: [0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the plan has no `tickets`"),
        ({"tickets": []}, "the plan has no `tickets`"),
        ({"tickets": "all of them"}, "the plan has no `tickets`"),
        ({"tickets": [TICKET], "approved": True}, "the plan has no field 'approved'"),
        ({"tickets": [TICKET], "drop": ["x"]}, "`drop` must hold keys and ticket numbers, and holds 'x'"),
        ({"tickets": ["login"]}, "ticket 1 is no table"),
        ({"tickets": [TICKET, TICKET]}, "two tickets have the key `login`"),
        ({"tickets": [TICKET] * 101}, "101 tickets, and 100 are the most"),
        ({"tickets": [{"title": "x"}]}, "ticket 1: `key` must be a name"),
        ({"tickets": [{"key": "12", "title": "x"}]}, "ticket 1: `key` must be a name"),
        ({"tickets": [{"key": "a"}]}, "ticket `a`: `title` must be one line"),
        (plan(title=3), "`title` must be a text, and is 3"),
        (plan(text="x" * 20_001), "`text` is longer than"),
        (plan(command="rm -rf /"), "ticket `login` has no field 'command'"),
        (plan(file=["a"]), "did you mean `files`"),
        (plan(files="a.py"), "`files` must be a list"),
        (plan(files=[1]), "must hold texts only, and holds 1"),
        (plan(files=["/etc/passwd"]), "starts with a slash"),
        (plan(new_files=["../x"]), "has an empty part"),
        (plan(after=[0]), "`after` must hold keys and ticket numbers, and holds 0"),
        (plan(after=[True]), "and holds True"),
        (plan(checkpoint="yes"), "`checkpoint` must be true or false"),
        (plan(labels=["a b"]), "is no label"),
        (plan(lines=-1), "`lines` must be a whole number"),
        (plan(lines=1.5), "`lines` must be a whole number"),
        (plan(priority=1001), "`priority` must be a whole number"),
        (plan(criteria=[3]), "a criterion must be a text or a table"),
        (plan(criteria=[{"proof": "true"}]), "`text` is empty"),
        (plan(criteria=[{"text": "x", "by": "y"}]), "criterion has no field 'by'"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_place(given, message):
    with pytest.raises(MalformedDraft) as wrong:
        drafts.read(given)
    assert message in str(wrong.value)


GOOD = json.dumps(plan())
OTHER = json.dumps({"tickets": [{"key": "second", "title": "Second"}]})


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (GOOD, "login"),
        (f"Here it is:\n```json\n{GOOD}\n```\nTell me.", "login"),
        (f"{GOOD}\n\nBetter:\n{OTHER}", "second"),
        (f"{OTHER}\n{GOOD}", "login"),
        (f'{GOOD}\n{{"tickets": []}}', "login"),
        (f'{{"note": 1}}\n{GOOD}\n{{"tickets": [{{"key": "cut", "titl', "login"),
    ],
)
def test_only_the_last_valid_plan_of_an_answer_counts(text, key):
    found = parse(text, may_ask=False)
    assert isinstance(found, PlanDraft)
    assert found.keys == (key,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I could not find anything.", "no JSON object"),
        (GOOD[:-8], "no JSON object"),
        ('{"tickets": [{"key": "a"}]}', "ticket `a`: `title`"),
        ('{"questions": [{"text": "Which?", "proposals": ["a", "b"]}]}', "no more questions"),
        ("{" * 10_000, "no JSON object"),
    ],
)
def test_an_answer_without_a_plan_says_what_is_wrong(text, message):
    with pytest.raises(MalformedDraft, match=message):
        parse(text, may_ask=False)


def test_a_planner_may_ask_first():
    given = {"questions": [{"text": " Which database? ", "proposals": ["SQLite", "Post  gres"]}]}
    assert parse(json.dumps(given), may_ask=True) == (
        PlanQuestion(text="Which database?", proposals=("SQLite", "Post gres")),
    )


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "list of 1 to 5"),
        ([{"text": "x", "proposals": ["a", "b"]}] * 6, "list of 1 to 5"),
        (["which?"], "must be a table"),
        ([{"text": " ", "proposals": ["a", "b"]}], "must have 1 to"),
        ([{"text": "x", "proposals": ["a"]}], "2 to 6 `proposals`"),
        ([{"text": "x", "proposals": ["a", ""]}], "each proposal"),
        ([{"text": "x", "proposals": ["a", "other"]}], "each proposal"),
        ([{"text": "x", "proposals": ["a", "A"]}], "must differ"),
    ],
)
def test_questions_without_form_are_refused(questions, message):
    with pytest.raises(MalformedDraft, match=message):
        parse(json.dumps({"questions": questions}), may_ask=True)


def test_what_lands_before_a_ticket_is_known_at_any_distance():
    made = [{"key": key, "title": key, "after": after} for key, after in (("a", []), ("b", ["a"]), ("c", ["b"]))]
    assert earlier(drafts.read({"tickets": made})) == {"a": frozenset(), "b": {"a"}, "c": {"a", "b"}}


def test_a_new_round_keeps_approved_tickets_as_they_were():
    first = drafts.read({"tickets": [{"key": "a", "title": "old"}, {"key": "b", "title": "old"}]})
    second = drafts.read({"tickets": [{"key": "b", "title": "new"}, {"key": "a", "title": "new"}]})
    kept = keep_approved({"a"}, first, second)
    assert [(one.key, one.title) for one in kept.tickets] == [("a", "old"), ("b", "new")]
    assert keep_approved({"a"}, None, second) == second


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40).map(str.strip)
LINES = TEXTS.map(lambda text: " ".join(text.split()))
CRITERIA = st.builds(
    lambda text, proof, why: PlanCriterion(text=text or "x", proof=proof, why_not=why), LINES, LINES, LINES
)
TICKETS = st.builds(
    lambda n, title, text, context, criteria, lines, checkpoint: PlanTicket(
        key=f"t{n}",
        title=title or "x",
        text=text,
        context=context,
        criteria=tuple(criteria),
        files=("src/a b.py",),
        after=("t0",) if n else (),
        after_tickets=(n + 1,),
        lines=lines,
        checkpoint=checkpoint,
    ),
    st.integers(0, 1000), LINES, TEXTS, TEXTS, st.lists(CRITERIA, max_size=3), st.integers(0, 5000), st.booleans(),
)  # fmt: skip
DRAFTS = st.builds(
    lambda tickets, summary: PlanDraft(tickets=tuple(tickets), summary=summary),
    st.lists(TICKETS, min_size=1, max_size=4, unique_by=lambda one: one.key),
    TEXTS,
)


@given(DRAFTS)
def test_a_draft_survives_its_record_and_its_file(draft):
    assert drafts.read(json.loads(json.dumps(drafts.record(draft)))) == draft
    assert toml_text.read(toml_text.write(draft, head="P3\nEdit it."), "P3") == draft


def test_a_file_shows_its_long_texts_as_lines():
    draft = PlanDraft(tickets=(PlanTicket(key="a", title="A", text='One "line"\nand \\ another'),))
    text = toml_text.write(draft)
    assert text == '[[ticket]]\nkey = "a"\ntitle = "A"\ntext = """\nOne \\"line\\"\nand \\\\ another"""\n'
    assert tomllib.loads(text)["ticket"][0]["text"] == 'One "line"\nand \\ another'


FILE = '''\
summary = """
[[ticket]]
"""

[[ticket]]
key = "a"
title = "A"

[[ticket]]
key = "b"
title = "B"
lines = "many"
'''


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE, "P3, line 12: ticket `b`: `lines` must be a whole number"),
        (FILE.replace('"b"', '"a"').replace('"many"', "3"), "P3, line 9: two tickets have the key `a`."),
        (FILE.replace("lines", "line"), "P3, line 12: ticket `b` has no field 'line'; did you mean `lines`?"),
        (FILE.replace("lines", "criteria").replace('"many"', '[{txet = "x"}]'), "P3, line 12: ticket `b`, criterion"),
        (FILE.replace('"b"', '"title"'), "P3, line 12: ticket `title`: `lines` must"),
        (FILE.replace("summary", "\nsumary"), "P3, line 2: the plan has no field 'sumary'"),
        (FILE.replace('"many"', "many"), "P3 is not valid TOML: Invalid value (at line 12"),
        ("ticket = 3", "P3: the plan has no `ticket`."),
    ],
)
def test_a_file_is_refused_with_line_and_sentence(text, message):
    with pytest.raises(BadInput) as wrong:
        toml_text.read(text, "P3")
    assert message in wrong.value.message
