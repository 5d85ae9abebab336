"""The measure of the house: no number here grows, and a noun enters only when one leaves.

`python -m tests.house.test_measure` prints the table that ARCHITECTURE.md holds. When a number falls, lower its limit.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from inspect import get_annotations
from pathlib import Path

import pytest

from legion.cli.app import SECTIONS, cli
from legion.store.database import schema
from tests.cli.test_docs import CONTEXT
from tests.docs.test_json import all_wire_shapes
from tests.support.codebase import ROOT, SOURCE, imported_modules, project_files, python_files, text_of, tree
from tests.support.documents import with_table

GENERATED = ("docs/api.md", "docs/commands.md", "docs/json.md")
ALIKE = 0.7
"""The part of a smaller shape's fields that a larger one repeats by name and type."""


@cache
def source() -> tuple[Path, ...]:
    return tuple(path for path in python_files("src"))


def source_lines() -> int:
    page = [path for path in project_files() if path.suffix in (".js", ".css", ".html") and SOURCE in path.parents]
    own = [path for path in page if "vendor" not in path.parts]
    return sum(len(text_of(path).splitlines()) for path in (*source(), *own))


def files() -> int:
    return len(source())


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


@cache
def _importers() -> dict[str, set[Path]]:
    """The files that import a module, by the module's name."""
    known = {_module(path) for path in source()}
    found: dict[str, set[Path]] = defaultdict(set)
    for path in source():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found[node.module].add(path)
                for name in node.names:
                    if f"{node.module}.{name.name}" in known:
                        found[f"{node.module}.{name.name}"].add(path)
        for module in imported_modules(path):
            found[module].add(path)
    return found


def files_for_one_neighbour() -> int:
    """Modules that only one file imports, which lies in the same folder."""
    alone = [(path, _importers()[_module(path)]) for path in source() if path.name != "__init__.py"]
    return sum(len(users) == 1 and next(iter(users)).parent == path.parent for path, users in alone)


def largest_folder() -> int:
    return max(Counter(path.parent for path in source() if path.name != "__init__.py").values())


def commands() -> int:
    return sum(" " not in name for section in SECTIONS.values() for name in section)


def commands_on_the_first_screen() -> int:
    return sum(entry.first for section in SECTIONS.values() for entry in section.values())


def lines_of_help() -> int:
    return len(cli.get_help(CONTEXT).splitlines())


def tables() -> int:
    return len(schema.metadata.tables)


def wire_shapes() -> int:
    return len(all_wire_shapes())


def _own_fields(shape: type) -> set[tuple[str, str]]:
    """Without those of a base, which are written once, and without `schema`, which every answer has."""
    own = {*get_annotations(shape)} - {"schema"}
    return {(one.name, str(one.type)) for one in fields(shape) if one.name in own} if is_dataclass(shape) else set()


def near_copies() -> int:
    """Shapes whose fields are mostly written a second time in another one."""
    known = [_own_fields(shape) for shape in all_wire_shapes()]
    known = [one for one in known if len(one) >= 4]
    return sum(
        any(other is not one and len(other) >= len(one) and len(one & other) >= ALIKE * len(one) for other in known)
        for one in known
    )


def fan_in_of_context() -> int:
    return len(_importers()["legion.jobs.context"])


def aliased_imports() -> int:
    """`import x as y`, but for the form that passes a name on."""
    nodes = (node for path in source() for node in ast.walk(tree(path)))
    names = (name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names)
    return sum(name.asname is not None and name.asname != name.name for name in names)


def escapes() -> int:
    return sum(len(re.findall(r"# (?:noqa|type: ignore)", text_of(path))) for path in source())


def words_by_hand() -> int:
    """Of the documents; tables that are written from the code do not count."""
    total = 0
    for path in project_files():
        name = str(path.relative_to(ROOT))
        if name.startswith("docs/") and path.suffix == ".md" and name not in GENERATED:
            total += len(
                re.sub(r"<!-- (?!end)[\w ]+ -->\n.*?<!-- end -->", "", path.read_text(), flags=re.DOTALL).split()
            )
    return total


@dataclass(frozen=True)
class Measure:
    count: Callable[[], int]
    limit: int
    """What it may not exceed: what it was when it was last lowered."""
    goal: int


MEASURES = {
    "source lines, the page's included": Measure(source_lines, 140_241, 125_000),
    "source files": Measure(files, 851, 780),
    "files with one importer, in their own folder": Measure(files_for_one_neighbour, 58, 60),
    "files in the largest folder": Measure(largest_folder, 27, 20),
    "commands in `legion help all`": Measure(commands, 45, 45),
    "commands on the first screen": Measure(commands_on_the_first_screen, 24, 24),
    "lines of `legion --help`": Measure(lines_of_help, 40, 40),
    "tables of the database": Measure(tables, 48, 46),
    "shapes on the wire": Measure(wire_shapes, 295, 230),
    "near-copies among them": Measure(near_copies, 0, 0),
    "importers of Context": Measure(fan_in_of_context, 54, 70),
    "aliased imports": Measure(aliased_imports, 49, 60),
    "`noqa` and `type: ignore`": Measure(escapes, 66, 80),
    "words of documents by hand": Measure(words_by_hand, 48_050, 48_000),
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_measure_does_not_grow(name):
    measure = MEASURES[name]
    assert measure.count() <= measure.limit


def page(text: str) -> str:
    rows = [[name, f"{one.limit:,}", f"{one.goal:,}"] for name, one in MEASURES.items()]
    return with_table(text, "measure", ["measure", "limit", "goal"], rows)


def test_the_architecture_shows_the_measure():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert text == page(text)


if __name__ == "__main__":
    for label, one in MEASURES.items():
        print(f"{label:48}{one.count():>9,}{one.limit:>9,}{one.goal:>9,}")
    (ROOT / "ARCHITECTURE.md").write_text(page((ROOT / "ARCHITECTURE.md").read_text()))
