"""JSON with a program's text in it is written in one way: `to_json` of legion/domain/text.py."""

from __future__ import annotations

import ast

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
