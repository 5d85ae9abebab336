"""Webhooks of a forge: signed over the exact bytes, each delivery once, and nothing else without a token."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess

import pytest

from legion.domain.forge.connections import ForgeConnection, ForgeKind, TokenFrom
from legion.jobs.forge import clients
from legion.service.forge.connections import signature_of
from legion.store.board import forges
from legion.wire.projects import Where
from tests.api.serving import TOKEN, Served
from tests.support import programs

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
    served: Served,
    signature: str,
    *,
    delivery: str = "11111111-a",
    body: bytes = BODY,
    query: str = "?project=1",
    more: dict[str, str] | None = None,
):
    line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {
        "X-Hub-Signature-256": signature,
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "ping",
        **(more or {}),
    }
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
    assert clients.hurried(served.board.context) == frozenset(), "a replay causes no look"
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


def test_a_tunnel_of_any_name_reaches_the_webhook_and_nothing_else(served: Served, secret: str):
    tunnel = {"Host": "cat-dog.tunnel.example", "X-Forwarded-For": "140.82.112.1"}
    assert post(served, signature_of(secret, BODY), delivery="33333333-c", more=tunnel) == (202, {"new": True})
    assert post(served, signature_of("guessed", BODY), delivery="44444444-d", more=tunnel)[0] == 401
    page = {"Host": tunnel["Host"], "Origin": "https://elsewhere.example"}
    assert post(served, signature_of(secret, BODY), delivery="55555555-e", more=page)[0] == 403
    for path in ("/health", "/", "/v1/status", "/v1/forges", "/v1/forge/hook/"):
        line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        line.request("GET", path, headers={**tunnel, "Authorization": f"Bearer {TOKEN}"})
        assert line.getresponse().status == 421, path
        line.close()


REFEREE = """
import { sign, verify } from "@octokit/webhooks-methods";
const cases = JSON.parse(await new Response(process.stdin).text());
for (const one of cases) {
  one.theirs = await sign(one.secret, one.body);
  one.accepts = await verify(one.secret, one.body, one.ours);
  const others = [[one.secret, one.body + " "], ["x" + one.secret, one.body]];
  const accepted = await Promise.all(others.map(([secret, body]) => verify(secret, body, one.ours)));
  one.refuses = !accepted.includes(true);
}
console.log(JSON.stringify(cases));
"""


@pytest.mark.soak
def test_the_signature_of_octokit_is_ours_both_ways(served: Served, secret: str):
    """The published implementation of GitHub's own libraries is the referee."""
    folder = programs.library("@octokit/webhooks-methods", "6.0.0")
    (folder / "referee.mjs").write_text(REFEREE)
    bodies = [
        '{"a": 1}',
        '{"zen": "Gr\u00f6\u00dfe \u65e5\u672c \U0001f600"}',
        "\n",
        "x" * 100_000,
        '{"nul": "\\u0000"}',
    ]
    secrets = [secret, "short", "It's a Secret to Everybody", "\u00e4\u00f6"]
    cases = [{"secret": key, "body": body} for key in secrets for body in bodies]
    for one in cases:
        one["ours"] = signature_of(one["secret"], one["body"].encode())
    words = ("node", str(folder / "referee.mjs"))
    done = subprocess.run(words, input=json.dumps(cases), capture_output=True, text=True, timeout=60, check=True)
    judged = json.loads(done.stdout)
    assert len(judged) == len(cases)
    assert all(one["theirs"] == one["ours"] and one["accepts"] and one["refuses"] for one in judged)
    for number, one in enumerate(judged):
        if one["secret"] == secret:
            body = one["body"].encode()
            assert post(served, one["theirs"], delivery=f"octokit-{number}", body=body) == (202, {"new": True})
