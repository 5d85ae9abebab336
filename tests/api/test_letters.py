"""Letters of programs that no encoding holds: whatever row or file has them, every page about them is answered."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from legion.api.json_response import JSONResponse
from legion.api.routes import sendable
from legion.domain.events import EventKind
from legion.wire.ticket_pages import LogText
from tests.api.serving import Served
from tests.support.attacks import Attacker, Door, attack

HALF = "\ud83d"


def old_row(served: Served) -> None:
    """An event as an earlier release stored it."""
    with served.board.store.write() as tx:
        tx.record(EventKind.TICKET_REPORTED, project=1, ticket=1, data={"text": "half: SHOUT"})
        tx.execute(text(r"UPDATE events SET data = replace(data, 'SHOUT', '\ud83d')"))


@attack(Attacker.PROGRAM, Door.TEXT)
def test_events_that_an_earlier_release_stored_are_shown(served: Served):
    served.board.put(1, "First", "done")
    old_row(served)
    client = served.over_socket
    for shown in (client.ticket(1), client.history(served.board.cwd, 1), client.history(served.board.cwd, None)):
        assert "half: \ufffd" in json.dumps(shown, default=vars, ensure_ascii=False).encode().decode()
    stream = client.events(0, ticket=1)
    assert any("half: \ufffd" in json.dumps(one, default=vars, ensure_ascii=False) for one in stream if one is not None)


@attack(Attacker.PROGRAM, Door.TEXT)
def test_a_question_with_half_a_character_does_not_close_the_inbox(served: Served):
    served.board.put(3, "Third", "working")
    served.board.ask(3, ticket=3, words=f"May it run `make {HALF}`?")
    (asked,) = served.over_socket.inbox().questions
    assert asked.words == "May it run `make \ufffd`?"


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("code", [0xD83D, 0xDE00, 0xDCFF])
def test_every_way_to_answer_writes_what_readers_take(code: int):
    half = chr(code)
    log = LogText(ticket=1, run=1, offset=0, next_offset=1, text=f"x{half}", ended=True)
    assert sendable(log) == LogText(ticket=1, run=1, offset=0, next_offset=1, text="x\ufffd", ended=True)
    assert json.loads(bytes(JSONResponse({half: [half]}).body)) == {"\ufffd": ["\ufffd"]}
    plain = LogText(ticket=1, run=1, offset=0, next_offset=1, text="plain", ended=True)
    assert sendable(plain) is plain
