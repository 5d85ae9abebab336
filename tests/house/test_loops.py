"""A thread that repeats something does not end by an error: `system/loops.py` makes all of them.

Nothing else runs beside its caller unless it is listed here with what happens when it ends, and no loop that goes on
after an error does so without a pause.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.codebase import SOURCE, files_with, place, tree

ENDLESS = r"(itertools\.)?(count|cycle|repeat)\(|iter\(.*,"
FACES = ("cli", "demo", "rehearsal", "tui")
"""A person looks at them."""
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
    "system/loops.py": "it makes them",
}
"""Threads with a loop."""
ONCE = {
    "api/machine_news.py": "the next request that waits looks again",
    "api/machines.py": "it waits for the end of its request",
    "api/mcp.py": "the next request opens the tools again",
    "api/orchestra.py": "the request awaits it",
    "api/page.py": "the request awaits it",
    "api/quota.py": "the request gets its error",
    "api/terminals.py": "the WebSocket awaits it",
    "client/start.py": "the command waits for what it finds",
    "conversations/__main__.py": "it ends the process with its parent",
    "conversations/refresh.py": "the next call gets its error, and looks again",
    "daemon/page_server.py": "the address is closed with it, and its opener told",
    "drivers/acp/terminals.py": "the next terminal starts it again",
    "drivers/claude/driver.py": "the driver awaits it",
    "drivers/claude/transport.py": "it ends with the program's output",
    "drivers/terminal/driver.py": "a loop of events, which ends when it is stopped",
    "drivers/turns/permission_rules.py": "one request to a run: its error is in the run's log",
    "drivers/turns/process.py": "it ends with the program's output",
    "drivers/turns/run.py": "one turn: it ends with it, and looks over what the gateway does not answer",
    "gateway/http/translate.py": "one write, whose error the next one raises",
    "gateway/lifecycle.py": "it waits for one process",
    "git/merge/prediction.py": "the caller gets its error",
    "jobs/background/trial_runner.py": "one trial: all errors are caught, and it is tried again",
    "jobs/machines/postgres_queue.py": "a loop of events, which ends when it is stopped",
    "machine/relay.py": "a loop of events: it logs its end",
    "service/providers/probe.py": "one connection, which the caller waits for",
}
"""What runs beside its caller without a loop of ours."""
SEVERAL = {"api/terminals.py": 5, "system/loops.py": 3} | dict.fromkeys(
    (
        *("api/orchestra.py", "api/page.py", "jobs/landing/speculation.py"),
        *("jobs/scheduling/scheduler.py", "runner/bridge.py"),
    ),
    2,
)
"""So many places there; one in the others."""
STARTS = {"Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "create_task", "ensure_future"}
STARTS |= {"TaskGroup", "run_in_executor", "start_new_thread"}
PAUSES = {
    "wait",
    "wait_for",
    "select",
    "sleep",
    "accept",
    "recv",
    "recv_fds",
    "read",
    "readline",
    "readuntil",
    "readexactly",
}
PAUSES |= {"receive", "waitpid", "stopped"}
BOUNDED = {
    "domain/review/verdicts.py": "by the text, and a number of tries",
    "git/trees/pool.py": "by the trees that wait",
    "jobs/background/lesson_proposals.py": "it waits for the next lesson in `get`",
    "jobs/background/notifier.py": "it waits for the next event in `get`",
    "machine/mirror.py": "by the pieces of a pack: one that does not arrive raises",
    "system/trees.py": "by the folders of a tree",
}
"""Loops whose pause has another name, and some that come to an end."""


def test_every_thread_with_a_loop_goes_on_after_an_error():
    found = []
    for path in files_with(r"\bThread\(", "src"):
        name = str(path.relative_to(SOURCE))
        if name.split("/")[0] in FACES or name in OTHERS:
            continue
        loops = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef) and repeats(node)}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Thread"):
                targets = [ast.unparse(word.value).split(".")[-1] for word in node.keywords if word.arg == "target"]
                found += [place(path, node.lineno) for target in targets if target in loops]
    assert not found, f"an error would end it without a word; take loops.lasting: {found}"


def test_what_runs_beside_its_caller_is_listed_with_what_its_end_means():
    found = {name: number for name, code in ours("|".join(STARTS)) if (number := starts(code))}
    assert found == dict.fromkeys((*OTHERS, *ONCE), 1) | SEVERAL


def test_a_loop_that_goes_on_after_an_error_pauses():
    found = {name for name, code in ours(r"while ") if spins(code)}
    assert found == {*BOUNDED}, "wait for something in it: an error that comes back would take a whole core"


def test_each_way_to_run_beside_a_caller_is_seen():
    for code in (
        "threading.Thread(None, self._run)",
        "Timer(1.0, self._again).start()",
        "pool.run_in_executor(None, work)",
        "class Watch(threading.Thread):\n    pass",
        "asyncio.get_running_loop().create_task(self._keep())",
        "from threading import Thread as Work",
    ):
        assert starts(ast.parse(code)), code


def test_a_loop_that_spins_is_seen():
    for body in ("try:\n  look()\n except LegionError:\n  continue", "with suppress(OSError):\n  look()"):
        assert spins(ast.parse(f"while not stopping.is_set():\n {body}")), body
    assert not spins(ast.parse("while True:\n try:\n  stopping.wait(1)\n except OSError:\n  pass"))


def ours(pattern: str) -> Iterator[tuple[str, ast.AST]]:
    for path in files_with(pattern, "src"):
        if path.relative_to(SOURCE).parts[0] not in FACES:
            yield str(path.relative_to(SOURCE)), tree(path)


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def starts(code: ast.AST) -> int:
    """Also under another name, and by a class of its own."""
    nodes = list(ast.walk(code))
    calls = [one for one in nodes if isinstance(one, ast.Call) and called(one) in STARTS]
    bases = [base for one in nodes if isinstance(one, ast.ClassDef) for base in one.bases]
    names = [name for one in nodes if isinstance(one, ast.ImportFrom) for name in one.names if name.asname]
    own = [base for base in bases if ast.unparse(base).split(".")[-1] in STARTS]
    return len(calls) + len(own) + len([name for name in names if name.name in STARTS])


def spins(code: ast.AST) -> bool:
    leaves = (ast.Raise, ast.Return, ast.Break)
    for loop in ast.walk(code):
        if not isinstance(loop, ast.While):
            continue
        below = list(ast.walk(loop))
        handlers = [one for one in below if isinstance(one, ast.ExceptHandler)]
        goes_on = any(not any(isinstance(one, leaves) for one in ast.walk(each)) for each in handlers)
        goes_on |= any(isinstance(one, ast.withitem) and "suppress" in ast.unparse(one) for one in below)
        if goes_on and not any(isinstance(one, ast.Call) and called(one) in PAUSES for one in below):
            return True
    return False


def repeats(function: ast.FunctionDef) -> bool:
    """Also `for` over what has no end."""
    return any(
        isinstance(node, ast.While) or (isinstance(node, ast.For) and re.match(ENDLESS, ast.unparse(node.iter)))
        for node in ast.walk(function)
    )
