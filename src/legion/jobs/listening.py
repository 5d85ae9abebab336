"""Who hears what happens in a run, line by line of its journal: questions, and what its program knows of limits."""

from __future__ import annotations

from collections.abc import Callable

from legion.domain.runs import Run
from legion.domain.usage import Limit
from legion.jobs import asking
from legion.jobs.access import OWN_LOGIN, OwnLogin
from legion.jobs.asking import Asker
from legion.jobs.world import World
from legion.runner.journal import JournalEvent
from legion.store import runs, usage

_SPANS = {"five_hour": "5h", "seven_day": "7d"}
_REFUSED, _SERVED = 429, 200


def listener(world: World, asker: Asker, this_run: Run) -> Callable[[JournalEvent], None]:
    """Hears every event of the run's journal, again from the first after a restart."""
    ask = asking.listener(world, asker, this_run)

    def hear(event: JournalEvent) -> None:
        ask(event)
        if event.kind == "limit":
            _note(world, this_run, event)

    return hear


def _note(world: World, this_run: Run, event: JournalEvent) -> None:
    """With the person's own login nobody but the program is told of the limit; else the gateway knows better."""
    with world.store.read() as tx:
        known = usage.limits(tx).get(OWN_LOGIN)
        own = runs.get(tx, this_run.id).access == OwnLogin.words
    if not own or (known is not None and known.at >= event.time):
        return
    used, resets_at, span = (event.facts.get(name) for name in ("utilization", "resets_at", "window"))
    limit = Limit(
        provider=OWN_LOGIN,
        at=event.time,
        status=_REFUSED if event.facts.get("status") == "rejected" else _SERVED,
        span=_SPANS.get(str(span), str(span or "")),
        utilization=float(used) if isinstance(used, int | float) else None,
        resets_at=float(resets_at) if isinstance(resets_at, int | float) else None,
    )
    with world.store.write() as tx:
        usage.note_limit(tx, limit)
        # What may begin now may be another.
        tx.tell()
