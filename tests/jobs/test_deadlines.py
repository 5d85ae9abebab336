"""Questions that nobody looks at end at their deadline, and not some time later."""

from __future__ import annotations

import threading
from pathlib import Path

from legion.domain.questions import QuestionKind, SettledBy
from legion.jobs.scheduling.scheduler import Scheduler
from legion.store.board import questions
from tests.jobs.office import Office

PATIENCE = 60.0


def test_silence_settles_a_question_at_its_deadline_with_nobody_asking(tmp_path: Path):
    office = Office(tmp_path)
    store = office.context.store
    conductor = Scheduler(office.context)
    conductor.start()
    try:
        with store.write() as tx:
            asked = questions.ask(
                tx,
                key="left alone",
                kind=QuestionKind.ASK,
                project=office.project,
                words="Which?",
                fallback="this",
                deadline=tx.now + 1.0,
            )
        settled = threading.Event()

        def look() -> None:
            with store.read() as tx:
                if questions.get(tx, asked.id).settled_at is not None:
                    settled.set()

        store.on_commit(look)
        look()
        assert settled.wait(PATIENCE)
        with store.read() as now:
            answer = questions.get(now, asked.id)
        assert (answer.choice, answer.settled_by) == ("this", SettledBy.SILENCE)
        assert answer.settled_at is not None
        assert answer.settled_at >= asked.deadline
    finally:
        conductor.stop()
        office.close()
