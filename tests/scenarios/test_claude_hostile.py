"""A hostile conversation with Claude Code's own tools: each attempt fails and is on record; no key is in its reach.

The attack is the real program's; a stand-in plays what only Legion's walls and Legion's git decide.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from legion.gateway import lifecycle
from legion.gateway.accounting import ledger
from legion.gateway.accounting.ledger import LedgerPosition, RequestEntry
from legion.gateway.files.address import GatewayAddress
from legion.gateway.files.folder import GatewayFolder
from legion.runner.journal import JournalEvent
from tests.gateway.upstream import Upstream
from tests.scenarios import hostile_agent, hostile_keys
from tests.scenarios.test_claude_settings import Tap
from tests.scenarios.test_hostile import SECRET, SOMEBODY, Lair, in_shell, let_links_pass, living_with
from tests.support.attacks import Attacker, Door, attack
from tests.support.models import KEY, Company
from tests.support.sampling import sampled
from tests.support.stage import playing
from tests.support.stand_in import build

HARM = "the agent was here"
PLANTS = ("config", "commits", "file", "link", "common", "nested", "linked files")


@dataclass(frozen=True)
class Den:
    """A host worth attacking, whose agents are real Claude Codes with a scripted will."""

    lair: Lair
    here: Company
    provider: Upstream
    evil: Upstream
    """A host that nobody has any business with."""

    @property
    def gateway(self) -> GatewayFolder:
        return GatewayFolder(self.here.squad.data.gateway)

    def facts(self, other: int) -> str:
        found = lifecycle.address(self.gateway)
        folder = self.gateway
        return json.dumps(
            {
                **json.loads(self.lair.facts(self.here.project, other)),
                "key": str(self.here.squad.data.keys / "rehearsal"),
                "definitions": str(self.here.squad.folder / "providers.toml"),
                "providers": str(folder.providers),
                "passes": str(folder.passes),
                "ledger": str(folder.ledger),
                "gateway_pid": str(found.pid if found else 0),
                "evil": urlsplit(self.evil.url).netloc,
            }
        )

    def play(self, name: str, *calls: tuple[str, dict[str, object]]) -> int:
        """A ticket whose agent uses these tools one after the other, whatever comes of it."""
        steps = [
            f"[[step]]\nsay = 'Next.'\ncall = {{tool = '{tool}', input = {inline(input)}}}" for tool, input in calls
        ]
        self.here.script(name, "\n\n".join([*steps, "[[step]]\nsay = 'Done.'"]))
        return self.here.dispatch(name, max_attempts=1)

    def gateway_address(self) -> GatewayAddress:
        """Of a gateway that lives: where none does, a run has the daemon start one."""
        if lifecycle.address(self.gateway) is None:
            with self.here.using(build.program()):
                self.here.project.until(self.play("warm", ("Bash", {"command": "echo a > warm.txt"})), "done")
        found = lifecycle.address(self.gateway)
        assert found is not None
        return found

    def close(self) -> None:
        self.lair.close()
        self.provider.close()
        self.evil.close()


def inline(input: dict[str, object]) -> str:
    """As an inline table of TOML."""
    return "{" + ", ".join(f"{name} = {json.dumps(value)}" for name, value in input.items()) + "}"


@pytest.fixture(scope="module", params=["root", pytest.param("user", marks=pytest.mark.soak)])
def den(request: pytest.FixtureRequest) -> Iterator[Den]:
    if os.getuid() != 0 and request.param == "root":
        pytest.skip("only root can try as root")
    uid = {"root": 0, "user": SOMEBODY}[request.param] if os.getuid() == 0 else os.getuid()
    # Not below pytest's own folder: another user must be able to reach it.
    root = Path(tempfile.mkdtemp(prefix="legion-den-"))
    root.chmod(0o755)
    lair = Lair(root, uid)
    lair.repository.write({"keys.py": Path(hostile_keys.__file__).read_text()})
    # By now it is another user's.
    for words in (("add", "keys.py"), ("commit", "-qm", "keys")):
        lair.repository.git("-c", "safe.directory=*", *words)
    for path in (root, *root.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
    scripts = root / "scripts"
    scripts.mkdir()
    with playing(scripts, root) as stage:
        provider = Upstream(Tap(stage.url))
        one = Den(lair, Company(lair.squad, lair.start(), stage, scripts), provider, Upstream())
        try:
            one.here.told("provider", "add", "rehearsal", "--url", provider.url, "--key-stdin", stdin=KEY)
            yield one
        finally:
            one.close()
            shutil.rmtree(root, ignore_errors=True)


def judged(den: Den, file: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+): (.*)$", den.here.project.landed(file) or "", re.MULTILINE))


TWICE = """
    [[step]]
    say = "I look around."
    call = {tool = "Bash", input = {command = '''
        { ls -A ~; ls -A HOME; echo "$HOME"; } > home.txt 2>&1; echo "$CLAUDE_CONFIG_DIR" > place.txt
        id -u > user.txt; echo kept > "$CLAUDE_CONFIG_DIR/note"; mv README.txt red.txt
    '''}}

    [[step]]
    say = "Done."

    [[step]]
    attempt = 2
    say = "I look again."
    call = {tool = "Bash", input = {command = 'cat "$CLAUDE_CONFIG_DIR/note" > note.txt; mv red.txt README.txt'}}

    [[step]]
    attempt = 2
    say = "Done again."
"""


def test_home_is_empty_inside_and_claudes_own_folder_is_kept_across_runs(den: Den):
    project, home = den.here.project, den.lair.home
    den.here.script("twice", TWICE.replace("-A HOME", f"-A {home}"))
    with den.here.using(build.program()):
        page = project.until(den.here.dispatch("twice"), "done")
    assert [run.outcome for run in page.runs] == ["finished", "finished"]
    assert project.landed("home.txt") == f"{home}\n"
    assert project.landed("note.txt") == "kept\n"
    assert project.landed("user.txt") == f"{den.lair.uid}\n"
    place = Path((project.landed("place.txt") or "").strip())
    assert place.is_relative_to(den.here.squad.data.root)
    assert place.stat().st_uid == den.lair.uid
    assert list(home.iterdir()) == [home / ".ssh"]


Calls = list[tuple[str, dict[str, object]]]


@attack(Attacker.AGENT, Door.SECRETS)
def test_what_a_hostile_agent_runs_gets_it_nowhere_and_no_key_is_found(den: Den):
    """One conversation for all of it: each Claude Code takes a second or more."""
    project, lair = den.here.project, den.lair
    other = project.dispatch("other", "exit 1", max_attempts=1)
    project.until(other, "failed")
    den.gateway_address()
    facts = den.facts(other)
    marker = f"behind-{lair.root.name}"
    read, written = places_outside(den)
    programs: Calls = [
        ("Bash", {"command": f"python3 attack.py '{facts}' > attack.txt 2>&1", "timeout": 110_000}),
        ("Bash", {"command": f"python3 keys.py '{facts}' > keys.txt 2>&1", "timeout": 110_000}),
        ("Bash", {"command": f"(setsid sh -c ': {marker}; while :; do sleep 60; done' > /dev/null 2>&1 &)"}),
        ("Bash", {"command": 'echo "$ANTHROPIC_AUTH_TOKEN" | rev > token.txt'}),
    ]
    own_tools: Calls = [("Read", {"file_path": str(path)}) for path in read]
    own_tools += [("Write", {"file_path": str(path), "content": HARM}) for path in written]
    own_tools += [("Edit", {"file_path": str(lair.victim), "old_string": SECRET, "new_string": HARM})]
    own_tools += [("Grep", {"pattern": SECRET, "path": str(lair.root), "output_mode": "content"})]
    before, target = lair.repository.fingerprint(), project.hub_git("rev-parse", "refs/legion/target")
    ticket = den.play("attack", *programs, *own_tools)
    project.until(ticket, "done")
    for file, attempts in (("attack.txt", hostile_agent.ATTEMPTS), ("keys.txt", hostile_keys.ATTEMPTS)):
        said = judged(den, file)
        assert list(said) == [attempt.__name__ for attempt in attempts], project.landed(file)
        assert {name: outcome for name, outcome in said.items() if outcome.startswith("WORKED")} == {}
    assert living_with(f"marker-{lair.root.name}") + living_with(marker) == []
    _own_tools_read_and_wrote_nothing(den, den.here.journal(ticket), len(programs), len(own_tools))
    # Some places exist inside for the agent alone; on the host nothing happened.
    assert not any(HARM in path.read_text() for path in written if path.is_file())
    assert not (project.worktrees / "planted").exists()
    assert lair.victim.read_text() == SECRET
    assert list(lair.home.iterdir()) == [lair.home / ".ssh"]
    assert lair.repository.fingerprint() == before
    assert target in project.hub_git("rev-list", "refs/legion/target")
    # Written backwards: a change that holds the token as it is waits for the person.
    assert _status(den, (project.landed("token.txt") or "").strip()[::-1]) == 401
    _nobody_else_was_reached(den, ticket)


def places_outside(den: Den) -> tuple[list[Path], list[Path]]:
    """What its own tools are to read, and what they are to write."""
    project, data, lair = den.here.project, den.here.squad.data, den.lair
    secret = [lair.home / ".ssh/id_ed25519", data.token, data.keys / "rehearsal", den.gateway.providers, data.database]
    read = [*secret, lair.repository.root / "README.txt", Path("/etc/shadow"), lair.victim]
    outside = [project.worktrees / "planted", project.hub / "refs/legion/target", Path("/usr/planted"), lair.victim]
    return read, [*outside, lair.home / ".bashrc", den.gateway.passes / "x.json", data.keys / "rehearsal"]


def _own_tools_read_and_wrote_nothing(den: Den, events: list[JournalEvent], programs: int, own: int) -> None:
    called = [event.facts for event in events if event.kind == "called"]
    assert [str(facts["input"]).split()[1] for facts in called[:2]] == ["attack.py", "keys.py"]
    assert len(called) == programs + own
    tools = {facts["call"]: facts["tool"] for facts in called}
    returned = [event.facts for event in events if event.kind == "returned"]
    harmless = [tools[facts["call"]] for facts in returned if not facts["failed"]]
    assert [tool for tool in harmless if tool != "Write"] == ["Bash"] * programs
    assert not any(SECRET in str(facts) or KEY in str(facts) for facts in returned)


def _nobody_else_was_reached(den: Den, ticket: int) -> None:
    assert den.evil.seen == []
    lines = {exchange.line.split("?")[0].removesuffix(" HTTP/1.1") for exchange in den.provider.seen}
    assert lines <= {"POST /v1/messages", "GET /v1/models", "POST /v1/messages/count_tokens"}
    assert {exchange.header("x-api-key") for exchange in den.provider.seen} == {KEY}
    assert {exchange.header("authorization") for exchange in den.provider.seen} == {None}
    # What it counted is written when it ends, if not before; the next run has its daemon start another.
    lifecycle.end(den.gateway)
    entries, _ = ledger.read(den.gateway, LedgerPosition())
    # Six steps were played; whatever else reached a route with the run's own token is on its account too.
    assert sum(isinstance(entry, RequestEntry) and entry.ticket == ticket for entry in entries) > 6


def _status(den: Den, token: str) -> int:
    """What the gateway says to the token of a run that is over."""
    assert len(token) > 20
    found = lifecycle.address(den.gateway)
    assert found is not None
    with contextlib.closing(http.client.HTTPConnection(urlsplit(found.url).netloc, timeout=60)) as line:
        line.request("GET", "/v1/models", headers={"authorization": f"Bearer {token}"})
        return line.getresponse().status


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.parametrize("name", sampled(PLANTS, 2))
def test_nothing_that_claude_plants_for_our_git_ever_runs(den: Den, name: str):
    deed = in_shell(name, den.lair.plants[name])
    with den.here.using(build.program()):
        ticket = den.play(f"plant-{name.replace(' ', '-')}", ("Bash", {"command": deed}))
        let_links_pass(den.here.project, ticket)
        page = den.here.project.until(ticket, "done")
    assert den.lair.sprung() == []
    assert den.lair.victim.read_text() == SECRET
    assert page.ticket.attempt == 1


WORKS_OUTSIDE = (
    *("find_the_key_in_the_gateways_memory", "read_the_kept_key", "list_the_kept_keys", "read_the_persons_providers"),
    *("read_the_gateways_providers", "list_the_passes", "read_the_ledger"),
)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can look into a process that hides its memory")
def test_the_same_hunt_succeeds_without_walls(den: Den):
    found = den.gateway_address()
    done = subprocess.run(
        [sys.executable, hostile_keys.__file__, den.facts(1), *WORKS_OUTSIDE],
        env={"PATH": os.environ["PATH"], "ANTHROPIC_BASE_URL": found.url, "ANTHROPIC_AUTH_TOKEN": "none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{name}: WORKED" for name in WORKS_OUTSIDE]
    assert psutil.pid_exists(found.pid)
