"""Who calls, and which routes an agent's token opens at all. What it may do there is decided behind them.

A list of what is open, so that a new route is closed to agents until somebody writes it down here.
"""

from __future__ import annotations

import re

CALLER = "legion.caller"
"""Where the scope of a request holds the Caller, for whoever comes behind the guard."""

_NUMBER = r"\d{1,18}"
_WORD = r"[A-Za-z0-9._-]{1,80}"

_STANDING = (
    ("GET", "/health"),
    ("GET", "/v1/status"),
    ("GET", "/v1/graph"),
    ("GET", "/v1/wait"),
    ("POST", "/v1/tickets"),
    ("GET", f"/v1/tickets/{_NUMBER}"),
    ("GET", f"/v1/tickets/{_NUMBER}/log"),
    ("GET", f"/v1/tickets/{_NUMBER}/diff"),
    ("POST", f"/v1/tickets/{_NUMBER}/stop"),
    ("POST", f"/v1/tickets/{_NUMBER}/retry"),
    ("GET", "/v1/agents"),
    ("POST", "/v1/agents"),
    ("GET", f"/v1/agents/{_WORD}"),
    ("POST", "/v1/agents/(fire|interrupt|tell|broadcast|claim|submit|plan|verdict)"),
    ("POST", "/v1/mail"),
    ("GET", "/v1/inbox"),
    ("POST", f"/v1/questions/{_NUMBER}/answer"),
    ("GET", "/v1/tools"),
    ("POST", f"/v1/tools/{_WORD}"),
    ("(GET|POST|DELETE)", "/mcp"),
    ("(GET|POST)", "/legion/orchestrate/[a-z-]{1,20}"),
)
_OF_A_TICKET = (("GET", "/health"), ("GET", "/v1/tools"), ("POST", f"/v1/tools/{_WORD}"), ("(GET|POST|DELETE)", "/mcp"))


def _compiled(routes: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{method} {path})" for method, path in routes))


_FOR_STANDING, _FOR_TICKETS = _compiled(_STANDING), _compiled(_OF_A_TICKET)


def may_call(method: str, path: str, *, of_a_ticket: bool) -> bool:
    known = _FOR_TICKETS if of_a_ticket else _FOR_STANDING
    return known.fullmatch(f"{method} {path}") is not None
