"""A git filter that appears after init is in force at once; taking a file out of it is a question."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.wire.mail import AnswerQuestion
from tests.scenarios.conftest import Make, shared_project
from tests.support.gates import Gate
from tests.support.legion import Project, Squad

TURN = "tr a-zA-Z n-za-mN-ZA-M"


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    yield from shared_project(house, tmp_path_factory.mktemp("filters"), {})


def test_a_filter_that_comes_after_init_is_in_force_and_leaving_it_is_a_question(project: Project):
    repository = project.repository
    for part, value in {"clean": TURN, "smudge": TURN, "required": "true"}.items():
        repository.git("config", f"filter.turn.{part}", value)
    repository.commit("hide", {".gitattributes": "*.key filter=turn\n", "a.key": "first\n"})
    reads = "grep -q first a.key && echo password > b.key && git add -A && git commit -qm own"
    project.until(project.dispatch("key", reads), "done")
    assert project.landed("b.key") == "cnffjbeq\n"
    project.squad.cli("collect", "--wait", cwd=repository.root)
    assert (repository.root / "b.key").read_text() == "password\n"
    assert repository.git("status", "--porcelain") == ""

    leaves = project.dispatch("plain", "echo > .gitattributes; echo password > c.key")
    project.until(leaves, "parked")
    (one,) = [one for one in project.squad.client.inbox().questions if one.ticket == leaves]
    assert "a.key, b.key, c.key: leaves the filter turn: from then on such files are stored as they are" in one.words
    assert "`*.key filter=turn` is gone" in one.words
    saved = project.hub_git("for-each-ref", "--format=%(objectname)", f"refs/legion/wip/{leaves}").split()[-1]
    assert project.hub_git("show", f"{saved}:c.key") == "cnffjbeq\n"

    repository.git("config", "--remove-section", "filter.turn")
    assert "which your git settings do not define" in project.notes()


def test_what_was_stored_before_the_target_had_a_filter_does_not_land_as_it_is(make: Make, gate: Gate):
    project = make()
    repository = project.repository
    work = f"test -f .gitattributes || {gate.pause}; echo password > b.key"
    ticket = project.dispatch("key", work)
    gate.arrived()
    for part, value in {"clean": TURN, "smudge": TURN, "required": "true"}.items():
        repository.git("config", f"filter.turn.{part}", value)
    repository.commit("hide", {".gitattributes": "*.key filter=turn\n"})
    project.until(project.dispatch("bring the rule in", "echo x > x.txt"), "done")
    gate.open()
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert (page.ticket.state, project.landed("b.key")) == ("parked", None), [(e.kind, e.data) for e in page.history]
    (one,) = [one for one in project.squad.client.inbox().questions if one.ticket == ticket]
    assert "b.key: goes through the filter turn on the target by now" in one.words
    project.squad.client.answer(one.id, AnswerQuestion(choice="no"))
    project.until(ticket, "done")
    assert project.landed("b.key") == "cnffjbeq\n"
