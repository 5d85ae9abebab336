"""A long-lived login is exchanged for short-lived tokens; programs and errors contain neither."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from legion.gateway.access.provider import KeyFrom, KeySource, KeyStyle, ProviderDialect
from tests.gateway.dialects.bodies import CHAT_STREAM, CLAUDE_CODE
from tests.gateway.gateways import Running
from tests.gateway.upstream import Exchange, Upstream

LASTING = "gho_lasting0123456789abcdef"
ASKED = json.dumps(CLAUDE_CODE).encode()


class Vendor:
    """Gives tokens at /token and answers at /chat/completions to requests with the last one."""

    def __init__(self, lasts: float = 1800.0) -> None:
        self.lasts = lasts
        self.given: list[str] = []
        self.shown: list[Exchange] = []
        self.status = 200

    def __call__(self, exchange: Exchange) -> None:
        if exchange.line.startswith("GET /token"):
            self._give(exchange)
        elif exchange.header("authorization") == f"Bearer {self.given[-1]}":
            self.shown.append(exchange)
            exchange.begin(CHAT_STREAM)
            exchange.finish()
        else:
            exchange.reply(401, f'{{"error": "bad {exchange.header("authorization")}"}}'.encode())

    def _give(self, exchange: Exchange) -> None:
        if self.status != 200 or exchange.header("authorization") != f"token {LASTING}":
            exchange.reply(self.status if self.status != 200 else 401, b"{}")
            return
        self.given.append(f"tid=short-{len(self.given)};sku=x")
        body = {"token": self.given[-1], "expires_at": time.time() + self.lasts}
        exchange.reply(200, json.dumps(body).encode())


@pytest.fixture
def login(gateway: Running, upstream: Upstream, tmp_path: Path) -> Running:
    file = tmp_path / "login"
    file.write_text(LASTING)
    file.chmod(0o600)
    gateway.provide(
        upstream.url,
        KeySource(origin=KeyFrom.FILE, where=str(file)),
        auth=KeyStyle.EXCHANGED,
        kind=ProviderDialect.OPENAI_CHAT,
        token_url=f"{upstream.url}/token",
    )
    return gateway


def test_a_login_is_exchanged_once_and_its_token_is_used_until_it_ends(login, upstream):
    upstream.script = vendor = Vendor()
    _, token = login.grant()
    assert [login.ask(token, ASKED)[0] for _ in range(3)] == [200] * 3
    assert (len(vendor.given), len(vendor.shown)) == (1, 3)
    first = vendor.shown[0]
    assert first.line == "POST /chat/completions HTTP/1.1"
    assert first.header("copilot-integration-id") == "vscode-chat"
    assert first.header("editor-version")
    assert LASTING not in first.head.decode()


def test_a_token_that_is_not_taken_any_more_is_exchanged_anew(login, upstream):
    upstream.script = vendor = Vendor()
    _, token = login.grant()
    assert login.ask(token, ASKED)[0] == 200
    vendor.given.append("another one counts now")
    status, reply = login.ask(token, ASKED)
    assert status == 401
    assert b"short-0" not in reply
    assert login.ask(token, ASKED)[0] == 200
    assert vendor.given[-1].startswith("tid=short-2")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "the login was refused (401); run `legion provider login main` again."),
        (500, "127.0.0.1 returned no token (500); try again later."),
    ],
)
def test_a_login_that_opens_nothing_is_said_without_it(login, upstream, status, sentence):
    upstream.script = vendor = Vendor()
    vendor.status = status
    run, token = login.grant()
    assert login.refused(token, ASKED) == (
        400, "invalid_request_error", f"legion: no key for provider main: {sentence}",
    )  # fmt: skip
    assert login.entry(run).error == "no_key"


def test_an_answer_that_is_no_token_is_said(login, upstream):
    upstream.script = lambda exchange: exchange.reply(200, b'{"token": "a b", "expires_at": 1}')
    _, token = login.grant()
    assert "returned something else than a token; update Legion." in login.refused(token, ASKED)[2]
