"""No command of a repository runs before the person has trusted the very text that holds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from legion.wire.projects import AddProject
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new
from tests.support.repository import Repository

WEAKER = "[checks.test]\nrun = 'true'\n"


def test_nothing_runs_before_legion_toml_is_trusted(house: Squad, tmp_path: Path):
    mark = house.folder / "gates" / f"{tmp_path.name}.ran"
    config = f"[setup]\nrun = 'echo setup >> {mark}'\n[checks.test]\nrun = 'echo check >> {mark}'\n"
    project = house.init(Repository(tmp_path / "ada", config))
    ticket = project.dispatch("a", "touch a.txt")
    state = project.until_settled()
    assert (project.state(ticket), state.stuck) == ("queued", [ticket])
    assert project.ticket(ticket).ticket.doing == "waits for `legion trust`"
    assert "not trusted" in project.notes()
    assert not mark.exists()
    project.trust()
    project.until_settled()
    assert project.state(ticket) == "done"
    assert "check" in mark.read_text()


def test_init_trusts_what_it_wrote_itself(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.git("rm", "-q", "legion.toml")
    repository.commit("no config", {"Makefile": "test:\n\tsh check.sh\n"})
    added = house.client.add_project(AddProject(path=str(repository.root)))
    assert (added.wrote_config, added.trusted) == (True, True)
    assert "make test" in (repository.root / "legion.toml").read_text()
    project = Project(house, repository, hub=Path(added.hub))
    ticket = project.dispatch("a", "touch a.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    assert [receipt.command for receipt in project.ticket(ticket).receipts] == ["make test"]


def test_a_landed_change_of_legion_toml_stops_everything_until_it_is_trusted_again(project: Project):
    change, after = project.dispatch_all(
        [
            new("weaken", f'printf "%s" "{WEAKER}" > legion.toml', key="it", files=["legion.toml"]),
            new("after", "touch b.txt", after_keys=["it"]),
        ]
    )
    state = project.until_settled()
    assert project.states() == {change: "done", after: "queued"}
    assert state.stuck == [after]
    assert project.landed("legion.toml") == WEAKER
    project.trust()
    project.until_settled()
    assert [receipt.command for receipt in project.ticket(after).receipts] == ["true"]


def test_a_change_in_the_queue_behind_a_landed_legion_toml_is_not_checked_by_untrusted_commands(
    make: Callable[..., Project], gate: Gate
):
    mark = Path(gate.pause.split(" > ")[1].split(";")[0]).with_suffix(".ran")
    project = make(f"[checks.test]\nrun = '''if [ -e slow.txt ]; then {gate.pause}; fi'''\n")
    evil = f"[checks.test]\nrun = 'echo ran >> {mark}'\n"
    change = project.dispatch("change", f'printf "%s" "{evil}" > legion.toml; touch slow.txt', files=["legion.toml"])
    gate.arrived()
    behind = project.dispatch("behind", "touch b.txt")
    project.until(behind, "landing")
    gate.open()
    state = project.until_settled()
    assert state.stuck == [behind]
    elsewhere = make()
    elsewhere.dispatch("meanwhile", "touch c.txt")
    elsewhere.until_settled()
    assert project.states() == {change: "done", behind: "landing"}
    assert not mark.exists()
    project.trust()
    project.until_settled()
    assert project.state(behind) == "done"
    assert mark.exists()


def test_the_persons_own_legion_toml_needs_their_trust_too_and_is_not_absorbed_where_it_cannot_be_read(
    project: Project,
):
    project.repository.commit("nonsense", {"legion.toml": "[checks"})
    before = project.dispatch("before", "touch before.txt")
    project.until_settled()
    assert project.state(before) == "done"
    assert "your legion.toml cannot be read" in project.notes()
    project.repository.commit("weaker", {"legion.toml": WEAKER})
    ticket = project.dispatch("a", "touch a.txt")
    state = project.until_settled()
    assert state.stuck == [ticket]
    assert "not trusted" in project.notes()
    project.trust()
    project.until_settled()
    assert project.state(ticket) == "done"


def test_an_agents_legion_toml_that_cannot_be_read_does_not_land(project: Project):
    agent = f"""
    if grep -q 'settings so that they can no longer be read' "$LEGION_BRIEFING"; then
        printf "%s" "{WEAKER}" > legion.toml
    else
        echo '[checks' > legion.toml
    fi
    """
    ticket = project.dispatch("nonsense", agent, files=["legion.toml"])
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert project.landed("legion.toml") == WEAKER
