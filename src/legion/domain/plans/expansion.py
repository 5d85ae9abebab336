"""Expands a template with values for its variables to the table of a draft: the same form as a planner's answer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from legion.domain.errors import BadInput
from legion.domain.plans import draft
from legion.domain.plans.conditions import ResultCondition
from legion.domain.plans.draft import MOST_TICKETS, MalformedDraft, PlanDraft
from legion.domain.plans.template import Condition, Template, TemplateStep, Value, Variable, VariableType, awaited
from legion.domain.text import count

_PLACE = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_PLAIN = re.compile(r"[\w./:@%+=,-]+")
"""A value that every shell reads as one word."""


class _ListItem(str):
    """One of a list or of the repository's files: never a whole command."""

    __slots__ = ()


class _Batch(tuple[_ListItem, ...]):
    """Some items of a list at a time: in a command, a word for each."""

    __slots__ = ()


Files = Callable[[str], Sequence[str]]
"""The files of the target that a pattern covers."""


def expand(template: Template, given: Mapping[str, str], files: Files) -> PlanDraft:
    """Raises BadInput for a missing, unknown or wrong value, and for a step that makes no ticket."""
    values = _values(template, given, files)
    made: dict[str, list[dict[str, Any]]] = {}
    for step in template.steps:
        made[step.key] = _tickets(template, step, values)
    _leave_out_unawaited(template, made)
    instead = _left_out(template, made)
    for step in template.steps:
        after = [ticket["key"] for key in step.needs for ticket in _standing(key, made, instead)]
        for ticket in made[step.key]:
            ticket["after"] = list(dict.fromkeys(after))
            if isinstance(step.when, ResultCondition):
                steps = tuple(one["key"] for key in step.when.steps for one in made[key])
                ticket["when"] = str(replace(step.when, steps=steps))
    tickets = [ticket for key in made for ticket in made[key]]
    if not tickets:
        raise BadInput(f"Template {template.name} makes no ticket with these values: every step is left out.")
    if len(tickets) > MOST_TICKETS:
        raise BadInput(
            f"Template {template.name} makes {count(len(tickets), 'ticket')}, and {MOST_TICKETS} are the most: give it "
            f"fewer files or items{_or_larger_batches(template)}."
        )
    try:
        return draft.read({"summary": goal(template, values), "tickets": tickets})
    except MalformedDraft as wrong:
        raise BadInput(f"Template {template.name}: {wrong}.") from None


def _or_larger_batches(template: Template) -> str:
    sizes = {step.loop.by for step in template.steps if step.loop is not None} & {
        one.name for one in template.variables
    }
    return "".join(f", or more of them in each ticket, as --var {name}=20" for name in sorted(sizes))


def goal(template: Template, values: Mapping[str, Value]) -> str:
    return _filled(template.goal or template.about or template.name, values, template.name)


def _values(template: Template, given: Mapping[str, str], files: Files) -> dict[str, Value]:
    names = [one.name for one in template.variables]
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}."
            raise BadInput(f"Template {template.name} has no variable {name[:40]!r}; {hint}")
    values: dict[str, Value] = {}
    for one in template.variables:
        value: Value
        if one.name in given:
            value = _read(template, one, given[one.name])
        elif one.default is not None:
            value = one.default
        else:
            raise BadInput(f"Template {template.name} needs {one.name}: add --var {one.name}=... ({_about(one)}).")
        values[one.name] = tuple(files(str(value))) if one.type is VariableType.FILES else value
    return values


def _about(variable: Variable) -> str:
    allowed = f"{variable.type.value}, one of {', '.join(variable.choices)}" if variable.choices else ""
    return "; ".join(filter(None, (allowed or variable.type.value, variable.help.rstrip("."))))


def _read(template: Template, variable: Variable, text: str) -> Value:
    wrong = BadInput(f"Template {template.name}: {variable.name} must be {_about(variable)}, and is {text[:40]!r}.")
    match variable.type:
        case VariableType.NUMBER:
            if not re.fullmatch(r"-?[0-9]{1,9}", text.strip()):
                raise wrong
            return int(text)
        case VariableType.FLAG:
            if text.strip().lower() not in _FLAGS:
                raise wrong
            return _FLAGS[text.strip().lower()]
        case VariableType.LIST:
            items = tuple(item.strip() for item in text.split(",") if item.strip())
            if variable.choices and not set(items) <= set(variable.choices):
                raise wrong
            return items
        case _:
            if variable.choices and text not in variable.choices:
                raise wrong
            return text


def _tickets(template: Template, step: TemplateStep, values: Mapping[str, Value]) -> list[dict[str, Any]]:
    if step.loop is None:
        return [_ticket(template, step, step.key, values)] if _holds(template, step.when, values) else []
    over = values.get(step.loop.over)
    if not isinstance(over, tuple):
        raise BadInput(f"Template {template.name}: step {step.key} loops over {step.loop.over!r}, which is no list.")
    items: tuple[_ListItem | _Batch, ...] = tuple(map(_ListItem, over))
    if (per := _batch_size(template, step, values)) is not None:
        items = tuple(_Batch(map(_ListItem, over[at : at + per])) for at in range(0, len(over), per))
    made = []
    for n, item in enumerate(items, 1):
        inside: dict[str, Value] = {**values, step.loop.item: item}
        if _holds(template, step.when, inside):
            made.append(_ticket(template, step, f"{step.key}-{n}", inside))
    return made


def _batch_size(template: Template, step: TemplateStep, values: Mapping[str, Value]) -> int | None:
    """None: each item has a ticket of its own."""
    if step.loop is None or not step.loop.by:
        return None
    size = int(step.loop.by) if step.loop.by.isdecimal() else values.get(step.loop.by)
    if not isinstance(size, int) or size < 1:
        raise BadInput(f"Template {template.name}: step {step.key} takes items by {step.loop.by}, which is no number.")
    return size


def _leave_out_unawaited(template: Template, made: dict[str, list[dict[str, Any]]]) -> None:
    """A step that waits for the result of one that makes no ticket makes none, too."""
    unawaited = True
    while unawaited:
        unawaited = False
        for step in template.steps:
            if made[step.key] and (steps := awaited(step)) and not any(made[key] for key in steps):
                made[step.key], unawaited = [], True


def _ticket(template: Template, step: TemplateStep, key: str, values: Mapping[str, Value]) -> dict[str, Any]:
    where = f"{template.name}, step {step.key}"
    line = {name: _in_a_line(value) for name, value in values.items()}
    filled = {name: _fill_in(value, line if name == "title" else values, where) for name, value in step.fields.items()}
    return {"key": key, **filled}


def _in_a_line(value: Value) -> Value:
    return f"{value[0]} and {len(value) - 1} more" if isinstance(value, _Batch) and len(value) > 1 else value


def _holds(template: Template, when: Condition | ResultCondition | None, values: Mapping[str, Value]) -> bool:
    if when is None or isinstance(when, ResultCondition):
        return True
    if when.name not in values:
        raise BadInput(f"Template {template.name}: `when` asks for {when.name!r}, which is no variable.")
    value = values[when.name]
    holds = bool(value) if when.value is None else _text(value) == when.value
    return holds is not when.negated


def _left_out(template: Template, made: Mapping[str, Sequence[object]]) -> dict[str, tuple[str, ...]]:
    """By key of a step that made no ticket: what it needs. Steps that need it need that instead."""
    return {step.key: step.needs for step in template.steps if not made[step.key]}


def _standing(
    key: str, made: Mapping[str, list[dict[str, Any]]], instead: Mapping[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    seen: set[str] = set()
    waiting, found = [key], []
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        found += made.get(here, [])
        waiting += reversed(instead.get(here, ()))
    return found


def _fill_in(value: object, values: Mapping[str, Value], where: str) -> object:
    match value:
        case str():
            return _filled(value, values, where)
        case list():
            return [one for item in value for one in _items(item, values, where)]
        case Mapping():
            return {
                name: _command(one, values, where)
                if name == "proof" and isinstance(one, str)
                else _fill_in(one, values, where)
                for name, one in value.items()
            }
        case _:
            return value


def _items(item: object, values: Mapping[str, Value], where: str) -> list[object]:
    """An item that is a list variable and nothing else becomes its items."""
    alone = _PLACE.fullmatch(item.strip()) if isinstance(item, str) else None
    value = values.get(alone[1]) if alone else None
    return list(value) if isinstance(value, tuple) else [_fill_in(item, values, where)]


def _filled(text: str, values: Mapping[str, Value], where: str) -> str:
    def put(place: re.Match[str]) -> str:
        if place[1] not in values:
            raise BadInput(f"Template {where}: {place[0]} is no variable. There are {', '.join(values) or 'none'}.")
        return _text(values[place[1]])

    return _PLACE.sub(put, text)


def _command(text: str, values: Mapping[str, Value], where: str) -> str:
    """A proof is read by a shell: a value is one word there, whatever its letters. Alone, a text is the command."""
    alone = _PLACE.fullmatch(text.strip())
    if alone and type(values.get(alone[1])) is str:
        return _filled(text, values, where)

    def quoted(place: re.Match[str]) -> str:
        value = _filled(place[0], values, where)
        batch = values[place[1]]
        return " ".join(word(one, place) for one in (batch if isinstance(batch, _Batch) else [value]))

    def word(value: str, place: re.Match[str]) -> str:
        if isinstance(values[place[1]], _ListItem | _Batch) and value.startswith("-"):
            value = f"./{value}"
        if _PLAIN.fullmatch(value):
            return value
        if not _is_plain_place(text[: place.start()]):
            raise BadInput(
                f"Template {where}: {value[:40]!r} is not safe in its proof, at {place[0]}: give another one."
            )
        return shlex.quote(value)

    return _PLACE.sub(quoted, text)


def _is_plain_place(before: str) -> bool:
    """Whether a shell reads what follows as a word of its own.

    Not inside quotation marks, whose text an inner shell may read again, nor in a substitution or a comment.
    """
    if any(mark in before for mark in ("$(", "`", "<<", "#")):
        return False
    quote, letters = "", iter(before)
    for letter in letters:
        if letter == "\\" and quote != "'":
            next(letters, "")
        elif letter in ("'", '"') and quote in ("", letter):
            quote = "" if quote else letter
    return not quote


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
