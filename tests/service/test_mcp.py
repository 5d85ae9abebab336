"""Legion's tools over MCP, as any program with the official library uses them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from legion.config.files.user import DEFAULTS
from legion.wire.agents import FireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.mail import AnswerQuestion
from tests.support.office import PERSONS, Office, office

BAD_PORTS = (6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697)
"""Those near ours that the fetch standard forbids."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("mcp")) as one:
        yield one


@asynccontextmanager
async def connected(here: Office, token: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60, verify=False) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{here.port}/mcp", http_client=http)) as client,
    ):
        yield client


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_an_agent_has_its_tools_and_what_they_answer_is_structured(here: Office):
    boss = here.hire("boss")

    async def work() -> None:
        async with connected(here, boss.token) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {"legion-hire", "legion-ask", "legion-dispatch"} <= set(names)
            hired = await client.call_tool("legion-hire", {"task": "stand there", "name": "by-mcp"})
            assert hired.structured_content is not None
            assert (hired.is_error, hired.structured_content["name"]) == (False, "by-mcp")
            assert json.loads(text(hired)) == hired.structured_content
            wrong = await client.call_tool("legion-hire", {})
            assert (wrong.is_error, text(wrong)) == (True, "legion-hire needs 'task': call it again with it.")
            unknown = await client.call_tool("legion-dance", {})
            assert (unknown.is_error, "There is no tool" in text(unknown)) == (True, True)

    asyncio.run(work())
    assert here.person.agent("by-mcp").agent.parent == boss.id


def test_a_call_with_a_name_counts_once(here: Office):
    boss = here.hire("careful")
    named, nameless = ({"legion/request": name} for name in ("the same", "no\0name"))

    async def work() -> None:
        async with connected(here, boss.token) as client:
            once = [
                await client.call_tool("legion-hire", {"task": "stand there"}, meta=cast(Any, named)) for _ in range(2)
            ]
            assert once[0].structured_content == once[1].structured_content
            await client.call_tool("legion-hire", {"task": "stand there"}, meta=cast(Any, nameless))
            await client.call_tool("legion-hire", {"task": "stand there"})

    asyncio.run(work())
    assert len(here.person.agent("careful").reports) == 3


def test_a_person_leads_from_a_program_of_their_own(here: Office):
    async def work() -> None:
        async with connected(here, PERSONS) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "legion-report" not in names
            made = await client.call_tool("legion-dispatch", {"title": "by the person", "text": "x"})
            assert made.structured_content is not None
            assert here.person.ticket(made.structured_content["ticket"]).ticket.title == "by the person"
            seen = await client.call_tool("legion-status", {})
            assert seen.structured_content is not None
            assert seen.structured_content["you"] == "root"

    asyncio.run(work())


def test_a_question_is_waited_for(here: Office):
    asker = here.hire("asker")

    async def ask() -> CallToolResult:
        async with connected(here, asker.token) as client:
            return await client.call_tool("legion-ask", {"question": "Left or right?", "choices": ["left", "right"]})

    answers: list[CallToolResult] = []
    asking = threading.Thread(target=lambda: answers.append(asyncio.run(ask())))
    asking.start()
    seen = 0
    while not (waiting := [one for one in here.person.inbox().questions if one.agent == asker.id]):
        seen = here.person.wait(here.cwd, [], after_event=seen, timeout=5).last_event
    here.person.answer(waiting[0].id, AnswerQuestion(choice="right"))
    asking.join(60)
    assert answers[0].structured_content == {"answered": True, "answer": "right"}


@pytest.mark.parametrize("token", ["wrong", "legion-agent-wrong", "root"])
def test_without_a_token_there_is_no_door(here: Office, token):
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx2.post(f"http://127.0.0.1:{here.port}/mcp", json=body, headers=headers, verify=False)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_allowed")


def test_a_page_of_another_site_is_kept_out(here: Office):
    headers = {"Authorization": f"Bearer {PERSONS}", "Origin": "https://evil.example"}
    assert httpx2.post(f"http://127.0.0.1:{here.port}/mcp", json={}, headers=headers, verify=False).status_code == 403


def test_a_fired_agent_is_put_out_in_the_middle_of_its_conversation(here: Office):
    gone = here.hire("gone")

    async def work() -> None:
        async with connected(here, gone.token) as client:
            assert not (await client.call_tool("legion-status", {})).is_error
            here.person.fire(FireAgent(id=gone.id))
            with pytest.raises(MCPError, match="error response"):
                await client.call_tool("legion-status", {})

    asyncio.run(work())


def test_the_agent_of_a_ticket_sees_two_tools(here: Office):
    wanted = NewTicket(title="t", driver="claude", ask=True)
    token = here.of_ticket(here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[wanted])).ids[0])

    async def work() -> list[str]:
        async with connected(here, token) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(work()) == ["legion-report", "legion-ask"]


def test_its_port_is_one_that_browsers_and_node_accept():
    assert DEFAULTS.daemon.mcp_port not in BAD_PORTS
