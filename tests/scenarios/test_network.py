"""An agent with a network of its own: what it reaches of this machine, and how a person opens a host to it."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import shlex
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from legion.api import app as api
from legion.domain.questions import MOST_OPEN, QuestionKind
from legion.wire.mail import AnswerQuestion, QuestionLine
from legion.wire.projects import AddProject, Where
from tests.support.attacks import Attacker, Door, attack
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, squad
from tests.support.looking import until_seen
from tests.support.repository import Repository

TABLE = api.table(None, None)  # type: ignore[arg-type]  # nothing is called
CONFIG = '[checks.test]\nrun = "true"\n[agents]\nattempts = 1\n'
SETTINGS = '[sandbox]\nnetwork = "public"\nwrite = ["{folder}/gates"]\n'
KNOCK = """
for port in {ports}; do
  for host in 127.0.0.1 {address}; do
    (exec 3<>/dev/tcp/$host/$port) 2>/dev/null && echo "$host:$port answered"
    curl -s -o /dev/null -m 5 -x socks5h://127.0.0.1:3128 http://$host:$port/ && echo "$host:$port by the proxy"
  done
done
curl -s -m 5 -H "Authorization: Bearer guess" "$LEGION_URL/v1/status" && echo "the API answered"
echo done
"""


WALK = """
import contextlib, http.client, json, os, socket, sys, urllib.parse
with open("tried.json") as file:
    tried = json.load(file)
for name in tried["sockets"]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as end:
            end.connect("\\0" + name[1:] if name.startswith("@") else name)
            print("answered", name)
own = urllib.parse.urlsplit(os.environ["LEGION_URL"])
for port in {own.port, *tried["ports"]}:
    for method, path in tried["routes"] if port == own.port else [["GET", "/v1/status"]]:
        with contextlib.suppress(OSError, http.client.HTTPException):
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            asked.request(method, path, headers={"Authorization": "Bearer guess"})
            print("answered", port, method, path, asked.getresponse().status)
print("done")
"""


def own_address() -> str:
    found = [one.address for of in psutil.net_if_addrs().values() for one in of if one.family is socket.AF_INET]
    return next(one for one in found if not one.startswith("127."))


def listening() -> list[int]:
    found = psutil.net_connections("tcp")
    return sorted({one.laddr.port for one in found if one.laddr and one.status == psutil.CONN_LISTEN})


@pytest.fixture(scope="module")
def legion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    folder = tmp_path_factory.mktemp("network")
    (folder / "gates").mkdir()
    with squad(folder, settings=SETTINGS.format(folder=folder)) as one:
        yield one


PROXIES = """\
[setup]
run = "env | grep -q ^HTTPS_PROXY= && env | grep -q ^https_proxy="
[checks.test]
run = "! env | grep -i proxy"
"""


@pytest.fixture
def project(legion: Squad, tmp_path: Path) -> Project:
    return legion.adopt(Repository(tmp_path / "ada", CONFIG))


@contextlib.contextmanager
def page() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer((own_address(), 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def one_question(legion: Squad, ticket: int) -> QuestionLine:
    until_seen(legion, lambda: asked(legion, ticket), "the question")
    (question,) = asked(legion, ticket)
    return question


def asked(legion: Squad, ticket: int) -> list[QuestionLine]:
    return [
        one
        for one in legion.client.inbox().questions
        if one.ticket == ticket and one.kind == QuestionKind.NETWORK.value
    ]


@attack(Attacker.AGENT, Door.SANDBOX)
def test_no_port_of_this_machine_answers_an_agent(project: Project):
    script = KNOCK.format(ports=" ".join(map(str, listening())), address=own_address())
    ticket = project.dispatch("Knock", f"bash -c {shlex.quote(script)}")
    project.until_settled(ticket)
    log = project.squad.client.log(ticket).text
    assert log.strip().splitlines()[-1:] == ["done"], log
    assert "answered" not in log, log
    assert "by the proxy" not in log, log


def test_setup_and_agents_see_the_proxy_and_checks_do_not(legion: Squad, tmp_path: Path):
    project = legion.adopt(Repository(tmp_path / "ada", PROXIES))
    ticket = project.dispatch("Say it", 'test -n "$HTTPS_PROXY" && echo seen > seen.txt')
    project.until_settled(ticket)
    assert project.ticket(ticket).ticket.state == "done"


def test_a_person_opens_a_host_to_an_agent_that_works(project: Project, legion: Squad):
    gate = Gate(legion.folder / "gates", "open")
    with page() as port, contextlib.closing(gate):
        url = f"http://{own_address()}:{port}/"
        script = f"curl -s {url} -o first.txt; {gate.pause}; curl -sf {url} -o second.txt && echo reached > reached.txt"
        ticket = project.dispatch("Read a page", script)
        question = one_question(legion, ticket)
        assert f"{own_address()}:{port}" in question.words
        assert question.choices == ["once", "project", "never"]
        answered = legion.client.answer(question.id, AnswerQuestion(choice="yes"))
        assert answered.choice == "project"
        assert answered.message == f"Agents of this project may from now on reach {own_address()}:{port}."
        gate.open()
        project.until_settled(ticket)
        assert "reached" in legion.client.diff(ticket).text
        again = project.dispatch("Read it again", f"curl -sf {url} -o page.txt && echo again > again.txt")
        project.until_settled(again)
        assert "again" in legion.client.diff(again).text
        assert not asked(legion, again)


@attack(Attacker.AGENT, Door.SANDBOX)
def test_no_socket_of_this_machine_and_no_route_of_legion_answers_an_agent(legion: Squad, tmp_path: Path):
    routes = [(method, re.sub(r"{[^}]*}", "1", one.path)) for one in TABLE.entries for method in one.methods or ["GET"]]
    with socket.socket(socket.AF_UNIX) as near, socket.socket(socket.AF_UNIX) as abstract:
        near.bind(str(tmp_path / "near.sock"))
        abstract.bind(f"\0{tmp_path}")
        for one in (near, abstract):
            one.listen()
        connections = psutil.net_connections("all")
        sockets = sorted({str(one.laddr) for one in connections if one.family is socket.AF_UNIX and one.laddr})
        assert {str(tmp_path / "near.sock"), f"@{tmp_path}"} <= set(sockets), sockets
        assert len(routes) > 200
        tried = {"sockets": sockets, "ports": list(listening()), "routes": routes}
        repository = Repository(tmp_path / "walk", CONFIG)
        repository.commit("what is tried", {"tried.json": json.dumps(tried), "walk.py": WALK})
        project = legion.adopt(repository)
        ticket = project.dispatch("Walk", "python3 walk.py")
        project.until_settled(ticket)
        assert legion.client.log(ticket).text.strip().splitlines() == ["done"]


@attack(Attacker.AGENT, Door.SANDBOX)
def test_a_person_sees_what_holds_and_what_does_not(legion: Squad, project: Project):
    found = {one.name: one for one in legion.client.attack(Where(cwd=project.cwd)).findings}
    tried = {name: one.detail for name, one in found.items() if one.known}
    assert len(tried) >= 100
    assert set(tried.values()) == {"held"}, {name: said for name, said in tried.items() if said != "held"}
    opened = f'read = ["{project.repository.root}"]\nwrite = ["{legion.data.root}"]\n'
    with legion.with_settings(f'[sandbox]\nnetwork = "host"\nsystem_calls = "all"\n{opened}'):
        red = {one.name for one in legion.client.attack(Where(cwd=project.cwd)).findings if not one.ok}
    assert {
        *("read your checkout", "read Legion's token", "write to the hub's objects", "link an object of the hub"),
        *("see the ports of this machine", "see a network card", "reach a port by IPv6"),
        *("reach this machine as 2130706433", "reach this machine over SOCKS as localhost"),
        *("run without a filter of system calls", "type into a terminal (TIOCSTI)", "call the kernel through a ring"),
        *("handle faults of memory", "reach the host of a virtual machine"),
    } <= red, red
    assert any(name.startswith("reach one of") for name in red), red


def test_services_that_a_project_names_are_proposed_and_tested(legion: Squad, tmp_path: Path):
    compose = "services:\n  db:\n    ports:\n      - 127.0.0.1:5433:5432\n"
    repository = Repository(tmp_path / "shop", CONFIG)
    repository.commit("services", {"compose.yaml": compose, ".env.example": "CACHE=redis://localhost/0\n"})
    notes = legion.client.add_project(AddProject(path=str(repository.root), dry_run=True)).notes
    assert any("`local = [5433, 6379]`" in note for note in notes), notes
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with legion.with_settings(f'[sandbox]\nlocal = [{port}, "/run/none.sock"]\n'):
            (found,) = [one for one in legion.client.doctor(None).findings if one.name == "local services"]
    assert (found.ok, found.detail) == (False, f"{port} answers, /run/none.sock does not answer")


@attack(Attacker.AGENT, Door.BOUNDS)
def test_an_agent_cannot_fill_the_inbox_with_hosts(project: Project, legion: Squad):
    script = "for n in $(seq 30); do curl -s http://10.0.0.$n/ -o page.txt; done; echo done > done.txt"
    ticket = project.dispatch("Ask for many", script)
    project.until_settled(ticket)
    assert len(asked(legion, ticket)) == MOST_OPEN


def test_once_is_for_this_run_and_the_next_one_asks_again(project: Project, legion: Squad):
    gate = Gate(legion.folder / "gates", "once")
    with page() as port, contextlib.closing(gate):
        url = f"http://{own_address()}:{port}/"
        script = (
            f"curl -s {url} | tee first.txt; {gate.pause}; curl -sf {url} -o page.txt && echo reached > reached.txt"
        )
        ticket = project.dispatch("Read a page", script)
        answered = legion.client.answer(one_question(legion, ticket).id, AnswerQuestion(choice="once"))
        assert answered.message == f"This run of the agent of ticket {ticket} may reach {own_address()}:{port}."
        gate.open()
        project.until_settled(ticket)
        diff = legion.client.diff(ticket).text
        assert "reached" in diff
        assert "The person may allow it, and sees this." in diff
        again = project.dispatch("Read it again", f"curl -s {url} -o page.txt; echo done > done.txt")
        assert one_question(legion, again).choices == ["once", "project", "never"]


def test_a_host_that_the_person_refused_is_not_asked_for_again(project: Project, legion: Squad):
    with page() as port:
        script = f"curl -s http://{own_address()}:{port}/ -o page.txt; echo done > done.txt"
        ticket = project.dispatch("Read a page", script)
        question = one_question(legion, ticket)
        legion.client.answer(question.id, AnswerQuestion(choice="never"))
        again = project.dispatch("Read it again", script)
        project.until_settled(ticket, again)
        assert not asked(legion, again)
