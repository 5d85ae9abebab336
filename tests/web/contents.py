"""What the page shows in tests and pictures: a board in the middle of its work."""

from __future__ import annotations

import time

from legion.domain.checks import CheckResult
from legion.domain.landing.queue import QueueTestKind
from legion.domain.questions import QuestionKind
from legion.domain.tickets.ticket import Park, ParkReason
from legion.jobs.live_state import QueueTest
from legion.store.board import receipts, tickets
from legion.wire.agents import HireAgent
from legion.wire.templates import RunTemplate
from tests.api.serving import Served

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>"\'`${document.title=3}\x1b]0;4\x07'
VIEWS = (
    *(
        "board",
        "board/tree",
        "board/graph",
        "inbox",
        "ticket/3",
        "ticket/2/diff",
        "ticket/3/terminal",
        "ticket/5/receipts",
    ),
    *(
        "ticket/3/review",
        "ticket/3/history",
        "ticket/3/about",
        "agents",
        "mail",
        "squad",
        "chat",
        "plans",
        "plan/1",
        "queue",
        "usage",
        "new",
    ),
    *("projects", "models", "teams", "machines", "events", "actions", "actions/2", "search", "page"),
)


def _test_changes(served: Served, evil: str) -> None:
    """The merge queue tests two changes together and one on top of them; another one is blamed."""
    with served.board.store.write() as tx:
        receipts.add(
            tx,
            project=1,
            ticket=None,
            name="lint",
            command="make lint",
            commit=served.board.change,
            tree="t1",
            verdict=CheckResult.GREEN,
            exit_code=0,
            duration=1.5,
            tail="",
            output="",
            digest="",
        )
    checks = (("lint", "make lint"), (f"test {evil}".strip(), "make test"), ("types", "make types"))
    batches = {"together": (2, 7), "ahead": (8,)}
    tests = {
        how: QueueTest(
            project=1,
            kind=QueueTestKind(how),
            tickets=tickets,
            upstream=False,
            tree=f"t{n}",
            checks=checks,
            since=time.time() - 20 / n,
        )
        for n, (how, tickets) in enumerate(batches.items(), 1)
    }
    served.board.context.live.queue.tests.replace(tests)
    served.board.context.live.queue.blamed.replace({9: (f"test {evil}".strip(),)})


def at_gate(served: Served, id: int, title: str = "Waits at its gate") -> None:
    """A ticket whose change waits for the person."""
    served.board.put(id, title, "landing")
    served.board.run(id)
    with served.board.store.write() as tx:
        tickets.move(tx, id, Park(ParkReason.QUESTION, "waits for you"))


def fill(served: Served, evil: str = "") -> None:
    """A board in the middle of its work; `evil` is put into every text that agents or people write."""
    board = served.board
    board.put(1, "Add a login form", "done")
    board.put(2, "Sign cookies", "landing", after=[1])
    board.put(
        3, f"Limit logins {evil}", "working", after=[1], epic=f"auth{evil}", text=evil, criteria=evil, context=evil
    )
    board.run(3, f"Reading\n{evil}\n", ended=False, driver="claude")
    board.put(4, "Document it", "queued", after=[2, 3])
    board.put(5, "Remove dead code", "failed", reason=f"a check failed: {evil}")
    board.put(6, "Upgrade the parser", "parked")
    board.put(7, f"Cache sessions {evil}", "landing")
    board.put(8, "Rotate keys", "landing")
    board.put(9, "Drop the old API", "landing")
    board.put(10, "Fix the footer", "landing")
    _test_changes(served, evil)
    board.ask(1, ticket=3, words=f"May it run {evil}", choices=("yes", "no"))
    board.ask(2, ticket=5, kind=QuestionKind.ATTEMPTS, words="Try again?", choices=("retry", "leave"), fallback="leave")
    plans = RunTemplate(cwd=board.cwd, name="bug", values={"bug": f"The parser drops the last line {evil}"})
    board.service.run_template(plans)
    board.service.hire(HireAgent(task=f"Lead. {evil}", name="ada", cwd=board.cwd))
