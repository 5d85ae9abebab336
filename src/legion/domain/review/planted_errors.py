"""Errors that the trial plants in source files: one that shows when the code runs, and one that shows when it is read.

An error that shows at run time leaves [setup] alone, so that a build succeeds and the check itself has to notice.
"""

from __future__ import annotations

import ast
import re

from legion.domain.review.path_patterns import extension
from legion.domain.text import python_statements

PLANTED = "planted by the trial of the checks"

_PYTHON = (
    f'import os as _planted\nif _planted.environ.get("LEGION_CHECK") != "setup":\n    raise RuntimeError("{PLANTED}")\n'
)
_SCRIPT = f'if (globalThis.process?.env?.LEGION_CHECK !== "setup") throw new Error("{PLANTED}");\n'
_TYPED_SCRIPT = _SCRIPT.replace("globalThis.", "(globalThis as any).")
_SHELL = f'[ "${{LEGION_CHECK:-}}" = setup ] || {{ echo "{PLANTED}" >&2; exit 97; }}\n'

_AT_THE_TOP = {
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), _SCRIPT),
    **dict.fromkeys(("ts", "mts", "cts", "tsx"), _TYPED_SCRIPT),
    **dict.fromkeys(("sh", "bash"), _SHELL),
    "rb": f'raise "{PLANTED}" unless ENV["LEGION_CHECK"] == "setup"\n',
    "pl": f'BEGIN {{ die "{PLANTED}" unless ($ENV{{LEGION_CHECK}} // "") eq "setup" }}\n',
    "pm": f'BEGIN {{ die "{PLANTED}" unless ($ENV{{LEGION_CHECK}} // "") eq "setup" }}\n',
    "lua": f'if os.getenv("LEGION_CHECK") ~= "setup" then error("{PLANTED}") end\n',
    "jl": f'get(ENV, "LEGION_CHECK", "") == "setup" || error("{PLANTED}")\n',
    "r": f'if (Sys.getenv("LEGION_CHECK") != "setup") stop("{PLANTED}")\n',
}
"""By extension: what runs before everything else in the file."""

_AT_THE_END = {
    "php": f'\nif (getenv("LEGION_CHECK") !== "setup") throw new \\RuntimeException("{PLANTED}");\n',
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "m", "mm"), f"\n#error {PLANTED}\n"),
    "rs": f'\ncompile_error!("{PLANTED}");\n',
    "clj": f'\n(throw (Exception. "{PLANTED}"))\n',
    **dict.fromkeys(("vue", "svelte"), f"\n<script>)({PLANTED}</script>\n"),
}
"""By extension: what follows everything else. All others get a line that no compiler takes."""

_UNREADABLE = f"\n)({PLANTED}\n"
_NEVER_RUN = (".pyi", ".d.ts", ".d.mts", ".d.cts")
_FIRST_LINES = re.compile(rb"(?:[ \t]*\n|#[^\n]*(?:\n|\Z)|['\"]use [\w ]+['\"];?[ \t]*(?:\n|\Z))*")
"""Lines that must stay first: the interpreter, comments that are instructions, and directives."""


def breaks_at_run_time(path: str, content: bytes) -> bytes | None:
    """The file with an error that shows as soon as it is run, or compiled. None where it never runs."""
    if path.endswith(_NEVER_RUN):
        return None
    kind = extension(path)
    if kind == "py":
        return _in_python(content)
    if (text := _AT_THE_TOP.get(kind)) is not None:
        first = _FIRST_LINES.match(content)
        return _inserted(content, 0 if first is None else first.end(), text)
    return content + _AT_THE_END.get(kind, _UNREADABLE).encode()


def leaves_setup_alone(path: str) -> bool:
    """Whether a build does not notice the error that shows at run time."""
    return extension(path) in ("py", "php", *_AT_THE_TOP)


def breaks_when_read(path: str, content: bytes) -> bytes:
    """The file with an error that every tool notices that parses it."""
    kind = extension(path)
    if kind in ("php", "vue", "svelte"):
        return content + f"\n<?php )({PLANTED}\n".encode()
    return content + (_AT_THE_END[kind] if kind in ("c", "h") else _UNREADABLE).encode()


def _in_python(content: bytes) -> bytes:
    """After docstring and `from __future__`, which must stay first."""
    body = python_statements(content)
    if body is None:
        return content + b"\n" + _PYTHON.encode()
    line = 0
    for place, statement in enumerate(body):
        words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and place == 0
        if not words and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        line = statement.end_lineno or line
    if line:
        lines = content.splitlines(keepends=True)
        return _inserted(content, sum(map(len, lines[:line])), _PYTHON)
    first = _FIRST_LINES.match(content)
    return _inserted(content, 0 if first is None else first.end(), _PYTHON)


def _inserted(content: bytes, at: int, text: str) -> bytes:
    before = content[:at]
    joint = b"" if not before or before.endswith(b"\n") else b"\n"
    return before + joint + text.encode() + content[at:]
