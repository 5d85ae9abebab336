"""Shapes of answers are filled from records by name; what is missing is an error and never a silent default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from legion.service.shared.fragments import shaped
from legion.wire.lazy import dataclass as shape


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Shelf:
    name: str
    colour: Colour | None
    books: tuple[int, ...]
    tags: frozenset[str]


@dataclass(frozen=True)
class Room:
    name: str
    floor: int


@shape(kw_only=True)
class ShelfLine:
    name: str
    colour: str | None
    books: list[int]
    tags: list[str]
    floor: int
    note: str = ""


def test_records_give_their_fields_by_name_and_the_first_one_wins():
    shelf = Shelf("tall", Colour.RED, (1, 2), frozenset({"b", "a"}))
    line = shaped(ShelfLine, shelf, Room("attic", 3))
    assert vars(line) == {
        "name": "tall", "colour": "red", "books": [1, 2], "tags": ["a", "b"], "floor": 3, "note": ""
    }  # fmt: skip
    assert shaped(ShelfLine, shelf, floor=1, name="small", note="new").name == "small"


def test_a_field_that_no_record_has_is_an_error():
    with pytest.raises(TypeError, match="floor"):
        shaped(ShelfLine, Shelf("tall", None, (), frozenset()))
