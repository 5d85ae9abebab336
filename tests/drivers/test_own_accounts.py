"""Programs with an account of their own, outside the gateway: unkept options are refused, their own figures count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from legion.client.text.tickets import cost
from legion.config.files.user import parse
from legion.domain.scheduling.usage import Usage, UsageSlice
from legion.domain.tickets.ticket import Start
from legion.drivers import Program, registry
from legion.drivers.profile import RunInput
from legion.jobs.agent.model_access import OWN_ACCOUNT, NoModelAccess
from legion.jobs.agent.model_run import RunPaths, spec
from legion.jobs.agent.spec import choose_program
from legion.jobs.supervise.outcome import listener
from legion.jobs.supervise.questions import QuestionSource
from legion.runner.journal import JournalEvent
from legion.runner.spec import RunSpec, write_spec
from legion.service.shared.fragments import shaped
from legion.store.board import tickets
from legion.store.work import runs, usage
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, StateConflict
from legion.wire.tickets import NewRace, UsageLine
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket
from tests.support.attacks import Attacker, Door, attack
from tests.support.office import office as whole_office

OUTSIDE = 'title = "Mine"\ndriver = "acp"\n[program]\nrun = ["sh", "--acp"]\nversion = []\n'
INSIDE = f'{OUTSIDE}[environment]\nBASE_URL = "{{url}}"\nKEY = "{{token}}"\n'


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "settings" / "config.toml"))
    folder = tmp_path / "settings" / "programs"
    folder.mkdir(parents=True)
    (folder / "outside.toml").write_text(OUTSIDE)
    (folder / "inside.toml").write_text(INSIDE)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path / "office")
    yield one
    one.close()


def test_an_option_that_cannot_be_kept_is_refused_at_dispatch(tmp_path: Path):
    with whole_office(tmp_path / "whole") as desk:
        for option, what, wanted in (
            ("--budget", "keep a budget", {"budget": 0.10}),
            ("--model", "take a model", {"model": "opus"}),
        ):
            ticket = NewTicket(title="x", text="x", driver="outside", **wanted)
            with pytest.raises(BadInput, match=f"{option} needs a driver that can {what}"):
                desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket]))
            ticket = NewTicket(title="x", text="x", driver="inside", **wanted)
            assert desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket])).ids


def test_a_program_that_is_not_installed_is_noted_at_dispatch(tmp_path: Path):
    (tmp_path / "settings/programs/absent.toml").write_text(OUTSIDE.replace('"sh"', '"no-such-agent"'))
    with whole_office(tmp_path / "whole") as desk:
        ticket = NewTicket(title="x", text="x", driver="absent")
        notes = desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket, ticket])).notes
        assert [note for note in notes if note.startswith("Mine is not installed (no program 'no-such-agent'")] == [
            note for note in notes if "installed" in note
        ]
        assert len([note for note in notes if "not installed" in note]) == 1
        ticket = NewTicket(title="x", text="x", driver="outside")
        assert not [n for n in desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[ticket])).notes if "installed" in n]


def test_a_program_that_is_not_installed_is_noted_in_a_race_and_by_doctor(tmp_path: Path):
    (tmp_path / "settings/programs/absent.toml").write_text(OUTSIDE.replace('"sh"', '"no-such-agent"'))
    with whole_office(tmp_path / "whole") as desk:
        ticket = desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=[NewTicket(title="x", text="x")])).ids[0]
        (note,) = desk.person.race(ticket, NewRace(drivers=["outside", "absent"])).notes
        assert note.startswith("Mine is not installed (no program 'no-such-agent'")
        desk.context.settings._config = parse('default_driver = "outside"\n[models]\nescalation = ["@absent"]')
        found = {one.name: one for one in desk.person.doctor(desk.cwd).findings if one.name.startswith("driver ")}
        assert (found["driver outside"].ok, found["driver absent"].ok) == (True, False)
        assert "Mine is not installed (no program 'no-such-agent'" in found["driver absent"].detail
        with pytest.raises(
            StateConflict, match=r"`models.escalation` of your settings names absent: change that first"
        ):
            desk.person.remove_driver("absent")


def test_a_run_whose_program_is_missing_counts_for_its_driver(office: Office, tmp_path: Path):
    context = office.context
    (tmp_path / "settings/programs/absent.toml").write_text(OUTSIDE.replace('"sh"', '"no-such-agent"'))
    chosen = choose_program(context, context.project(office.project).config, "", "absent")
    with context.store.write() as tx:
        run = runs.start(tx, add_ticket(tx, office.project, driver="absent").id, 1)
    paths = RunPaths(tree=tmp_path, state=tmp_path, given=tmp_path, env={}, sandbox=None)
    with pytest.raises(NoModelAccess, match="Mine is not installed"):
        spec(context, run, chosen, RunInput(prompt="x"), paths)
    with context.store.read() as tx:
        assert [one.driver for one in usage.work(tx)] == ["absent"]


def test_it_needs_no_provider_and_its_run_says_whose_account_it_uses(office: Office, tmp_path: Path):
    context = office.context
    chosen = choose_program(context, context.project(office.project).config, "", "outside")
    with context.store.write() as tx:
        run = runs.start(tx, add_ticket(tx, office.project, driver="outside").id, 1)
    for name in ("state", "given", "tree"):
        (tmp_path / name).mkdir()
    paths = RunPaths(tree=tmp_path / "tree", state=tmp_path / "state", given=tmp_path / "given", env={}, sandbox=None)
    made = spec(context, run, chosen, RunInput(prompt="x"), paths)
    assert (made.options["gateway_url"], made.options["gateway_token"]) == ("", "")
    with context.store.read() as tx:
        assert runs.get(tx, run.id).access == OWN_ACCOUNT


def reported(office: Office, *reports: Mapping[str, object]) -> Usage:
    """The ticket's usage after a run whose program reported these, one per turn."""
    context = office.context
    with context.store.write() as tx:
        ticket = tickets.move(tx, add_ticket(tx, office.project, driver="outside").id, Start(COMMIT))
        run = runs.start(tx, ticket.id, 1)
        runs.note_access(tx, run.id, OWN_ACCOUNT)
    program = Program(argv=("true",), cwd=Path("/"), env={})
    made = RunSpec(run=run.name, program=program, driver="outside", kind="acp", sandbox=None)
    write_spec(context.data.runs / run.name, made)
    handle = listener(context, QuestionSource(project=office.project, ticket=ticket.id), run)
    for number, report in enumerate(reports, 1):
        handle(JournalEvent(number=number, time=1000.0, kind="result", facts={"turns": 1, "models": {"": report}}))
    with context.store.read() as tx:
        return usage.of_ticket(tx, ticket.id)


def test_its_own_figures_count_and_grow_with_the_conversation(office: Office):
    first = {"input_tokens": 1000, "output_tokens": 200, "usd": 0.42}
    then = {"input_tokens": 1500, "output_tokens": 300, "usd": 0.60}
    spent = reported(office, first, then)
    assert (spent.input, spent.output, spent.usd, spent.unpriced) == (1500, 300, 0.60, 0)


def test_a_cost_that_it_does_not_report_is_not_known(office: Office):
    spent = reported(office, {"input_tokens": 1000, "usd": None})
    assert spent == Usage(requests=1, unpriced=1, input=1000)
    assert cost(shaped(UsageLine, spent)) == "not known"
    assert cost(shaped(UsageLine, spent + Usage(requests=1, usd=0.5))) == "$0.50", "with a note of what is missing"
    assert UsageSlice(key="", usage=spent, landed=1).usd_per_landed is None


@attack(Attacker.PROGRAM, Door.MONEY)
@pytest.mark.parametrize(
    "report",
    [
        {"usd": -5.0},
        {"usd": float("nan")},
        {"usd": float("inf")},
        {"usd": 1e300},
        {"usd": "free"},
        {"usd": True},
        {"input_tokens": -1, "usd": None},
        {"input_tokens": 1e9, "usd": None},
        {"input_tokens": [1], "usd": {}},
    ],
)
def test_figures_that_cannot_be_are_not_known(office: Office, report: Mapping[str, object]):
    spent = reported(office, report)
    assert (spent.usd, spent.input, spent.unpriced) == (0.0, 0, 1)


def test_shipped_programs_go_through_the_gateway():
    shipped = [one for name, one in registry.profiles().items() if name not in (*registry.PROFILES, "outside")]
    assert len(shipped) > 5
    assert all(one.capabilities.models and one.capabilities.budgets for one in shipped)
