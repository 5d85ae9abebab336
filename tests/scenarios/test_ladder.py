"""Attempts that are used up: fresh eyes, the next model, a question; agents with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from legion.rehearsal.protocol.log import RequestKind
from legion.wire.mail import AnswerQuestion, QuestionLine
from legion.wire.ticket_pages import TicketPage
from tests.support.models import Company, company
from tests.support.repository import CHECK

ONE_EACH = CHECK.replace("attempts = 3", "attempts = 1")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    settings = """
    [claude]
    model = "sonnet"
    [drivers.plain]
    run = "cp /dev/null plain.txt"
    [models.by_label]
    odd = ["sonnet", "@plain"]
    """
    with company(tmp_path_factory.mktemp("ladder"), settings=settings, config=ONE_EACH, stand_in=True) as one:
        yield one


def works_at(here: Company, name: str, attempt: int) -> int:
    """A ticket whose agent says that it is done every time, and does what passes its proof only in this attempt."""
    command = f"echo $LEGION_ATTEMPT > {name}.txt"
    call = f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'
    here.script(name, f'[[step]]\nsay = "I work."\n{call}\n\n[[step]]\nsay = "All done!"\n')
    return here.dispatch(name, prove=[proof(name, attempt)])


def proof(name: str, attempt: int) -> str:
    return f"test $(cat {name}.txt) = {attempt}"


def asked(here: Company, name: str) -> list[tuple[str, str]]:
    """Models and conversations that the provider heard of, in order."""
    lines = [line for line in here.stage.lines() if line.script == name and line.kind is RequestKind.SCRIPTED]
    return list(dict.fromkeys((line.model, line.conversation) for line in lines))


def reasons(page: TicketPage) -> list[str]:
    return [str(event.data["reason"]) for event in page.history if event.data.get("step") == "tryagain"]


def question(here: Company, ticket: int) -> QuestionLine:
    here.project.until(ticket, "parked")
    (one,) = [one for one in here.squad.client.inbox().questions if one.ticket == ticket]
    return one


def test_fresh_eyes_and_then_a_stronger_model_each_in_a_conversation_of_its_own_and_then_a_question(here: Company):
    ticket = works_at(here, "fourth", 4)
    one = question(here, ticket)
    page = here.project.ticket(ticket)
    assert page.ticket.attempt == 3
    heard = asked(here, "fourth")
    assert len({conversation for _, conversation in heard}) == 3
    assert ["opus" in model for model, _ in heard] == [False, False, True]
    first, second, _ = reasons(page)
    why = f"checks failed: `{proof('fourth', 4)}`"
    assert first == f"{why}; next: fresh eyes: a new conversation with a summary of what was tried"
    assert second == f"{why}; next: the next model of the ladder: opus"
    given = [here.squad.data.runs / f"ticket-{ticket}-run-{run.id}" / "given/briefing.md" for run in page.runs]
    assert "What others tried before you" not in given[0].read_text()
    told = given[2].read_text()
    assert f"- attempt 1: {why}" in told
    assert f"- attempt 2: {why}" in told
    assert "with fresh eyes" in told
    assert "3 attempts did not succeed, the last because checks failed" in one.words
    assert f"legion answer {one.id} yes" in here.told("ticket", str(ticket))
    assert "is tried again" in here.told("answer", str(one.id), "yes")
    assert here.project.until(ticket, "done").ticket.attempt == 4


def test_the_ladder_leads_to_another_program_and_the_report_names_both(here: Company):
    call = 'call = {tool = "Bash", input = {command = "echo $LEGION_ATTEMPT > odd.txt"}}'
    here.script("odd", f'[[step]]\n{call}\n\n[[step]]\nsay = "All done!"\n')
    ticket = here.dispatch("odd", labels=["odd"], prove=["test -e plain.txt"])
    here.project.until_settled(ticket)
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 3), page.ticket.reason
    assert reasons(page)[-1].endswith("next: the next program of the ladder of odd: plain")
    assert here.project.landed("plain.txt") == ""
    shares = {one.key: one for one in here.squad.client.usage(here.project.cwd, "driver").shares}
    assert (shares["plain"].runs, shares["plain"].landed) == (1, 1)
    assert shares["claude"].runs >= 2


def test_a_no_at_the_end_of_the_ladder_fails_the_ticket(here: Company):
    ticket = works_at(here, "never", 99)
    here.squad.client.answer(question(here, ticket).id, AnswerQuestion(allowed=False))
    page = here.project.ticket(ticket)
    reason = f"gave up after 3 attempts: checks failed: `{proof('never', 99)}`"
    assert (page.ticket.state, page.ticket.reason) == ("failed", reason)


def test_after_two_attempts_that_change_nothing_a_person_is_asked(here: Company):
    here.script("idle", '[[step]]\nsay = "All done!"\n')
    ticket = here.dispatch("idle")
    one = question(here, ticket)
    assert "2 attempts did not succeed, the last because it changed nothing" in one.words
    here.squad.client.answer(one.id, AnswerQuestion(allowed=False))
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("failed", 2)


def test_who_says_how_often_means_it(here: Company):
    here.script("counted", '[[step]]\nsay = "All done!"\n')
    ticket = here.dispatch("counted", max_attempts=1)
    assert here.project.until(ticket, "failed").ticket.attempt == 1


def test_an_agent_that_gives_up_ends_its_ticket_with_its_reason(here: Company):
    here.script("stuck", '[[step]]\nsay = """Two ways failed.\\n\\nSTUCK: the service has no such call"""\n')
    page = here.project.until(here.dispatch("stuck"), "failed")
    assert page.ticket.reason == "the agent gave up: the service has no such call"
    assert [run.outcome for run in page.runs] == ["gave_up"]


def test_a_plain_program_has_its_attempts_and_no_ladder(here: Company):
    ticket = here.project.dispatch("plain", "true")
    page = here.project.until(ticket, "failed")
    assert page.ticket.reason == "gave up after 1 attempt: it changed nothing"


@pytest.fixture
def hasty(here: Company) -> Iterator[None]:
    """A person who wants nobody to wait long, and has no stronger model."""
    more = "[questions]\nanswer_within = 1\n[models]\nescalation = []\n"
    with here.squad.with_settings(f"{here.squad.settings.read_text()}\n{more}"):
        yield


@pytest.mark.usefixtures("hasty")
def test_silence_at_the_end_of_the_ladder_is_a_no(here: Company):
    ticket = works_at(here, "silent", 99)
    page = here.project.until(ticket, "failed")
    assert page.ticket.reason == f"gave up after 2 attempts: checks failed: `{proof('silent', 99)}`"
    assert [one for one in here.squad.client.inbox().questions if one.ticket == ticket] == []
