"""A standing agent that ends its turn is sent on by the person's hook, a few times in a row at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings
from legion.config.sections.limits import HookSettings
from legion.domain.agents.agent import ROOT
from legion.domain.runs import Outcome
from legion.service.agents import hire as hiring
from legion.service.agents import mail as mailing
from legion.store.staff import mail
from legion.wire.agents import HireAgent
from legion.wire.mail import NewMessage
from tests.jobs.office import Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    hooks = HookSettings(teammate_idle=("sh", "-c", "echo 'Run the tests, too.' >&2; exit 2"))
    settings = CurrentSettings(replace(one.context.user, hooks=hooks))
    one.context = replace(one.context, settings=settings)
    yield one
    one.close()


def turn(office: Office, number: int) -> None:
    office.conduct()
    office.take_prompt(number)
    office.end_turn(number, Outcome.FINISHED)


def waiting(office: Office, agent: str) -> list[str]:
    with office.context.store.read() as tx:
        return [message.text for message in mail.waiting(tx, agent)]


def test_an_idle_agent_continues_with_the_text_of_the_hook_and_not_for_ever(office: Office):
    hired = hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root)))
    number = office.standing()[0].number
    for _ in range(3):
        turn(office, number)
        (text,) = waiting(office, hired.id)
        assert text == "A hook of the person does not let you end your turn yet:\n\nRun the tests, too."
    turn(office, number)
    assert waiting(office, hired.id) == []
    mailing.tell(office.context, ROOT, NewMessage(to=hired.id, text="Once more."))
    turn(office, number)
    assert len(waiting(office, hired.id)) == 1
