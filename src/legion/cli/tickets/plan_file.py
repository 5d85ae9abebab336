"""A plan file: many tickets in TOML that name each other by key.

[[ticket]]
key = "schema"
title = "Tables for users"

[[ticket]]
key = "login"
text = "A page to log in."
after = ["schema", 3]
"""

from __future__ import annotations

import difflib
import tomllib

from legion.cli.base.output import sanitize
from legion.cli.base.texts import short_title
from legion.wire.dispatch import TICKET_FIELDS, NewTicket
from legion.wire.errors import BadInput

KEYS = tuple(TICKET_FIELDS)
"""The keys of a [[ticket]]."""


def read_plan(text: str, origin: str) -> list[NewTicket]:
    """The tickets of a plan. Raises BadInput for the first fault."""
    try:
        plan = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{origin} is not valid TOML: {sanitize(str(error))}.") from None
    except RecursionError:
        raise BadInput(f"{origin} is nested too deeply; a plan is a list of [[ticket]].") from None
    for name in plan:
        if name != "ticket":
            raise BadInput(f"{origin} has `{sanitize(name)}` at its top; write each ticket under [[ticket]].")
    return tickets_of(plan.get("ticket"), origin)


def tickets_of(tables: object, origin: str) -> list[NewTicket]:
    if not isinstance(tables, list) or not tables:
        raise BadInput(f"{origin} has no [[ticket]]; write at least one.")
    keys = _keys(tables, origin)
    return [_ticket(table, f"{origin}: {_name(table, n)}", keys) for n, table in enumerate(tables, 1)]


def _name(table: object, n: int) -> str:
    key = table.get("key") if isinstance(table, dict) else None
    return f"ticket `{sanitize(key)[:60]}`" if isinstance(key, str) and key else f"ticket number {n}"


def _keys(tables: list[object], origin: str) -> list[str]:
    keys: list[str] = []
    for table in tables:
        key = table.get("key") if isinstance(table, dict) else None
        if isinstance(key, str) and key:
            if key in keys:
                raise BadInput(f"{origin} has two tickets with the key `{sanitize(key)[:60]}`; rename one.")
            keys.append(key)
    return keys


def _ticket(table: object, where: str, keys: list[str]) -> NewTicket:
    if not isinstance(table, dict):
        raise BadInput(f"{where} is not a table; write [[ticket]] and its fields below.")
    for name in table:
        if name not in KEYS:
            near = difflib.get_close_matches(name, KEYS, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(KEYS)}."
            raise BadInput(f"{where} has no field `{sanitize(name)[:60]}`; {hint}")
    for name, value in table.items():
        fault = None if name == "after" else TICKET_FIELDS[name].fault(value)
        if fault:
            raise BadInput(f"{where}: `{name}` {sanitize(fault)}.")
    after, after_keys = _after(table.get("after", []), where, keys)
    ticket = NewTicket(**{"title": "", **table, "after": after, "after_keys": after_keys})
    if not ticket.title.strip():
        if not ticket.text.strip():
            raise BadInput(f"{where} has neither `title` nor `text`; write at least one of them.")
        ticket.title = short_title(ticket.text)
    return ticket


def _after(value: object, where: str, keys: list[str]) -> tuple[list[int], list[str]]:
    ids: list[int] = []
    named: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            if item not in keys:
                near = difflib.get_close_matches(item, keys, 1)
                hint = f"did you mean `{near[0]}`?" if near else "no ticket of this plan has that key."
                raise BadInput(f"{where}: `after` names `{sanitize(item)[:60]}`; {hint}")
            named.append(item)
        elif isinstance(item, int) and not isinstance(item, bool) and item > 0:
            ids.append(item)
        else:
            raise BadInput(f"{where}: `after` must be a list of keys and ticket numbers.")
    return ids, named
