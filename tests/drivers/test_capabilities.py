"""What a driver declares decides what tickets may ask of it: with a driver that exists only here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from legion.domain.errors import StateConflict
from legion.domain.tickets.ticket import Start
from legion.drivers import Driver, Program, registry
from legion.drivers.profile import Capabilities, DriverProfile, PreparedRun, RunInput, RunRequest
from legion.drivers.registry import CommandDriver
from legion.jobs.agent import model_run, spec
from legion.jobs.agent.model_run import RunPaths
from legion.jobs.context import Context
from legion.runner.spec import RunSpec, UnreadableSpec, read_spec, write_spec
from legion.service.agents import tell
from legion.store.board import tickets
from legion.store.work import runs
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput
from legion.wire.mail import MessageText
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket
from tests.support.office import office as whole_office


class ToyProfile(DriverProfile):
    """Takes messages, and can do nothing else."""

    name = "toy"
    title = "a toy"
    capabilities = Capabilities(talks=True)

    def load(self) -> Driver:
        return CommandDriver()

    def prepare(self, request: RunRequest) -> PreparedRun:
        program = Program(argv=("toy", request.input.prompt), cwd=request.tree, env=request.env)
        return PreparedRun(program=program, options={"resume": request.input.resume_prompt})


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.setitem(registry.PROFILES, "toy", ToyProfile())
    one = Office(tmp_path)
    yield one
    one.close()


def test_what_a_driver_cannot_do_is_refused_at_dispatch(office: Office, tmp_path: Path):
    wanted = (
        (NewTicket(title="x", text="x", driver="toy", ask=True), "--ask", "ask a person"),
        (NewTicket(title="x", text="x", driver="toy", budget=2.0), "--budget", "keep a budget"),
        (NewTicket(title="x", text="x", driver="toy", plan_first=True), "--plan-first", "be limited to reading"),
    )
    with whole_office(tmp_path / "whole") as desk:
        for ticket, option, what in wanted:
            with pytest.raises(BadInput) as refused:
                desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket]))
            assert refused.value.message == (
                f"Ticket 'x': {option} needs a driver that can {what}. Remove {option} or choose --driver claude."
            )
        assert desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[NewTicket(title="x", text="x", driver="toy")])).ids


def test_a_message_reaches_whoever_talks_and_an_interrupt_only_whoever_can_be_interrupted(office: Office):
    number = at_work(office, "toy")
    with pytest.raises(StateConflict, match="has just ended"):
        tell.tell(office.context, number, MessageText(text="hello"), patience=0)
    with pytest.raises(StateConflict, match="cannot be interrupted"):
        tell.interrupt(office.context, number, MessageText(text="hello"), patience=0)
    plain = at_work(office, registry.COMMAND)
    with pytest.raises(StateConflict, match="cannot take messages during a run"):
        tell.tell(office.context, plain, MessageText(text="hello"), patience=0)


def at_work(office: Office, driver: str) -> int:
    context = office.context
    with context.store.write() as tx:
        ticket = tickets.move(tx, add_ticket(tx, office.project, driver=driver).id, Start(COMMIT))
        run = runs.start(tx, ticket.id, 1)
    program = Program(argv=("true",), cwd=Path("/"), env={})
    write_spec(context.data.runs / run.name, RunSpec(run=run.name, program=program, driver=driver, sandbox=None))
    return ticket.id


def test_the_spec_of_a_run_is_made_by_its_driver(office: Office, tmp_path: Path):
    context = office.context
    chosen = spec.choose_program(context, context.project(office.project).config, "", "toy")
    with context.store.write() as tx:
        run = runs.start(tx, add_ticket(tx, office.project).id, 1)
    paths = RunPaths(tree=tmp_path, state=tmp_path, given=tmp_path, env={"A": "b"}, sandbox=None)
    made = model_run.spec(context, run, chosen, RunInput(prompt="do it", resume_prompt="go on"), paths)
    assert (made.driver, made.program.argv, made.options) == ("toy", ("toy", "do it"), {"resume": "go on"})
    assert access(context, run.id) == "", "a driver that takes no model needs no way to one"
    write_spec(context.data.runs / run.name, made)
    assert read_spec(context.data.runs / run.name).profile.title == "a toy"


def access(context: Context, run: int) -> str:
    with context.store.read() as tx:
        return runs.get(tx, run).access


def test_a_spec_of_a_driver_that_is_not_here_says_what_to_do(tmp_path: Path):
    program = Program(argv=("true",), cwd=tmp_path, env={})
    write_spec(tmp_path / "run", RunSpec(run="run", program=program, driver="later", sandbox=None))
    with pytest.raises(UnreadableSpec, match="needs the driver 'later', unknown here; update Legion"):
        read_spec(tmp_path / "run")


@pytest.mark.parametrize("name", registry.PROFILES)
def test_what_a_driver_declares_it_overrides(name: str):
    one = type(registry.PROFILES[name])
    can = one.capabilities
    promised = {
        "find_program": can.models,
        "usage": can.usage,
        "tools": can.reads_only,
        "delivered": can.transcript,
        "has_conversation": can.rewinds,
        "resume_point": can.rewinds,
        "transcript": can.rewinds,
        "take_transcript": can.rewinds,
    }
    for method, needed in promised.items():
        assert (getattr(one, method) is not getattr(DriverProfile, method)) >= needed, method


def test_the_table_in_the_documents_says_what_drivers_declare():
    page = (Path(__file__).parents[2] / "docs/drivers.md").read_text()
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in page.splitlines() if row.startswith("| `")]
    found = {cells[0].strip("`"): cells[2:] for cells in rows if len(cells) == 6}
    kinds = (registry.DEFAULT, "copilot", "codex", registry.COMMAND)
    columns = [asdict(profile.capabilities) for name in kinds if (profile := registry.find(name)) is not None]
    assert {name: [cell.partition(",")[0] for cell in cells] for name, cells in found.items()} == {
        name: ["yes" if can[name] else "no" for can in columns] for name in columns[0]
    }


@pytest.mark.slow
def test_the_registry_imports_no_sdk():
    code = (
        "import sys, legion.jobs.run.job, legion.service.operations; "
        "print([name for name in ('claude_agent_sdk', 'acp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
