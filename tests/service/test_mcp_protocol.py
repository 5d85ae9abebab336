"""The MCP endpoint by the letter of the protocol: what each kind of message is answered with, also a malformed one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest

from legion.api.mcp import McpApp
from legion.api.quota import Waiters
from legion.service.entry.callers import CallerRegistry
from tests.support.office import PERSONS, Office, office

BOTH = "application/json, text/event-stream"
HEADERS = {"Accept": BOTH, "Content-Type": "application/json"}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "a client", "version": "1"}}
INVALID, UNKNOWN, PARAMETERS, PARSE = -32600, -32601, -32602, -32700


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("protocol")) as one:
        yield one


def ask(method: str, id: object = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def post(here: Office, body: object, method: str = "POST", **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"Authorization": f"Bearer {PERSONS}", "Accept": BOTH, "Content-Type": "application/json", **named}
    return httpx2.request(
        method, f"http://127.0.0.1:{here.port}/mcp", content=content, headers=sent, timeout=60, verify=False
    )


@pytest.mark.parametrize(("wanted", "agreed"), [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")])
def test_the_version_is_the_clients_where_it_is_known_and_else_the_newest(here: Office, wanted: str, agreed: str):
    answer = post(here, ask("initialize", protocolVersion=wanted, **CLIENT)).json()["result"]
    assert (answer["protocolVersion"], answer["serverInfo"]["name"]) == (agreed, "legion")
    assert "tools" in answer["capabilities"]


@pytest.mark.parametrize("id", [1, "a name", 2**53])
def test_an_answer_has_the_id_of_its_question(here: Office, id: object):
    assert post(here, ask("ping", id)).json() == {"jsonrpc": "2.0", "id": id, "result": {}}


def test_a_notification_is_taken_without_an_answer(here: Office):
    answer = post(here, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")


def test_every_tool_has_a_schema_of_an_object(here: Office):
    tools = post(here, ask("tools/list")).json()["result"]["tools"]
    assert tools
    assert {tool["inputSchema"]["type"] for tool in tools} == {"object"}
    assert all(set(tool["inputSchema"].get("required", ())) <= set(tool["inputSchema"]["properties"]) for tool in tools)


NESTED = b'{"a":' * 5000 + b"1" + b"}" * 5000
BAD: list[tuple[object, int, int]] = [
    (ask("nothing/here"), 200, UNKNOWN),
    (ask("tools/call"), 200, PARAMETERS),
    (ask("tools/call", name="legion-status", arguments=[1]), 200, PARAMETERS),
    (b"{nope", 400, PARSE),
    (b"[" * 100_000, 400, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":' + NESTED + b"}}", 400, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 400, PARSE),
    ({"id": 1, "method": "ping"}, 400, PARAMETERS),
    ([ask("ping")], 400, PARAMETERS),
    ([], 400, PARAMETERS),
]


@pytest.mark.parametrize(("body", "status", "code"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_malformed_message_has_its_code_and_is_no_mistake_of_ours(here: Office, body, status: int, code: int):
    answer = post(here, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "a\0b", "message": "x"},
        {"to": "x" * 5000, "message": "x"},
        {"to": "", "message": ""},
        {"to": 5},
        {"x": "y"},
    ],
    ids=str,
)
def test_a_tool_called_wrongly_answers_the_model_with_a_sentence(here: Office, arguments: dict[str, object]):
    answer = post(here, ask("tools/call", name="legion-tell", arguments=arguments)).json()["result"]
    assert answer["isError"]
    assert answer["content"][0]["text"].endswith(".")


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Accept": "text/html"}, 406),
        ("POST", {"Content_Type": "text/plain"}, 400),
        ("POST", {"Host": "evil.example"}, 421),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("GET", {"Accept": "application/json"}, 406),
        ("DELETE", {}, 405),
    ],
)
def test_requests_of_another_form_are_refused(here: Office, method: str, headers: dict[str, str], status: int):
    assert post(here, ask("ping"), method, **headers).status_code == status


def test_the_door_opens_again_after_the_task_behind_it_has_ended():
    async def pings() -> list[int]:
        app = McpApp(cast(CallerRegistry, None), Waiters())  # a ping asks for no caller
        transport = httpx2.ASGITransport(app=app)
        found = []
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=HEADERS) as client:
            for _ in range(2):
                found.append((await client.post("/mcp", json=ask("ping"), timeout=30)).status_code)
                behind = [one for one in asyncio.all_tasks() if "_kept_open" in str(one.get_coro())]
                for one in behind:
                    one.cancel()
                await asyncio.wait(behind)
        return found

    assert asyncio.run(pings()) == [200, 200]
