"""The stand-in of GitHub with a GitHub App that sells tokens, faults on purpose, and lists that lag behind."""

from __future__ import annotations

import base64
import json
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from legion.demo.forge import server
from legion.demo.forge.routes import GitHubAnswer, GitHubRequest, refused

CALLER = "app/"
"""The start of the caller's name where a request carries the app's JWT."""


@dataclass(kw_only=True)
class Fault:
    """An answer that the next requests get instead of theirs."""

    answer: GitHubAnswer
    times: int = 1
    match: str = ""
    """Only requests whose `METHOD /path` holds this text."""
    after: bool = False
    """The request is carried out first, as when an answer is lost on its way."""


@dataclass(kw_only=True)
class StandIn(server.StandIn):
    faults: list[Fault] = field(default_factory=list)
    stale: dict[str, int] = field(default_factory=dict)
    """By start of a path: how many more reads still get the answer from before the last write."""
    app: HostedApp | None = None
    graphql: Callable[[dict[str, Any], StandIn], Any] | None = None
    """Answers queries of other programs; mutations of Legion are answered without it."""
    _old: dict[str, GitHubAnswer] = field(default_factory=dict)

    def caller_of(self, token: str) -> str:
        return super().caller_of(token) or (self.app.caller_of(token) if self.app is not None else "")

    def answer(self, request: GitHubRequest) -> GitHubAnswer:
        fault = self._fault(request)
        if fault is not None and not fault.after:
            return fault.answer
        found = self._own(request) or super().answer(request)
        if request.method == "GET" and found.status == 200:
            found = self._consistent(request, found)
        return fault.answer if fault is not None else found

    def _own(self, request: GitHubRequest) -> GitHubAnswer | None:
        """What only the app or another program is answered."""
        if not request.caller:
            return None
        if self.app is not None and request.caller.startswith(CALLER):
            return self.app.answer(request)
        if request.path == "/user" and request.caller.endswith("[bot]"):
            return refused(403, "Resource not accessible by integration")
        ours = "pull" in (request.body.get("variables") or {})
        if request.path == "/graphql" and self.graphql is not None and not ours:
            return GitHubAnswer(body=self.graphql(request.body, self))
        return None

    def _fault(self, request: GitHubRequest) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.match in f"{request.method} {request.path}":
                fault.times -= 1
                return fault
        return None

    def _consistent(self, request: GitHubRequest, found: GitHubAnswer) -> GitHubAnswer:
        """GitHub's lists may lag behind its writes; `stale` says which do here, and how often."""
        key = f"{request.path}?{urlencode(sorted(request.query.items()))}"
        for start, left in self.stale.items():
            if left > 0 and request.path.startswith(start) and key in self._old:
                self.stale[start] = left - 1
                return self._old[key]
        self._old[key] = found
        return found


_LONGEST = 600
_LASTS = 3600.0
_SKEW = 60


@dataclass(kw_only=True)
class HostedApp:
    id: str
    slug: str
    public_key: rsa.RSAPublicKey
    repository: str
    """The full name of the only repository that it is installed in; empty: none."""
    granted: dict[str, str]
    """What its installation may do, by kind."""
    clock: Callable[[], float] = time.time
    sold: dict[str, float] = field(default_factory=dict)
    """Tokens, and when each expires."""

    @property
    def login(self) -> str:
        return f"{self.slug}[bot]"

    def caller_of(self, token: str) -> str:
        """The caller that a token or a JWT belongs to; empty where it counts no longer, or never did."""
        if token in self.sold:
            return self.login if self.sold[token] > self.clock() else ""
        return f"{CALLER}{self.slug}" if self._is_valid(token) else ""

    def answer(self, request: GitHubRequest) -> GitHubAnswer:
        if request.path == "/app":
            return GitHubAnswer(body={"id": 1, "slug": self.slug, "name": self.slug, "client_id": self.id})
        if request.path == f"/repos/{self.repository}/installation":
            return GitHubAnswer(body={"id": 7, "app_slug": self.slug, "permissions": self.granted})
        if request.method == "POST" and request.path == "/app/installations/7/access_tokens":
            return self._sell(request.body)
        return refused(404, "Not Found")

    def _sell(self, wanted: dict[str, Any]) -> GitHubAnswer:
        rights = wanted.get("permissions") or self.granted
        if any(self.granted.get(kind) not in (right, "write") for kind, right in rights.items()):
            return refused(422, "The permissions requested are not granted to this installation.")
        token, until = f"ghs_{uuid.uuid4().hex}", self.clock() + _LASTS
        self.sold[token] = until
        expires = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"token": token, "expires_at": expires, "permissions": rights, "repository_selection": "selected"}
        return GitHubAnswer(status=201, body=body)

    def _is_valid(self, token: str) -> bool:
        if not re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token):
            return False
        signed, _, signature = token.rpartition(".")
        try:
            self.public_key.verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            head, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        except (InvalidSignature, ValueError):
            return False
        now = self.clock()
        in_time = claims["iat"] <= now + _SKEW and now < claims["exp"] <= now + _LONGEST
        return bool(head["alg"] == "RS256" and claims["iss"] == self.id and in_time)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
