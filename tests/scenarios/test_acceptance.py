"""Held-out acceptance: run by the engine alone, seen by no agent, and red says only which one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.errors import BadInput
from tests.support.legion import Project, Squad, squad
from tests.support.repository import CHECK, Repository
from tests.support.settings import without_trial

SECRET = "forty-two-exactly"


@pytest.fixture(scope="module")
def legion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    folder = tmp_path_factory.mktemp("held-out")
    (folder / "secrets").mkdir()
    settings = f"""
[acceptance.answer]
run = 'sh "$LEGION_ACCEPTANCE/run.sh"'
folder = "{folder}/secrets"
[acceptance.quiet]
run = "! sh app.sh | grep -q {SECRET}"
"""
    # No folder's name may hold the word "acceptance": agents look for it.
    with squad(folder, settings=settings) as one:
        yield one


@pytest.fixture
def secrets(legion: Squad) -> Path:
    folder = legion.folder / "secrets"
    (folder / "run.sh").write_text(f'echo {SECRET}; test "$(sh app.sh)" = 42\n')
    return folder


@pytest.fixture
def project(legion: Squad, tmp_path: Path, secrets: Path) -> Iterator[Project]:
    settings = legion.settings.read_text()
    yield legion.adopt(Repository(tmp_path / "ada", f"{CHECK}\n[checkpoints]\nfixes = 0\n"))
    legion.settings.write_text(without_trial(settings))


def test_red_says_only_which_one_failed_and_the_work_goes_on(project: Project, secrets: Path):
    agent = f"""
    cat "$LEGION_BRIEFING" >> briefings.txt
    grep -rs {SECRET} {secrets} && exit 9
    env | grep -i acceptance && exit 8
    if [ "$LEGION_ATTEMPT" = 1 ]; then echo 'echo 41' > app.sh; else echo 'echo 42' > app.sh; fi
    """
    ticket = project.dispatch("the answer", agent, accept=["answer", "quiet"])
    page = project.until(ticket, "done")
    assert (page.ticket.attempt, page.accept) == (2, ["answer", "quiet"])
    reasons = [str(event.data["reason"]) for event in page.history if event.kind == "ticket.moved"]
    assert "checks failed: `acceptance answer`" in reasons
    told = project.landed("briefings.txt") or ""
    assert "acceptance answer" in told
    for hidden in (SECRET, str(secrets), "run.sh", "quiet"):
        assert hidden not in told
    ran = {(receipt.name, receipt.verdict) for receipt in page.receipts}
    assert {("acceptance answer", "red"), ("acceptance answer", "green"), ("acceptance quiet", "green")} <= ran
    assert all(SECRET not in receipt.tail + receipt.command for receipt in page.receipts)
    red = next(receipt for receipt in page.receipts if receipt.verdict == "red")
    assert SECRET in Path(red.output).read_text()
    assert page.ticket.unchecked is False


def test_one_that_changes_counts_anew_and_a_checkpoint_can_have_one(project: Project, secrets: Path):
    project.until(project.dispatch("the answer", "echo 'echo 42' > app.sh", accept=["answer"]), "done")
    first = project.dispatch("holds", checkpoint=True, accept=["answer"])
    project.until(first, "done")
    (secrets / "run.sh").write_text('test "$(sh app.sh)" = 43\n')
    second = project.dispatch("holds no more", checkpoint=True, accept=["answer"])
    assert "`acceptance answer`" in project.until(second, "failed").ticket.reason


def test_a_ticket_whose_acceptance_is_gone_waits_and_does_not_land(project: Project):
    settings = project.squad.settings.read_text()
    project.pause()
    ticket = project.dispatch("the answer", "echo 'echo 42' > app.sh", accept=["answer"])
    project.squad.settings.write_text(without_trial(""))
    project.resume()
    page = project.until(ticket, "parked")
    assert "no longer have [acceptance.answer]" in page.ticket.reason
    assert project.landed("app.sh") is None
    project.squad.settings.write_text(without_trial(settings))
    project.squad.client.resume_ticket(ticket)
    project.until(ticket, "done")


def test_what_agents_could_read_and_what_is_not_there_is_refused(project: Project):
    with pytest.raises(BadInput, match=r"no \[acceptance.nope\]\. Known names: answer, quiet"):
        project.dispatch("x", "true", accept=["nope"])
    inside = project.repository.root / "inside"
    inside.mkdir()
    project.squad.settings.write_text(without_trial(f'[acceptance.a]\nrun = "true"\nfolder = "{inside}"\n'))
    with pytest.raises(BadInput, match="agents can read the folder"):
        project.dispatch("x", "true", accept=["a"])
    project.squad.settings.write_text(without_trial('[acceptance.a]\nrun = "true"\nfolder = "/nowhere/at/all"\n'))
    with pytest.raises(BadInput, match="does not exist"):
        project.dispatch("x", "true", accept=["a"])
