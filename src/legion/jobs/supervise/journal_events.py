"""Handles the journal of a running agent, event by event: its questions, and the limits and usage that it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from legion.domain.runs import Run
from legion.domain.scheduling.usage import ProviderLimit, Spending
from legion.jobs.agent.model_access import OWN_ACCOUNT, OWN_LOGIN, OwnLogin
from legion.jobs.board import Board
from legion.jobs.supervise import questions
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.usage import day_of
from legion.runner.journal import JournalEvent
from legion.runner.spec import read_spec
from legion.store.work import runs, usage

_SPANS = {"five_hour": "5h", "seven_day": "7d"}
_COUNTED_BY_THE_PROGRAM = {OwnLogin.label: OWN_LOGIN, OWN_ACCOUNT: "its own account"}
"""By the run's access, the provider under which its usage is stored."""
_REFUSED, _SERVED = 429, 200


def listener(context: Board, source: QuestionSource, this_run: Run) -> Callable[[JournalEvent], None]:
    """Gets every event of the run's journal, again from the first one after a restart."""
    handle_question = questions.listener(context, source, this_run)

    def handle(event: JournalEvent) -> None:
        handle_question(event)
        if event.kind == "limit":
            _record_limit(context, this_run, event)
        elif event.kind in ("conversation", "result"):
            record_usage(context, this_run, event)

    return handle


def _record_limit(context: Board, this_run: Run, event: JournalEvent) -> None:
    """With the person's own login only the program learns of the limit; otherwise the gateway knows better."""
    with context.store.read() as tx:
        known = usage.limits(tx).get(OWN_LOGIN)
        own = runs.get(tx, this_run.id).access == OwnLogin.label
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
        # Other tickets may be able to start now.
        tx.tell()


def record_usage(context: Board, this_run: Run, event: JournalEvent) -> None:
    """Outside of the gateway only the program counts, from the start of the conversation on."""
    models, turns = event.facts.get("models"), event.facts.get("turns")
    with context.store.read() as tx:
        account = _COUNTED_BY_THE_PROGRAM.get(runs.get(tx, this_run.id).access)
    if account is None:
        return
    at = (this_run.id, event.number)
    if event.kind == "conversation" and not event.facts.get("resumed"):
        with context.store.write() as tx:
            usage.count_from_zero(tx, this_run.conversation, at)
    if event.kind != "result" or not isinstance(models, Mapping):
        return
    day, requests = day_of(event.time), turns if isinstance(turns, int) else 0
    reported = read_spec(context.data.runs / this_run.name).profile.usage(models)
    with context.store.write() as tx:
        for model, counted in reported.items():
            spent = Spending(
                run=this_run.id,
                provider=account,
                model=model,
                day=day,
                usage=replace(counted, requests=requests),
            )
            usage.add_report(tx, this_run.conversation, at, spent)
            requests = 0
