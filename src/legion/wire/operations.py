"""The table of operations: everything that a client can ask the daemon for, one row each, from all subjects.

A row is a signature below `@operation(METHOD, PATH)`, in the file of its subject (tickets.py), and says it all:

    @operation("POST", "/v1/tickets/{id}/undo", open_to=OpenTo.ACTS)
    def undo(self, id: TicketId, /) -> Acted:
        \"\"\"Revert a landed ticket by a new ticket\"\"\"

- The parameters before the slash are those of the path, then the request's body. Those behind it are the query.
- Body and answer are shapes of the same file, or of another one by its full name. A parameter `X | None` may be left
  out of the request.
- `open_to` says who may call it. A row without it is open to the person's token alone.
- `plain` lists the fields of the body that a browser over a plain network may set, where the row is open to it.
- `asks` is the question before the call.
- `waits` marks an operation that may block for seconds; it gets a thread of its own.
- The docstring is the help of the command, and its first paragraph the summary in the OpenAPI document and docs/api.md.

Three parts subclass Operations: the client sends each call (client/legion.py), the service maps each row to a use case
(service/operations.py), and the service for agents narrows some of them (service/entry/agent_rights.py). The routes
(api/routes.py), who may call them (api/guard.py), docs/api.md and SECURITY.md are made from OPERATIONS.
"""

from __future__ import annotations

import legion.domain.agents.agent
from legion.domain.forge.connections import PULL_OFFERS
from legion.domain.machines import machine
from legion.domain.plans import plan
from legion.domain.tickets import offers
from legion.wire.agents import AgentRows
from legion.wire.board import BoardRows
from legion.wire.conversations import ConversationRows
from legion.wire.dispatch import DispatchRows
from legion.wire.forge import ForgeRows
from legion.wire.history import HistoryRows
from legion.wire.machines import MachineRows
from legion.wire.mail import MailRows
from legion.wire.notes import NoteRows
from legion.wire.plans import PlanRows
from legion.wire.projects import ProjectRows
from legion.wire.providers import ProviderRows
from legion.wire.sessions import SessionRows
from legion.wire.table import rows
from legion.wire.teams import TeamRows
from legion.wire.templates import TemplateRows
from legion.wire.terminal import TerminalRows
from legion.wire.ticket_pages import TicketPageRows
from legion.wire.tickets import TicketRows
from legion.wire.web import WebRows


class Operations(
    ProjectRows,
    BoardRows,
    HistoryRows,
    TicketRows,
    TicketPageRows,
    DispatchRows,
    TerminalRows,
    PlanRows,
    TemplateRows,
    SessionRows,
    ForgeRows,
    MailRows,
    AgentRows,
    NoteRows,
    TeamRows,
    ProviderRows,
    ConversationRows,
    MachineRows,
    WebRows,
):
    """The rows of the daemon's own API."""


OPERATIONS = rows(Operations)
OFFERED = frozenset({*offers.OFFERS, *plan.OFFERS, *legion.domain.agents.agent.OFFERS, *machine.OFFERS, *PULL_OFFERS})
"""The rows that lines list in `offers` while they may be called. Their rules are in the domain."""
