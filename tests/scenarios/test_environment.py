"""A place to work in: what each run has to itself, what of the person's comes along, and how it is all undone."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from legion.wire.projects import Where
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new, squad
from tests.support.repository import Repository

IGNORING = {".gitignore": ".env\n*.local\n"}
TELLS = 'env | grep -E "^(LEGION_(SLOT|PORTS?|TMP)|TMPDIR)=" > "told-$LEGION_TICKET.txt"'


@pytest.fixture(scope="module")
def port_base(worker_id: str) -> int:
    """Tests that run side by side are strangers to each other."""
    return 23000 + 500 * int(worker_id.removeprefix("gw") or 0) if worker_id != "master" else 23000


SETTINGS = """\
[sandbox]
write = ["{folder}/gates"]
[environment]
port_base = {port_base}
disk_mb = 900
copy = ["ada: own.local", "ada: deep/link.local", "other: secret.local", "tracked: README.txt"]
caches = ["PIP_CACHE_DIR={folder}/caches/pip"]
"""


@pytest.fixture(scope="module")
def legion(tmp_path_factory: pytest.TempPathFactory, port_base: int) -> Iterator[Squad]:
    """The daemon of these tests. Each leaves no run behind, so that all slots are free again."""
    folder = tmp_path_factory.mktemp("environment")
    (folder / "gates").mkdir()
    with squad(folder, settings=SETTINGS.format(folder=folder, port_base=port_base)) as one:
        yield one


@pytest.fixture
def gates(legion: Squad, tmp_path: Path) -> Iterator[Callable[[], Gate]]:
    made: list[Gate] = []

    def gate() -> Gate:
        made.append(Gate(legion.folder / "gates", f"{tmp_path.name}-{len(made)}"))
        return made[-1]

    yield gate
    for one in made:
        one.close()


@pytest.fixture
def notes(legion: Squad, tmp_path: Path) -> Path:
    """A folder into which agents, up and down can write."""
    place = legion.folder / "gates" / f"notes-{tmp_path.name}"
    place.mkdir()
    return place


def environment(text: str, check: str = "true") -> str:
    return f"[checks.test]\nrun = {json.dumps(check)}\n[agents]\nattempts = 3\n[environment]\n{text}\n"


def adopt(one: Squad, root: Path, config: str, files: dict[str, str] | None = None) -> Project:
    repository = Repository(root, config)
    repository.commit("more", {**IGNORING, **(files or {})})
    return one.adopt(repository)


def told(project: Project, ticket: int) -> dict[str, str]:
    text = (project.worktree(ticket) / f"told-{ticket}.txt").read_text()
    return dict(line.split("=", 1) for line in text.splitlines())


def slots_of(one: Squad) -> list[str]:
    return sorted(file.name for file in (one.data.root / "slots").glob("*.json"))


def temps_of(one: Squad) -> list[str]:
    return sorted(place.name for place in (one.data.root / "tmp").iterdir())


def said(place: Path) -> list[str]:
    file = place / "said"
    return file.read_text().splitlines() if file.exists() else []


def test_runs_side_by_side_have_slots_ports_and_temp_folders_of_their_own_that_their_pages_show(
    legion: Squad, gate: Gate, port_base: int, tmp_path: Path
):
    project = adopt(legion, tmp_path / "ada", environment('ports = 4\nup = "echo all set"'))
    serving = (
        "import os, socket; server = socket.create_server(('127.0.0.1', int(os.environ['LEGION_PORT']) + 1)); "
        "os.system(os.environ['PAUSE'])"
    )
    agent = f'{TELLS}; echo mine > "$TMPDIR/mine"; {gate.pause}'
    serves = (
        f'{TELLS}; echo mine > "$TMPDIR/mine"; head -c 100000 /dev/urandom > "$TMPDIR/x"; '
        f"PAUSE='{gate.pause}' python3 -c \"{serving}\""
    )
    # A block in which a stranger listens is left out.
    with socket.create_server(("127.0.0.1", port_base + 2)):
        ids = project.dispatch_all([new("one", agent), new("two", agent), new("serves", serves)])
        gate.arrived(3)
        seen = [told(project, ticket) for ticket in ids]
        page = project.ticket(ids[2])
        shown = legion.cli("ticket", str(ids[2]), cwd=project.repository.root).stdout
        facts = json.loads(legion.cli("ticket", str(ids[2]), "--json", cwd=project.repository.root).stdout)
    assert sorted(one["LEGION_SLOT"] for one in seen) == ["0", "1", "2"]
    assert {one["LEGION_PORTS"] for one in seen} == {"4"}
    blocks = [range(int(one["LEGION_PORT"]), int(one["LEGION_PORT"]) + 4) for one in seen]
    assert len({port for block in blocks for port in block}) == 12
    assert min(port for block in blocks for port in block) == port_base + 4
    assert all(one["LEGION_TMP"] == one["TMPDIR"] for one in seen)
    assert [Path(one["TMPDIR"], "mine").read_text() for one in seen] == ["mine\n"] * 3
    assert len({one["TMPDIR"] for one in seen}) == 3
    place = page.environment
    assert place is not None
    assert (place.slot, place.ports) == (int(seen[2]["LEGION_SLOT"]), list(blocks[2]))
    assert place.listening == [blocks[2][1]]
    assert 100_000 <= place.temp_bytes < 1_000_000
    assert place.worktree_bytes > 0
    assert (place.all_counted, place.limit_bytes) == (True, 900 << 20)
    assert f"ports        {blocks[2][0]}-{blocks[2][3]}" in shown
    assert f"listening    {blocks[2][1]}" in shown
    assert "up: The program ended with exit code 0  echo all set" in shown
    assert facts["environment"]["slot"] == place.slot
    gate.open(3)
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    assert (slots_of(legion), temps_of(legion)) == ([], [])


def test_the_env_file_is_made_from_template_and_variables_and_never_lands(legion: Squad, tmp_path: Path):
    project = adopt(
        legion,
        tmp_path / "ada",
        environment(
            'ports = 2\nenv_file = "conf/.env"\ntemplate = "env.template"\n'
            'vars = { URL = "db://localhost:{port+1}/app_{ticket}", SAID = "it is {attempt}", TMP_DIR = "{tmp}" }'
        ),
        {"env.template": "WEB={port}\nKEPT=${port} {else}\nHERE={worktree}"},
    )
    # Also where the agent stops ignoring it.
    reveals = "touch b.txt; if [ $LEGION_ATTEMPT = 1 ]; then echo > .gitignore; else git checkout -q .gitignore; fi"
    uses = (
        '. conf/.env; echo "$WEB $URL $SAID" > a.txt; echo $LEGION_PORT > port.txt; test -d "$TMP_DIR"; cat conf/.env'
    )
    ticket, revealing = project.dispatch_all([new("one", uses), new("two", reveals)])
    project.until_settled()
    port = int(str(project.landed("port.txt")))
    assert project.landed("a.txt") == f"{port} db://localhost:{port + 1}/app_{ticket} it is 1\n"
    assert f"KEPT=${{port}} {{else}}\nHERE={project.worktree(ticket)}\nURL=" in project.log(ticket)
    page = project.ticket(revealing)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert "it changed protected files (conf/.env)" in json.dumps([event.data for event in page.history])
    assert project.landed("conf/.env") is None


def test_a_place_that_cannot_be_made_is_said_and_blames_no_agent(legion: Squad, tmp_path: Path, notes: Path):
    (tmp_path / "outside").mkdir()
    fails = f'up = "echo half >> {notes}/said; echo no database here; exit 3"\ndown = "echo undone >> {notes}/said"'
    revealed = adopt(legion, tmp_path / "revealed", environment('env_file = "settings.txt"\nvars = { A = "b" }'))
    linked = adopt(legion, tmp_path / "linked", environment('env_file = "conf/.env"\nvars = { A = "b" }'))
    failing = adopt(legion, tmp_path / "failing", environment(fails))
    tracked = adopt(legion, tmp_path / "tracked", environment(""))
    leaves_a_link = f"rm -rf conf; ln -s {tmp_path}/outside conf; touch a.txt; exit $((2 - LEGION_ATTEMPT))"
    agents = {revealed: "touch a.txt", linked: leaves_a_link, failing: "touch a.txt", tracked: "touch a.txt"}
    tickets = {project: project.dispatch("one", agent) for project, agent in agents.items()}
    for project, ticket in tickets.items():
        assert project.until_settled().stuck == [ticket]
    doing = {project: project.ticket(ticket).ticket.doing for project, ticket in tickets.items()}

    assert "settings.txt would become part of changes: add it to .gitignore" in doing[revealed]
    assert "README.txt would become part of changes" in doing[tracked], "a tracked file is not copied over"
    assert "conf/.env cannot be written" in doing[linked]
    assert list((tmp_path / "outside").iterdir()) == [], "a link does not lead us out of the agent's tree"
    assert "failed (The program ended with exit code 3)" in doing[failing]
    assert "no database here" in doing[failing]
    assert said(notes)[:4] == ["half", "undone"] * 2
    place = failing.ticket(tickets[failing]).environment
    assert place is not None
    assert place.up is not None
    assert "no database here" in place.up.tail
    shown = legion.cli("ticket", str(tickets[failing]), cwd=failing.repository.root).stdout
    assert "up: The program ended with exit code 3" in shown

    failing.repository.commit("mended", {"legion.toml": environment('up = "true"')})
    failing.trust()
    revealed.repository.commit("mended", {".gitignore": "settings.txt\n"})
    second = revealed.dispatch("two", "cat settings.txt > b.txt")
    assert failing.until(tickets[failing], "done").ticket.attempt == 1
    revealed.until(second, "done")
    assert (revealed.landed("b.txt"), revealed.landed("settings.txt")) == ("A=b\n", None)
    for project in (linked, tracked):
        legion.client.stop_all(Where(cwd=project.cwd))


def up_and_down(notes: Path) -> str:
    return (
        f'up = "echo up $LEGION_TICKET $LEGION_PORT >> {notes}/said && echo made > $LEGION_TMP/by-up"\n'
        f'down = "cat $LEGION_TMP/by-up > /dev/null && echo down $LEGION_TICKET $LEGION_PORT >> {notes}/said"\n'
    )


def test_up_runs_before_the_agent_and_down_after_it_also_for_a_ticket_that_a_person_stops(
    legion: Squad, gate: Gate, port_base: int, tmp_path: Path, notes: Path
):
    project = adopt(legion, tmp_path / "ada", environment(up_and_down(notes)))
    ticket = project.dispatch("one", f'cat "$TMPDIR/by-up" > a.txt; echo agent >> {notes}/said')
    project.until_settled()
    assert project.landed("a.txt") == "made\n"
    heard = said(notes)
    assert heard == [f"up {ticket} {port_base}", "agent", f"down {ticket} {port_base}"]
    place = project.ticket(ticket).environment
    assert place is not None
    assert place.up is not None
    assert place.down is not None
    assert (place.up.ok, place.down.ok, place.slot) == (True, True, None)
    stopped = project.dispatch("two", gate.pause)
    gate.arrived()
    project.stop(stopped)
    project.until_idle(stopped)
    assert [line.split()[:2] for line in said(notes)[3:]] == [["up", str(stopped)], ["down", str(stopped)]]
    assert (slots_of(legion), temps_of(legion)) == ([], [])


def test_what_a_daemon_leaves_that_dies_is_kept_while_it_is_used_and_else_undone(
    legion: Squad, gates: Callable[[], Gate], tmp_path: Path, notes: Path
):
    gate, half_way, working = gates(), gates(), gates()
    keeps = adopt(legion, tmp_path / "keeps", environment("ports = 2"))
    first = keeps.dispatch("first", f"{TELLS}; {gate.pause}")

    up = f"echo up >> {notes}/half; if mkdir {notes}/first 2> /dev/null; then {half_way.pause}; fi"
    text = f"up = {json.dumps(up)}\ndown = 'echo down >> {notes}/half'"
    begins = adopt(legion, tmp_path / "begins", environment(text))
    begun = begins.dispatch("one", f"echo agent >> {notes}/half; touch a.txt")

    loses = adopt(legion, tmp_path / "loses", environment(up_and_down(notes)))
    lost = loses.dispatch(
        "one",
        f'if [ ! -e a.txt ]; then touch a.txt; echo kept > "$TMPDIR/kept"; {working.pause}; fi; '
        'cp "$TMPDIR/kept" b.txt',
    )
    for one in (gate, half_way, working):
        one.arrived()
    legion.kill()
    _runner_of(legion, lost).kill()
    legion.start()

    second = keeps.dispatch("second", f"{TELLS}; {gate.pause}")
    gate.arrived()
    a, b = told(keeps, first), told(keeps, second)
    assert a["LEGION_SLOT"] != b["LEGION_SLOT"], "a slot outlives the daemon"
    assert abs(int(a["LEGION_PORT"]) - int(b["LEGION_PORT"])) >= 2
    gate.open(2)
    begins.until(begun, "done")
    assert (notes / "half").read_text().split() == ["up", "down", "up", "agent", "down"]
    page = loses.until(lost, "done")
    assert [run.outcome for run in page.runs] == ["lost", "finished"]
    assert [line.split()[0] for line in said(notes)] == ["up", "down", "up", "down"]
    assert loses.landed("b.txt") == "kept\n", "the temp folder of a lost run waits for the next start"
    keeps.until_settled()
    assert (slots_of(legion), temps_of(legion)) == ([], [])


def _runner_of(one: Squad, ticket: int) -> psutil.Process:
    (folder,) = one.data.runs.glob(f"ticket-{ticket}-run-*")
    lines = (folder / "journal.jsonl").read_text().splitlines()
    pids = [json.loads(line).get("runner") for line in lines]
    return psutil.Process(next(pid for pid in pids if pid is not None))


def test_only_named_files_of_the_checkout_come_along_and_only_ignored_ones(legion: Squad, tmp_path: Path):
    project = adopt(legion, tmp_path / "ada", environment(""))
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
    assert [text.text for text in legion.client.trustable(project.cwd).texts if not text.trusted] == [included]
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


def test_runs_share_the_caches_that_the_person_names_and_hear_of_no_port_without_ports(legion: Squad, tmp_path: Path):
    project = adopt(legion, tmp_path / "ada", environment("ports = 0"))
    first = project.dispatch("one", f'echo once > "$PIP_CACHE_DIR/wheel"; {TELLS}; cat told-*.txt > a.txt')
    project.dispatch("two", 'cp "$PIP_CACHE_DIR/wheel" b.txt', after=[first])
    project.until_settled()
    assert project.landed("b.txt") == "once\n"
    assert (legion.folder / "caches/pip/wheel").read_text() == "once\n"
    landed = str(project.landed("a.txt"))
    assert "LEGION_PORTS=0" in landed
    assert "LEGION_PORT=" not in landed


@pytest.fixture
def small_disk(legion: Squad) -> Iterator[None]:
    with legion.with_settings(legion.settings.read_text().replace("disk_mb = 900", "disk_mb = 3")):
        yield


def test_a_run_that_takes_too_much_disk_is_stopped_and_the_next_one_may_clean_up(
    legion: Squad, gate: Gate, small_disk: None, tmp_path: Path
):
    project = adopt(legion, tmp_path / "ada", environment(""))
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
    legion.kill()
    legion.start()
    gate.arrived()
    legion.kill()
    legion.start()
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
