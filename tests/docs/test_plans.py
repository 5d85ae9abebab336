"""The examples of the page about plans are plans, and sound ones."""

from __future__ import annotations

import re

from legion.domain.plans import toml_text
from legion.domain.plans.answer import parse
from legion.domain.plans.checks import FindingKind, PlanFacts, findings
from legion.domain.plans.draft import PlanDraft
from tests.support.codebase import ROOT

PAGE = (ROOT / "docs/plans.md").read_text()
FACTS = PlanFacts(exists={"app/views.py"}.__contains__, checks=("test",))


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_answer_and_the_file_are_the_same_sound_plan():
    answer, file = parse(block("json"), may_ask=False), toml_text.read(block("toml"), "the page")
    assert isinstance(answer, PlanDraft)
    assert answer.keys == file.keys == ("schema", "login")
    for draft in (answer, file):
        assert findings(draft, FACTS) == ()


def test_the_page_explains_every_finding():
    for kind in FindingKind:
        assert f"\n| `{kind.value}` |" in PAGE
