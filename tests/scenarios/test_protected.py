"""Changes of protected files and weakened tests stop for a person; yes, no and silence each have their consequence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.mail import AnswerQuestion, QuestionLine
from legion.wire.tickets import Action
from tests.scenarios.conftest import shared_project
from tests.support.legion import Project, Squad, new, squad
from tests.support.models import company
from tests.support.repository import Repository
from tests.support.settings import without_trial

TEST = "def test_total():\n    assert total() == 3\n    assert total() != 4\n"
NAMES = ("yes", "no", "bounced", "stubborn", "once", "broken", "added", "declared", "total")
"""Each test weakens a file of its own."""
FILES = {**{f"tests/test_{name}.py": TEST for name in NAMES}, "Makefile": "test:\n\tsh check.sh\n"}


def weaker(name: str) -> str:
    return f"sed -i '/!= 4/d' tests/test_{name}.py; echo 1 > {name}.txt"


def question(project: Project, ticket: int) -> QuestionLine:
    project.until(ticket, "parked")
    (one,) = [one for one in project.squad.client.inbox().questions if one.ticket == ticket]
    return one


def answer(project: Project, one: QuestionLine, allowed: bool, why: str = "") -> str:
    return project.squad.client.answer(one.id, AnswerQuestion(allowed=allowed, why=why)).message


def reasons(project: Project, ticket: int) -> list[str]:
    return [str(event.data["reason"]) for event in project.ticket(ticket).history if event.kind == "ticket.moved"]


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    yield from shared_project(house, tmp_path_factory.mktemp("protected"), FILES)


def test_a_deleted_assertion_stops_and_a_yes_lets_it_land(project: Project):
    ticket = project.dispatch("weaker", weaker("yes"))
    one = question(project, ticket)
    assert "- tests/test_yes.py\n" in one.words
    assert "tests/test_yes.py: fewer assertions: 1 fewer than before" in one.words
    assert project.landed("yes.txt") is None
    shown = project.squad.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert f"legion answer {one.id} yes" in shown
    assert "Tests look weaker" in shown
    assert "continues with its change" in answer(project, one, True)
    page = project.until(ticket, "done")
    assert project.landed("yes.txt") == "1\n"
    assert [(found.sign, found.path) for found in page.weakened] == [("fewer assertions", "tests/test_yes.py")]
    assert page.ticket.attempt == 1


def test_a_no_goes_back_with_its_words_and_the_agent_can_put_it_right(project: Project):
    agent = f"""
    if [ "$LEGION_ATTEMPT" = 1 ]; then {weaker("no")}; exit; fi
    if [ "$LEGION_ATTEMPT" = 3 ]; then echo 3 > no.txt; exit; fi
    grep -q 'Four is never right' "$LEGION_BRIEFING" || exit 3
    git checkout -q tests/test_no.py
    """
    ticket = project.dispatch("weaker", agent)
    one = question(project, ticket)
    project.until(project.dispatch("in its way", "echo 2 > no.txt"), "done")
    assert "with your answer" in answer(project, one, False, "Four is never right.")
    page = project.until(ticket, "done")
    assert (page.ticket.attempt, page.weakened) == (3, [])
    assert project.landed("tests/test_no.py") == TEST
    back = [reason for reason in reasons(project, ticket) if reason]
    assert back[1:] == [
        "it changed protected files (tests/test_no.py), and you said no",
        "it conflicts with what landed meanwhile (no.txt)",
    ]


def test_a_bounce_is_a_no_to_the_question_about_the_change(project: Project):
    agent = f"""
    if [ "$LEGION_ATTEMPT" = 1 ]; then {weaker("bounced")}; exit; fi
    grep -q 'Put it back' "$LEGION_BRIEFING" && git checkout -q tests/test_bounced.py
    """
    ticket = project.dispatch("weaker", agent)
    question(project, ticket)
    project.squad.client.bounce(ticket, Action(feedback="Put it back."))
    assert project.until(ticket, "done").ticket.attempt == 2
    assert [left for left in project.squad.client.inbox().questions if left.ticket == ticket] == []


def test_the_same_change_is_asked_about_once(project: Project):
    agent = f'if [ "$LEGION_ATTEMPT" = 1 ]; then {weaker("stubborn")}; else echo again >> stubborn.txt; fi'
    ticket = project.dispatch("stubborn", agent, max_attempts=2)
    answer(project, question(project, ticket), False, "No.")
    project.until(ticket, "failed")
    asked = [event for event in project.ticket(ticket).history if event.kind == "question.asked"]
    assert len(asked) == 1
    project.retry(ticket)
    again = question(project, ticket)
    answer(project, again, True)
    assert project.until(ticket, "done").ticket.attempt == 3


def test_a_no_to_the_last_attempt_says_that_it_was_the_last(project: Project):
    ticket = project.dispatch("once", weaker("once"), max_attempts=1)
    told = answer(project, question(project, ticket), False)
    assert told == f"Ticket {ticket} fails, since it has no attempt left: `legion retry {ticket}` gives it one."


def test_an_allowed_change_that_goes_back_for_another_reason_is_not_asked_about_again(project: Project):
    agent = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then sed -i '/!= 4/d' tests/test_broken.py; echo BROKEN > broken.txt; exit; fi
    echo fine > broken.txt
    """
    ticket = project.dispatch("weaker and broken", agent)
    answer(project, question(project, ticket), True)
    page = project.until(ticket, "done")
    assert page.ticket.attempt == 2
    assert [event.kind for event in page.history].count("question.asked") == 1


WAYS_AROUND = [
    ("printf 'import pytest\\npytest.skip()\\n' >> tests/test_total.py", "tests/test_total.py", "skip added"),
    ("rm tests/test_total.py", "tests/test_total.py", "test file removed"),
    ("sed -i 's/check.sh/check.sh || true/' Makefile", "Makefile", "failure silenced"),
    ("echo 'exit 0' > check.sh", "check.sh", ""),
    ("printf 'def pytest_ignore_collect(): return True\\n' > tests/conftest.py", "tests/conftest.py", ""),
    ("echo '# mine' >> legion.toml", "legion.toml", ""),
    ("mkdir -p .github && touch .github/ci.yml", ".github/ci.yml", ""),
]


def test_every_way_around_the_checks_stops_for_a_question(project: Project):
    tickets = project.dispatch_all([new(path, f"{agent}; echo 1 > around.txt") for agent, path, _ in WAYS_AROUND])
    for ticket, (_, path, sign) in zip(tickets, WAYS_AROUND, strict=True):
        one = question(project, ticket)
        assert f"- {path}\n" in one.words
        assert sign in one.words
        project.stop(ticket)
        assert [left for left in project.squad.client.inbox().questions if left.ticket == ticket] == []
    assert project.landed("around.txt") is None


def test_new_tests_and_declared_files_need_no_question(project: Project):
    more = "printf '\\ndef test_more():\\n    assert total() > 2\\n' >> tests/test_added.py"
    added = project.dispatch("adds tests", f"{more}; echo 'assert 1 < 2' > tests/test_new.py")
    declared = project.dispatch("declared", weaker("declared"), files=["tests/**"])
    page = project.until(declared, "done")
    project.until(added, "done")
    assert [found.sign for found in page.weakened] == ["fewer assertions"]
    assert [left for left in project.squad.client.inbox().questions if left.ticket in (added, declared)] == []


def test_a_claim_with_nothing_done_is_never_done(project: Project):
    ticket = project.dispatch("liar", "echo 'All tests pass, the ticket is done!'", max_attempts=1)
    page = project.until(ticket, "failed")
    assert "it changed nothing" in page.ticket.reason


def test_a_real_agent_hears_the_no_in_its_conversation_and_puts_the_test_back(tmp_path: Path):
    with company(tmp_path, files=FILES, stand_in=True) as here:
        bash = 'call = {{tool = "Bash", input = {{command = "{}"}}}}'
        here.script(
            "weaker",
            f"""
            [[step]]
            say = "That assertion is in my way."
            {bash.format("sed -i /4/d tests/test_total.py && echo 1 > a.txt")}
            [[step]]
            say = "All done!"
            [[step]]
            attempt = 2
            say = "I put it back."
            {bash.format("git checkout -q tests/test_total.py")}
            [[step]]
            attempt = 2
            say = "Done."
            """,
        )
        ticket = here.dispatch("weaker")
        one = question(here.project, ticket)
        assert "fewer assertions: 1 fewer than before" in one.words
        assert "with your answer" in here.told("answer", str(one.id), "no", "Four is never right.")
        page = here.project.until(ticket, "done")
        assert (page.ticket.attempt, here.project.landed("tests/test_total.py")) == (2, TEST)
        told = here.squad.data.runs / f"ticket-{ticket}-run-{page.runs[-1].id}" / "given/again.md"
        assert "Four is never right." in told.read_text()
        heard = {line.conversation for line in here.stage.lines() if line.script == "weaker"}
        assert len(heard) == 1


def test_an_open_question_survives_a_kill_and_the_settings_say_what_is_asked_and_for_how_long(tmp_path: Path):
    with squad(tmp_path) as one:
        repository = Repository(tmp_path / "ada")
        repository.commit("tests", FILES)
        project = one.adopt(repository)
        config = "echo '# mine' >> legion.toml"
        ticket = project.dispatch("config", config)
        asked = question(project, ticket)
        one.kill()
        one.start()
        one.client.resume_ticket(ticket)
        project.until(ticket, "parked")
        assert [left.id for left in one.client.inbox().questions] == [asked.id], "a resume asks nothing new"
        project.stop(ticket)

        one.settings.write_text(without_trial("[questions]\nanswer_within = 1\n"))
        page = project.until(project.dispatch("silence", config, max_attempts=1), "failed")
        assert page.ticket.reason == "gave up after 1 attempt: it changed protected files (legion.toml), unanswered"
        assert project.squad.client.inbox().questions == []

        one.settings.write_text('[protection]\ntrial = false\nallow = ["tests"]\n')
        project.until(project.dispatch("weaker", weaker("total")), "done")
        one.settings.write_text('[protection]\ntrial = false\nmode = "off"\n')
        project.until(project.dispatch("ci", "mkdir .github && touch .github/ci.yml"), "done")
        assert project.landed(".github/ci.yml") == ""
