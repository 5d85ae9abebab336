"""Short lives that end in one narrow window each, and a life that only goes on with what it finds."""

from __future__ import annotations

import contextlib
import json
import threading
import time

from legion.domain.decide import JobKind
from legion.domain.errors import TryAgain
from legion.jobs.world import World
from legion.service import collecting, tickets, waiting
from legion.service.news import News
from legion.store import jobs, landings, projects, runs
from legion.system import crash
from legion.system.crash import Point
from legion.wire.tickets import Dispatch, NewTicket
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
    with alive(ground) as (world, _, conductor, _keeper):
        ticket = _ask(ground, world, agent(ground, WAITS))
        conductor.start()
        _until_arrived(ground)
        _until_only_agents_work(world)
        crash.arm(Point.STORE_WRITE_AFTER_COMMIT)
        tickets.stop(world, ticket)


def die_before_the_runner_hears_of_the_pause(ground: Ground) -> None:
    with alive(ground) as (world, _, conductor, _keeper):
        ticket = _ask(ground, world, agent(ground, WAITS))
        conductor.start()
        _until_arrived(ground)
        _until_only_agents_work(world)
        crash.arm(Point.STORE_WRITE_AFTER_COMMIT)
        tickets.pause(world, ticket)


def die_before_a_dropped_worktree_is_put_away(ground: Ground) -> None:
    with alive(ground) as (world, news, conductor, _keeper):
        ticket = _ask(ground, world, agent(ground, "exit 1"), max_attempts=1)
        conductor.start()
        until_settled(world, news, ticket)
        _until_only_agents_work(world)
        crash.arm(Point.STORE_WRITE_AFTER_COMMIT)
        tickets.drop(world, ticket)


def die_while_the_persons_commits_land(ground: Ground) -> None:
    """Once the target has moved, before that is written down, with no ticket on the board."""
    with alive(ground) as (world, news, conductor, _keeper):
        adopt(world, str(ground.repository))
        commit_by_hand(ground)
        conductor.start()
        crash.arm(Point.LAND_AFTER_SWAP)
        _collect(ground, world, news)


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
    with alive(ground) as (world, news, conductor, _keeper):
        wish = json.loads((ground.folder / "wish.json").read_text())
        if wish["early"] == "collect":
            # They may be told to wait, since nobody works yet.
            with contextlib.suppress(TryAgain):
                collecting.collect(world, str(ground.repository))
        conductor.start()
        _until_nothing_runs(world, news)
        if wish["late"] == "retry":
            tickets.retry(world, 1, "")
        if wish["late"] == "resume":
            tickets.resume(world, 1)
        if wish["late"]:
            until_settled(world, news, 1)


def until_settled(world: World, news: News, ticket: int) -> None:
    deadline, last = time.monotonic() + PATIENCE, 0
    while not (state := waiting.wait(world, news, None, [ticket], last, 5.0)).settled:
        last = state.last_event
        assert time.monotonic() < deadline, state


def _ask(ground: Ground, world: World, command: str, **fields: int) -> int:
    cwd = str(ground.repository)
    adopt(world, cwd)
    wish = NewTicket(title="waits", command=command, **fields)  # type: ignore[arg-type]
    return tickets.dispatch(world, Dispatch(cwd=cwd, tickets=[wish])).ids[0]


def _until_arrived(ground: Ground) -> None:
    assert (ground.shared / "arrived").read_text() == "here\n"


def _until_only_agents_work(world: World) -> None:
    """So that the next commit is the person's. The baseline's job may be claimed a moment after the agent begins."""
    news = threading.Event()
    world.store.on_commit(news.set)
    deadline = time.monotonic() + PATIENCE
    while True:
        news.clear()
        with world.store.read() as tx:
            (project,) = projects.all(tx)
            if project.baseline_known and all(claim.kind is JobKind.RUN for claim in jobs.active(tx)):
                return
        assert time.monotonic() < deadline, "a job never ended"
        news.wait(5.0)


def _until_nothing_runs(world: World, news: News) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = news.last()
        with world.store.read() as tx:
            busy = bool(runs.active(tx)) or bool(landings.open_ones(tx, 1))
        if not busy:
            return
        assert time.monotonic() < deadline, "something that was begun never ended"
        news.wait(seen, 5.0)


def _collect(ground: Ground, world: World, news: News) -> None:
    """Never returns: absorbing what the person committed is what it waits for."""
    while True:
        seen = news.last()
        try:
            collecting.collect(world, str(ground.repository))
        except TryAgain:
            news.wait(seen, 5.0)
