"""The end of a run of a ticket: what its row says, and what becomes of the ticket, without any program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import UserConfig
from legion.config.sections.machine import SandboxSettings
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim, JobKind
from legion.domain.tickets.ticket import ParkReason, Start, State, Ticket, TryAgain, Unpark
from legion.drivers import EndKind
from legion.jobs.run import job
from legion.jobs.supervise.outcome import judge_change
from legion.jobs.supervise.usage import over_budget_file
from legion.jobs.workspace.save import Saved
from legion.runner.probe import SandboxKind, SandboxState
from legion.runner.spec import RunResult, write_result
from legion.store.board import tickets
from legion.store.work import claims, runs
from legion.wire.dispatch import Dispatch, NewTicket
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket
from tests.support.office import office as whole_office

EMPTY = "the budget of this project is spent: $5.00 of $5.00"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def start(office: Office, folder: Path) -> tuple[Run, Claim]:
    """A run whose worktree somebody replaced by a link: nothing can be saved from it."""
    with office.context.store.write() as tx:
        ticket = tickets.move(tx, add_ticket(tx, office.project).id, Start(COMMIT))
        run = runs.start(tx, ticket.id, ticket.attempt)
        claim = claims.claim(tx, JobKind.RUN, ticket.id, "here")
    (office.context.data.runs / run.name).mkdir(parents=True)
    (folder / "trees").mkdir()
    (folder / "trees" / run.seat).symlink_to(folder)
    return run, claim


def end(office: Office, run: Run, claim: Claim, outcome: EndKind, message: str) -> tuple[Run, Ticket]:
    result = RunResult(
        run=run.name, outcome=outcome, exit_code=0, started_at=1.0, ended_at=100.0, output_bytes=0, message=message
    )
    write_result(office.context.data.runs / run.name, result)
    job.run(office.context, claim)
    with office.context.store.read() as tx:
        return runs.get(tx, run.id), tickets.get(tx, claim.subject)


def test_the_run_says_that_a_budget_stopped_it(office: Office, tmp_path: Path):
    run, claim = start(office, tmp_path)
    over_budget_file(office.context, run).write_text(EMPTY)
    ended, _ = end(office, run, claim, EndKind.STOPPED, "The run was stopped as asked.")
    assert ended.outcome is Outcome.STOPPED
    assert ended.detail.startswith(EMPTY)
    assert "as asked" not in ended.detail


@pytest.mark.parametrize(
    ("outcome", "state", "resumes"),
    [
        (EndKind.LIMITED, State.PARKED, True),
        (EndKind.STOPPED, State.QUEUED, True),
        (EndKind.INTERRUPTED, State.PARKED, True),
        (EndKind.OUT_OF_BUDGET, State.PARKED, True),
        (EndKind.REFUSED, State.PARKED, True),
        (EndKind.FINISHED, State.QUEUED, False),
        (EndKind.FAILED, State.QUEUED, False),
    ],
    ids=lambda value: getattr(value, "value", str(value)),
)
def test_a_worktree_that_is_gone_costs_an_attempt_only_where_the_agent_had_its_chance(
    office: Office, tmp_path: Path, outcome: EndKind, state: State, resumes: bool
):
    run, claim = start(office, tmp_path)
    ended, ticket = end(office, run, claim, outcome, "So it ended.")
    assert ticket.state is state
    with office.context.store.write() as tx:
        waiting = tickets.move(tx, ticket.id, Unpark()) if state is State.PARKED else ticket
        again = tickets.move(tx, waiting.id, Start(COMMIT))
    assert again.attempt == (1 if resumes else 2)
    assert "its worktree was removed from outside" in ended.detail
    if outcome is EndKind.LIMITED:
        assert ticket.parked is not None
        assert ticket.parked.reason is ParkReason.LIMIT


def test_a_claim_that_was_lost_meanwhile_changes_nothing(office: Office, tmp_path: Path):
    run, claim = start(office, tmp_path)
    with office.context.store.write() as tx:
        claims.finish(tx, claim)
        claims.claim(tx, JobKind.RUN, claim.subject, "elsewhere")
    ended, ticket = end(office, run, claim, EndKind.LIMITED, "So it ended.")
    assert (ended.ended_at, ticket.state) == (None, State.WORKING)


@pytest.mark.parametrize(
    ("denials", "reason"),
    [((), "it changed nothing"), (("Bash", "Write"), "it changed nothing (it was denied Bash, Write)")],
)
def test_an_agent_that_changed_nothing_is_reminded_of_the_tools_that_it_was_denied(
    tmp_path: Path, denials: tuple[str, ...], reason: str
):
    with whole_office(tmp_path) as desk:
        project = desk.context.project(1)
        base = project.target
        with desk.context.store.write() as tx:
            ticket = tickets.move(tx, add_ticket(tx, 1).id, Start(base))
        tree = project.hub.tree_of(base)
        saved = Saved(commit=base, tree=tree, changed=False, nested=(), left_out=())
        step = judge_change(desk.context, project, ticket, saved, denials)
    assert isinstance(step, TryAgain)
    assert step.reason == reason
    assert ("it was denied Bash, Write" in step.feedback) is bool(denials)


def test_a_folder_that_no_agent_may_see_fails_the_ticket_at_once(tmp_path: Path):
    settings = UserConfig(sandbox=SandboxSettings(read=(Path.home(),)))
    with whole_office(tmp_path, settings) as here:
        works = SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=True, why="it works")
        context = replace(here.context, sandbox=works)
        (id,) = here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="t", command="true")])).ids
        with context.store.write() as tx:
            base = context.project(1).target
            tickets.move(tx, id, Start(base))
            run = runs.start(tx, id, 1)
            claim = claims.claim(tx, JobKind.RUN, id, "here")
        job.run(context, claim)
        with context.store.read() as tx:
            ended, ticket = runs.get(tx, run.id), tickets.get(tx, id)
    assert (ended.outcome, ticket.state) == (Outcome.NOT_STARTED, State.FAILED)
    assert "`sandbox.read` in " in ticket.reason
    assert ticket.reason.endswith(f"{Path.home()} holds more than agents may see; name a narrower folder.")
