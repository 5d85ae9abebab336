"""The stand-in as a server: tokens, also of a GitHub App, pages, ETags, limits, faults on purpose, webhooks, git."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from legion.demo.forge.routes import GitHubAnswer, GitHubRequest, GitHubRoutes, refused
from legion.demo.forge.shapes import GitHubShapes
from legion.demo.forge.state import Hosted

_PREFIX = "/api/v3"
_MOST_PER_PAGE = 100
_LIMIT = 5000


@dataclass(kw_only=True)
class ReceivedRequest:
    """One request as it arrived."""

    method: str
    path: str
    status: int
    caller: str


@dataclass(kw_only=True)
class StandIn:
    """One GitHub with one repository. `tokens` maps each token to the login that it belongs to."""

    hosted: Hosted
    tokens: dict[str, str]
    port: int = 0
    requests: list[ReceivedRequest] = field(default_factory=list)
    used: int = 0
    """Requests that counted against the hourly limit; those answered with 304 do not."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        return f"{self.url}{_PREFIX}"

    @property
    def clone_url(self) -> str:
        return f"{self.url}/{self.hosted.full_name}.git"

    def caller_of(self, token: str) -> str:
        """The login that a token belongs to; empty for an unknown one."""
        return self.tokens.get(token, "")

    def answer(self, request: GitHubRequest) -> GitHubAnswer:
        if not request.caller and request.path != "/meta":
            return refused(401, "Bad credentials")
        return GitHubRoutes(GitHubShapes(self.hosted, self.api, self.url)).answer(request)


_Served = TypeVar("_Served", bound=StandIn)


@contextmanager
def serving(stand_in: _Served, *, port: int = 0) -> Iterator[_Served]:
    """Serve until the block ends."""

    class Handler(_Handler):
        forge = stand_in

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    stand_in.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="forge-stand-in", daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    forge: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """The server prints nothing."""

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        raw = self._raw_body()
        if re.match(r"/[^/]+/[^/]+\.git/", parts.path):
            self._git(parts.path, parts.query, raw)
            return
        path = unquote(parts.path.removeprefix(_PREFIX)) or "/"
        path = "/graphql" if path == "/api/graphql" else path
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        request = GitHubRequest(
            method=self.command, path=path, query=dict(parse_qsl(parts.query)), body=body, caller=self._caller()
        )
        self._send(request, self.forge.answer(request))

    def _raw_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _caller(self) -> str:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":
            value = base64.b64decode(value).decode().partition(":")[2]
        return self.forge.caller_of(value)

    def _send(self, request: GitHubRequest, answer: GitHubAnswer) -> None:
        body, headers = answer.body, dict(answer.headers)
        if answer.listed:
            body, links = self._page(request, answer.body)
            headers |= {"Link": links} if links else {}
        elif answer.listed_as:
            rows, links = self._page(request, answer.body[answer.listed_as])
            body = {**answer.body, answer.listed_as: rows}
            headers |= {"Link": links} if links else {}
        raw = b"" if body is None else json.dumps(body).encode()
        status = answer.status
        if status == 200 and request.method == "GET":
            etag = f'W/"{hashlib.sha256(raw + request.caller.encode()).hexdigest()}"'
            headers["ETag"] = etag
            if self.headers.get("If-None-Match") == etag:
                status, raw = 304, b""
        self.forge.used += status != 304
        self.forge.requests.append(
            ReceivedRequest(method=request.method, path=request.path, status=status, caller=request.caller)
        )
        headers = {
            "X-RateLimit-Limit": str(_LIMIT),
            "X-RateLimit-Remaining": str(_LIMIT - self.forge.used),
            "X-RateLimit-Reset": str(int(time.time()) + 3600),
            "X-GitHub-Request-Id": uuid.uuid4().hex,
            "X-OAuth-Scopes": "repo",
            **headers,
        }
        self._reply(status, headers, raw, "application/json; charset=utf-8")

    def _reply(self, status: int, headers: Mapping[str, str], raw: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if status not in (204, 304):
            self.wfile.write(raw)

    def _page(self, request: GitHubRequest, rows: list[Any]) -> tuple[list[Any], str]:
        """One page, and the links to the others, which name the repository by its number as GitHub's do."""
        size = min(int(request.query.get("per_page", 30)), _MOST_PER_PAGE)
        page = int(request.query.get("page", 1))
        last = max(1, -(-len(rows) // size))
        path = re.sub(r"^/repos/[^/]+/[^/]+", f"/repositories/{self.forge.hosted.id}", request.path)

        def link(number: int, name: str) -> str:
            query = urlencode({**request.query, "per_page": size, "page": number})
            return f'<{self.forge.api}{path}?{query}>; rel="{name}"'

        links = [link(page - 1, "prev")] if page > 1 else []
        links += [link(page + 1, "next"), link(last, "last")] if page < last else []
        links += [link(1, "first")] if page > 1 else []
        return rows[(page - 1) * size : page * size], ", ".join(links)

    def _git(self, path: str, query: str, raw: bytes) -> None:
        """Hand the request to git's own server program, which also decides what a token may push."""
        name = path[1 : path.index(".git/")]
        caller = self._caller()
        pushes = "git-receive-pack" in f"{path}?{query}"
        if name != self.forge.hosted.full_name:
            self._reply(404, {}, b"Repository not found.\n", "text/plain")
            return
        if not caller:
            self._reply(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"Authentication required.\n", "text/plain")
            return
        if pushes and not self.forge.hosted.may(caller, "write"):
            self._reply(403, {}, b"Permission to repository denied.\n", "text/plain")
            return
        self.forge.requests.append(ReceivedRequest(method=self.command, path=path, status=200, caller=caller))
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "GIT_PROJECT_ROOT": str(self.forge.hosted.bare.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{self.forge.hosted.bare.name}/{path[path.index('.git/') + 5 :]}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": caller,
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": "/nonexistent",
        }
        done = subprocess.run(("git", "http-backend"), input=raw, env=env, capture_output=True, timeout=60, check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        kind = headers.pop("Content-Type", "text/plain")
        self._reply(status, headers, body, kind)
        if pushes and self.command == "POST":
            self.forge.hosted.refresh()


def make_bare(source: Path, bare: Path) -> Path:
    """A bare repository with the branches of `source`, ready to be pushed to."""
    subprocess.run(("git", "clone", "--quiet", "--bare", str(source), str(bare)), check=True, capture_output=True)
    subprocess.run(("git", "-C", str(bare), "config", "http.receivepack", "true"), check=True)
    return bare
