"""Rewinds: which conversation started as a copy of which."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, insert, select

from legion.domain.events import EventKind
from legion.domain.runs import RewindRecord, Run
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.rewinds.c


def add(tx: Transaction, *, moment: str, latest: Run, source: str, point: str) -> RewindRecord:
    """The next run of the ticket starts a conversation of its own, as a copy of `source` up to `point`."""
    assert latest.ticket is not None, "only tickets are rewound"
    rewound = RewindRecord(
        id=tx.next("rewind"),
        ticket=latest.ticket,
        at=tx.now,
        moment=moment,
        run=latest.id,
        conversation=str(uuid.uuid4()),
        source=source,
        point=point,
    )
    tx.execute(insert(schema.rewinds), [asdict(rewound)])
    data = {"moment": moment, "run": latest.id}
    tx.record(EventKind.REWOUND, project=latest.project, ticket=latest.ticket, data=data)
    return rewound


def after_run(tx: ReadTransaction, run: int) -> RewindRecord | None:
    """The last rewind that was requested while this was its ticket's latest run."""
    found = select(schema.rewinds).where(_TABLE.run == run).order_by(_TABLE.id.desc()).limit(1)
    return _one(tx, found)


def by_conversation(tx: ReadTransaction, conversation: str) -> RewindRecord | None:
    return _one(tx, select(schema.rewinds).where(_TABLE.conversation == conversation))


def _one(tx: ReadTransaction, found: Select[Any]) -> RewindRecord | None:
    row = tx.execute(found).one_or_none()
    return None if row is None else RewindRecord(**row._mapping)
