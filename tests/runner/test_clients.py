"""The usual clients through the bridge, each for real: package managers, git over https and ssh, HTTP libraries.

What they reach is a stand-in that plays the person's own proxy and, behind it, every host of the internet.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import io
import json
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from legion.domain.egress import EgressMode, EgressPolicy, parse_places
from legion.drivers import Program
from legion.runner.bridge import NetworkBridge
from legion.runner.egress import UpstreamProxy, variables
from legion.runner.sandbox import Sandbox, SandboxNetwork
from tests.runner.runs import ENV, Workbench
from tests.runner.test_sandbox import HOME

HOST = "registry.example.org"
URL = f"https://{HOST}"
ALLOWED = EgressPolicy(mode=EgressMode.LIST, allow=parse_places([HOST, "index.crates.io", "static.crates.io"]))
METADATA = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
OF_HOST = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName=DNS:{HOST}")
BANNER = b"SSH-2.0-stand-in\r\n"


def wheel() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("tiny.py", "word = 'installed'\n")
        file.writestr("tiny-1.0.dist-info/METADATA", METADATA)
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    return made.getvalue()


def packed(**files: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as file:
        for name, text in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def pages(folder: Path) -> dict[str, bytes]:
    npm = packed(package__package_dot_json='{"name": "tiny", "version": "1.0.0"}')
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(npm).digest()).decode()
    version = {"name": "tiny", "version": "1.0.0", "dist": {"tarball": f"{URL}/tiny.tgz", "integrity": integrity}}
    manifest = '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
    crate = io.BytesIO()
    with tarfile.open(fileobj=crate, mode="w:gz") as file:
        for name, text in (("Cargo.toml", manifest), ("src/lib.rs", "")):
            entry = tarfile.TarInfo(f"tiny-1.0.0/{name}")
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    checksum = hashlib.sha256(crate.getvalue()).hexdigest()
    line = {"name": "tiny", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {}, "yanked": False}
    module = io.BytesIO()
    with zipfile.ZipFile(module, "w") as zipped:
        zipped.writestr("tiny.example/lib@v1.0.0/go.mod", "module tiny.example/lib\n")
        zipped.writestr("tiny.example/lib@v1.0.0/lib.go", "package lib\n")
    return {
        "/page": b"the page\n",
        "/simple/tiny/": b'<a href="/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>',
        "/tiny-1.0-py3-none-any.whl": wheel(),
        "/tiny": json.dumps(
            {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        ).encode(),
        "/tiny.tgz": npm,
        "/index/config.json": json.dumps({"dl": f"{URL}/crates"}).encode(),
        "/index/ti/ny/tiny": json.dumps(line).encode(),
        "/crates/tiny/1.0.0/download": crate.getvalue(),
        "/go/tiny.example/lib/@v/v1.0.0.info": b'{"Version": "v1.0.0"}',
        "/go/tiny.example/lib/@v/v1.0.0.mod": b"module tiny.example/lib\n",
        "/go/tiny.example/lib/@v/v1.0.0.zip": module.getvalue(),
        "/debian/./Packages": b"Package: tiny\nVersion: 1.0\nArchitecture: all\nFilename: tiny.deb\nSize: 1\n\n",
        **{f"/tiny.git/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()},
    }


class _Internet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    content: Mapping[str, bytes] = {}
    tls: ssl.SSLContext

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = False
        if self.path.endswith(":22"):
            self.wfile.write(BANNER)
            self.close_connection = True
        elif self.path.endswith(":443"):
            self.connection = self.tls.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")

    def do_GET(self) -> None:
        body = self.content.get(self.path.partition("?")[0].removeprefix(f"http://{HOST}"))
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        if self.path.startswith("/simple/"):
            self.send_header("Content-Type", "text/html")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")
        self.wfile.flush()

    do_HEAD = do_GET

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            super().handle()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of the stand-in, and the certificate of the authority of its hosts."""
    folder = tmp_path_factory.mktemp("internet")
    for name, more in (
        ("authority", ("-subj", "/CN=authority")),
        ("host", ("-subj", f"/CN={HOST}", "-CA", "authority.pem", "-CAkey", "authority.key", *OF_HOST)),
    ):
        made = ("-keyout", f"{name}.key", "-out", f"{name}.pem", *more)
        words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *made)
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    for asked in (["init", "-q", "src"], ["-C", "src", "commit", "-q", "--allow-empty", "-m", "first"]):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, *asked], cwd=folder, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", "src", "tiny.git"], cwd=folder, check=True)
    subprocess.run(["git", "-C", "tiny.git", "update-server-info"], cwd=folder, check=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "host.pem", folder / "host.key")
    handler = type("_", (_Internet,), {"content": pages(folder / "tiny.git"), "tls": tls})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with contextlib.closing(server.socket):
        yield server.server_address[1], folder / "authority.pem"
        server.shutdown()


PYTHON = f"{sys.executable} -c"
ASYNC = "import asyncio, aiohttp\nasync def main():\n async with aiohttp.ClientSession() as s, s.get('{0}') as r:\n"
CARGO = """mkdir -p src .cargo && touch src/lib.rs &&
printf '[package]\\nname="mine"\\nversion="1.0.0"\\nedition="2021"\\n[dependencies]\\ntiny="1"\\n' > Cargo.toml &&
printf '[source.crates-io]\\nreplace-with="here"\\n[source.here]\\n' > .cargo/config.toml &&
printf 'registry="sparse+{0}/index/"\\n' >> .cargo/config.toml &&
cargo fetch && echo reached"""
APT = """mkdir -p lists/partial cache && echo 'deb [trusted=yes] {0}/debian ./' > sources.list &&
apt-get -o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists \
 -o Dir::Cache=$PWD/cache -o Debug::NoLocking=1 -o Acquire::https::CaInfo=$CERT -o APT::Sandbox::User=root update &&
grep -rq 'Package: tiny' lists && echo reached"""
CLIENTS = {
    "curl": f"curl -sf {URL}/page && echo reached",
    "git over https": f"git clone -q {URL}/tiny.git && git -C tiny log --format=%s | grep -q first && echo reached",
    "git over ssh": f"git ls-remote ssh://git@{HOST}/tiny.git 2>&1 | grep -q 'closed by\\|reset by' ; "
    f"ssh -v -o BatchMode=yes git@{HOST} 2>&1 | grep -q 'remote software version stand-in' && echo reached",
    "pip": f"{sys.executable} -m pip install -q --no-cache-dir --index-url {URL}/simple --target lib tiny && "
    "grep -q installed lib/tiny.py && echo reached",
    "uv": f"{sys.executable} -m uv pip install -q --no-cache --index-url {URL}/simple --target lib tiny "
    f"--python {sys.executable} && grep -q installed lib/tiny.py && echo reached",
    "npm": f"npm install --silent --cafile $CERT --no-audit --no-fund --cache $PWD/.npm --registry {URL}/ tiny && "
    "test -f node_modules/tiny/package.json && echo reached",
    "cargo": CARGO.format(URL),
    "go": f"export GOPROXY={URL}/go GONOSUMDB='*' GOFLAGS=-mod=mod GOPATH=$PWD/gopath GOCACHE=$PWD/gocache;"
    " go mod download tiny.example/lib@v1.0.0 && echo reached",
    "apt": APT.format(URL),
    "requests": f"{PYTHON} \"import requests; print(requests.get('{URL}/page').text)\" | grep -q page && echo reached",
    "httpx": f"{PYTHON} \"import httpx; print(httpx.get('{URL}/page').text)\" | grep -q page && echo reached",
    "aiohttp": f'{PYTHON} "{ASYNC.format(URL + "/page")}  print(await r.text())\nasyncio.run(main())" | grep -q page '
    "&& echo reached",
    "node": f"node -e \"fetch('{URL}/page').then(r => r.text()).then(console.log)\" | grep -q page && echo reached",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_what_is_allowed(sandboxed: Workbench, internet: tuple[int, Path], client: str):
    port, certificate = internet
    program = client.split()[0]
    if program in ("npm", "cargo", "go", "node") and shutil.which(program) is None:
        pytest.skip(f"no script of its language runs here: {program} is not installed")
    known = sandboxed.worktree / "certificates.pem"
    known.write_bytes(certificate.read_bytes())
    of_clients = ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CERT")
    trusted = dict.fromkeys((*of_clients, "CARGO_HTTP_CAINFO", "REQUESTS_CA_BUNDLE"), str(known))
    homes = {"HOME": str(sandboxed.worktree), "CARGO_HOME": str(sandboxed.worktree / "cargo")}
    tools = [Path(sys.prefix), Path(sys.base_prefix), *(Path.home() / name for name in (".cargo", ".rustup"))]
    proxy = f"http://127.0.0.1:{port}"
    bridge = NetworkBridge(egress=ALLOWED, upstream=UpstreamProxy(http=proxy, https=proxy))
    box = Sandbox(
        home=HOME, writable=(sandboxed.worktree,), readable=tuple(tools), network=SandboxNetwork.NONE, bridge=bridge
    )
    path = f"{Path.home()}/.cargo/bin:{ENV['PATH']}"
    rustup = {"RUSTUP_HOME": str(Path.home() / ".rustup"), "PATH": path}
    env = {**ENV, **variables(), **trusted, **homes, **rustup}
    run = sandboxed.start(
        [], program=Program(argv=("bash", "-c", CLIENTS[client]), cwd=sandboxed.worktree, env=env), sandbox=box
    )
    sandboxed.result(run)
    said = sandboxed.output(run)
    assert said.splitlines()[-1:] == ["reached"], said
