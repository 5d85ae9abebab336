"""Names and output of agents cannot send anything to the terminal: every view is fed with the worst in every field."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

import pytest

from legion.client.text import agents, board, catalog, inbox, machines, models, plans, proofs, queue, ticket_page, usage
from legion.client.text import providers as providers_text
from legion.client.text.rows import Row
from legion.client.text.terminal import sanitize, sanitize_lines
from legion.tui.link.connection import Phase
from legion.tui.store import Tail
from legion.tui.views import diff, squad, status_line, ticket
from legion.wire.agents import AgentList, AgentPage
from legion.wire.board import Graph, Status
from legion.wire.history import Events, RunningLine, UsageReport
from legion.wire.machines import MachineList, MachineLog
from legion.wire.mail import Inbox, Mail
from legion.wire.plans import PlanList, PlanPage
from legion.wire.projects import Config, WorktreeList
from legion.wire.providers import DriverPage, Drivers, Models, Providers, Routes
from legion.wire.sessions import SessionList
from legion.wire.teams import RolePage, Roles, TeamPage, Teams
from legion.wire.ticket_pages import TicketPage
from tests.support.attacks import Attacker, Door, attack

WORST = [
    "\x1b[2J\x1b[H", "\x1b]52;c;cm0gLXJmIH4=\x07", "\x1b]0;title\x1b\\", "\x9b31m",
    "\x9d52;c;x\x9c", "\x1bP+q544e\x1b\\",
    "\x1b[?1049l", "\x1b", "\x1b[", "\x1b]8;;http://evil", "\x07\x08\x7f", "\r\noverwritten", "\u202egnp.exe",
    "\u2066x\u2069",
    "\u200b\ufeff", "a\u0000b", "\x1b[6n", "\x1bc", "\x1b(0", "\x85next", "\u2028line", "\ud800",
    "\x1b_Gf=100;AAAA\x1b\\",
]  # fmt: skip
HOSTILE = "".join(WORST) + " end"


def printable(text: str) -> bool:
    return all(letter.isprintable() for letter in text)


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("text", [*WORST, HOSTILE, HOSTILE * 50])
def test_the_one_function_lets_nothing_through(text: str):
    assert printable(sanitize(text))
    assert all(printable(line) for line in sanitize_lines(text))
    assert printable(sanitize(text[: len(text) // 2]))


def test_sequences_that_are_split_between_two_pieces_of_output_stay_harmless():
    for text in (*WORST, HOSTILE):
        for at in range(len(text)):
            tail = Tail()
            tail.add(text[:at])
            seen = tail.last(9)
            tail.add(text[at:] + "\n")
            assert all(printable(line) for line in [*seen, *tail.last(99)])


def filled(shape: Any) -> Any:
    """An answer with the worst text in every field."""
    if dataclasses.is_dataclass(shape) and isinstance(shape, type):
        hints = typing.get_type_hints(shape)
        return shape(**{field.name: filled(hints[field.name]) for field in dataclasses.fields(shape)})
    if typing.get_origin(shape) is list:
        return [filled(typing.get_args(shape)[0])]
    if typing.get_origin(shape) is dict:
        return {HOSTILE: filled(typing.get_args(shape)[1])}
    if typing.get_origin(shape) is types.UnionType:
        return filled(next(part for part in typing.get_args(shape) if part is not type(None)))
    return {str: HOSTILE, int: 3, float: 3.0, bool: False, object: HOSTILE}[shape]


KEYS = dict.fromkeys(
    ("inbox", "retry", "drop", "undo", "message", "interrupt", "stop", "collect", "pause_project", "new_ticket", "hire",
     "start_daemon", "land", "yes", "no", "answer"), "x",
)  # fmt: skip
CUTS = ("day", HOSTILE)


def every_view() -> dict[str, list[Row]]:
    status, graph, page, events = filled(Status), filled(Graph), filled(TicketPage), filled(Events)
    found, providers, mail = filled(AgentList), filled(Providers), filled(Mail)
    found.agents[0].parent, found.agents[0].fired_at = found.you, None
    graph.edges = []
    planned = filled(PlanList)
    planned.plans[0].id = "P3"
    text = f"diff --git a/{HOSTILE} b/x.py\n+++ b/{HOSTILE}x.py\n@@ -1 +1 @@ {HOSTILE}\n-{HOSTILE}\n+{HOSTILE}\n"
    step = status_line.next_step(status, Phase.GONE, HOSTILE, KEYS)
    steps = [status_line.next_step(dataclasses.replace(status, questions=0), Phase.LIVE, "", KEYS), step]
    tickets = {3: status.tickets[0]}
    return {
        "board": [*board.listed(status.tickets, 90), *board.cards(status.tickets, 30), *board.tree(graph, 90, "")],
        "lines": [status_line.status_line(status, providers, 200), *(one for one in steps if one is not None)],
        "ticket": [
            *ticket_page.page_rows(page, 90, full=True), *ticket_page.next_rows(page, KEYS, 200),
            *ticket.terminal_rows(page, [], {"attach": "o", "shell": "e"}, 90),
            *ticket_page.about_rows(page, 90), *proofs.history_rows(events, 90),
        ],
        "diff": [*diff.rows(diff.parse(text), 90, (), {}), *diff.rows(diff.parse(text), 150, (), {})],
        "inbox": inbox.rows(filled(Inbox), events, 90, 0.0, KEYS),
        "squad": [
            *squad.pane_rows([filled(RunningLine)], {}, tickets, width=90, height=20, now=9.0),
            *squad.talk_rows(found.agents[0], mail, 90),
        ],
        "agents": [
            *agents.rows(found, 90, "H"), *agents.rows(found, 60, "H", tree=False),
            *agents.page_rows(filled(AgentPage), 90), *agents.mail_rows(mail, 90),
        ],
        "queue": queue.queue_rows(status, events, 90),
        "usage": usage.cut_rows(filled(UsageReport), providers, 90, ("day",)),
        "plans": [
            *plans.list_rows(planned, 90, "+"), *plans.page_rows(filled(PlanPage), 90, questions=True),
        ],
        "models": models.rows(
            models.ModelTable(routes=filled(Routes), roles=filled(Roles), agents=found, providers=providers),
            filled(Models), 90,
        ),
        "machines": [*machines.rows(filled(MachineList), 90), *machines.log_rows(filled(MachineLog), 90)],
        "catalog": [
            *providers_text.provider_rows(providers, 90), *providers_text.account_rows(providers, 90),
            *providers_text.driver_rows(filled(Drivers), 90), *providers_text.driver_page_rows(filled(DriverPage), 90),
            *catalog.team_page_rows(filled(TeamPage), 90), *catalog.role_page_rows(filled(RolePage), 90),
            *catalog.session_rows(filled(SessionList), 90),
            *catalog.team_rows(filled(Teams), 90), *catalog.role_rows(filled(Roles), 90),
            *catalog.setting_rows(filled(Config), 90), *catalog.worktree_rows(filled(WorktreeList), 90),
        ],
    }  # fmt: skip


VIEWS = every_view()


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("name", VIEWS)
def test_no_view_shows_a_control_character(name: str):
    assert VIEWS[name]
    wrong = [cell.text for row in VIEWS[name] for cell in row.cells if not printable(cell.text)]
    assert wrong == []
