"""Independent review over the real daemon, with readers that are plain programs: rounds, refusals, questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.wire.questions import Answer, QuestionLine
from tests.support.legion import Project, Squad, squad
from tests.support.readers import Readers, approve, changes, finding
from tests.support.repository import CHECK, Repository

ALWAYS = f'{CHECK}\n[review]\npolicy = "always"\n'


class Office:
    """A daemon whose readers are scripted, and a project in which every change is read."""

    def __init__(self, one: Squad, readers: Readers, project: Project) -> None:
        self.squad = one
        self.readers = readers
        self.project = project

    def dispatch(self, name: str, agent: str, *answers: object, **fields: object) -> int:
        text = self.readers.say(name, *answers)  # type: ignore[arg-type]
        return self.project.dispatch(name, agent, text=text, **fields)

    def question(self, ticket: int) -> QuestionLine:
        self.project.until(ticket, "parked")
        (one,) = [one for one in self.squad.client.inbox().questions if one.ticket == ticket]
        return one

    def page(self, ticket: int) -> str:
        return self.squad.cli("ticket", str(ticket), "--full", cwd=self.project.repository.root).stdout


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    readers = Readers(folder / "readers")
    walls = f'[sandbox]\nwrite = ["{readers.folder}"]\n'
    with squad(folder, settings=walls + readers.settings) as one:
        yield Office(one, readers, one.adopt(Repository(folder / "ada", ALWAYS)))


def test_an_approved_change_lands(office: Office):
    ticket = office.dispatch("lands", "echo 1 > lands.txt", approve("lands.txt"))
    page = office.project.until(ticket, "done")
    assert page.ticket.attempt == 1
    (told,) = office.readers.told("lands")
    assert "+1" in told


def test_findings_go_back_with_file_and_line_and_the_next_round_hears_what_is_new(office: Office):
    agent = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then printf 'one\\ntwo\\n' > back.txt; exit; fi
    grep -q 'back.txt:2: Two is a mistake' "$LEGION_BRIEFING" || exit 3
    printf 'one\\nthree\\n' > back.txt
    """
    again = changes("back.txt", findings=[finding("back.txt", 2, "Two is a mistake.")])
    ticket = office.dispatch("back", agent, again, approve("back.txt", settled=[1]))
    page = office.project.until(ticket, "done")
    assert page.ticket.attempt == 2
    first, second = office.readers.told("back")
    assert "Two is a mistake" not in first
    assert "- 1, blocking, back.txt:2: Two is a mistake." in second


def test_a_reader_that_loops_for_ever_ends_in_one_question(office: Office):
    again = [changes("loop.txt", findings=[finding("loop.txt", 1, f"Wrong in way {word}.")]) for word in "abcd"]
    ticket = office.dispatch("loop", 'echo "$LEGION_ATTEMPT" > loop.txt', *again, max_attempts=9)
    one = office.question(ticket)
    assert one.choices == ["land", "back", "stop"]
    office.squad.client.answer(one.id, Answer(choice="land"))
    page = office.project.until(ticket, "done")
    assert page.ticket.attempt == 3
