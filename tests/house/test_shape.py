"""The code keeps its shape: small files, small functions, honest tests, errors that are not swallowed."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.codebase import files_with, imported_modules, place, python_files, statements, text_of, tree

FILE_LINES = 450
FUNCTION_LINES = 70
ROOMS = ("src", "tests", "bench", "tools")
CATCH_ALL = ("Exception", "BaseException")


def listed(findings: list[str]) -> str:
    return "\n  ".join(["", *findings])


def test_no_file_is_longer_than_a_person_reads():
    lengths = [(len(text_of(path).splitlines()), path) for path in python_files(*ROOMS)]
    long = [f"{place(path)} has {lines} lines" for lines, path in sorted(lengths, reverse=True) if lines > FILE_LINES]
    assert not long, f"split these files, {FILE_LINES} lines are the limit:{listed(long)}"


def test_no_function_is_longer_than_a_screen():
    long = []
    for path in python_files(*ROOMS):
        if text_of(path).count("\n") < FUNCTION_LINES:
            continue
        for node in statements(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long.append(f"{place(path, node.lineno)} {node.name} has {lines} lines")
    assert not long, f"split these functions, {FUNCTION_LINES} lines are the limit:{listed(long)}"


def test_what_runs_as_a_program_stands_last():
    """Code behind it is not there yet when the module is run by `python -m`."""
    early = [
        place(path, node.lineno)
        for path in python_files("src")
        for node in tree(path).body[:-1]
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
    ]
    assert early == []


def test_no_test_sleeps():
    found = [
        place(path, node.lineno)
        for path in files_with(r"\bsleep\b", "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep")
    ]
    assert not found, f"wait for the thing itself, with a deadline, instead of sleeping:{listed(found)}"


def test_nothing_that_a_person_interrupts_waits_on_a_queue_that_breaks_by_it():
    """An interrupt in the middle of a Queue's own code ends as a RuntimeError about its lock."""
    found = [
        place(path, node.lineno)
        for path in files_with(r"\bQueue\b", "src")
        if {"cli", "client", "demo"} & set(path.parts)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("queue.Queue", "Queue")
    ]
    assert not found, f"take a SimpleQueue:{listed(found)}"


def test_no_test_replaces_a_part_by_a_mock():
    found = [
        place(path)
        for path in files_with(r"\bmock\b", "tests")
        for name in imported_modules(path)
        if "mock" in name.split(".")
    ]
    found += [
        place(path, node.lineno)
        for path in files_with(r"\bsetattr\b", "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "monkeypatch.setattr"
    ]
    assert not found, f"test with the real part or a small stand-in of its own:{listed(found)}"


def test_no_error_is_caught_without_saying_why():
    found = [
        place(path, handler.lineno)
        for path in files_with(r"\bexcept\b", "src")
        for handler in statements(tree(path))
        if isinstance(handler, ast.ExceptHandler) and catches_everything(handler) and not excused(path, handler)
    ]
    assert not found, f"catch the error you expect, or say on the same line why all of them:{listed(found)}"


def catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in CATCH_ALL for kind in kinds)


def excused(path: Path, handler: ast.ExceptHandler) -> bool:
    """It passes the error on, or a comment behind it gives the reason."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return True
    _, _, reason = text_of(path).splitlines()[handler.lineno - 1].partition("#")
    return len(reason.split()) >= 3 and not reason.strip().startswith(("noqa", "type:"))
