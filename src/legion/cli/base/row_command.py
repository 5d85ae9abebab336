"""Makes a command of a row: its parameters and the described fields of its request are arguments and options."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import progress, sanitize
from legion.cli.base.parameters import BIGGEST, COMPLETIONS, TICKET, TICKETS, Completion
from legion.cli.base.texts import named_values, read_text, valid_text
from legion.client.text.rows import Row
from legion.wire.errors import LegionError
from legion.wire.table import Operation, row_of
from legion.wire.ticket_fields import FieldKind, Shape, TicketField, fields_of, request_of

_PATH = {"TicketId": ("N", TICKET), "int": ("N", click.IntRange(1, BIGGEST)), "str": ("NAME", click.STRING)}


class Number(click.ParamType[float]):
    """A number within the limits of a field."""

    def __init__(self, field: TicketField) -> None:
        self.name = field.name
        self._field = field

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        try:
            number: object = int(str(value)) if self._field.kind is FieldKind.WHOLE else float(str(value))
        except ValueError:
            number = value
        if fault := self._field.fault(number):
            self.fail(sanitize(fault), param, ctx)
        return number


def option_of(field: TicketField) -> click.Option:
    rule = field.rule
    settings: dict[FieldKind, dict[str, Any]] = {
        FieldKind.TEXT: {"type": click.Choice(rule.choices)} if rule.choices else {"default": field.default},
        FieldKind.TEXTS: {"multiple": not rule.by_comma},
        FieldKind.VALUES: {"multiple": True},
        FieldKind.WHOLE: {"default": field.default, "type": Number(field), "show_default": bool(field.default)},
        FieldKind.AMOUNT: {"default": field.default, "type": Number(field)},
        FieldKind.FLAG: {"is_flag": True},
        FieldKind.TICKETS: {"multiple": True, "type": TICKETS},
    }
    if field.name == "ticket":
        settings[FieldKind.WHOLE] = {"default": field.default, "type": TICKET}
    if field.default is None and field.kind is FieldKind.TEXT:
        settings[FieldKind.TEXT]["required"] = field.is_required
    return click.Option(
        [*field.options, field.name],
        metavar=rule.metavar or ("N" if field.kind is FieldKind.WHOLE else None),
        help=rule.help,
        shell_complete=COMPLETIONS.get(field.name),
        **settings[field.kind],
    )


def _argument_of(field: TicketField, completion: Completion | None) -> click.Argument:
    words, optional = field.rule.argument, field.rule.argument.startswith("[")
    kind = click.Choice(field.rule.choices) if field.rule.choices else click.STRING
    return click.Argument(
        [field.name],
        metavar=words,
        required=not optional,
        default=None if not optional or words.endswith("...") else field.default,
        nargs=-1 if words.endswith("...") else 1,
        type=TICKET if field.kind is FieldKind.WHOLE else kind,
        shell_complete=completion,
    )


def _request_of(row: Operation) -> type[Any] | None:
    if row.body is None:
        return None
    module, _, shape = str(row.body.annotation).removesuffix(" | None").rpartition(".")
    found = getattr(importlib.import_module(f"legion.{module}" if module else row.declared.__module__), shape)
    assert isinstance(found, type)
    return found


def row_command(
    name: str,
    of: Callable[..., Any],
    example: str,
    *options: click.Parameter,
    shows: Callable[[Any, int], Iterable[Row]] | None = None,
    says: Callable[[Any], Iterable[str]] | None = None,
    help: str = "",
    only: Collection[str] = (),
    waiting: str = "",
    then: Callable[[CommandCall, Any], object] = lambda call, found: None,
) -> click.Command:
    """`options` are those of the query. `shows` makes rows of the answer, `says` lines; without both it is reported.

    Where a row has two commands, `help` replaces its words and `only` names the fields. `waiting` is shown while the
    daemon takes long, and `then` adds what is not data.
    """
    row = row_of(of)
    request = _request_of(row)
    completion = COMPLETIONS.get(row.on) if not row.created else None

    def run(call: CommandCall, **given: Any) -> int:
        # The request names the session itself, so --session does not count.
        folder = call.here if row.on == "sessions" and row.method == "POST" else call.cwd
        if request is not None and row.body is not None:
            given[row.body.name] = filled(request, given, folder)
        given |= {one.name: folder for one in row.in_query if one.name == "cwd"}
        with progress(waiting) if waiting else contextlib.nullcontext():
            found = call.legion().call(row, given)
        if shows is not None:
            call.show(found, shows)
        elif says is not None:
            call.answer(found, lambda: map(sanitize, says(found)))
        else:
            call.report(found)
        then(call, found)
        return 0 if getattr(found, "ok", True) else LegionError.exit_code

    run.__doc__ = help or row.help
    made = command(name, example=example)(run)
    made.params[:0] = [
        *(_in_path(one, completion) for one in row.in_path),
        *(_in_query(one, completion) for one in row.in_query if one.default is one.empty and one.name != "cwd"),
        *(_parameters(request, only, completion) if request is not None else ()),
        *options,
    ]
    return made


def _parameters(
    request: type[Any], only: Collection[str] = (), completion: Completion | None = None
) -> list[click.Parameter]:
    fields = [one for one in fields_of(request).values() if not only or one.name in only]
    arguments = [one for one in fields if one.rule.argument]
    return [
        *(_argument_of(one, COMPLETIONS.get(one.name, completion)) for one in arguments),
        *(option_of(one) for one in fields if one.options),
    ]


def described_by(request: type[Any], *only: str) -> Callable[[click.Command], click.Command]:
    """Gives a command that is made by hand the arguments and options of a request, or some of them. See `filled`."""

    def add(made: click.Command) -> click.Command:
        own = [one.name for one in made.params]
        first = sum(isinstance(one, click.Argument) for one in made.params)
        made.params[first:first] = [one for one in _parameters(request, only) if one.name not in own]
        return made

    return add


def filled(request: type[Shape], given: dict[str, Any], folder: str, **more: object) -> Shape:
    """The request with what the command was given, which is taken out of `given`."""
    sent = {one.name: _value(one, given.pop(one.name)) for one in fields_of(request).values() if one.name in given}
    return request_of(request, {**sent, **more}, folder)


def _in_path(one: inspect.Parameter, completion: Completion | None) -> click.Argument:
    kind = str(one.annotation)
    if kind not in _PATH:
        kind = "int" if kind.endswith("Id") else "str"
    metavar, type = _PATH[kind]
    return click.Argument([one.name], metavar=metavar, type=type, shell_complete=completion if kind == "str" else None)


def _in_query(one: inspect.Parameter, completion: Completion | None) -> click.Argument:
    return click.Argument([one.name], metavar=one.name.upper(), shell_complete=completion)


def flag(name: str, help: str) -> click.Option:
    return click.Option([f"--{name.replace('_', '-')}", name], is_flag=True, help=help)


def _value(field: TicketField, given: Any) -> object:  # noqa: ANN401 - as click converts it
    match field.kind:
        case FieldKind.TEXT if field.holds_text:
            return read_text(given, field.rule.argument.strip("[]") or field.shown_name)
        case FieldKind.TEXTS if field.rule.by_comma:
            return field.default if given is None else [one.strip() for one in given.split(",") if one.strip()]
        case FieldKind.TEXTS:
            return [valid_text(one, field.shown_name) for one in given]
        case FieldKind.VALUES:
            return named_values(given)
        case FieldKind.TICKETS:
            return [id for some in given for id in some]
        case _:
            return field.default if given is None else given
