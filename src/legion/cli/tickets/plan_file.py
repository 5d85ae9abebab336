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
from dataclasses import fields

from legion.cli.base.output import harmless
from legion.cli.base.texts import short_title
from legion.wire.errors import BadInput
from legion.wire.tickets import NewTicket

MOST_ATTEMPTS = 20

_TEXTS = ("title", "text", "context", "criteria", "plan", "key", "epic", "driver", "command", "model", "team", "review")
_LISTS = ("files", "prove", "accept", "labels")
_NUMBERS = ("priority", "max_attempts")
_FLAGS = ("checkpoint", "ask", "plan_first")
FIELDS = tuple(field.name for field in fields(NewTicket) if field.name != "after_keys")


def read_plan(text: str, origin: str) -> list[NewTicket]:
    """The tickets of a plan, or one sentence about the first thing that is wrong with it."""
    try:
        plan = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{origin} is not valid TOML: {harmless(str(error))}.") from None
    except RecursionError:
        raise BadInput(f"{origin} is nested too deeply; a plan is a list of [[ticket]].") from None
    for name in plan:
        if name != "ticket":
            raise BadInput(f"{origin} has `{harmless(name)}` at its top; write each ticket under [[ticket]].")
    return tickets_of(plan.get("ticket"), origin)


def tickets_of(tables: object, origin: str) -> list[NewTicket]:
    if not isinstance(tables, list) or not tables:
        raise BadInput(f"{origin} has no [[ticket]]; write at least one.")
    keys = _keys(tables, origin)
    return [_ticket(table, f"{origin}: {_name(table, n)}", keys) for n, table in enumerate(tables, 1)]


def _name(table: object, n: int) -> str:
    key = table.get("key") if isinstance(table, dict) else None
    return f"ticket `{harmless(key)[:60]}`" if isinstance(key, str) and key else f"ticket number {n}"


def _keys(tables: list[object], origin: str) -> list[str]:
    keys: list[str] = []
    for table in tables:
        key = table.get("key") if isinstance(table, dict) else None
        if isinstance(key, str) and key:
            if key in keys:
                raise BadInput(f"{origin} has two tickets with the key `{harmless(key)[:60]}`; rename one.")
            keys.append(key)
    return keys


def _ticket(table: object, where: str, keys: list[str]) -> NewTicket:
    if not isinstance(table, dict):
        raise BadInput(f"{where} is no table; write [[ticket]] and its fields below.")
    for name in table:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(FIELDS)}."
            raise BadInput(f"{where} has no field `{harmless(name)[:60]}`; {hint}")
    told = {name: _value(name, table[name], where) for name in table if name != "after"}
    told["after"], told["after_keys"] = _after(table.get("after", []), where, keys)
    if not str(told.get("title", "")).strip():
        if not str(told.get("text", "")).strip():
            raise BadInput(f"{where} has neither `title` nor `text`; say what you want.")
        told["title"] = short_title(str(told["text"]))
    return NewTicket(**told)  # type: ignore[arg-type]  # _value has checked each


def _value(name: str, value: object, where: str) -> object:
    number = isinstance(value, int) and not isinstance(value, bool)
    right, kind = {
        **dict.fromkeys(_TEXTS, (isinstance(value, str), "a text")),
        **dict.fromkeys(_LISTS, (_is_texts(value), "a list of texts")),
        **dict.fromkeys(_NUMBERS, (number, "a whole number")),
        **dict.fromkeys(_FLAGS, (isinstance(value, bool), "true or false")),
        "budget": (number or isinstance(value, float), "a number of dollars"),
    }[name]
    if not right:
        raise BadInput(f"{where}: `{name}` must be {kind}.")
    if name == "max_attempts" and isinstance(value, int) and not 1 <= value <= MOST_ATTEMPTS:
        raise BadInput(f"{where}: `max_attempts` must be between 1 and {MOST_ATTEMPTS}.")
    return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _after(value: object, where: str, keys: list[str]) -> tuple[list[int], list[str]]:
    ids: list[int] = []
    named: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            if item not in keys:
                near = difflib.get_close_matches(item, keys, 1)
                hint = f"did you mean `{near[0]}`?" if near else "no ticket of this plan has that key."
                raise BadInput(f"{where}: `after` names `{harmless(item)[:60]}`; {hint}")
            named.append(item)
        elif isinstance(item, int) and not isinstance(item, bool) and item > 0:
            ids.append(item)
        else:
            raise BadInput(f"{where}: `after` must be a list of keys and ticket numbers.")
    return ids, named
