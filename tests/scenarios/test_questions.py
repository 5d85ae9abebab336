"""A question of an agent reaches a person once; yes, no and silence each have their consequence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.wire.mail import QuestionLine
from tests.support.models import Company, company


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("questions"), stand_in=True) as one:
        yield one


def asking(here: Company, name: str, *, ask: bool = True, about: str = "") -> int:
    """A ticket whose agent wants to write outside its tree, for which it would have to ask."""
    outside = here.squad.folder / "gates" / f"{about or name}.txt"
    here.script(
        name,
        f"""
        [[step]]
        say = "I need a file outside."
        call = {{tool = "Write", input = {{file_path = "{outside}", content = "asked"}}}}

        [[step]]
        say = "Now the one inside."
        call = {{tool = "Write", input = {{file_path = "{{cwd}}/{name}.txt", content = "done\\n"}}}}

        [[step]]
        say = "Done."
        """,
    )
    return here.dispatch(name, ask=ask)


def the_question(here: Company, ticket: int) -> QuestionLine:
    """Wait until it lies in the inbox."""
    here.project.until_true(lambda: bool(of(here, ticket)))
    (question,) = of(here, ticket)
    return question


def of(here: Company, ticket: int) -> list[QuestionLine]:
    return [one for one in here.squad.client.inbox().questions if one.ticket == ticket]


def test_a_question_is_shown_everywhere_and_a_yes_lets_the_tool_run(here: Company):
    ticket = asking(here, "yes")
    question = the_question(here, ticket)
    assert "Write" in question.words
    for shown in (here.told("inbox"), here.told("ticket", str(ticket))):
        assert question.words.split()[-1] in shown
        assert f"legion answer {question.id} yes" in shown
    status = here.told("status")
    assert "1 question waits for you: legion inbox" in status
    assert f"legion answer {question.id}" in status.partition("Needs you")[2].partition("At work")[0]
    assert "continues" in here.told("answer", str(question.id), "yes")
    page = here.project.until(ticket, "done")
    assert (here.squad.folder / "gates" / "yes.txt").read_text() == "asked"
    assert here.project.landed("yes.txt") == "done\n"
    assert page.questions == []
    again = here.cli("answer", str(question.id), "no")
    assert (again.returncode, f"Question {question.id} is already settled (yes)" in again.stderr) == (5, True)
    assert "Question" not in here.told("inbox")


def test_a_no_is_heard_with_its_reason_and_the_agent_goes_on(here: Company):
    ticket = asking(here, "no")
    question = the_question(here, ticket)
    assert "gets the no" in here.told("answer", str(question.id), "no", "Stay in your tree.")
    here.project.until(ticket, "done")
    assert not (here.squad.folder / "gates" / "no.txt").exists()
    returned = [event.facts for event in here.journal(ticket) if event.kind == "returned"]
    assert "Stay in your tree." in str(returned[0]["head"])
    settled = [event for event in here.project.ticket(ticket).history if event.kind == "question.settled"]
    assert [(event.data["allowed"], event.data["why"]) for event in settled] == [(False, "Stay in your tree.")]


def test_a_stopped_ticket_asks_nothing_any_more(here: Company):
    ticket = asking(here, "stopped")
    question = the_question(here, ticket)
    here.project.stop(ticket)
    here.project.until_idle(ticket)
    assert of(here, ticket) == []
    late = here.cli("answer", str(question.id), "yes")
    assert (late.returncode, "already settled (no, its run ended first)" in late.stderr) == (5, True)


def test_without_leave_to_ask_it_is_denied_at_once(here: Company):
    ticket = asking(here, "unasked", ask=False)
    page = here.project.until(ticket, "done")
    assert [event.kind for event in page.history if "question" in event.kind] == []
    assert not (here.squad.folder / "gates" / "unasked.txt").exists()


@pytest.fixture
def hasty(here: Company) -> Iterator[None]:
    with here.squad.with_settings(f"{here.squad.settings.read_text()}\n[claude]\nanswer_within = 2\n"):
        yield


@pytest.mark.usefixtures("hasty")
def test_silence_is_a_no_at_the_deadline(here: Company):
    ticket = asking(here, "silence")
    here.project.until(ticket, "done")
    assert not (here.squad.folder / "gates" / "silence.txt").exists()
    history = here.project.ticket(ticket).history
    settled = [event.data for event in history if event.kind == "question.settled"]
    assert [(facts["allowed"], facts["why"]) for facts in settled] == [(False, "no answer in time")]


def test_words_with_a_yes_are_refused_and_the_question_still_waits(here: Company):
    ticket = asking(here, "wordy")
    question = the_question(here, ticket)
    refused = here.cli("answer", str(question.id), "yes", "but", "carefully")
    assert refused.returncode == 2
    perhaps = here.cli("answer", str(question.id), "perhaps")
    assert (perhaps.returncode, "choose one of yes, no" in perhaps.stderr) == (2, True)
    refused = here.cli("answer", str(question.id), "yes", "but carefully")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert refused.stderr.startswith("Only a no takes a text")
    assert [one.id for one in of(here, ticket)] == [question.id]
    here.told("answer", str(question.id), "no")
    here.project.until(ticket, "done")


@pytest.mark.parametrize("words", [("answer", "x", "yes"), ("answer", "0", "yes"), ("answer", "1")])
def test_an_answer_that_makes_no_sense_is_refused_in_one_sentence(here: Company, words):
    refused = here.cli(*words)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)


def test_a_question_that_never_was_is_not_found(here: Company):
    assert here.cli("answer", "4711", "yes").returncode == 3


def test_what_is_allowed_for_always_is_shown_saved_and_never_asked_again(here: Company):
    ticket = asking(here, "always")
    question = the_question(here, ticket)
    rule = f"Edit(/{here.squad.folder}/gates/always.txt)"
    assert question.facts["rule"] == rule
    shown = here.cli("answer", str(question.id), "always")
    assert (shown.returncode, rule in shown.stderr) == (4, True)
    rules = here.squad.settings.with_name("rules.toml")
    assert not rules.exists()
    assert "is allowed from now on" in here.told("answer", str(question.id), "always", "--yes")
    assert rule in rules.read_text()
    here.project.until(ticket, "done")
    page = here.project.until(asking(here, "allowed", about="always"), "done")
    assert [event.kind for event in page.history if "question" in event.kind] == []
