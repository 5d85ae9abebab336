"""Tokens of a GitHub App: a signed JWT names the app, and buys a token of one installation that lasts an hour.

The private key never travels. A token is limited to one repository and is replaced before it expires.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from datetime import datetime

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from legion.forge.errors import ForgeProblem, ForgeRefused
from legion.forge.http import ForgeHttp, HttpReply

_LASTS = 540.0
"""Seconds: GitHub accepts a JWT that lasts ten minutes at most."""
_BACK = 60.0
"""The JWT counts as made that long ago, since clocks differ."""
_EARLY = 300.0
"""Seconds before its end that a token is replaced."""
_RIGHTS = {"contents": "write", "issues": "write", "pull_requests": "write", "checks": "read", "statuses": "read"}


class AppTokens:
    """May be used from several threads."""

    def __init__(
        self,
        api: str,
        repository: str,
        app: str,
        private_key: str,
        *,
        accept: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._repository = repository
        self._clock = clock
        self._key = _rsa_key(private_key)
        self._http = ForgeHttp(api, self._jwt, accept=accept, pace=0.0, clock=clock)
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0
        self._login = ""

    def token(self) -> str:
        with self._lock:
            if self._clock() > self._until - _EARLY:
                self._token, self._until = self._buy()
            return self._token

    def login(self) -> str:
        """The account that the app writes as."""
        if not self._login:
            reply = self._http.get("/app")
            self._raise_unless(reply, 200)
            self._login = f"{reply.body['slug']}[bot]"
        return self._login

    def _buy(self) -> tuple[str, float]:
        found = self._http.get(f"/repos/{self._repository}/installation")
        self._raise_unless(found, 200)
        name = self._repository.partition("/")[2]
        wanted = {"repositories": [name], "permissions": _RIGHTS}
        reply = self._http.send("POST", f"/app/installations/{int(found.body['id'])}/access_tokens", wanted)
        self._raise_unless(reply, 201)
        until = datetime.fromisoformat(str(reply.body["expires_at"]).replace("Z", "+00:00"))
        return str(reply.body["token"]), until.timestamp()

    def _jwt(self) -> str:
        now = int(self._clock())
        head = {"alg": "RS256", "typ": "JWT"}
        claims = {"iat": now - int(_BACK), "exp": now + int(_LASTS), "iss": self._app}
        signed = b".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        signature = self._key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return (signed + b"." + _encoded(signature)).decode()

    def _raise_unless(self, reply: HttpReply, good: int) -> None:
        if reply.status == good:
            return
        if reply.status == 401:
            raise ForgeRefused(f"The forge does not accept the key of app {self._app}: give the app's id and its key.")
        if reply.status == 404:
            raise ForgeRefused(f"App {self._app} is not installed in {self._repository}: install it there.")
        if reply.status == 422:
            raise ForgeRefused(
                f"App {self._app} has too few rights in {self._repository}: give it read and write access to contents, "
                "issues and pull requests, and read access to checks and commit statuses."
            )
        raise ForgeProblem(f"The forge refused a token for app {self._app} ({reply.status}): {reply.message}")


def _rsa_key(text: str) -> rsa.RSAPrivateKey:
    try:
        found = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, rsa.RSAPrivateKey):
        raise ForgeRefused("The private key of the app cannot be read: give the .pem file that GitHub made for it.")
    return found


def _encoded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
