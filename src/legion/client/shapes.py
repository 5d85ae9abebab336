"""Reads JSON into the wire's dataclasses. Unknown fields are ignored: a newer daemon may send more."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Shape = TypeVar("Shape")
Convert = Callable[[Any], Any]


class UnreadableAnswer(Exception):
    """The answer lacks something that its shape promises."""


def read(shape: type[Shape], data: Any) -> Shape:  # noqa: ANN401
    """The dataclass that this JSON object is."""
    if not isinstance(data, dict):
        raise UnreadableAnswer(shape.__name__)
    known = {
        name: data[name] if convert is None else convert(data[name]) for name, convert in _plan(shape) if name in data
    }
    try:
        return shape(**known)
    except TypeError as missing:
        raise UnreadableAnswer(f"{shape.__name__}: {missing}") from None


_plans: dict[type[Any], list[tuple[str, Convert | None]]] = {}


def _plan(shape: type[Any]) -> list[tuple[str, Convert | None]]:
    """How each field is read; worked out once per shape."""
    if shape not in _plans:
        hints = get_type_hints(shape)
        _plans[shape] = [(field.name, _converter(hints[field.name])) for field in fields(shape)]
    return _plans[shape]


def _converter(hint: Any) -> Convert | None:  # noqa: ANN401
    """None where JSON already is what the field wants."""
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda data: read(hint, data)
    if get_origin(hint) is list:
        each = _converter(get_args(hint)[0])
        return None if each is None else lambda data: [each(item) for item in data]
    if get_origin(hint) is types.UnionType:
        some = next((found for part in get_args(hint) if (found := _converter(part))), None)
        return None if some is None else lambda data: None if data is None else some(data)
    return None
