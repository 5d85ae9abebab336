"""A thread that repeats something does not end by an error: `system/loops.py` makes all of them."""

from __future__ import annotations

import ast
import re

from tests.support.codebase import SOURCE, files_with, place, tree

ENDLESS = r"(itertools\.)?(count|cycle|repeat)\(|iter\(.*,"
ROOMS = ("api", "daemon", "gateway", "jobs", "machine", "runner", "service", "store")
OTHERS = {
    "jobs/scheduling/scheduler.py": "each decision catches everything, and is put off in the books of the scheduler",
    "jobs/background/lesson_proposals.py": "each lesson catches everything",
    "jobs/checks/ticket_watch.py": "it ends with the check that it watches",
    "jobs/landing/speculation.py": "it ends with the test that it speculates on, and only speeds it up",
    "jobs/machine_runs/remote.py": "it ends with its socket",
    "machine/uploads.py": "the end of the run waits for it, so it must end too",
    "machine/work.py": "one run: its error is reported to the head",
    "runner/bridge.py": "one run's network: an error of a connection ends that connection alone",
    "runner/egress.py": "one connection: it ends with it",
    "runner/lease.py": "one process: it ends with its lease",
}


def test_every_thread_with_a_loop_goes_on_after_an_error():
    found = []
    for path in files_with(r"\bThread\(", "src"):
        name = str(path.relative_to(SOURCE))
        if name.split("/")[0] not in ROOMS or name in OTHERS:
            continue
        loops = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef) and repeats(node)}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Thread"):
                targets = [ast.unparse(word.value).split(".")[-1] for word in node.keywords if word.arg == "target"]
                found += [place(path, node.lineno) for target in targets if target in loops]
    assert not found, f"an error would end it without a word; take loops.lasting: {found}"


def test_every_exception_above_still_has_a_thread():
    assert [name for name in OTHERS if "Thread(" not in (SOURCE / name).read_text()] == []


def repeats(function: ast.FunctionDef) -> bool:
    """Also `for` over what has no end."""
    return any(
        isinstance(node, ast.While) or (isinstance(node, ast.For) and re.match(ENDLESS, ast.unparse(node.iter)))
        for node in ast.walk(function)
    )
