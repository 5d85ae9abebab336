"""A template: a plan with variables, read from TOML. expansion.py makes a draft of it.

    about = "Fix a bug."
    [variables.bug]
    help = "What happens, and what should."
    [[step]]
    key = "fix"
    title = "Fix: {{bug}}"
    needs = ["reproduce"]

A step has the fields of a planned ticket, `needs` in place of `after`, and may have `for` (once for each item of a list
or each file) and `when` (only if a variable is set or has a value, or only after a result of another step).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from typing import Any

from legion.domain.errors import BadInput
from legion.domain.plans import conditions
from legion.domain.plans.conditions import ResultCondition
from legion.domain.plans.draft import KEY, MOST_TICKETS, shown
from legion.domain.tickets import board

MOST_EXTENDS = 10
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LOOP = re.compile(r"([a-z][a-z0-9_]*) in ([a-z][a-z0-9_]*)(?: by ([a-z][a-z0-9_]*|[0-9]{1,9}))?")
_WHEN = re.compile(r"(not )?([a-z][a-z0-9_]*)(?: (==|!=) '([^']*)')?")
_STEP_FIELDS = (
    *("key", "title", "text", "context", "plan", "criteria", "files", "new_files"),
    *("needs", "checkpoint", "labels", "lines", "priority", "for", "when"),
)
_TOP = ("about", "goal", "extends", "without", "variables", "step")
_VARIABLE = ("type", "default", "choices", "help")

Value = str | int | bool | tuple[str, ...]


class VariableType(Enum):
    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    LIST = "list"
    """Texts, divided by commas where they are given on the command line."""
    FILES = "files"
    """A pattern; the step sees the files of the target that it covers."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    name: str
    type: VariableType = VariableType.TEXT
    default: Value | None = None
    """None: it must be given."""
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """`item in list`, or `items in list by number`."""

    item: str
    over: str
    by: str = ""
    """How many at a time: a number, or the variable that holds it."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """`name`, `not name`, `name == 'value'` or `name != 'value'`."""

    name: str
    negated: bool = False
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class TemplateStep:
    key: str
    needs: tuple[str, ...] = ()
    loop: Loop | None = None
    when: Condition | ResultCondition | None = None
    fields: Mapping[str, Any]
    """The rest, as a planned ticket has it, with variables in its texts."""


@dataclass(frozen=True, kw_only=True)
class Template:
    name: str
    about: str = ""
    goal: str = ""
    extends: str = ""
    without: tuple[str, ...] = ()
    """Steps of the extended template that are left out."""
    variables: tuple[Variable, ...] = ()
    steps: tuple[TemplateStep, ...] = ()


def read(name: str, text: str, origin: str) -> Template:
    """Raises BadInput for the first fault, with the file and, where it is known, the line."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{origin} is not valid TOML: {str(error).rstrip('.')}. Fix it.") from None
    except RecursionError:
        raise BadInput(f"{origin} is nested too deeply.") from None
    try:
        return _template(name, table)
    except _Fault as wrong:
        raise BadInput(f"{origin}: {wrong}.") from None


def resolve(name: str, known: Mapping[str, Template]) -> Template:
    """The template with everything that it extends. Raises BadInput for an unknown one, and for a circle."""
    chain: list[Template] = []
    while name or not chain:
        if name in [one.name for one in chain]:
            circle = " extends ".join([*(one.name for one in chain), name])
            raise BadInput(f"These templates extend each other in a circle ({circle}): change one of them.")
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)) or 'none'}."
            raise BadInput(f"There is no template {name[:40]!r}; {hint}")
        if len(chain) == MOST_EXTENDS:
            raise BadInput(f"Template {chain[0].name} extends more than {MOST_EXTENDS} others: shorten the chain.")
        chain.append(known[name])
        name = chain[-1].extends
    made = chain.pop()
    while chain:
        made = _extended(made, chain.pop())
    _refuse_unknown_needs(made)
    return made


def _extended(below: Template, over: Template) -> Template:
    """A step or variable of the same name takes the place of the extended one."""
    own = {step.key: step for step in over.steps}
    kept = [own.pop(step.key, step) for step in below.steps if step.key not in over.without]
    mine = {one.name: one for one in over.variables}
    variables = [mine.pop(one.name, one) for one in below.variables]
    return replace(
        over,
        about=over.about or below.about,
        goal=over.goal or below.goal,
        variables=(*variables, *mine.values()),
        steps=(*kept, *own.values()),
    )


def awaited(step: TemplateStep) -> tuple[str, ...]:
    """The steps whose results decide whether it starts."""
    return step.when.steps if isinstance(step.when, ResultCondition) else ()


def _refuse_unknown_needs(template: Template) -> None:
    keys = [step.key for step in template.steps]
    for step in template.steps:
        for need in step.needs:
            if need not in keys:
                raise BadInput(f"Template {template.name}: step {step.key} needs {need!r}, which is no step of it.")
        for other in awaited(step):
            if other not in keys:
                raise BadInput(f"Template {template.name}: `when` of step {step.key} names {other!r}, no step of it.")
    if not keys:
        raise BadInput(f"Template {template.name} has no [[step]]: write at least one.")
    edges = {n: [keys.index(need) for need in (*step.needs, *awaited(step))] for n, step in enumerate(template.steps)}
    board.refuse_cycles(edges, dict(enumerate(keys)))


class _Fault(ValueError):
    pass


def _template(name: str, table: Mapping[str, Any]) -> Template:
    _only(table, _TOP, "the template")
    variables, steps = table.get("variables", {}), table.get("step", [])
    if not isinstance(variables, Mapping):
        raise _Fault("`variables` must be tables like [variables.name]")
    if not isinstance(steps, list) or len(steps) > MOST_TICKETS:
        raise _Fault(f"`step` must be at most {MOST_TICKETS} tables [[step]]")
    made = tuple(_step(one, n) for n, one in enumerate(steps, 1))
    keys = [step.key for step in made]
    if twice := [key for n, key in enumerate(keys) if key in keys[:n]]:
        raise _Fault(f"two steps have the key `{twice[0]}`")
    return Template(
        name=name,
        about=_line(table, "about", "the template"),
        goal=_line(table, "goal", "the template"),
        extends=_line(table, "extends", "the template"),
        without=_texts(table, "without", "the template"),
        variables=tuple(_variable(one, given) for one, given in variables.items()),
        steps=made,
    )


def _variable(name: str, table: object) -> Variable:
    where = f"variable `{name[:40]}`"
    if not _NAME.fullmatch(name) or not isinstance(table, Mapping):
        raise _Fault(f"{where} must be a table with a name of small letters, digits and `_`")
    _only(table, _VARIABLE, where)
    kinds = [one.value for one in VariableType]
    kind = table.get("type", "text")
    if kind not in kinds:
        raise _Fault(f"{where}: `type` must be {', '.join(kinds[:-1])} or {kinds[-1]}, and is {shown(kind)}")
    made = Variable(
        name=name, type=VariableType(kind), choices=_texts(table, "choices", where), help=_line(table, "help", where)
    )
    if "default" not in table:
        return made
    return replace(made, default=_default(made, table["default"], where))


def _default(variable: Variable, given: object, where: str) -> Value:
    match variable.type, given:
        case ((VariableType.TEXT | VariableType.FILES), str()):
            if not variable.choices or given in variable.choices:
                return given
        case VariableType.NUMBER, int() if not isinstance(given, bool):
            return given
        case VariableType.FLAG, bool():
            return given
        case VariableType.LIST, list() if all(isinstance(one, str) for one in given):
            return tuple(given)
    raise _Fault(f"{where}: `default` {shown(given)} is no {variable.type.value} that it allows")


def _step(table: object, n: int) -> TemplateStep:
    if not isinstance(table, Mapping):
        raise _Fault(f"step {n} is no table")
    key = table.get("key")
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise _Fault(f"step {n}: `key` must be a name of small letters, digits, `-` and `_`, and is {shown(key)}")
    where = f"step `{key}`"
    _only(table, _STEP_FIELDS, where)
    fields = {name: value for name, value in table.items() if name not in ("key", "needs", "for", "when")}
    loop, when = _line(table, "for", where), _line(table, "when", where)
    return TemplateStep(
        key=key,
        needs=_texts(table, "needs", where),
        loop=_loop(loop, where) if loop else None,
        when=_condition(when, where) if when else None,
        fields=fields,
    )


def _loop(text: str, where: str) -> Loop:
    found = _LOOP.fullmatch(text)
    if found is None:
        raise _Fault(f'{where}: `for` must be like "item in items" or "some in items by 20", and is {shown(text)}')
    return Loop(item=found[1], over=found[2], by=found[3] or "")


def _condition(text: str, where: str) -> Condition | ResultCondition:
    if (result := conditions.parse(text)) is not None:
        return result
    found = _WHEN.fullmatch(text)
    if found is None or (found[1] and found[3]):
        forms = '"deep", "not deep", "kind == \'big\'", "step.failed" or "step.result == \'word\'"'
        raise _Fault(f"{where}: `when` must be like {forms}, and is {shown(text)}")
    return Condition(name=found[2], negated=bool(found[1]) or found[3] == "!=", value=found[4])


def _only(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"did you mean `{near[0]}`" if near else f"there are {', '.join(known)}"
            raise _Fault(f"{where} has no field {shown(name)}; {hint}")


def _line(table: Mapping[str, Any], name: str, where: str) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise _Fault(f"{where}: `{name}` must be a text, and is {shown(value)}")
    return value.strip()


def _texts(table: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _Fault(f"{where}: `{name}` must be a list of texts")
    return tuple(value)
