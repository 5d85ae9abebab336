"""Settings as data: a section is a frozen dataclass, and each field's metadata defines how it is read, checked and
explained.

To add a setting, add a field. Parsing, errors, `legion config` and the tables of docs/configuration.md follow from it.
Knows no section and no file.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

from legion.config.base.source import HIDDEN, Path, SettingsText, printable
from legion.domain.errors import BadInput

_Section = TypeVar("_Section")

DAY = 86_400
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
"""Names that a person gives: they appear in messages, keys and names of files."""

_RULE = "rule"


class Unfit(Exception):
    """The value (or the element of a list) that is not allowed, and why where "must be ..." is not enough."""

    def __init__(self, value: object, why: str = "") -> None:
        super().__init__(value, why)
        self.value = value
        self.why = why


@dataclass(frozen=True, kw_only=True)
class SettingRule:
    """How one setting is read and explained."""

    allowed: str
    """Continues after "must be"."""
    help: str
    read: Callable[[object], object]
    """Converts the value from TOML; raises Unfit."""
    show: Callable[[Any], object] = lambda value: value
    """The value for `legion config`: plain data, and no password."""
    secret: bool = False
    """A refused value is not repeated in the message."""
    former: str = ""
    """Its name in earlier releases, which is still read."""


REQUIRED: Any = dataclasses.MISSING
"""Instead of a default, for a setting that must be there."""


def setting(default: object, **rule: Any) -> Any:
    """The field of a section, with the arguments of its SettingRule. Type checkers take it for the default."""
    return dataclasses.field(default=default, metadata={_RULE: SettingRule(**rule)})


def whole(default: int, low: int, high: int, *, help: str) -> Any:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Unfit(value)
        return value

    return setting(default, allowed=f"a whole number from {low} to {high}", help=help, read=read)


def number(default: float, low: float, high: float, *, unit: str, help: str) -> Any:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Unfit(value)
        return float(value)

    def show(value: float) -> float | int:
        return int(value) if value.is_integer() else value

    return setting(default, allowed=f"{unit} from {low:g} to {high:.0f}", help=help, read=read, show=show)


def flag(default: bool, *, help: str, former: str = "") -> Any:
    """true or false."""

    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise Unfit(value)
        return value

    return setting(default, allowed="true or false", help=help, read=read, former=former)


def choice(
    default: Enum, kind: type[Enum] | None = None, *, help: str, old: Mapping[str, Enum] = MappingProxyType({})
) -> Any:
    """One of the values of `kind`, which is the default's own if left out. `old`: names of earlier releases."""
    members = kind or type(default)
    values = [member.value for member in members]

    def read(value: object) -> Enum:
        if isinstance(value, str) and value in old:
            return old[value]
        if value not in values:
            raise Unfit(value)
        return members(value)

    return setting(default, allowed=_any_of(values), help=help, read=read, show=lambda member: member.value)


def text(
    default: str | None,
    *,
    help: str,
    allowed: str,
    fits: Callable[[str], bool] = lambda value: True,
    show: Callable[[str], object] = lambda value: value,
    secret: bool = False,
) -> Any:
    def read(value: object) -> str:
        plain = plain_text(value)
        if not fits(plain):
            raise Unfit(value)
        return plain

    return setting(default, allowed=allowed, help=help, read=read, show=show, secret=secret)


def texts(
    default: tuple[str, ...] = (),
    *,
    help: str,
    allowed: str,
    fault: Callable[[str], str | None] = lambda value: None,
    make: Callable[[str], object] = lambda value: value,
) -> Any:
    """A list of texts. `fault` describes what is wrong with one, after "which"; `make` converts one."""

    def read(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise Unfit(value)
        for element in value:
            why = fault(plain_text(element))
            if why:
                raise Unfit(element, why)
        return tuple(make(element) for element in value)

    def show(value: tuple[object, ...]) -> list[str]:
        return [str(element) for element in value]

    return setting(default, allowed=allowed, help=help, read=read, show=show)


def plain_text(value: object) -> str:
    """Text without characters that are invisible to a reader."""
    if not isinstance(value, str) or HIDDEN.search(value):
        raise Unfit(value)
    return value


def rules(section: type[Any]) -> dict[str, SettingRule]:
    """The settings of a section, in order."""
    return {field.name: field.metadata[_RULE] for field in dataclasses.fields(section)}


def required(section: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(section) if field.default is dataclasses.MISSING]


def read_section(section: type[_Section], source: SettingsText, path: Path) -> _Section:
    """The section at `path` of the file, with defaults for what is not there."""
    table = table_at(source, path)
    known = rules(section)
    renamed = {rule.former: name for name, rule in known.items() if rule.former}
    values: dict[str, Any] = {}
    for written, value in table.items():
        name = renamed.get(written, written)
        if name not in known:
            raise unknown(source, [*path, name], known)
        values[name] = _read(source, [*path, name], known[name], value)
    for name in required(section):
        if name not in values:
            raise source.fault(path, f"lacks `{name}`, which must be {known[name].allowed}")
    return section(**values)


def read_named(section: type[_Section], source: SettingsText, above: str) -> Iterator[tuple[str, _Section]]:
    """Every [above.NAME] of the file with its name, in order."""
    for name in table_at(source, [above]):
        if not NAME.fullmatch(name):
            raise source.fault(
                [above, name], "needs a name of at most 40 letters, digits, dots, dashes and underscores"
            )
        yield name, read_section(section, source, [above, name])


def table_at(source: SettingsText, path: Path) -> Mapping[str, object]:
    """The table at `path`; empty where there is none."""
    table = source.table
    for depth, name in enumerate(path, start=1):
        inner = table.get(name, {})
        if not isinstance(inner, Mapping):
            raise source.fault(path[:depth], f"must be a table like [{'.'.join(path[:depth])}], not {shown(inner)}")
        table = inner
    return table


def _read(source: SettingsText, path: Path, rule: SettingRule, value: object) -> object:
    try:
        return rule.read(value)
    except Unfit as unfit:
        if unfit.why:
            raise source.fault(path, f"has {shown(unfit.value)}, which {unfit.why}") from None
        but = "" if rule.secret else f", not {shown(unfit.value)}"
        raise source.fault(path, f"must be {rule.allowed}{but}") from None


def unknown(source: SettingsText, path: Path, known: Iterable[str]) -> BadInput:
    """The error for an unknown key, with the nearest known one."""
    names = list(known)
    near = difflib.get_close_matches(path[-1][:100], names, n=1, cutoff=0.6)
    if near:
        return source.fault(path, f"is not a setting; the nearest one is `{'.'.join([*path[:-1], near[0]])}`")
    return source.fault(path, f"is not a setting; known here are {', '.join(names)}")


def flatten(prefix: str, section: Any) -> list[tuple[str, object]]:
    """A section as (key, plain value), in the order of its fields."""
    return [
        (f"{prefix}.{name}" if prefix else name, rule.show(getattr(section, name)))
        for name, rule in rules(type(section)).items()
    ]


def stated(table: Mapping[str, object], prefix: str = "") -> frozenset[str]:
    """The flat keys that a file sets itself. The table is known to be valid."""
    keys: set[str] = set()
    for name, value in table.items():
        key = f"{prefix}{name}"
        keys |= stated(value, f"{key}.") if isinstance(value, Mapping) else {key}
    return frozenset(keys)


def shown(value: object) -> str:
    """A refused value for a message: short, on one line."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{printable(value)}"' if isinstance(value, str) else printable(str(value))


def _any_of(values: list[str]) -> str:
    quoted = [f'"{value}"' for value in values]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
