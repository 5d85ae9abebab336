"""When a change is read: the project's policy, the ticket's own, risks, and findings that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support import readers
from tests.support.legion import Project
from tests.support.readers import Office, approve, changes, finding
from tests.support.repository import CHECK, Repository

RISKY = f'{CHECK}\n[review]\npolicy = "risky"\npaths = ["core/**"]\n'
LOOSE = f'{CHECK}\n[review]\npolicy = "always"\nrequired = false\nchecklist = ["It is short"]\n'


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with readers.office(tmp_path_factory.mktemp("policy"), config=RISKY) as one:
        yield one


@pytest.fixture
def other(office: Office, tmp_path: object) -> Callable[[str], Office]:
    def made(config: str) -> Office:
        project: Project = office.squad.adopt(Repository(tmp_path / "other", config))  # type: ignore[operator]
        return Office(office.squad, office.readers, project)

    return made


def why(office: Office, ticket: int) -> list[str]:
    office.project.until(ticket, "done")
    return [one.why for one in office.reviews(ticket)]


def test_only_what_looks_risky_is_read(office: Office):
    plain = office.dispatch("plain", "echo 1 > plain.txt", approve())
    assert why(office, plain) == []
    path = office.dispatch("path", "mkdir -p core; echo 1 > core/x.txt", approve("core"))
    assert why(office, path) == ["it touches what is always reviewed (core/x.txt)"]
    claimed = office.dispatch("claimed", "echo 1 > claimed.txt", approve("claimed.txt"), criteria="It is good.")
    assert why(office, claimed) == ["one criterion has no proof"]
    large = office.dispatch("large", "seq 401 > large.txt", approve("large.txt"))
    assert why(office, large) == ["it changes 401 lines"]
    guarded = office.dispatch("guarded", "echo 'x' > .envrc", approve(".envrc"), files=[".envrc"])
    assert why(office, guarded) == ["it touches protected files (.envrc)"]


def test_a_ticket_may_say_otherwise(office: Office):
    always = office.dispatch("asked", "echo 1 > asked.txt", approve("asked.txt"), review="always")
    assert why(office, always) == ["the ticket asks for it"]
    never = office.dispatch("never", "seq 500 > never.txt", approve(), review="off")
    assert why(office, never) == []


def test_by_itself_nobody_reads(office: Office, other: Callable[[str], Office]):
    here = other(CHECK)
    ticket = here.dispatch("off", "seq 500 > off.txt", approve())
    assert why(here, ticket) == []


def test_where_approval_is_not_required_findings_are_shown_and_nobody_waits(
    office: Office, other: Callable[[str], Office]
):
    here = other(LOOSE)
    point = {"number": 1, "met": False, "why": "It is long."}
    no = changes("loose.txt", findings=[finding("loose.txt", 1, "Not like that.")], criteria=[point])
    ticket = here.dispatch("loose", "echo 1 > loose.txt", no)
    here.project.until(ticket, "done")
    here.project.until_true(lambda: bool(here.reviews(ticket)[0].given_at))
    (one,) = here.reviews(ticket)
    assert (one.verdict, one.binding) == ("changes", False)
    assert [(judged.number, judged.met) for judged in one.criteria] == [(1, False)], "the point of the checklist"
    assert here.project.state(ticket) == "done"
    assert "(optional)" in here.page(ticket)
