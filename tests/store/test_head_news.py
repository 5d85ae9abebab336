"""Notifications between two heads on a real Postgres."""

from __future__ import annotations

import queue
from contextlib import closing

from legion.domain.events import EventKind
from legion.store.database.head_news import HeadNews
from legion.store.database.transactions import Store
from tests.support.migrated import migrated_database

PATIENCE = 30.0


def test_a_commit_and_a_changed_run_reach_the_other_head_and_do_not_come_back():
    seen: queue.Queue[str] = queue.Queue()
    with migrated_database() as url, closing(Store(url)) as here, closing(Store(url)) as there:
        here.on_commit(lambda: seen.put("commit here"))
        there.on_commit(lambda: seen.put("commit there"))
        alone = HeadNews(url, here, on_run=lambda run: seen.put(f"{run} here"))
        alone.start()
        assert seen.get(timeout=PATIENCE) == "commit here"  # a look after each connection
        other = HeadNews(url, there, on_run=lambda run: seen.put(f"{run} there"))
        other.start()
        assert seen.get(timeout=PATIENCE) == "commit there"
        with here.write() as tx:
            tx.record(EventKind.WARNING, data={})
        assert [seen.get(timeout=PATIENCE) for _ in range(2)] == ["commit here", "commit there"]
        other.run_changed("run-1")
        assert seen.get(timeout=PATIENCE) == "run-1 here"
        alone.run_changed("run-2")
        assert seen.get(timeout=PATIENCE) == "run-2 there"
        alone.stop()
        other.stop()
        assert seen.empty()
