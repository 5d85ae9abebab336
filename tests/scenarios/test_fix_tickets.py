"""What tickets wait for is mended by hand, in whatever file or shell, and they go on without a command of Legion's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.gateway import lifecycle
from legion.gateway.files.address import GatewayAddress
from legion.gateway.files.folder import GatewayFolder
from tests.gateway.upstream import Upstream
from tests.support.looking import until_seen
from tests.support.models import KEY, Company, company
from tests.support.settings import without_trial

WRITES = """
[[step]]
say = "I write it."
call = {{tool = "Bash", input = {{command = "echo hi > {name}.txt"}}}}

[[step]]
say = "Done."
"""
VARIABLE = "KEY_OF_ADA"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("mending"), provided=False, stand_in=True) as one:
        yield one


@pytest.fixture
def here(house: Company) -> Iterator[Company]:
    """A person without any provider, whose settings are as they were afterwards."""
    definitions(house).unlink(missing_ok=True)
    settings = house.squad.settings.read_text()
    yield house
    house.squad.settings.write_text(without_trial(settings))


def definitions(one: Company) -> Path:
    return one.squad.folder / "providers.toml"


def write_key(path: Path) -> None:
    path.touch(mode=0o600)
    path.write_text(KEY)


def parked(one: Company, name: str) -> int:
    one.script(name, WRITES.format(name=name))
    ticket = one.dispatch(name)
    one.project.until(ticket, "parked")
    return ticket


def own_port() -> str:
    """Settings with a gateway's port that no other test takes while a gateway is being replaced."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"[daemon]\ngateway_port = {free.getsockname()[1]}\n"


def gateway(one: Company) -> GatewayAddress:
    found = lifecycle.address(GatewayFolder(one.squad.data.gateway))
    assert found is not None
    return found


def found(one: Company) -> object:
    listed = one.json("provider", "list")["providers"]
    assert isinstance(listed, list)
    return listed[0]["found"]


def outcomes(one: Company, ticket: int) -> list[str | None]:
    return [run.outcome for run in one.project.ticket(ticket).runs]


def test_a_provider_written_by_hand_and_then_its_key_let_a_ticket_go_on(here: Company, tmp_path: Path):
    ticket = parked(here, "by-hand")
    definitions(here).write_text(f'[rehearsal]\nurl = "{here.stage.url}"\nkey_file = "{tmp_path / "key"}"\n')
    # The provider alone is no way to a model: who comes now is refused, and waits for the key as well.
    other = parked(here, "without-key")
    assert here.project.state(ticket) == "parked"
    write_key(tmp_path / "key")
    for one in (ticket, other):
        page = here.project.until(one, "done")
        assert (page.ticket.attempt, outcomes(here, one)) == (1, ["refused", "finished"])


def test_settings_mended_by_hand_let_a_ticket_go_on_once_nothing_is_missing_any_more(here: Company):
    settings = here.squad.settings.read_text()
    both = '[claude]\nprovider = "nobody"\nprogram = "/nowhere/claude"\n'
    here.squad.settings.write_text(without_trial(f"{settings}\n{both}"))
    here.provide()
    ticket = parked(here, "settings")
    here.squad.settings.write_text(without_trial(f'{settings}\n[claude]\nprogram = "/nowhere/claude"\n'))
    # Who comes now gets as far as the program.
    assert "/nowhere/claude" in here.project.ticket(parked(here, "half")).ticket.reason
    assert here.project.state(ticket) == "parked"
    here.squad.settings.write_text(without_trial(settings))
    assert here.project.until(ticket, "done").ticket.attempt == 1
    assert outcomes(here, ticket) == ["refused", "finished"]


def test_a_login_that_appears_lets_a_ticket_go_on(here: Company):
    ticket = parked(here, "login")
    login = here.squad.folder / "nobody" / ".credentials.json"
    login.parent.mkdir(exist_ok=True)
    login.write_text("{}")
    try:
        until_seen(here.squad, lambda: "own Claude login" in here.project.ticket(ticket).access, "the login's use")
    finally:
        login.unlink()
        here.project.stop(ticket)


@pytest.mark.soak
def test_what_nobody_mended_is_not_tried_again(here: Company):
    definitions(here).write_text(f'[rehearsal]\nurl = "{here.stage.url}"\nkey_file = "/nowhere/key"\n')
    ticket = parked(here, "left-alone")
    last = here.squad.client.status(None).last_event
    here.squad.client.wait(here.project.cwd, [ticket], after_event=last, timeout=15)
    assert outcomes(here, ticket) == ["refused"]
    here.project.stop(ticket)


def test_adding_a_provider_says_what_is_still_missing_and_wakes_nobody_in_vain(here: Company):
    ticket = parked(here, "in-vain")
    said = here.told("provider", "add", "rehearsal", "--url", here.stage.url, "--key-env", "NOT_SET_ANYWHERE")
    assert said.count("NOT_SET_ANYWHERE is not set where the daemon was started") == 1
    assert "waited for a provider resumes" not in said
    assert outcomes(here, ticket) == ["refused"]
    said = here.told("provider", "add", "rehearsal", "--key-stdin", stdin=KEY)
    assert f"Work that waited for a provider resumes: ticket {ticket}" in said
    here.project.until(ticket, "done")


def test_a_second_provider_changes_nothing_for_the_first_and_how_to_use_it_is_said(here: Company):
    here.provide()
    said = here.told("provider", "add", "other", "--url", "http://127.0.0.1:9", "--no-key")
    assert 'Agents use rehearsal: write `provider = "other"` under [claude]' in said
    assert str(here.squad.settings) in said
    listed = here.json("provider", "list")["providers"]
    assert isinstance(listed, list)
    assert [(line["name"], line["default"]) for line in listed] == [("rehearsal", True), ("other", False)]
    here.script("still", WRITES.format(name="still"))
    assert here.project.until(here.dispatch("still"), "done").access == "rehearsal"
    with here.squad.settings.open("a") as settings:
        settings.write('\n[claude]\nprovider = "other"\n')
    listed = here.json("provider", "list")["providers"]
    assert isinstance(listed, list)
    assert [line["name"] for line in listed if line["default"]] == ["other"]


def test_a_daemon_started_with_the_variable_gives_it_to_the_gateway_that_lived_on(tmp_path: Path):
    with company(tmp_path, provided=False, settings=own_port(), stand_in=True) as here:
        here.told("provider", "add", "rehearsal", "--url", here.stage.url, "--key-env", VARIABLE)
        ticket = parked(here, "shell")
        old = gateway(here)
        assert VARIABLE not in old.variables
        here.squad.kill()
        here.start({VARIABLE: KEY})
        here.project.until(ticket, "done")
        new = gateway(here)
        assert (new.url, new.pid != old.pid, VARIABLE in new.variables) == (old.url, True, True)
        assert found(here) is True
        assert KEY not in GatewayFolder(here.squad.data.gateway).record.read_text()
        here.squad.kill()
        here.start()
        assert (found(here), gateway(here)) == (True, new)
        assert here.json("provider", "test", "rehearsal")["ok"] is True


def test_without_the_variable_in_the_gateway_nobody_says_that_it_is_there(tmp_path: Path):
    with company(tmp_path, provided=False, settings=own_port(), stand_in=True) as here:
        definitions(here).write_text(f'[one]\nurl = "{here.stage.url}"\n')
        assert here.json("provider", "test", "one")["ok"] is True
        old = gateway(here)
        here.squad.kill()
        here.start({VARIABLE: KEY})
        definitions(here).write_text(f'[one]\nurl = "{here.stage.url}"\nkey_env = "{VARIABLE}"\n')
        assert (found(here), gateway(here)) == (False, old)
        assert f"{VARIABLE} is not set where" in here.cli("doctor").stdout
        assert "is not set where" not in here.told("provider", "add", "one", "--key-env", VARIABLE)
        assert (found(here), gateway(here).url) == (True, old.url)
        assert f"{VARIABLE} is not set where" not in here.cli("doctor").stdout


def test_another_value_of_the_variable_is_taken_when_the_provider_is_added_again(tmp_path: Path):
    upstream = Upstream()
    upstream.script = lambda exchange: exchange.reply(200, b'{"input_tokens": 1}')

    def used(one: Company) -> str | None:
        one.told("provider", "test", "one")
        return upstream.seen[-1].header("x-api-key")

    try:
        with company(tmp_path, provided=False, settings=own_port(), stand_in=True) as here:
            here.squad.kill()
            here.start({VARIABLE: "sk-first"})
            here.told("provider", "add", "one", "--url", upstream.url, "--key-env", VARIABLE)
            assert used(here) == "sk-first"
            here.squad.kill()
            here.start({VARIABLE: "sk-second"})
            assert used(here) == "sk-first"
            here.told("provider", "add", "one", "--key-env", VARIABLE)
            assert used(here) == "sk-second"
    finally:
        upstream.close()
