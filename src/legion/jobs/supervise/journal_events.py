"""Who hears what happens in a run, line by line of its journal: questions, and what its program knows of limits and
of money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from legion.domain.runs import Run
from legion.domain.scheduling.usage import ProviderLimit, Spending, Usage, since, total
from legion.jobs.agent.model_access import OWN_LOGIN, OwnLogin
from legion.jobs.context import Context
from legion.jobs.supervise import questions
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.usage import day_of
from legion.runner.journal import JournalEvent
from legion.store.work import runs, usage

_SPANS = {"five_hour": "5h", "seven_day": "7d"}
_REFUSED, _SERVED = 429, 200
_TOKENS = {
    "inputTokens": "input",
    "outputTokens": "output",
    "cacheReadInputTokens": "cache_read",
    "cacheCreationInputTokens": "cache_write",
}


def listener(context: Context, asker: QuestionSource, this_run: Run) -> Callable[[JournalEvent], None]:
    """Hears every event of the run's journal, again from the first after a restart."""
    ask = questions.listener(context, asker, this_run)

    def hear(event: JournalEvent) -> None:
        ask(event)
        if event.kind == "limit":
            _note(context, this_run, event)
        elif event.kind == "result":
            _count(context, this_run, event)

    return hear


def _note(context: Context, this_run: Run, event: JournalEvent) -> None:
    """With the person's own login nobody but the program is told of the limit; else the gateway knows better."""
    with context.store.read() as tx:
        known = usage.limits(tx).get(OWN_LOGIN)
        own = runs.get(tx, this_run.id).access == OwnLogin.words
    if not own or (known is not None and known.at >= event.time):
        return
    used, resets_at, span = (event.facts.get(name) for name in ("utilization", "resets_at", "window"))
    limit = ProviderLimit(
        provider=OWN_LOGIN,
        at=event.time,
        status=_REFUSED if event.facts.get("status") == "rejected" else _SERVED,
        span=_SPANS.get(str(span), str(span or "")),
        utilization=float(used) if isinstance(used, int | float) else None,
        resets_at=float(resets_at) if isinstance(resets_at, int | float) else None,
    )
    with context.store.write() as tx:
        usage.note_limit(tx, limit)
        # What may begin now may be another.
        tx.tell()


def _count(context: Context, this_run: Run, event: JournalEvent) -> None:
    """With the person's own login nobody but the program counts, over all runs of the conversation."""
    models, turns = event.facts.get("models"), event.facts.get("turns")
    with context.store.read() as tx:
        own = runs.get(tx, this_run.id).access == OwnLogin.words
    if not own or not isinstance(models, Mapping):
        return
    day, requests = day_of(event.time), turns if isinstance(turns, int) else 0
    with context.store.write() as tx:
        counted = usage.of_conversation(tx, this_run.conversation, OWN_LOGIN)
        for model, told in models.items():
            # What this run told before, on the same day, is among what it tells now.
            before = [one for one in counted if one.model == model and (one.run, one.day) != (this_run.id, day)]
            spent = since(_told(told, requests), total(one.usage for one in before))
            usage.put(tx, Spending(run=this_run.id, provider=OWN_LOGIN, model=str(model), day=day, usage=spent))
            requests = 0


def _told(facts: object, requests: int) -> Usage:
    """Of one model, in Claude Code's words."""
    if not isinstance(facts, Mapping):
        return Usage()
    tokens = {ours: number for theirs, ours in _TOKENS.items() if isinstance(number := facts.get(theirs), int)}
    usd = facts.get("costUSD")
    return Usage(requests=requests, usd=float(usd) if isinstance(usd, int | float) else 0.0, **tokens)
