"""Templates over the real service: shipped ones, a repository's, and those made of what was done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.plans.template import read
from legion.wire.errors import BadInput, NotFound
from legion.wire.plans import ApprovePlan
from legion.wire.projects import AddProject, Trust
from legion.wire.templates import RunTemplate
from tests.support.codebase import ROOT
from tests.support.office import Office, office
from tests.support.repository import Repository

VALUES = {
    "bug": {"bug": "The cart loses items"},
    "feature": {"feature": "Users can log in", "parts": "api,page"},
    "refactor": {"goal": "Smaller", "files": "*.txt"},
    "upgrade": {"dependency": "click"},
    "audit": {"problem": "Races", "files": "*.txt"},
    "docs": {"topics": "install,use"},
    "migration": {"old": "print", "new": "logging", "files": "*.txt"},
    "spec": {"goal": "A shop"},
    "changelog": {},
}
SMALL = """\
extends = "feature"
without = ["docs", "build"]
[[step]]
key = "together"
title = "T"
checkpoint = true
needs = ["part"]
"""
CIRCLE = '[[step]]\nkey = "a"\ntitle = "A"\nneeds = ["b"]\n[[step]]\nkey = "b"\ntitle = "B"\nneeds = ["a"]\n'


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("templates")) as one:
        yield one


def test_every_shipped_template_is_listed_explained_and_makes_a_sound_plan(desk: Office):
    listed = {one.name: one for one in desk.person.templates(desk.cwd).templates}
    assert {*VALUES} == {*listed}
    for name, values in VALUES.items():
        assert (listed[name].origin, listed[name].fault, bool(listed[name].about)) == ("shipped", "", True)
        assert all(one.help for one in listed[name].variables)
        made = desk.person.run_template(RunTemplate(cwd=desk.cwd, name=name, values=values, dry_run=True))
        assert (made.plan, made.findings) == (None, []), name
        assert made.tickets, name
    page = (ROOT / "docs/templates.md").read_text()
    assert {*re.findall(r"^\| `([a-z]+)` \|", page.partition("## The file")[0], re.MULTILINE)} == {*VALUES}


def test_a_template_becomes_a_plan_that_is_approved_like_any_other(desk: Office):
    wanted = RunTemplate(cwd=desk.cwd, name="bug", values=VALUES["bug"], epic="cart")
    made = desk.person.run_template(wanted)
    assert made.plan is not None
    assert (made.plan.plan.state, made.plan.plan.source, made.goal) == (
        "ready",
        "template",
        "Fix: The cart loses items",
    )
    approved = desk.person.approve_plan(int(made.plan.plan.id[1:]), ApprovePlan())
    fix = desk.person.ticket(approved.tickets["fix"])
    assert (fix.ticket.after, fix.ticket.epic) == ([approved.tickets["reproduce"]], "cart")

    text = desk.person.template_from(desk.cwd, "cart").text
    again = read("cart", text, "cart.toml")
    assert [(step.key, step.needs) for step in again.steps] == [
        ("reproduce-as-a-test-the-cart-loses-i", ()),
        ("fix-the-cart-loses-items", ("reproduce-as-a-test-the-cart-loses-i",)),
    ]
    with pytest.raises(NotFound, match="There is no epic"):
        desk.person.template_from(desk.cwd, "none")


def test_unknown_templates_and_missing_values_change_nothing(desk: Office):
    before = len(desk.person.plans(desk.cwd, all=True).plans)
    for name, values, message in (
        ("bugs", {}, "There is no template 'bugs'; did you mean bug"),
        ("bug", {}, "Template bug needs bug: add --var bug="),
        ("bug", {"bug": "x", "prof": "y"}, "has no variable 'prof'; did you mean proof"),
    ):
        with pytest.raises(BadInput, match=message):
            desk.person.run_template(RunTemplate(cwd=desk.cwd, name=name, values=values))
    assert len(desk.person.plans(desk.cwd, all=True).plans) == before


def test_a_template_of_the_repository_counts_when_it_is_trusted(desk: Office, tmp_path: Path):
    page = (ROOT / "docs/templates.md").read_text()
    example, audit = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    repository = Repository(tmp_path / "shop")
    files = {"router": example, "loop": CIRCLE, "bug": "about = 3", "small": SMALL, "audit": audit}
    repository.commit("templates", {f".legion/templates/{name}.toml": text for name, text in files.items()})
    cwd = str(repository.root)
    desk.person.add_project(AddProject(path=cwd))
    wanted = RunTemplate(cwd=cwd, name="router", values={"handlers": "cart,till"}, dry_run=True)
    with pytest.raises(BadInput, match="There is no template 'router'"):
        desk.person.run_template(wanted)
    listed = desk.person.templates(cwd)
    assert ".legion/templates/router.toml" in listed.untrusted
    assert {one.origin for one in listed.templates} == {"shipped"}

    desk.person.trust(Trust(cwd=cwd, hashes=[text.hash for text in desk.person.trustable(cwd).texts]))
    made = desk.person.run_template(wanted)
    assert [(one.key, one.after) for one in made.tickets] == [
        ("router", []),
        ("move-1", ["router"]),
        ("move-2", ["router"]),
    ]
    assert made.findings == []
    listed = desk.person.templates(cwd)
    faults = {one.name: one.fault for one in listed.templates if one.fault}
    assert faults == {
        "bug": ".legion/templates/bug.toml: the template: `about` must be a text, and is 3.",
        "loop": "These tickets wait for each other in a circle (a after b after a): remove one of the edges.",
    }
    with pytest.raises(BadInput, match="`about` must be a text"):
        desk.person.run_template(RunTemplate(cwd=cwd, name="bug", values=VALUES["bug"]))
    with pytest.raises(BadInput, match="in a circle"):
        desk.person.run_template(RunTemplate(cwd=cwd, name="loop"))
    small = desk.person.run_template(RunTemplate(cwd=cwd, name="small", values=VALUES["feature"], dry_run=True))
    assert [one.key for one in small.tickets] == ["interface", "part-1", "part-2", "together"]
    assert desk.person.template(cwd, "small").text == SMALL
    audited = desk.person.run_template(RunTemplate(cwd=cwd, name="audit", dry_run=True))
    assert [(one.key, one.when) for one in audited.tickets] == [("audit", ""), ("repair", "audit.result == 'findings'")]
    assert audited.findings == []
