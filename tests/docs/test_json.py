"""docs/json.md is written from the shapes of all answers. To renew it: run this file.

What a field means is said once: below the field in its shape, else in json_words.toml, by the field's name for all
shapes or for one. A field without words fails.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import legion.wire
from legion.cli.base import shapes
from legion.demo import report, summary
from legion.wire.operations import OPERATIONS
from tests.support.codebase import ROOT
from tests.support.documents import table

PAGE = ROOT / "docs/json.md"
WORDS = tomllib.loads((Path(__file__).parent / "json_words.toml").read_text())
OTHER_PROTOCOLS = ("orchestrate", "ticket_fields")
"""Modules whose shapes speak to programs of other tools, or describe the operations themselves."""


def _modules() -> list[ModuleType]:
    names = [one.name for one in iter_modules(legion.wire.__path__) if one.name != "bases"]
    return [import_module(f"legion.wire.{name}") for name in names]


def _shapes_of(module: ModuleType) -> Iterator[type]:
    """Without the bases that hold what some of them share: they are never sent."""
    for _, one in inspect.getmembers(module, inspect.isclass):
        if is_dataclass(one) and one.__module__ == module.__name__ and not one.__name__.startswith("_"):
            yield one


def all_wire_shapes() -> list[type]:
    return [shape for module in _modules() for shape in _shapes_of(module)]


def answers() -> Iterator[type]:
    """In the order of their modules; requests and what machines exchange are left to the OpenAPI document."""
    bodies = [str(row.body.annotation) for row in OPERATIONS.values() if row.body]
    left_out = {*(body.removesuffix(" | None").rpartition(".")[2] for body in bodies), *WORDS["inside"]}
    for module in (*_modules(), shapes, summary, report):
        if module.__name__.rpartition(".")[2] not in OTHER_PROTOCOLS:
            yield from (shape for shape in _shapes_of(module) if shape.__name__ not in left_out)


ANSWERS = list(answers())


def head_of(shape: type) -> str:
    return str(getattr(shape, "schema", shape.__name__))


@cache
def said_below(shape: type) -> dict[str, str]:
    """The strings below the fields of a shape, by field."""
    (body,) = (one for one in ast.parse(inspect.getsource(shape)).body if isinstance(one, ast.ClassDef))
    found = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[statement.target.id] = inspect.cleandoc(text)
    return found


def meaning(shape: type, name: str) -> str:
    """A sentence without its full stop."""
    below = [said_below(one)[name] for one in shape.__mro__[:-1] if is_dataclass(one) and name in said_below(one)]
    own = WORDS["shapes"].get(head_of(shape), {})
    text = below[0] if below else own.get(name) or WORDS["fields"].get(name, "")
    assert text, f"say what {shape.__name__}.{name} means, below the field or in json_words.toml"
    return " ".join(text.split()).removesuffix(".")


def section(shape: type) -> str:
    about = WORDS["shapes"].get(head_of(shape), {}).get("_about", "") or _own_words(shape)
    rows = [[f"`{one.name}`", f"`{one.type}`", meaning(shape, one.name)] for one in fields(shape)]
    return "\n".join(
        [f"## {head_of(shape)}\n", *([f"{about}\n"] if about else []), table(["field", "type", "meaning"], rows)]
    )


def _own_words(shape: type) -> str:
    text = shape.__doc__ or ""
    return "" if text.startswith(f"{shape.__name__}(") else " ".join(inspect.cleandoc(text).split())


def written() -> str:
    head = PAGE.read_text().partition("\n## ")[0].rstrip()
    order = sorted(ANSWERS, key=lambda shape: (not hasattr(shape, "schema"), head_of(shape)))
    return "\n".join([f"{head}\n", *map(section, order)])


def test_the_page_says_what_the_shapes_say():
    assert PAGE.read_text() == written()


@pytest.mark.parametrize("kind", ["fields", "shapes"])
def test_no_words_are_left_over(kind):
    """Words for a field that no shape has, or that its shape explains itself, would never be read."""
    known = {head_of(shape): shape for shape in ANSWERS}
    if kind == "shapes":
        for name, words in WORDS["shapes"].items():
            assert {*words} - {"_about"} <= {one.name for one in fields(known[name])} - {*said_below(known[name])}, name
        return
    silent = {
        one.name
        for name, shape in known.items()
        for one in fields(shape)
        if one.name not in said_below(shape) and one.name not in WORDS["shapes"].get(name, {})
    }
    assert {*WORDS["fields"]} <= silent


def test_every_schema_is_named_once_and_in_its_version():
    names = [head_of(shape) for shape in ANSWERS if hasattr(shape, "schema")]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"legion\.[a-z]+/\d+", name) for name in names)


if __name__ == "__main__":
    PAGE.write_text(written())
