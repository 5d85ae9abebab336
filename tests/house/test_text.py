"""JSON with a program's text in it is written in one way: `to_json` of legion/domain/text.py."""

from __future__ import annotations

import ast
import re

from tests.support.codebase import SOURCE, files_with, imported_modules, place, tree

ROOMS = ("api", "domain", "drivers", "runner", "service", "store", "wire")
"""What a program wrote passes through these on its way to people and to other programs."""
ALLOWED = {
    "domain/text.py": "the one place",
    "runner/spec.py": "the spec of a run: paths are bytes, and are read back as such",
    "runner/probe.py": "a program of its own that tries the sandbox",
    "runner/lease.py": "two numbers",
    "api/routes.py": "looks whether an answer can be sent",
}
WRITERS = ("json.dumps", "json.dump", "orjson.dumps", "model_dump_json", "dump_json")
RESPONSES = ("starlette.responses", "fastapi.responses", "fastapi")


def test_nothing_else_writes_json():
    found = [
        place(path, node.lineno)
        for path in files_with(r"dump", "src")
        if path.relative_to(SOURCE).parts[0] in ROOMS and str(path.relative_to(SOURCE)) not in ALLOWED
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(WRITERS)
    ]
    assert not found, f"write it with `legion.domain.text.to_json`: {found}"


def test_every_answer_of_a_route_is_json_of_ours():
    found = [
        place(path, node.lineno)
        for path in files_with("JSONResponse", "src")
        if path.name != "json_response.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        and node.module in RESPONSES
        and any(alias.name.endswith("JSONResponse") for alias in node.names)
    ]
    assert not found, f"import it from `legion.api.json_response`: {found}"


def test_the_exceptions_still_exist():
    assert not [name for name in ALLOWED if not (SOURCE / name).is_file()]
    assert all({"json", "orjson"} & imported_modules(SOURCE / name) for name in ALLOWED)


def test_numbers_of_things_are_worded_in_one_place():
    """`count` writes "1 ticket" and "2 tickets"."""
    found = [
        place(path, node.lineno)
        for path in files_with(r"== 1 else|!= 1 else|\blen\(", "src")
        if str(path.relative_to(SOURCE)) != "domain/text.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.expr) and (_words_one_apart(node) or _words_any_number_alike(node))
    ]
    assert not found, f"word it with `count` of legion/domain/text.py: {found}"


def _words_one_apart(node: ast.expr) -> bool:
    """`"1 ticket" if number == 1 else ...`, or an s that depends on it."""
    if not isinstance(node, ast.IfExp) or not re.search(r"[!=]= 1$", ast.unparse(node.test)):
        return False
    return any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) and re.match(r"1 |s\b", side.value)
        for side in (node.body, node.orelse)
    )


def _words_any_number_alike(node: ast.expr) -> bool:
    """`f"{len(found)} tickets"`."""
    if not isinstance(node, ast.JoinedStr):
        return False
    return any(
        isinstance(number, ast.FormattedValue)
        and number.format_spec is None
        and isinstance(number.value, ast.Call)
        and ast.unparse(number.value.func) == "len"
        and isinstance(after, ast.Constant)
        and re.match(r" (?!is\b|has\b|was\b)[a-z]+s\b", str(after.value))
        and not ast.unparse(before).rstrip("'\"").endswith(" of ")
        for before, number, after in zip([ast.Constant(""), *node.values], node.values, node.values[1:], strict=False)
    )


def test_python_is_parsed_in_one_place():
    """Two threads that parse at once can fail in Python before 3.11.5."""
    found = [str(path.relative_to(SOURCE)) for path in files_with(r"\bast\.parse\b|\bast import", "src")]
    assert found == ["domain/text.py"], "parse it with `legion.domain.text.python_statements`"
