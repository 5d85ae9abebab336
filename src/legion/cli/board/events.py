"""`legion status events`: the log of events, and the rule behind each."""

from __future__ import annotations

import select
from collections.abc import Callable
from dataclasses import replace

import click

from legion.cli.base.command import CommandCall, as_json, command
from legion.cli.base.live import with_retry
from legion.cli.base.parameters import TICKET
from legion.client.legion import Legion
from legion.client.text.proofs import history_rows
from legion.wire.history import Events

POLL_SECONDS = 0.5
"""Seconds between two reads of a run's journal: the daemon streams events but not journals."""


@command(
    "events",
    example=(
        "legion status events\nlegion status events 12 -f\n"
        "legion status events 12 --run 3 --json\nlegion status events --run 40\n"
        "legion status events --kind question,landing --since 2026-01-31"
    ),
)
@click.argument("id", metavar="[N]", type=TICKET, required=False)
@click.option(
    "--run", type=click.IntRange(min=1), metavar="R", help="Only this run, of the ticket or of a standing agent."
)
@click.option(
    "--last",
    type=click.IntRange(0, 100_000),
    metavar="COUNT",
    help="Show the newest COUNT; 0 for all. Default: 100 of a project, all of a ticket.",
)
@click.option(
    "--kind", metavar="KIND,...", default="", help="Only these kinds: `ticket.moved`, or `ticket` for all of it."
)
@click.option("--since", metavar="YYYY-MM-DD", default="", help="Only from this day on, UTC.")
@click.option("--until", metavar="YYYY-MM-DD", default="", help="Only up to this day, UTC.")
@click.option("-f", "--follow", is_flag=True, help="Follow new events until the ticket ends or you press Ctrl-C.")
def events(
    call: CommandCall,
    id: int | None,
    run: int | None,
    last: int | None,
    kind: str,
    since: str,
    until: str,
    follow: bool,
) -> None:
    """Replay what happened in this project, or to ticket N with the journals of its runs, or in one run.

    A turn of a standing agent is a run, too. A decision that was made without you names its rule in brackets. A value
    after `--to` is a moment that `legion rewind` can return to. With --json and -f: one object per line.
    """
    if until and follow:
        raise click.UsageError("--follow shows new events, --until ends before them; leave one out")
    if run is not None and id is None and follow:
        raise click.UsageError(
            "--follow with --run needs a ticket; add its number, as in legion status events 12 --run 3 -f"
        )
    shown = last if last is not None else 100 if id is None and run is None else 0
    cwd = call.cwd
    kinds = kind
    days = {"since": since, "until": until}
    found = with_retry(call, lambda legion: legion.history(cwd, ticket=id, run=run, last=shown, kinds=kinds, **days))
    if call.json:
        call.out(as_json(found, indent=call.screen.tty and not follow))
    else:
        _print(call, found, id)
    while follow:
        over = _wait_for_news(call, cwd, id, found)
        found = with_retry(call, _since(cwd, id, run, found.cursor, kinds))
        if found.lines:
            if call.json:
                call.out(as_json(found, indent=False))
            else:
                _print(call, found, id)
        elif over:
            return


def _since(cwd: str, id: int | None, run: int | None, cursor: str, kinds: str) -> Callable[[Legion], Events]:
    return lambda legion: legion.history(cwd, ticket=id, run=run, after=cursor, kinds=kinds)


def _wait_for_news(call: CommandCall, cwd: str, id: int | None, found: Events) -> bool:
    """Wait until something may have happened. True if nothing more will happen to the ticket by itself."""
    after = int(found.cursor.partition(":")[0])
    if id is None:
        # `wait` would return at once for settled tickets, again and again; the stream of events does not.
        for event in call.legion().events(after, cwd=cwd if _in_a_project(call, cwd) else None):
            if event is not None:
                break
        return False
    state = with_retry(call, lambda legion: legion.wait(None, [id], after_event=after, timeout=POLL_SECONDS))
    if state.settled:
        select.select([], [], [], POLL_SECONDS)
    return state.settled


def _in_a_project(call: CommandCall, cwd: str) -> bool:
    return call.legion().status(cwd).project is not None


def _print(call: CommandCall, found: Events, id: int | None) -> None:
    if found.omitted:
        every = f"legion status events{f' {id}' if id else ''} --last 0"
        many = f"{found.omitted:,}{' or more' if found.omitted >= 1_000 else ''}"
        call.say(f"{many} older events are not shown; `{every}` shows them.")
    rows = history_rows(replace(found, omitted=0), call.screen.columns, of_one=id is not None) if found.lines else []
    for line in call.screen.rows(rows):
        call.out(line)
