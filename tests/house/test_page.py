"""The page keeps the shape of the rest: short lines, small modules that say what they are for, and a size in bytes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.codebase import ROOT, project_files

STATIC = ROOT / "src/legion/web/static"
COLUMNS = 120
MODULE_LINES = 370
BYTES = 252_200
"""What it may not exceed. When the page gets smaller, lower it."""


def page_files(*kinds: str) -> list[Path]:
    """Our own: what is vendored is as published."""
    own = [path for path in project_files() if STATIC in path.parents and STATIC / "vendor" not in path.parents]
    return [path for path in own if path.suffix in kinds]


def name(path: Path) -> str:
    return str(path.relative_to(STATIC))


def test_no_line_is_longer_than_the_formatter_makes_it():
    files = page_files(".js", ".css", ".html")
    assert files
    lines = [(name(path), n, line) for path in files for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{file}:{n}" for file, n, line in lines if len(line) > COLUMNS] == []


def test_no_module_is_longer_than_a_person_reads():
    lengths = {name(path): len(path.read_text().splitlines()) for path in page_files(".js")}
    assert {file: lines for file, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_every_module_says_first_what_it_is_for():
    first = {name(path): path.read_text().partition("\n")[0] for path in page_files(".js", ".css")}
    assert [file for file, line in first.items() if not line.startswith(("// ", "/* ")) or len(line.split()) < 5] == []


def test_the_page_does_not_grow():
    sizes = {name(path): path.stat().st_size for path in page_files(".js", ".css", ".html")}
    assert sum(sizes.values()) <= BYTES, sizes


UNNAMED = re.compile(r"<(?:pre|div|span|p|li)\b(?![^>]*\brole=)[^>]*\saria-label=")


def test_a_name_for_the_ear_stands_only_where_a_role_takes_one():
    """Without a role a reader of the screen says nothing of it."""
    assert [name(path) for path in page_files(".js", ".html") if UNNAMED.search(path.read_text())] == []
    assert UNNAMED.search('<pre class="a" aria-label="b">')
    assert not UNNAMED.search('<pre role="log" aria-label="b">')
