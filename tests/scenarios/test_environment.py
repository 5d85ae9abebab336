"""A place to work in: what each run has to itself, what of the person's comes along, and how it is all undone."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new
from tests.support.repository import Repository

IGNORING = {".gitignore": ".env\n*.local\n"}
TELLS = 'env | grep -E "^(LEGION_(SLOT|PORTS?|TMP)|TMPDIR)=" > "told-$LEGION_TICKET.txt"'


@pytest.fixture
def port_base(worker_id: str) -> int:
    """Tests that run side by side are strangers to each other."""
    return 23000 + 500 * int(worker_id.removeprefix("gw") or 0) if worker_id != "master" else 23000


Live = Callable[..., Squad]


@pytest.fixture
def live(tmp_path: Path, port_base: int) -> Iterator[Live]:
    """Starts a daemon whose person has these settings under [environment]."""
    started: list[Squad] = []
    (tmp_path / "gates").mkdir()

    def start(settings: str = "") -> Squad:
        text = f'[sandbox]\nwrite = ["{tmp_path}/gates"]\n[environment]\nport_base = {port_base}\n{settings}'
        started.append(Squad(tmp_path, settings=text))
        return started[-1].start()

    yield start
    for one in started:
        one.close()


@pytest.fixture
def gate(tmp_path: Path, live: Live) -> Iterator[Gate]:
    one = Gate(tmp_path / "gates", "gate")
    yield one
    one.close()


def environment(text: str, check: str = "true") -> str:
    return f"[checks.test]\nrun = {json.dumps(check)}\n[agents]\nattempts = 3\n[environment]\n{text}\n"


def adopt(one: Squad, config: str, files: dict[str, str] | None = None) -> Project:
    repository = Repository(one.folder / "ada", config)
    repository.commit("more", {**IGNORING, **(files or {})})
    return one.adopt(repository)


def told(project: Project, ticket: int) -> dict[str, str]:
    text = (project.worktree(ticket) / f"told-{ticket}.txt").read_text()
    return dict(line.split("=", 1) for line in text.splitlines())


def slots_of(one: Squad) -> list[str]:
    return sorted(file.name for file in (one.data.root / "slots").glob("*.json"))


def temps_of(one: Squad) -> list[str]:
    return sorted(place.name for place in (one.data.root / "tmp").iterdir())


def test_runs_side_by_side_have_slots_ports_and_temp_folders_of_their_own(live: Live, gate: Gate, port_base: int):
    project = adopt(live(), environment("ports = 4"))
    agent = f'{TELLS}; echo mine > "$TMPDIR/mine"; {gate.pause}'
    ids = project.dispatch_all([new("one", agent), new("two", agent), new("three", agent)])
    gate.arrived(3)
    seen = [told(project, ticket) for ticket in ids]
    assert sorted(one["LEGION_SLOT"] for one in seen) == ["0", "1", "2"]
    assert {one["LEGION_PORTS"] for one in seen} == {"4"}
    blocks = [range(int(one["LEGION_PORT"]), int(one["LEGION_PORT"]) + 4) for one in seen]
    assert len({port for block in blocks for port in block}) == 12
    assert min(port for block in blocks for port in block) >= port_base
    assert all(one["LEGION_TMP"] == one["TMPDIR"] for one in seen)
    assert [Path(one["TMPDIR"], "mine").read_text() for one in seen] == ["mine\n"] * 3
    assert len({one["TMPDIR"] for one in seen}) == 3
    gate.open(3)
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    assert (slots_of(project.squad), temps_of(project.squad)) == ([], [])


def test_a_block_in_which_a_stranger_listens_is_left_out(live: Live, port_base: int):
    with socket.create_server(("127.0.0.1", port_base + 2)):
        project = adopt(live(), environment("ports = 3"))
        ticket = project.dispatch("one", f"{TELLS}; cat told-*.txt > a.txt")
        project.until_settled()
    landed = dict(line.split("=", 1) for line in str(project.landed("a.txt")).splitlines())
    assert int(landed["LEGION_PORT"]) == port_base + 3
    assert project.state(ticket) == "done"


def test_a_slot_outlives_the_daemon_and_is_free_after_the_run(live: Live, gate: Gate):
    one = live()
    project = adopt(one, environment("ports = 2"))
    first = project.dispatch("first", f"{TELLS}; {gate.pause}")
    gate.arrived()
    one.kill()
    one.start()
    second = project.dispatch("second", f"{TELLS}; {gate.pause}")
    gate.arrived()
    a, b = told(project, first), told(project, second)
    assert (a["LEGION_SLOT"], b["LEGION_SLOT"]) == ("0", "1")
    assert abs(int(a["LEGION_PORT"]) - int(b["LEGION_PORT"])) >= 2
    gate.open(2)
    project.until_settled()
    assert (slots_of(one), temps_of(one)) == ([], [])


def test_without_ports_there_is_none_to_be_told(live: Live):
    project = adopt(live(), environment("ports = 0"))
    project.dispatch("one", f"{TELLS}; cat told-*.txt > a.txt")
    project.until_settled()
    landed = str(project.landed("a.txt"))
    assert "LEGION_PORTS=0" in landed
    assert "LEGION_PORT=" not in landed


def test_the_env_file_is_made_from_template_and_variables_and_never_lands(live: Live, port_base: int):
    project = adopt(
        live(),
        environment(
            'ports = 2\nenv_file = "conf/.env"\ntemplate = "env.template"\n'
            'vars = { URL = "db://localhost:{port+1}/app_{ticket}", SAID = "it is {attempt}", TMP_DIR = "{tmp}" }'
        ),
        {"env.template": "WEB={port}\nKEPT=${port} {else}\nHERE={worktree}"},
    )
    ticket = project.dispatch("one", '. conf/.env; echo "$WEB $URL $SAID" > a.txt; test -d "$TMP_DIR"; cat conf/.env')
    project.until_settled()
    assert project.landed("a.txt") == f"{port_base} db://localhost:{port_base + 1}/app_{ticket} it is 1\n"
    assert f"KEPT=${{port}} {{else}}\nHERE={project.worktree(ticket)}\nURL=" in project.log(ticket)
    assert project.landed("conf/.env") is None


def test_an_env_file_that_git_does_not_ignore_is_refused_and_said(live: Live):
    project = adopt(live(), environment('env_file = "settings.txt"\nvars = { A = "b" }'))
    ticket = project.dispatch("one", "touch a.txt")
    assert project.until_settled().stuck == [ticket]
    assert "settings.txt would become part of changes: add it to .gitignore" in project.ticket(ticket).ticket.doing
    project.repository.commit("mended", {".gitignore": "settings.txt\n"})
    second = project.dispatch("two", "cat settings.txt > b.txt")
    project.until(second, "done")
    assert (project.landed("b.txt"), project.landed("settings.txt")) == ("A=b\n", None)


def test_an_agent_that_stops_ignoring_the_env_file_does_not_land_it(live: Live):
    project = adopt(live(), environment('env_file = ".env"\nvars = { A = "b" }'))
    agent = "touch a.txt; if [ $LEGION_ATTEMPT = 1 ]; then echo > .gitignore; else git checkout -q .gitignore; fi"
    ticket = project.dispatch("one", agent)
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert "it changed protected files (.env)" in json.dumps([event.data for event in page.history])
    assert project.landed(".env") is None


def test_a_link_that_an_agent_leaves_does_not_lead_us_out_of_its_tree(live: Live, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    project = adopt(live(), environment('env_file = "conf/.env"\nvars = { A = "b" }'))
    agent = f"rm -rf conf; ln -s {tmp_path}/outside conf; touch a.txt; exit $((2 - LEGION_ATTEMPT))"
    ticket = project.dispatch("one", agent)
    assert project.until_settled().stuck == [ticket]
    assert "conf/.env cannot be written" in project.ticket(ticket).ticket.doing
    assert list((tmp_path / "outside").iterdir()) == []


UP_AND_DOWN = """\
up = "echo up $LEGION_TICKET $LEGION_PORT >> $NOTES/said && echo made > $LEGION_TMP/by-up"
down = "cat $LEGION_TMP/by-up > /dev/null && echo down $LEGION_TICKET $LEGION_PORT >> $NOTES/said"
"""


def noting(text: str, one: Squad) -> str:
    return text.replace("$NOTES", str(one.folder / "gates"))


def said(one: Squad) -> list[str]:
    file = one.folder / "gates" / "said"
    return file.read_text().splitlines() if file.exists() else []


def test_up_runs_before_the_agent_and_down_after_it(live: Live, port_base: int):
    one = live()
    project = adopt(one, noting(environment(UP_AND_DOWN), one))
    agent = noting('cat "$TMPDIR/by-up" > a.txt; echo agent >> $NOTES/said', one)
    ticket = project.dispatch("one", agent)
    project.until_settled()
    assert project.landed("a.txt") == "made\n"
    assert said(one) == [f"up {ticket} {port_base}", "agent", f"down {ticket} {port_base}"]
    place = project.ticket(ticket).environment
    assert place is not None
    assert place.up is not None
    assert place.down is not None
    assert (place.up.ok, place.down.ok, place.slot) == (True, True, None)


def test_an_up_that_fails_is_said_with_its_output_and_undone_and_blames_no_agent(live: Live):
    one = live()
    config = noting(
        environment(
            'up = "echo half >> $NOTES/said; echo no database here; exit 3"\ndown = "echo undone >> $NOTES/said"'
        ),
        one,
    )
    project = adopt(one, config)
    ticket = project.dispatch("one", "touch a.txt")
    assert project.until_settled().stuck == [ticket]
    page = project.ticket(ticket)
    assert "failed (The program ended with exit code 3)" in page.ticket.doing
    assert "no database here" in page.ticket.doing
    assert said(one)[:4] == ["half", "undone"] * 2
    assert page.environment is not None
    assert page.environment.up is not None
    assert "no database here" in page.environment.up.tail
    shown = one.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert "up: The program ended with exit code 3" in shown
    project.repository.commit("mended", {"legion.toml": environment('up = "true"')})
    project.trust()
    assert project.until(ticket, "done").ticket.attempt == 1


def test_down_runs_where_the_daemon_died_during_the_run_and_where_the_runner_did(live: Live, gate: Gate):
    one = live()
    project = adopt(one, noting(environment(UP_AND_DOWN), one))
    agent = (
        f'if [ ! -e a.txt ]; then touch a.txt; echo kept > "$TMPDIR/kept"; {gate.pause}; fi; cp "$TMPDIR/kept" b.txt'
    )
    ticket = project.dispatch("one", agent)
    gate.arrived()
    one.kill()
    _runner_of(one, ticket).kill()
    one.start()
    page = project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["lost", "finished"]
    assert [line.split()[0] for line in said(one)] == ["up", "down", "up", "down"]
    assert project.landed("b.txt") == "kept\n", "the temp folder of a lost run waits for the next start"
    assert (slots_of(one), temps_of(one)) == ([], [])


def _runner_of(one: Squad, ticket: int) -> psutil.Process:
    (folder,) = one.data.runs.glob(f"ticket-{ticket}-run-*")
    lines = (folder / "journal.jsonl").read_text().splitlines()
    pids = [json.loads(line).get("runner") for line in lines]
    return psutil.Process(next(pid for pid in pids if pid is not None))


def test_an_up_that_the_daemon_did_not_outlive_is_undone_and_begun_again(live: Live, gate: Gate):
    one = live()
    up = f"echo up >> $NOTES/said; if mkdir $NOTES/first 2> /dev/null; then {gate.pause}; fi"
    text = f"up = {json.dumps(up)}\ndown = 'echo down >> $NOTES/said'"
    project = adopt(one, noting(environment(text), one))
    ticket = project.dispatch("one", noting("echo agent >> $NOTES/said; touch a.txt", one))
    gate.arrived()
    one.kill()
    one.start()
    project.until(ticket, "done")
    assert said(one) == ["up", "down", "up", "agent", "down"]
    assert (slots_of(one), temps_of(one)) == ([], [])


def test_down_runs_for_a_ticket_that_a_person_stops(live: Live, gate: Gate):
    one = live()
    project = adopt(one, noting(environment(UP_AND_DOWN), one))
    ticket = project.dispatch("one", gate.pause)
    gate.arrived()
    project.stop(ticket)
    project.until_idle(ticket)
    assert [line.split()[0] for line in said(one)] == ["up", "down"]
    assert (slots_of(one), temps_of(one)) == ([], [])


def test_only_named_files_of_the_checkout_come_along_and_only_ignored_ones(live: Live):
    one = live('copy = ["ada: own.local", "ada: deep/link.local", "other: secret.local"]\n')
    project = adopt(one, environment(""))
    project.repository.write({"own.local": "mine\n", "secret.local": "secret\n"})
    included = ".worktreeinclude\nfor-trees.*\n"
    project.repository.write({".worktreeinclude": included, "for-trees.local": "x\n", "for-trees.txt": "x\n"})
    (project.repository.root / "deep").mkdir()
    (project.repository.root / "deep" / "link.local").symlink_to(project.repository.root / "secret.local")
    early = project.dispatch("early", "ls -R > early.txt")
    project.until_settled()
    assert "for-trees.local" not in str(project.landed("early.txt"))
    noted = project.ticket(early).environment
    assert noted is not None
    assert "no file of .worktreeinclude was copied: read it and run `legion trust`" in noted.notes
    assert [text.text for text in one.client.trustable(project.cwd).texts if not text.trusted] == [included]
    project.trust()
    ticket = project.dispatch("one", "cat own.local > a.txt; ls -R >> a.txt")
    project.until_settled()
    landed = str(project.landed("a.txt"))
    assert landed.startswith("mine\n")
    assert "secret" not in landed
    assert "for-trees.local" in landed
    assert "for-trees.txt" not in landed
    assert project.landed("own.local") is None
    place = project.ticket(ticket).environment
    assert place is not None
    assert "deep/link.local was not copied" in "".join(place.notes)


def test_a_tracked_file_is_not_copied_over(live: Live):
    project = adopt(live('copy = ["ada: README.txt"]\n'), environment(""))
    ticket = project.dispatch("one", "touch a.txt")
    assert project.until_settled().stuck == [ticket]
    assert "README.txt would become part of changes" in project.ticket(ticket).ticket.doing


def test_runs_share_the_caches_that_the_person_names(live: Live, tmp_path: Path):
    project = adopt(live(f'caches = ["PIP_CACHE_DIR={tmp_path}/caches/pip"]\n'), environment(""))
    first = project.dispatch("one", 'echo once > "$PIP_CACHE_DIR/wheel"; touch a.txt')
    project.dispatch("two", 'cp "$PIP_CACHE_DIR/wheel" b.txt', after=[first])
    project.until_settled()
    assert project.landed("b.txt") == "once\n"
    assert (tmp_path / "caches/pip/wheel").read_text() == "once\n"


def test_a_run_that_takes_too_much_disk_is_stopped_and_the_next_one_may_clean_up(live: Live, gate: Gate):
    one = live("disk_mb = 3\n")
    project = adopt(one, environment(""))
    agent = f"""
    if [ -e big.local ]; then
        grep -q '3 MB are allowed' "$LEGION_BRIEFING" || exit 7
        {gate.pause}; rm big.local; ls "$TMPDIR" > left.txt; exit
    fi
    touch a.txt; head -c 5000000 /dev/urandom > big.local; head -c 2000000 /dev/urandom > "$TMPDIR/more"; {gate.pause}
    """
    ticket = project.dispatch("greedy", agent)
    gate.arrived()
    # The first look comes with the start of a daemon.
    one.kill()
    one.start()
    gate.arrived()
    one.kill()
    one.start()
    place = project.ticket(ticket).environment
    assert place is not None
    assert place.worktree_bytes > 5_000_000
    assert place.limit_bytes > place.worktree_bytes, "what is there already does not end the run that cleans up"
    gate.open()
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert [run.outcome for run in page.runs] == ["stopped", "finished"]
    assert "grew to 7 MB, above the limit of 3 MB" in page.runs[0].detail
    assert page.runs[0].saved is not None
    assert (project.landed("a.txt"), project.landed("left.txt")) == ("", "")


def test_the_page_of_a_ticket_shows_how_its_place_is(live: Live, gate: Gate, port_base: int):
    one = live("disk_mb = 900\n")
    project = adopt(one, environment('ports = 3\nup = "echo all set"'))
    serving = (
        "import os, socket; server = socket.create_server(('127.0.0.1', int(os.environ['LEGION_PORT']) + 1)); "
        "os.system(os.environ['PAUSE'])"
    )
    agent = f'head -c 100000 /dev/urandom > "$TMPDIR/x"; PAUSE=\'{gate.pause}\' python3 -c "{serving}"; touch a.txt'
    ticket = project.dispatch("serves", agent)
    gate.arrived()
    place = project.ticket(ticket).environment
    assert place is not None
    assert (place.slot, place.ports) == (0, [port_base, port_base + 1, port_base + 2])
    assert place.listening == [port_base + 1]
    assert 100_000 <= place.temp_bytes < 1_000_000
    assert place.worktree_bytes > 0
    assert (place.all_counted, place.limit_bytes) == (True, 900 << 20)
    shown = one.cli("ticket", str(ticket), cwd=project.repository.root).stdout
    assert f"ports        {port_base}-{port_base + 2}" in shown
    assert f"listening    {port_base + 1}" in shown
    assert "up: The program ended with exit code 0  echo all set" in shown
    facts = json.loads(one.cli("ticket", str(ticket), "--json", cwd=project.repository.root).stdout)
    assert facts["environment"]["slot"] == 0
    gate.open()
    project.until_settled()
    assert project.state(ticket) == "done"
