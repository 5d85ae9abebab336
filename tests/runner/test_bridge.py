"""The bridge: what a sandbox with its own loopback reaches, what it does not, and what is recorded of it."""

from __future__ import annotations

import contextlib
import http.server
import shlex
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import psutil
import pytest

from legion.domain.egress import EgressMode, EgressPolicy, parse_places
from legion.drivers import Program
from legion.runner.bridge import NetworkBridge
from legion.runner.egress import PORT, UpstreamProxy, variables
from legion.runner.journal import JournalKind, read_journal
from legion.runner.sandbox import Sandbox, SandboxNetwork
from tests.runner.runs import ENV, Workbench
from tests.runner.test_sandbox import HOME
from tests.support.attacks import Attacker, Door, attack

NO_PROXY = UpstreamProxy()
PUBLIC = EgressPolicy(mode=EgressMode.PUBLIC)
TOKEN = "lgn_of-this-run"
AT_ONCE = 200


class _Answer(http.server.BaseHTTPRequestHandler):
    """Says what it was asked; as a proxy it answers for every host."""

    def do_GET(self) -> None:
        body = f"{self.path} {self.headers['Host']} {self.headers.get('Authorization', '-')}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.connection.sendall(f"tunnel to {self.path}\n".encode())
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(host: str = "127.0.0.1") -> Iterator[int]:
    server = http.server.ThreadingHTTPServer((host, 0), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def box(bench: Workbench, egress: EgressPolicy = PUBLIC, upstream: UpstreamProxy = NO_PROXY, **more: object) -> Sandbox:
    bridge = NetworkBridge(egress=egress, upstream=upstream, **more)  # type: ignore[arg-type]
    return Sandbox(home=HOME, writable=(bench.worktree,), network=SandboxNetwork.NONE, bridge=bridge)


def inside(bench: Workbench, script: str, sandbox: Sandbox) -> tuple[list[str], list[tuple[object, ...]]]:
    """What the script prints, and what was refused to it."""
    program = Program(argv=("bash", "-c", script), cwd=bench.worktree, env={**ENV, **variables()})
    run = bench.start([], program=program, sandbox=sandbox)
    bench.result(run)
    refused = [event.facts for event in read_journal(run) if event.kind == JournalKind.REFUSED.value]
    return bench.output(run).splitlines(), [(one["host"], one["port"], one["why"]) for one in refused]


def greet(listener: socket.socket) -> None:
    end, _ = listener.accept()
    with end:
        end.sendall(b"here")


def own_address() -> str:
    found = [one.address for of in psutil.net_if_addrs().values() for one in of if one.family is socket.AF_INET]
    return next(one for one in found if not one.startswith("127."))


@attack(Attacker.AGENT, Door.SANDBOX)
def test_a_sandbox_reaches_the_ports_of_its_bridge_and_no_other(sandboxed: Workbench):
    with serving() as open_port, serving() as other:
        script = "".join(
            f"curl -s --noproxy '*' http://127.0.0.1:{port}/{name} || echo no {name};"
            for port, name in ((open_port, "open"), (other, "other"))
        )
        said, _ = inside(sandboxed, script, box(sandboxed, forwards=(open_port,)))
        assert said == [f"/open 127.0.0.1:{open_port} -", "no other"]


@attack(Attacker.AGENT, Door.BOUNDS)
def test_a_program_that_opens_connections_without_end_gets_so_many_at_once(sandboxed: Workbench):
    script = f"""import select, socket
held = [socket.create_connection(("127.0.0.1", {PORT})) for _ in range({AT_ONCE + 40})]
closed = set()
while len(closed) < 40:
    closed |= set(select.select([one for one in held if one not in closed], [], [])[0])
print(len(closed), len(select.select([one for one in held if one not in closed], [], [], 1)[0]))
"""
    said, _ = inside(sandboxed, f"python3 -c {shlex.quote(script)}", box(sandboxed))
    assert said == ["40 0"]


def test_a_socket_that_the_person_named_answers_at_its_path(sandboxed: Workbench, tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to("real")
    script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect({!r}); print(s.recv(9).decode())"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as other:
        for one, path in ((named, "run/named"), (other, "run/other")):
            one.bind(str(tmp_path / path))
            one.listen()
        threading.Thread(target=greet, args=(named,), daemon=True).start()
        sockets = (tmp_path / "run" / "named", tmp_path / "run" / "gone")
        opened = box(sandboxed, sockets=sockets)
        asked = [
            f"python3 -c {shlex.quote(script.format(str(tmp_path / 'real' / name)))}" for name in ("named", "other")
        ]
        said, _ = inside(sandboxed, f"{asked[0]}; {asked[1]} 2>/dev/null || echo nothing", opened)
        assert said == ["here", "nothing"]


def test_a_program_that_knows_of_no_proxy_reaches_what_is_allowed(sandboxed: Workbench):
    """By its own look-up of the name, as aiohttp, older node and ssh do."""
    with serving() as proxy:
        upstream = UpstreamProxy(http=f"http://127.0.0.1:{proxy}", https=f"http://127.0.0.1:{proxy}")
        policy = EgressPolicy(mode=EgressMode.LIST, allow=parse_places(["files.example.org", "odd.example.org:8443"]))
        script = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY;"
        script += "curl -s -i -m 20 http://other.example.org/ | tr -d '\\r' | sed -n '1p;$p';"
        script += "for place in files.example.org/80 odd.example.org/8443 odd.example.org/80; do"
        script += " exec 3<>/dev/tcp/$place; head -1 <&3; exec 3>&-; done;"
        script += "getent ahostsv4 localhost.example.org | head -1 | cut -d' ' -f1; getent hosts db || echo unknown"
        said, refused = inside(sandboxed, script, box(sandboxed, policy, upstream))
    assert said[0] == "HTTP/1.1 403 Forbidden"
    assert said[1].startswith("Legion: other.example.org:80 is not in the list of `sandbox.allow`.")
    assert said[2:4] == ["tunnel to files.example.org:80", "tunnel to odd.example.org:8443"]
    assert said[-2].startswith("127.")
    assert said[-1] == "unknown"
    assert [one[:2] for one in refused] == [("other.example.org", 80), ("odd.example.org", 80)]


def test_without_a_network_no_name_leads_anywhere(sandboxed: Workbench):
    script = "getent hosts files.example.org || echo unknown; (exec 3<>/dev/tcp/127.0.0.1/443) 2>/dev/null || echo none"
    said, _ = inside(sandboxed, script, box(sandboxed, EgressPolicy(mode=EgressMode.NONE)))
    assert said == ["unknown", "none"]


@attack(Attacker.AGENT, Door.SANDBOX)
def test_no_port_of_the_host_is_reached_by_any_name_of_it(sandboxed: Workbench):
    with serving("0.0.0.0") as port:
        hosts = (
            "127.0.0.1",
            "127.1",
            "2130706433",
            "[::1]",
            "0.0.0.0",
            "localhost",
            own_address(),
            socket.gethostname(),
        )
        script = "".join(
            f"curl -s -o /dev/null -w '%{{http_code}}\\n' {how} http://{host}:{port}/;"
            for host in hosts
            for how in ("--noproxy none -x http://127.0.0.1:3128", "-x socks5h://127.0.0.1:3128", "--noproxy '*'")
        )
        said, refused = inside(sandboxed, script, box(sandboxed))
        assert set(said) <= {"403", "400", "000"}, dict(zip(hosts, said[::3], strict=True))
        assert "localhost" in {host for host, _, _ in refused}


def test_what_is_public_goes_on_through_the_persons_own_proxy(sandboxed: Workbench):
    with serving() as proxy:
        upstream = UpstreamProxy(http=f"http://127.0.0.1:{proxy}", https=f"http://127.0.0.1:{proxy}")
        script = "curl -s http://files.example.org/a; exec 3<>/dev/tcp/127.0.0.1/3128;"
        script += "printf 'CONNECT files.example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
        said, refused = inside(sandboxed, script, box(sandboxed, upstream=upstream))
        assert (said[0], said[-1]) == (
            "http://files.example.org/a files.example.org -",
            "tunnel to files.example.org:443",
        )
        assert refused == []


@attack(Attacker.AGENT, Door.SANDBOX)
def test_the_persons_own_proxy_leads_to_nothing_of_this_machine(sandboxed: Workbench):
    with serving() as proxy:
        upstream = UpstreamProxy(http=f"http://127.0.0.1:{proxy}", https=f"http://127.0.0.1:{proxy}")
        hosts = ("localhost", "a.localhost", socket.gethostname(), "127.0.0.1", own_address())
        script = "".join(
            f"curl -s -o /dev/null -w '%{{http_code}}\\n' --noproxy none http://{host}/;"
            f"exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT {host}:{proxy} HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3;"
            for host in hosts
        )
        said, _ = inside(sandboxed, script, box(sandboxed, upstream=upstream))
        assert "200" not in said
        assert not [line for line in said if "tunnel to" in line]


@attack(Attacker.AGENT, Door.SANDBOX)
@pytest.mark.parametrize("target", ["http://10.0.0.1\\@files.example.org/b", "HTTP://a:b@files.example.org:80/b"])
def test_the_persons_own_proxy_reads_the_address_that_was_looked_at(sandboxed: Workbench, target: str):
    with serving() as proxy:
        (sandboxed.worktree / "asks").write_bytes(f"GET {target} HTTP/1.1\r\n\r\n".encode())
        upstream = UpstreamProxy(http=f"http://127.0.0.1:{proxy}")
        script = "exec 3<>/dev/tcp/127.0.0.1/3128; cat asks >&3; cat <&3"
        said, _ = inside(sandboxed, script, box(sandboxed, upstream=upstream))
        assert said[-1] == "http://files.example.org/b files.example.org -"


def test_what_the_person_named_is_reached_where_it_is(sandboxed: Workbench):
    host = own_address()
    with serving(host) as port:
        policy = EgressPolicy(mode=EgressMode.LIST, allow=parse_places([host]), private=parse_places([host]))
        script = f"curl -s http://{host}:{port}/a; curl -s -x socks5h://127.0.0.1:3128 http://{host}:{port}/b"
        said, _ = inside(sandboxed, script, box(sandboxed, policy))
        assert said == [f"/a {host}:{port} -", f"/b {host}:{port} -"]


def test_a_refusal_says_what_to_do_and_is_recorded_once(sandboxed: Workbench):
    policy = EgressPolicy(mode=EgressMode.LIST, allow=parse_places(["example.org"]))
    script = "for n in 1 2 3; do curl -s http://files.example.org/; done"
    said, refused = inside(sandboxed, script, box(sandboxed, policy))
    assert said[0].startswith("Legion: files.example.org:80 is not in the list of `sandbox.allow`.")
    assert len(said) == 3
    assert refused == [("files.example.org", 80, "is not in the list of `sandbox.allow`")]


def hello_of(name: str, pieces: int) -> bytes:
    """The first message of a TLS client. In two records no reader of one finds the name."""
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ours, theirs, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    message = theirs.read()[5:]
    parts = (message,) if pieces == 1 else (message[:50], message[50:])
    return b"".join(b"\x16\x03\x01" + len(one).to_bytes(2, "big") + one for one in parts)


@contextlib.contextmanager
def silent_proxy() -> Iterator[tuple[int, SimpleQueue[bytes]]]:
    """A proxy whose tunnels lead nowhere and say nothing first; and what was sent through them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        got: SimpleQueue[bytes] = SimpleQueue()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    end, _ = server.accept()
                    with end, end.makefile("rb") as lines:
                        while lines.readline().strip():
                            pass
                        end.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                        got.put(lines.read1())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], got


@attack(Attacker.AGENT, Door.SANDBOX)
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("asked", ["files.example.org", "other.example.org"])
def test_a_tls_client_asks_for_the_name_that_it_connected_to(sandboxed: Workbench, asked: str, pieces: int):
    hello = hello_of(asked, pieces)
    (sandboxed.worktree / "hello").write_bytes(hello)
    script = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT files.example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3;"
    script += "head -n 2 <&3; cat hello >&3; cat <&3"
    with silent_proxy() as (port, got):
        upstream = UpstreamProxy(https=f"http://127.0.0.1:{port}")
        _, refused = inside(sandboxed, script, box(sandboxed, upstream=upstream))
        # The proxy may see the end of the tunnel after the program's own.
        sent = got.get(timeout=30)
    assert (sent, [one[0] for one in refused]) == (
        (hello, []) if (asked, pieces) == ("files.example.org", 1) else (b"", ["files.example.org"])
    )


@attack(Attacker.AGENT, Door.SANDBOX)
def test_legions_api_answers_to_the_token_of_the_run_alone(sandboxed: Workbench):
    with serving() as port:
        url = f"http://127.0.0.1:{port}/v1/status"
        calls = (
            f"{url}",
            f"-H 'Authorization: Bearer other' {url}",
            f"-H 'Authorization: Bearer {TOKEN}' -H 'Authorization: Bearer other' {url}",
            f"-H 'Authorization: Bearer {TOKEN}' {url}",
        )
        script = "".join(f"curl -s -w '\\n' --noproxy '*' {call};" for call in calls)
        said, _ = inside(sandboxed, script, box(sandboxed, api=(port,), tokens=(TOKEN,)))
        answers = [line for line in said if line]
        assert ["only to the token of this run" in line for line in answers] == [True, True, True, False]
        assert answers[3].endswith(f"Bearer {TOKEN}")


def test_the_host_opens_what_the_run_serves_on_its_own_ports(sandboxed: Workbench):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pipe = sandboxed.pipe("ready")
    script = f"python3 -m http.server --bind 127.0.0.1 {port} >/dev/null 2>&1 & "
    script += f"until curl -s -o /dev/null --noproxy '*' http://127.0.0.1:{port}/; do :; done; echo up > ready; wait"
    program = Program(argv=("bash", "-c", script), cwd=sandboxed.worktree, env={**ENV, **variables()})
    (sandboxed.worktree / "page.txt").write_text("from inside\n")
    sandboxed.start([], program=program, sandbox=box(sandboxed, inward=(port,)))
    assert pipe.line() == "up"
    with socket.create_connection(("127.0.0.1", port)) as end:
        end.sendall(b"GET /page.txt HTTP/1.0\r\n\r\n")
        with end.makefile("rb") as answer:
            assert b"from inside" in answer.read()


@pytest.mark.parametrize("runs", [8])
def test_runs_have_loopbacks_of_their_own(sandboxed: Workbench, runs: int):
    script = 'python3 -c \'import socket; socket.create_server(("127.0.0.1", 8000)); print("mine")\''
    program = Program(argv=("bash", "-c", script), cwd=sandboxed.worktree, env=ENV)
    started = [sandboxed.start([], program=program, sandbox=box(sandboxed)) for _ in range(runs)]
    assert [sandboxed.result(run).exit_code for run in started] == [0] * runs
    assert {sandboxed.output(run) for run in started} == {"mine\n"}
