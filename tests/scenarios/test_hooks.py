"""The person's blocking hooks send work back with their text; secrets stop a change before it lands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.errors import BadInput
from legion.wire.mail import AnswerQuestion
from tests.support.legion import Project, Squad, squad
from tests.support.repository import Repository

HOOK = """#!/bin/sh
cat > "{folder}/$LEGION_EVENT.json"
case "$LEGION_EVENT $LEGION_TITLE" in "task_created slow") sleep 30 ;; "task_created crash") exit 1 ;; esac
[ "$LEGION_EVENT $LEGION_TITLE" = "task_created no" ] && echo "Not this one." >&2 && exit 2
[ -z "$LEGION_COMMIT" ] && exit 0
said=$(git --git-dir "$LEGION_HUB" show "$LEGION_COMMIT:$LEGION_EVENT.txt" 2>/dev/null)
[ "$said" = 1 ] && echo "$LEGION_EVENT wants a 2." >&2 && exit 2
exit 0
"""


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    folder = tmp_path_factory.mktemp("hooked")
    hook = folder / "hook.sh"
    hook.write_text(HOOK.format(folder=folder))
    hook.chmod(0o755)
    lines = [f'{name} = "{hook}"' for name in ("task_created", "task_completed", "before_land")]
    settings = "\n".join(["[hooks]", *lines, "timeout = 1", "", "[questions]", "answer_within = 600"])
    with squad(folder, settings=settings) as one:
        yield one


@pytest.fixture
def project(hooked: Squad, tmp_path: Path) -> Project:
    return hooked.adopt(Repository(tmp_path / "shop", '[checks.test]\nrun = "true"\n'))


def test_a_refused_ticket_is_not_created_and_a_hook_that_crashes_or_hangs_decides_nothing(
    hooked: Squad, project: Project
):
    with pytest.raises(BadInput, match="Ticket 'no': your hook refuses it: Not this one\\."):
        project.dispatch("no", "true")
    assert project.states() == {}
    for title in ("crash", "slow"):
        project.stop(project.dispatch(title, "true", priority=-1))
    told = json.loads((hooked.folder / "task_created.json").read_text())
    assert (told["hook_event_name"], told["task_subject"], told["team_name"]) == ("TaskCreated", "slow", "shop")
    warned = [one.words for one in hooked.client.history(project.cwd, last=50).lines if "decided nothing" in one.words]
    assert ["it ended with 1" in warned[0], "longer than 1 s" in warned[1]] == [True, True]


@pytest.mark.parametrize("event", ["task_completed", "before_land"])
def test_a_change_goes_back_with_the_text_of_the_hook_and_the_next_one_lands(project: Project, event: str):
    ticket = project.dispatch("write", f'echo "$LEGION_ATTEMPT" > {event}.txt')
    project.until(ticket, "done")
    assert project.landed(f"{event}.txt") == "2\n"
    page = project.ticket(ticket)
    assert page.ticket.attempt == 2
    reasons = [str(one.data.get("reason")) for one in page.history]
    assert "a hook of the person sent it back" in reasons


def test_a_secret_in_any_commit_stops_the_change_with_one_question(project: Project):
    key = "ghp" + "_" + "Zq8Lw2Rt5Yp9Xc3Vb7Nm1Kj4Hg6Fd0Sa2Qe8"
    agent = f"""
    if [ "$LEGION_ATTEMPT" = 1 ]; then
        echo "{key}" > config.txt; git add -A; git commit -qm one; echo clean > config.txt
    fi
    """
    ticket = project.dispatch("leak", agent)
    project.until(ticket, "parked")
    (question,) = project.ticket(ticket).questions
    assert "It seems to hold secrets" in question.words
    assert "config.txt: a GitHub token in line 1 (ghp_…)" in question.words
    assert key not in question.words
    assert project.landed("config.txt") is None
    project.squad.client.answer(question.id, AnswerQuestion(choice="yes"))
    project.until(ticket, "done")
