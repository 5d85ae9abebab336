"""Short lives that end in one narrow window each, and a life that only goes on with what it finds."""

from __future__ import annotations

import contextlib
import json
import threading
import time

from legion.domain.errors import Retryable
from legion.domain.scheduling.decide import JobKind
from legion.jobs.context import Context
from legion.service.projects import collect
from legion.service.shared.commit_signal import CommitSignal
from legion.service.tickets import actions, dispatch
from legion.service.views import wait
from legion.store.board import landings, projects
from legion.store.work import claims, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.dispatch import Dispatch, NewTicket
from tests.crash.board import PATIENCE, Ground, adopt, agent, alive, commit_by_hand

WAITS = """
echo mine > mine.txt
if [ "$(grep -c . "$SHARED/starts")" = 1 ]; then
    echo here > "$SHARED/arrived"
    read word < "$SHARED/never"
fi
"""
"""The first to be started waits for ever; whoever comes later finds what it left."""


def die_before_the_runner_hears_of_the_stop(ground: Ground) -> None:
    with alive(ground) as (context, _, conductor, _keeper):
        ticket = _ask(ground, context, agent(ground, WAITS))
        conductor.start()
        _until_arrived(ground)
        _until_only_agents_work(context)
        crash.arm_here(Point.STORE_WRITE_AFTER_COMMIT)
        actions.stop(context, ticket)


def die_before_the_runner_hears_of_the_pause(ground: Ground) -> None:
    with alive(ground) as (context, _, conductor, _keeper):
        ticket = _ask(ground, context, agent(ground, WAITS))
        conductor.start()
        _until_arrived(ground)
        _until_only_agents_work(context)
        crash.arm_here(Point.STORE_WRITE_AFTER_COMMIT)
        actions.pause(context, ticket)


def die_before_a_dropped_worktree_is_put_away(ground: Ground) -> None:
    with alive(ground) as (context, news, conductor, _keeper):
        ticket = _ask(ground, context, agent(ground, "exit 1"), max_attempts=1)
        conductor.start()
        until_settled(context, news, ticket)
        _until_only_agents_work(context)
        crash.arm_here(Point.STORE_WRITE_AFTER_COMMIT)
        actions.drop(context, ticket)


def die_while_the_persons_commits_land(ground: Ground) -> None:
    """Once the target has moved, before that is written down, with no ticket on the board."""
    with alive(ground) as (context, news, conductor, _keeper):
        adopt(context, str(ground.repository))
        commit_by_hand(ground)
        conductor.start()
        crash.arm(Point.LAND_AFTER_SWAP)
        _collect(ground, context, news)


LIVES = {
    life.__name__: life
    for life in (
        die_before_the_runner_hears_of_the_stop,
        die_before_the_runner_hears_of_the_pause,
        die_before_a_dropped_worktree_is_put_away,
        die_while_the_persons_commits_land,
    )
}


def go_on(ground: Ground) -> None:
    """What the person asks for first, as `wish.json` says, then the end of everything that was begun."""
    with alive(ground) as (context, news, conductor, _keeper):
        spec = json.loads((ground.folder / "wish.json").read_text())
        if spec["early"] == "collect":
            # They may be told to wait, since nobody works yet.
            with contextlib.suppress(Retryable):
                collect.collect(context, str(ground.repository))
        conductor.start()
        _until_nothing_runs(context, news)
        if spec["late"] == "retry":
            actions.retry(context, 1, "")
        if spec["late"] == "resume":
            actions.resume(context, 1)
        if spec["late"]:
            until_settled(context, news, 1)


def until_settled(context: Context, news: CommitSignal, ticket: int) -> None:
    deadline, last = time.monotonic() + PATIENCE, 0
    while not (state := wait.wait(context, news, None, [ticket], last, 5.0)).settled:
        last = state.last_event
        assert time.monotonic() < deadline, state


def _ask(ground: Ground, context: Context, command: str, **fields: int) -> int:
    cwd = str(ground.repository)
    adopt(context, cwd)
    spec = NewTicket(title="waits", command=command, **fields)  # type: ignore[arg-type]
    return dispatch.dispatch(context, Dispatch(cwd=cwd, tickets=[spec])).ids[0]


def _until_arrived(ground: Ground) -> None:
    assert (ground.shared / "arrived").read_text() == "here\n"


def _until_only_agents_work(context: Context) -> None:
    """So that the next commit is the person's. The baseline's job may be claimed a moment after the agent begins."""
    news = threading.Event()
    context.store.on_commit(news.set)
    deadline = time.monotonic() + PATIENCE
    while True:
        news.clear()
        with context.store.read() as tx:
            (project,) = projects.all(tx)
            if project.baseline_known and all(claim.kind is JobKind.RUN for claim in claims.active(tx)):
                return
        assert time.monotonic() < deadline, "a job never ended"
        news.wait(5.0)


def _until_nothing_runs(context: Context, news: CommitSignal) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = news.last()
        with context.store.read() as tx:
            busy = bool(runs.active(tx)) or bool(landings.open_ones(tx, 1))
        if not busy:
            return
        assert time.monotonic() < deadline, "something that was begun never ended"
        news.wait(seen, 5.0)


def _collect(ground: Ground, context: Context, news: CommitSignal) -> None:
    """Never returns: absorbing what the person committed is what it waits for."""
    while True:
        seen = news.last()
        try:
            collect.collect(context, str(ground.repository))
        except Retryable:
            news.wait(seen, 5.0)
