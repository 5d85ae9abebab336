"""What a reader may say, what is refused and why, and what of it counts at its second and later looks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.review.verdicts import (
    LONGEST,
    CriterionVerdict,
    Finding,
    MalformedVerdict,
    ReviewedSince,
    ReviewRequest,
    ReviewSubject,
    Ruling,
    Severity,
    Verdict,
    findings_of,
    parse,
    weigh,
)

FILES = ("a.py", "b/c.py", "b/d.py")
SUBJECT = ReviewSubject(changed=FILES[:2], exists=FILES.__contains__, criteria=2, root="/trees/ticket-7-reviewer")
FINE: dict[str, Any] = {"verdict": "approve", "summary": "Fine.", "read": ["a.py", "b/c.py"]}
BLOCKS = {"weight": "blocking", "file": "a.py", "line": 3, "text": "It leaks."}
NO: dict[str, Any] = {**FINE, "verdict": "changes", "findings": [BLOCKS]}


def said(**more: object) -> str:
    return json.dumps({**FINE, **more})


def refusal(text: str) -> str:
    with pytest.raises(MalformedVerdict) as wrong:
        parse(text, SUBJECT)
    return str(wrong.value)


def test_a_whole_verdict_is_read():
    criteria = [{"number": 2, "met": True, "why": "line 3"}]
    nit = {"weight": "nit", "file": "b/d.py", "line": None, "text": " A name. "}
    verdict = parse(json.dumps({**NO, "findings": [BLOCKS, nit], "settled": [4], "criteria": criteria}), SUBJECT)
    assert verdict == Verdict(
        ruling=Ruling.CHANGES,
        summary="Fine.",
        read=("a.py", "b/c.py"),
        findings=(
            Finding(weight=Severity.BLOCKING, file="a.py", line=3, text="It leaks."),
            Finding(weight=Severity.NIT, file="b/d.py", line=None, text="A name."),
        ),
        settled=(4,),
        criteria=(CriterionVerdict(number=2, met=True, why="line 3"),),
    )


PLACES = {
    "bare": "{}",
    "fenced": "```json\n{}\n```",
    "plainly fenced": "Here it is.\n\n```\n{}\n```\n",
    "behind words": "I have read all of it.\n\n{}\n",
    "before words": "{}\nThat is all.",
    "beside other objects": '{{"tool": "Read"}}\n{}\n{{"usage": {{"input": 3}}}}',
    "beside what is no JSON": "{{not json\n{}",
}


@pytest.mark.parametrize("place", PLACES)
def test_the_one_object_with_a_verdict_counts_wherever_it_stands(place: str):
    assert parse(PLACES[place].format(json.dumps(FINE)), SUBJECT).ruling is Ruling.APPROVE
    assert parse(PLACES[place].format(json.dumps(FINE, indent=2)), SUBJECT).ruling is Ruling.APPROVE


def test_an_object_inside_another_or_in_the_middle_of_a_line_is_no_verdict():
    assert "no JSON object" in refusal(json.dumps({"answer": FINE}))
    assert "no JSON object" in refusal(f"The file says {json.dumps(FINE)}")


def test_paths_may_be_whole_or_begin_with_a_dot_and_a_folder_covers_what_is_below():
    assert parse(said(read=["./a.py", "/trees/ticket-7-reviewer/b/c.py"]), SUBJECT).read == ("a.py", "b/c.py")
    assert parse(said(read=["a.py", "b/"]), SUBJECT).read == ("a.py", "b")


REFUSED = {
    "": 'no JSON object with the key "verdict"',
    "LGTM": 'no JSON object with the key "verdict"',
    "x" * (LONGEST + 1): "more than 200,000 characters",
    f"{json.dumps(FINE)}\n{json.dumps(NO)}": "more than one verdict",
    f"```\n{json.dumps(FINE)}\n```\n```\n{json.dumps(FINE)}\n```": "more than one verdict",
    '{"verdict": "approve", "verdict": "changes", "summary": "x", "read": []}': 'the key "verdict" stands twice',
    "[" * 100_000: "no JSON object",
    "{\n" * 5000: "too much that looks like JSON",
    said(verdict="maybe"): '"verdict" is "maybe"',
    said(verdict=None): '"verdict" is null',
    said(verdict=["approve"]): '"verdict" is ["approve"]',
    said(summary=" "): '"summary" must be words',
    said(summary=3): '"summary" must be words',
    said(read="a.py"): '"read" must be a list',
    said(read=[3]): '"read" must hold paths only',
    said(read=[]): '"read" does not name what the change touches: "a.py", "b/c.py"',
    said(read=["a.py"]): 'does not name what the change touches: "b/c.py"',
    said(read=["*", "**"]): "does not name what the change touches",
    said(findings={}): '"findings" must be a list',
    said(findings=["x"]): '"findings" must hold objects only',
    said(findings=[{**BLOCKS, "weight": "nit"}] * 51): '"findings" has 51 entries',
    said(findings=[BLOCKS]): "approves with a blocking finding (a.py:3)",
    said(findings=[{**BLOCKS, "weight": "huge"}]): 'the "weight" of a finding is "huge"',
    said(findings=[{**BLOCKS, "weight": "nit", "file": 3}]): 'the "file" of a finding is 3',
    said(findings=[{**BLOCKS, "weight": "nit", "line": 0}]): "lines count from 1 on",
    said(findings=[{**BLOCKS, "weight": "nit", "line": True}]): "must be a whole number",
    said(findings=[{**BLOCKS, "weight": "nit", "line": 1.5}]): "must be a whole number",
    said(findings=[{**BLOCKS, "weight": "nit", "text": ""}]): '"text" must be words',
    said(findings=[{**BLOCKS, "weight": "nit", "file": "gone.py"}]): 'about "gone.py", and there is no such file',
    said(verdict="changes"): "asks for changes without a blocking finding",
    said(verdict="changes", findings=[{**BLOCKS, "weight": "concern"}]): "without a blocking finding",
    said(verdict="changes", findings=[{**BLOCKS, "file": ""}]): "a blocking finding names no file",
    said(settled=["1"]): "a number in settled",
    said(criteria=[{"number": 3, "met": True}]): "criterion 3, and there are 2",
    said(criteria=[{"number": 0, "met": True}]): "criterion 0, and there are 2",
    said(criteria=[{"number": 1, "met": "yes"}]): '"met" of a criterion is "yes"',
    said(criteria=[{"number": 1, "met": True, "why": 3}]): '"why" of a criterion is 3',
    said(criteria=[{"number": 1, "met": True}, {"number": 1, "met": True}]): "criterion 1 twice",
    said(criteria=[{"number": 2, "met": False}]): "approves although it says that criterion 2 is not met",
}


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_used_is_refused_with_the_reason(number: int):
    text, reason = list(REFUSED.items())[number]
    assert reason in refusal(text)


def test_an_approval_judges_every_point_of_the_checklist():
    subject = replace(SUBJECT, checklist=("No secrets in logs", "Errors are handled"))
    met = [{"number": 3, "met": True}, {"number": 4, "met": True}]
    assert len(parse(said(criteria=met), subject).criteria) == 2
    assert parse(json.dumps(NO), subject).ruling is Ruling.CHANGES, "a finding says enough"
    for criteria, reason in (
        (met[:1], r"does not judge point 4 \("),
        ([*met, {"number": 5, "met": True}], "criterion 5, and there are 4"),
        ([met[0], {"number": 4, "met": False}], "criterion 4 is not met"),
    ):
        with pytest.raises(MalformedVerdict, match=reason):
            parse(said(criteria=criteria), subject)


def test_a_reader_of_a_race_ranks_every_attempt_once():
    subject = replace(SUBJECT, attempts={"A": "commit-a", "B": "commit-b"})
    assert parse(said(ranking=["B", "A"]), subject).ranking == ("commit-b", "commit-a")
    assert parse(said(ranking=["B"]), SUBJECT).ranking == (), "without attempts there is nothing to rank"
    for wrong in (["A"], ["A", "A"], ["A", "C"], "BA", [["A"], "B"]):
        with pytest.raises(MalformedVerdict, match='"ranking"'):
            parse(said(ranking=wrong), subject)


def test_half_characters_and_zeros_become_marks_that_everything_can_hold():
    odd = {"weight": "nit", "file": "", "line": None, "text": "a\ud800b\0c"}
    verdict = parse(said(summary="x\udfff", findings=[odd]), SUBJECT)
    assert (verdict.summary, verdict.findings[0].text) == (
        "x\N{REPLACEMENT CHARACTER}",
        "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c",
    )
    assert refusal(said(findings=[{**odd, "file": "\ud800"}])).encode()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.text(max_size=5)
    | st.sampled_from(["approve", "changes", *FILES]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FINE, *BLOCKS, "number"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*NO, "settled", "criteria"]), VALUES))
def test_any_answer_is_read_or_refused_and_never_breaks(answer: dict[str, object]):
    reason = ""
    try:
        verdict = parse(json.dumps({**FINE, **answer}), SUBJECT)
    except MalformedVerdict as wrong:
        reason = str(wrong)
    if reason:
        assert "\n" not in reason
        return
    assert bool(verdict.blocking) is (verdict.ruling is Ruling.CHANGES)
    assert {"a.py"} <= set(verdict.read)


@given(st.text())
def test_no_text_breaks_the_reader_of_verdicts(text: str):
    with pytest.raises(MalformedVerdict):
        parse(text, SUBJECT)


def found(line: int | None, text: str, weight: Severity = Severity.BLOCKING, **more: Any) -> Finding:
    return Finding(weight=weight, file="a.py", line=line, text=text, **more)


def verdict_of(*findings: Finding, settled: tuple[int, ...] = ()) -> Verdict:
    ruling = Ruling.CHANGES if any(one.weight is Severity.BLOCKING for one in findings) else Ruling.APPROVE
    return Verdict(ruling=ruling, summary="s", read=(), findings=findings, settled=settled)


TOUCHED = ReviewedSince(lines={"a.py": [(20, 22)]})
UNTOUCHED = ReviewedSince(lines={})


def test_the_first_look_counts_as_it_is_and_numbers_its_findings():
    weighed = weigh(verdict_of(found(3, "It leaks."), found(9, "A name.", Severity.NIT)), (), None)
    assert [(one.id, one.weight) for one in weighed.verdict.findings] == [(1, Severity.BLOCKING), (2, Severity.NIT)]
    assert weighed.notes == ()


def test_what_is_raised_again_and_was_not_settled_keeps_its_number_and_blocks():
    weighed = weigh(
        verdict_of(found(8, "It still leaks memory here")), (found(3, "It leaks memory here", id=4),), TOUCHED
    )
    assert [(one.id, one.weight) for one in weighed.verdict.findings] == [(4, Severity.BLOCKING)]
    assert weighed.verdict.ruling is Ruling.CHANGES


@pytest.mark.parametrize(
    ("line", "blocks"), [(16, False), (17, True), (21, True), (25, True), (26, False), (None, True)]
)
def test_a_new_finding_blocks_only_near_what_changed(line: int | None, blocks: bool):
    weighed = weigh(verdict_of(found(line, "Something else entirely.")), (found(3, "It leaks.", id=1),), TOUCHED)
    assert (weighed.verdict.ruling is Ruling.CHANGES) is blocks
    assert len(weighed.notes) == (0 if blocks else 2)


def test_a_concern_of_before_does_not_become_a_reason_to_block_where_nothing_changed():
    before = (found(3, "It may leak memory.", Severity.CONCERN, id=1),)
    assert weigh(verdict_of(found(3, "It may leak memory.")), before, UNTOUCHED).verdict.ruling is Ruling.APPROVE
    assert weigh(verdict_of(found(21, "It may leak memory.")), before, TOUCHED).verdict.ruling is Ruling.CHANGES


def test_a_settled_finding_does_not_count_again_unless_its_place_has_changed():
    before = (found(3, "It leaks memory.", id=1, settled=True),)
    again = weigh(verdict_of(found(3, "It leaks memory.")), before, UNTOUCHED)
    assert (again.verdict.ruling, again.verdict.findings) == (Ruling.APPROVE, ())
    assert again.notes[0] == "finding 1 was settled and does not count again: a.py:3"
    assert weigh(verdict_of(found(21, "It leaks memory.")), before, TOUCHED).verdict.ruling is Ruling.CHANGES


def test_what_a_reader_never_saw_it_has_not_read_whatever_it_lists():
    with pytest.raises(MalformedVerdict, match='it never opened what its prompt shows only a part of: "b/c'):
        parse(said(), replace(SUBJECT, unseen=("b/c.py",)))


def test_who_settles_and_blocks_the_same_at_once_has_to_say_which():
    before = (found(3, "It leaks memory.", id=1),)
    with pytest.raises(MalformedVerdict, match=r"it settles finding 1 and raises it again \(a.py:21\)"):
        weigh(verdict_of(found(21, "It leaks memory."), settled=(1,)), before, TOUCHED)
    mild = weigh(verdict_of(found(21, "It leaks memory.", Severity.NIT), settled=(1,)), before, TOUCHED)
    assert (mild.verdict.ruling, mild.verdict.findings) == (Ruling.APPROVE, ())


def test_other_words_or_another_file_are_another_finding():
    before = (found(3, "It leaks memory.", id=1, settled=True),)
    other = Finding(weight=Severity.BLOCKING, file="b/c.py", line=3, text="It leaks memory.")
    touched = ReviewedSince(lines={"a.py": [(3, 3)], "b/c.py": [(3, 3)]})
    weighed = weigh(verdict_of(other, found(3, "The loop never ends.")), before, touched)
    assert [one.id for one in weighed.verdict.findings] == [2, 3]


def reading(number: int, verdict: Verdict | None) -> ReviewRequest:
    facts = {
        "project": 1,
        "ticket": 7,
        "attempt": number,
        "reviewer": "qa",
        "round": number,
        "base": "b",
        "commit": "c",
    }
    return ReviewRequest(id=number, binding=True, given_at=float(number), verdict=verdict, **facts)  # type: ignore[arg-type]


def test_a_finding_is_settled_as_soon_as_a_later_verdict_leaves_it_out():
    first = verdict_of(found(3, "One.", id=1), found(4, "Two.", id=2))
    second = verdict_of(found(4, "Two.", id=2))
    after = findings_of([reading(1, first), reading(2, None), reading(3, second)])
    assert [(one.id, one.settled) for one in after] == [(1, True), (2, False)]
    assert [one.settled for one in findings_of([reading(1, first), reading(2, verdict_of())])] == [True, True]


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from(["It leaks.", "It hangs.", "A name.", "No test."])), max_size=4
    )
)
def test_nothing_that_was_let_pass_and_not_touched_ever_blocks(raised: list[tuple[int, str]]):
    """However a reader talks, a change that it has read and nobody touched since does not go back for something new."""
    weighed = weigh(verdict_of(*(found(line, text) for line, text in raised)), (), UNTOUCHED)
    assert weighed.verdict.ruling is Ruling.APPROVE
