"""Fills the shapes of answers from records by the names of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar

Shape = TypeVar("Shape")


def shaped(shape: type[Shape], *records: object, **others: object) -> Shape:
    """A shape with `others`, and its remaining fields from the first record that has an attribute of that name.

    A field that no record has needs a default in the shape. Enums travel as their text, collections as lists.
    """
    make: Callable[..., Shape] = shape
    for field in fields(shape):  # type: ignore[arg-type]  # every shape is a dataclass
        if field.name not in others:
            record = next((one for one in records if hasattr(one, field.name)), None)
            if record is not None:
                others[field.name] = _plain(getattr(record, field.name))
    return make(**others)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any field of any record
    match value:
        case Enum():
            return value.value
        case frozenset():
            return sorted(value)
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            return value
