"""Webhooks of a forge: signed over the exact bytes, each delivery once, and nothing else without a token."""

from __future__ import annotations

import hashlib
import http.client
import json

import pytest

from legion.domain.forge.connections import ForgeConnection, ForgeKind, TokenFrom
from legion.jobs.forge import clients
from legion.service.forge.hook import signature_of
from legion.store.board import forges
from legion.wire.projects import Where
from tests.api.serving import Served

BODY = b'{"zen": "Speak like a human."}'


@pytest.fixture
def secret(served: Served) -> str:
    one = ForgeConnection(
        project=1,
        kind=ForgeKind.GITHUB,
        url="https://github.com",
        repository="acme/shop",
        branch="main",
        key_from=TokenFrom.ENV,
        key_value="",
        login="",
        label="",
        milestone="",
        assignee="",
        identity="",
    )
    with served.board.store.write() as tx:
        forges.save(tx, one)
    return served.board.service.forge_hook(Where(cwd=served.board.cwd)).secret


def post(
    served: Served, signature: str, *, delivery: str = "11111111-a", body: bytes = BODY, query: str = "?project=1"
):
    line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {"X-Hub-Signature-256": signature, "X-GitHub-Delivery": delivery, "X-GitHub-Event": "ping"}
    line.request("POST", f"/v1/forge/hook{query}", body=body, headers=headers)
    answer = line.getresponse()
    content = json.loads(answer.read())
    line.close()
    return answer.status, content


def test_the_signature_is_the_one_that_github_documents():
    expected = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert signature_of("It's a Secret to Everybody", b"Hello, World!") == f"sha256={expected}"


def test_a_signed_delivery_is_accepted_once_and_makes_legion_look(served: Served, secret: str):
    clients.hurried(served.board.context)
    assert post(served, signature_of(secret, BODY)) == (202, {"new": True})
    assert clients.hurried(served.board.context) == {1}
    assert post(served, signature_of(secret, BODY)) == (202, {"new": False})
    assert post(served, signature_of(secret, BODY), delivery="22222222-b") == (202, {"new": True})


def test_without_the_right_signature_nothing_happens(served: Served, secret: str):
    clients.hurried(served.board.context)
    plain = f"sha256={hashlib.sha256(BODY).hexdigest()}"
    wrong = [
        post(served, ""),
        post(served, plain),
        post(served, signature_of("guessed", BODY)),
        post(served, signature_of("", BODY)),
        post(served, signature_of(secret, BODY), body=BODY + b" "),
        post(served, signature_of(secret, BODY), query="?project=2"),
        post(served, "sha256=\xe9"),
    ]
    assert {status for status, _ in wrong} == {401}
    assert all(secret not in str(content) for _, content in wrong)
    assert post(served, signature_of(secret, BODY), query="")[0] == 422
    assert post(served, signature_of(secret, BODY), delivery="")[0] == 422
    assert clients.hurried(served.board.context) == frozenset()
