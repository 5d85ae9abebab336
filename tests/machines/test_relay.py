"""What an agent on a machine, and a machine itself, reach of the head: the real relay and the real routes for machines.

Behind them a server answers every path that arrives there, and records it.
"""

from __future__ import annotations

import http.client
import itertools
import json
import operator
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select

from legion import __version__
from legion.domain.agents.tools import Tool
from legion.domain.runs import Run
from legion.gateway.files import passes
from legion.gateway.files.address import GatewayAddress, announce
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass
from legion.jobs.machine_runs import packs
from legion.jobs.machines.travel import MachineJob
from legion.machine.link import tls_context
from legion.machine.membership import Membership
from legion.machine.relay import Relay
from legion.store.database import schema
from legion.store.staff import tokens
from legion.system import files
from tests.machines.heads import Head
from tests.support.attacks import Attacker, Door, attack
from tests.support.sampling import sampled

_ROWS = (schema.machines, schema.machine_runs, schema.machine_commands, schema.runs)


@dataclass
class Arrived:
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class Behind:
    """In the place of the gateway and of the daemon's API: whatever arrives here was let through."""

    seen: list[Arrived] = field(default_factory=list)

    def serve(self) -> ThreadingHTTPServer:
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen.append(Arrived(self.command, self.path, headers))
                self.rfile.read(int(headers.get("content-length", "0")))
                self.send_response(302 if "turned-away" in self.path else 200)
                self.send_header("location", "/v1/status")
                self.send_header("set-cookie", "a=b")
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


class Desk:
    """A machine with a living run, one that was given away, and one of another machine."""

    def __init__(self, folder: Path, behind: Behind, url: str) -> None:
        self.behind = behind
        self.head = Head(folder, url=url)
        self.membership = self.head.machine("desk")
        self.head.machine("lap")
        self.run, self.gone = self.head.taken(1, "desk"), self.head.taken(2, "desk")
        self.foreign = self.head.taken(3, "lap")
        gateway = GatewayFolder(self.head.board.data.gateway)
        gateway.root.mkdir(parents=True, exist_ok=True)
        gateway.passes.mkdir(exist_ok=True)
        announce(gateway, GatewayAddress(url=url, pid=1, release=__version__), asked=1)
        self._lock = files.lock(gateway.lock)
        self.passes = {run.name: passes.grant(gateway, _pass(run)) for run in (self.run, self.foreign)}
        with self.head.board.store.write() as tx:
            self.tokens = {
                run.name: tokens.issue(tx, run=run.id, ticket=run.ticket) for run in (self.run, self.gone, self.foreign)
            }
        self.root = folder / "machine-desk"
        for run in (self.run, self.gone):
            (self.root / "runs" / run.name).mkdir(parents=True)
        self.jobs = {run.name: packs.job_of(self.head.board.context, run.name) for run in (self.run, self.gone)}
        self.living: dict[str, MachineJob] = {self.run.name: self.jobs[self.run.name]}
        self.relay = Relay(self.root, self.membership, lambda: self.head.url, self.living.get)
        self.relay.start()
        self.gateways = {name: self.relay.address(job).gateway for name, job in self.jobs.items()}
        self.records = {name: json.loads((self.root / "runs" / name / "relay.json").read_text()) for name in self.jobs}
        self.before = self.rows()

    def rows(self) -> list[object]:
        with self.head.board.store.read() as tx:
            return [tuple(row) for table in _ROWS for row in tx.execute(select(table))]

    @property
    def base(self) -> str:
        """Of the living run, as its agent knows it."""
        return urlsplit(self.gateways[self.run.name]).path

    @property
    def tools(self) -> str:
        return urlsplit(str(self.records[self.run.name]["url"])).path

    def agent(self, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
        """A request as any program on the machine's loopback can send it."""
        port = urlsplit(self.gateways[self.run.name]).port
        return _ask(http.client.HTTPConnection("127.0.0.1", port or 0, timeout=20), method, path, headers)

    def machine(self, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
        """A request with the machine's own token, past the relay."""
        return self.as_member(self.membership, method, path, **headers)

    def as_member(self, member: Membership, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
        at = urlsplit(member.url)
        context = tls_context(member.authority)
        link = http.client.HTTPSConnection(at.hostname or "", at.port, timeout=20, context=context)
        return _ask(link, method, f"/machine/v1{path}", {"legion-machine": member.token, **headers})

    def close(self) -> None:
        self.relay.stop()
        self._lock.release()
        self.head.close()


def _pass(run: Run) -> Pass:
    return Pass(run=run.name, ticket=run.ticket or 0, project=1, agent="", provider="rehearsal")


def _ask(
    link: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str]
) -> tuple[int, dict[str, str]]:
    try:
        # As written: no escaping, no normalizing, no second look.
        link.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {"content-type": "application/json", "content-length": "2", **headers}.items():
            link.putheader(name.replace("_", "-"), value)
        link.endheaders(b"{}")
        answer = link.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        link.close()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    behind = Behind()
    server = behind.serve()
    made = Desk(tmp_path_factory.mktemp("relay"), behind, f"http://127.0.0.1:{server.server_address[1]}")
    yield made
    made.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def quiet(desk: Desk) -> None:
    desk.behind.seen.clear()


def held(desk: Desk, answer: tuple[int, dict[str, str]]) -> None:
    """Refused, and nothing moved: neither behind the head nor among its rows."""
    assert answer[0] in (400, 401, 403, 404, 405, 409, 422), answer
    assert [one.path for one in desk.behind.seen] == []
    assert desk.rows() == desk.before


UP = ("%2e%2e", "%2E%2E", "..", ".%2e", "%2e.", "%252e%252e", "%25252e%25252e", "..;", "..%00", "..%20", "%c0%ae%c0%ae")
GOALS = (
    ("POST", "beat"),
    ("GET", "projects/1/pack?commit=x"),
    ("POST", "runs/{foreign}/1/end"),
    ("GET", "runs/{foreign}/1/pack"),
    ("PUT", "runs/{foreign}/1/journal?offset=0"),
)
ODD = (
    *("/v1/messages/", "/v1//messages", "//v1/messages", "/./v1/messages", "/v1/./messages", "/v1/x/../messages"),
    *("/v1/messages;a=1", "/v1/messages%2f", "/v1/messages%00", "/v1/messages%20", "/v1/messages%3f", "/v1%2fmessages"),
    *("/v1/%6dessages", "/V1/messages", "/v1\\messages", "\\v1\\messages", "/v1/messages#x", "/v1/messages.", ""),
    *("/", "/health", "/v1", "/v1/", "/v1/status", "/v1/tickets", "/v1/tools/legion-ask", "/legion/status/"),
    *("/legion/", "/legion/../v1/messages", "/legion/passes", "/v1beta/models/..:generateContent", "/web/login"),
    *("/v1beta/models/%2e%2e:generateContent", "/v1beta/models/a/b:generateContent", "/v1beta/models/a:delete"),
    *("http://127.0.0.1/v1/messages", "@127.0.0.1/v1/messages", ":80/v1/messages", "/v1/models/../status"),
)
"""After the address of a run's gateway."""


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("trick", sampled(itertools.product(UP, GOALS), len(UP), operator.itemgetter(0)), ids=str)
def test_no_spelling_of_dots_leads_from_the_gateway_to_what_machines_may_do(
    desk: Desk, trick: tuple[str, tuple[str, str]]
):
    up, (method, goal) = trick
    wanted = goal.format(foreign=desk.foreign.name)
    for depth in (3, 4, 5):
        for slash in ("/", "%2f"):
            held(desk, desk.agent(method, f"{desk.base}/{(up + slash) * depth}{wanted}"))


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("path", sampled(ODD, 8))
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_the_exact_paths_of_the_gateway_are_relayed(desk: Desk, method: str, path: str):
    held(desk, desk.agent(method, f"{desk.base}{path}", x_api_key=desk.passes[desk.run.name]))


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize(
    "door",
    sampled(
        [
            *("end", "end/", "pack", "journal", "output", "complaints", "late", "snapshot", "beat", "join"),
            *("Gateway", "gateway%20", "gateway%2f..", "gateway;", "gateway/..", "tools", "%67ateway", "gateway//"),
            *("gatewaytools", "pack/gateway"),
        ],
        6,
    ),
)
def test_a_run_reaches_nothing_by_another_word_than_gateway(desk: Desk, door: str):
    base = desk.base.removesuffix("gateway")
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        for path in ("", "/v1/messages", f"/v1/tools/{Tool.ASK.value}"):
            held(desk, desk.agent(method, f"{base}{door}{path}"))


def _addresses(desk: Desk) -> dict[str, str]:
    """Of what an agent may guess or have seen of others."""
    own, gone = desk.records[desk.run.name]["secrets"], desk.records[desk.gone.name]["secrets"]
    run, secret = desk.run.name, own["gateway"]
    return {
        "generation": f"/runs/{run}/1/gateway",
        "none": f"/runs/{run}/gateway",
        "empty": f"/runs/{run}//gateway",
        "of-another-run": f"/runs/{run}/{gone['gateway']}/gateway",
        "own-with-another-name": f"/runs/{desk.foreign.name}/{secret}/gateway",
        "run-that-was-given-away": f"/runs/{desk.gone.name}/{gone['gateway']}/gateway",
        "unknown-run": f"/runs/ticket-99-run-99/{secret}/gateway",
        "cut": f"/runs/{run}/{secret[:-1]}/gateway",
        "longer": f"/runs/{run}/{secret}x/gateway",
        "other-case": f"/runs/{run}/{secret.swapcase()}/gateway",
        "escaped": f"/runs/{run}/%{ord(secret[0]):02x}{secret[1:]}/gateway",
        "of-the-tools": f"/runs/{run}/{own['tools']}/gateway",
        "of-the-gateway": f"/runs/{run}/{secret}/tools",
        "run-in-dots": f"/runs/x/../{run}/{secret}/gateway",
        "prefix": f"/machine/v1/runs/{run}/{secret}/gateway",
        "twice": f"/runs/{run}/{secret}/gateway/runs/{run}/{secret}/gateway",
    }


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize(
    "address",
    [
        *("generation", "none", "empty", "of-another-run", "own-with-another-name", "run-that-was-given-away"),
        *("unknown-run", "cut", "longer", "other-case", "escaped", "of-the-tools", "of-the-gateway"),
        *("run-in-dots", "prefix", "twice"),
    ],
)
def test_an_address_opens_only_with_the_secret_of_a_living_run(desk: Desk, address: str):
    base = _addresses(desk)[address]
    for path in ("/v1/messages", "/legion/status", f"/v1/tools/{Tool.ASK.value}"):
        method = "GET" if "status" in path else "POST"
        held(desk, desk.agent(method, f"{base}{path}", authorization=f"Bearer {desk.tokens[desk.run.name]}"))


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize(
    "path",
    sampled(
        [
            *("/v1/tools", "/v1/tools/", "/v1/tools/x", "/v1/tools/legion-ask/", "/v1/tools/LEGION-ASK"),
            *("/v1/tools//legion-ask", "/v1/tools/../../web//etc/passwd"),
            *("/v1/tools/%2e%2e/%2e%2e/web//etc/passwd", "/v1/tools/legion-ask%00"),
            *("/v1/tools/..%2f..%2fv1%2fforges", "/v1/tools/legion-ask/../../forges", "/v1/tools/legion-ask;x"),
            *("/mcp", "/v1/forges", "/v1/status", "/v1/tickets/1/shell", "/v1/tools/%25252e%25252e/status"),
            *("/v1/tools/legion%2dask", "/web/login", "/health", "/v1/messages", "/v1/tools/legion-ask#"),
            *("/v1/tools/legion-ask\\..\\..", "/"),
        ],
        6,
    ),
)
@pytest.mark.parametrize("by", ["agent", "machine"])
def test_only_tools_are_reached_by_the_route_for_tools(desk: Desk, by: str, path: str):
    """The agent by the relay; a machine with its token, which is what is left when its relay is broken."""
    token = f"Bearer {desk.tokens[desk.run.name]}"
    for method in ("POST", "GET"):
        if by == "agent":
            held(desk, desk.agent(method, f"{desk.tools}{path}", authorization=token))
        else:
            at = f"/runs/{desk.run.name}/1/tools"
            held(desk, desk.machine(method, f"{at}{path}", authorization=token))


@attack(Attacker.MACHINE, Door.PATHS)
@pytest.mark.parametrize("path", sampled(ODD, 6))
def test_a_machine_reaches_only_the_exact_paths_of_the_gateway(desk: Desk, path: str):
    held(desk, desk.machine("POST", f"/runs/{desk.run.name}/1/gateway{path}", x_api_key=desk.passes[desk.run.name]))


@attack(Attacker.MACHINE, Door.PATHS)
@pytest.mark.parametrize(
    "path",
    sampled(
        [
            *("/beat/", "//beat", "/./beat", "/x/../beat", "/%62eat", "/beat;", "/beat%00", "/runs/{run}/01/end"),
            *("/runs/{run}/1/end/", "/runs/{run}/+1/end", "/runs/{run}/%201/end", "/runs/{run}/1.0/end"),
            *("/runs/{run}/-1/end", "/runs/{run}//1/end", "/runs/{run}/999999999999999999999999/end"),
            *("/runs/{run}/1/result", "/runs/../runs/{run}/1/end", "/v1/status", "/projects/01/pack"),
            *("/projects/9999999999999999999999/pack", "/projects/1/pack/", "/projects/1/../1/pack"),
            *("/../../v1/status", "/%2e%2e/%2e%2e/v1/status", "/openapi.json", "/docs", "/runs/{run}/1/end%2f"),
            *("/",),
        ],
        6,
    ),
)
def test_the_routes_for_machines_have_one_spelling(desk: Desk, path: str):
    for method in ("GET", "POST", "PUT"):
        held(desk, desk.machine(method, path.format(run=desk.run.name)))


def _strangers(desk: Desk) -> dict[str, str]:
    return {
        "none": "",
        "person": "the-token-of-the-person",
        "another-run": desk.tokens[desk.foreign.name],
        "another-run-of-this-machine": desk.tokens[desk.gone.name],
        "pass": desk.passes[desk.run.name],
        "cut": desk.tokens[desk.run.name][:-1],
        "machine": desk.membership.token,
    }


@attack(Attacker.MACHINE, Door.RIGHTS)
@pytest.mark.parametrize(
    "whose", ["none", "person", "another-run", "another-run-of-this-machine", "pass", "cut", "machine"]
)
@pytest.mark.parametrize("by", ["agent", "machine"])
def test_a_tool_needs_the_token_of_the_very_run(desk: Desk, by: str, whose: str):
    token = f"Bearer {_strangers(desk)[whose]}"
    path = f"/v1/tools/{Tool.ASK.value}"
    if by == "agent":
        held(desk, desk.agent("POST", f"{desk.tools}{path}", authorization=token))
    else:
        held(desk, desk.machine("POST", f"/runs/{desk.run.name}/1/tools{path}", authorization=token))


@attack(Attacker.MACHINE, Door.RIGHTS)
@pytest.mark.parametrize("header", ["x-api-key", "x-goog-api-key", "authorization"])
def test_the_gateway_takes_no_pass_of_another_run_from_a_machine(desk: Desk, header: str):
    token = desk.passes[desk.foreign.name]
    sent = {header: f"Bearer {token}" if header == "authorization" else token}
    held(desk, desk.machine("POST", f"/runs/{desk.run.name}/1/gateway/v1/messages", **sent))
    held(desk, desk.agent("POST", f"{desk.base}/v1/messages", **sent))


@attack(Attacker.MACHINE, Door.RIGHTS)
@pytest.mark.parametrize("what", ["gateway/v1/messages", "tools/v1/tools/legion-ask", "end", "snapshot", "late"])
@pytest.mark.parametrize("whose", ["foreign", "old", "unknown"])
def test_a_machine_acts_only_for_its_own_runs(desk: Desk, what: str, whose: str):
    named = {"foreign": (desk.foreign.name, 1), "old": (desk.run.name, 2), "unknown": ("ticket-9-run-9", 1)}
    run, generation = named[whose]
    token = desk.tokens.get(run, "")
    held(desk, desk.machine("POST", f"/runs/{run}/{generation}/{what}", authorization=f"Bearer {token}"))


@attack(Attacker.MACHINE, Door.RIGHTS)
def test_a_redirect_is_neither_followed_nor_passed_on(desk: Desk):
    status, headers = desk.agent("GET", f"{desk.base}/v1/models/turned-away")
    assert status >= 500
    assert "location" not in headers
    assert [one.path for one in desk.behind.seen] == ["/v1/models/turned-away"]
    assert desk.machine("GET", f"/runs/{desk.run.name}/1/gateway/v1/models/turned-away")[0] >= 500
    assert len(desk.behind.seen) == 2


@attack(Attacker.AGENT, Door.SECRETS)
def test_a_relayed_request_carries_neither_cookies_nor_the_token_of_the_machine(desk: Desk):
    status, headers = desk.agent(
        "POST",
        f"{desk.tools}/v1/tools/{Tool.ASK.value}?cwd=/etc",
        authorization=f"Bearer {desk.tokens[desk.run.name]}",
        cookie="legion-6681=secret",
        legion_machine="forged",
        legion_session="person",
    )
    assert status == 200
    assert "set-cookie" not in headers
    (seen,) = desk.behind.seen
    assert seen.path == f"/v1/tools/{Tool.ASK.value}", "a tool takes no query"
    assert {"cookie", "legion-machine", "legion-session"} & seen.headers.keys() == set()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages?beta=true"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
        ("GET", "/v1/models"),
        ("GET", "/legion/status"),
        ("POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
    ],
)
def test_what_an_agent_needs_of_the_gateway_arrives_there(desk: Desk, method: str, path: str):
    sent = {"x-api-key": desk.passes[desk.run.name], "anthropic-version": "2023-06-01"}
    assert desk.agent(method, f"{desk.base}{path}", **sent)[0] == 200
    (seen,) = desk.behind.seen
    assert (seen.method, seen.path) == (method, path)
    assert seen.headers["anthropic-version"] == "2023-06-01"


def test_the_next_worker_knows_the_addresses_of_living_agents(desk: Desk):
    """Its relay takes the same port, and reads the secrets from the folders of the runs."""
    later = Relay(desk.root, desk.membership, lambda: desk.head.url, desk.living.get)
    desk.relay.stop()
    later.start()
    try:
        assert desk.agent("GET", f"{desk.base}/legion/status")[0] == 200
        held_back = desk.agent("GET", f"{desk.base.replace(desk.run.name, desk.gone.name)}/legion/status")
        assert held_back[0] == 404
    finally:
        later.stop()
        desk.relay = Relay(desk.root, desk.membership, lambda: desk.head.url, desk.living.get)
        desk.relay.start()
