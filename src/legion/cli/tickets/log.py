"""`legion log` and `legion log watch`: the output of a ticket's agent, also live."""

from __future__ import annotations

import select
import sys
import time

import click

from legion.cli.base.command import CommandCall, as_json, command
from legion.cli.base.live import with_retry
from legion.cli.base.output import duration, numbers, sanitize_lines, symbol
from legion.cli.base.parameters import ticket_argument
from legion.cli.board.status import about
from legion.cli.tickets.wait import exit_code
from legion.client.legion import LONGEST_WAIT
from legion.client.text.tickets import style_of
from legion.wire.board import WaitState
from legion.wire.ticket_pages import LogText

POLL_SECONDS = 0.5
"""Seconds between two reads of an agent's output: the daemon streams states but not output."""
LONGEST_LINE = 8192


@command("log", example="legion log 12 -f")
@ticket_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the run has ended.")
@click.option(
    "--run", type=click.IntRange(min=1), metavar="R", help="This run instead of the last; `legion ticket N` lists them."
)
def log(call: CommandCall, id: int, follow: bool, run: int | None) -> None:
    """Print the output of a ticket's agent in its last run.

    A pipe gets it unchanged; on a terminal, control sequences are removed.
    """
    printer = _Printer(call)
    piece = _read(call, id, run, 0)
    if run is None and not call.json:
        _note_runs(call, id, piece.run)
    printer.show(piece)
    after = 0
    while not _is_over(piece, follow):
        if not piece.text:
            after = _poll(call, id, after, POLL_SECONDS).last_event
        piece = _read(call, id, run if piece.run is None else piece.run, piece.next_offset)
        printer.show(piece)
    printer.finish()
    if call.json and not printer.showed:
        call.out(as_json(piece, indent=False))


def _note_runs(call: CommandCall, id: int, shown: int | None) -> None:
    """Note why there is nothing to show, or that there are earlier runs."""
    page = with_retry(call, lambda legion: legion.ticket(id))
    earlier = [one.id for one in page.runs if shown is not None and one.id < shown]
    if earlier:
        call.say(f"This is run {shown}; earlier ones are {numbers(earlier)}: `legion log {id} --run {earlier[-1]}`.")
    elif shown is None and page.ticket.checkpoint:
        call.say(f"Ticket {id} is a checkpoint: no agent works on it.")
    elif shown is None:
        call.say(f"No agent has started ticket {id} yet.")


def _is_over(piece: LogText, follow: bool) -> bool:
    return not piece.text and (piece.ended or not follow)


def _read(call: CommandCall, id: int, run: int | None, offset: int) -> LogText:
    return with_retry(call, lambda legion: legion.log(id, run, offset))


def _poll(call: CommandCall, id: int, after: int, seconds: float) -> WaitState:
    """The ticket's state: at once if something happened, else after `seconds`."""
    state = with_retry(call, lambda legion: legion.wait(None, [id], after_event=after, timeout=seconds))
    if state.settled and state.last_event == after:
        # The daemon answers at once for a settled ticket, and its run may still write its last output.
        select.select([], [], [], POLL_SECONDS)
    return state


@command("watch", example="legion log watch 12")
@ticket_argument
def watch(call: CommandCall, id: int) -> int:
    """Follow one ticket live: its state and the output of its agent, until it ends.

    Exit codes are those of `legion wait`. With --json: one object per line, as they come.
    """
    return watch_ticket(call, id)


def watch_ticket(call: CommandCall, id: int) -> int:
    printer = _Printer(call)
    started = time.monotonic()
    before, after, patience = "", 0, 0.0
    run, offset = None, 0
    while True:
        state = _poll(call, id, after, patience)
        ticket, after = state.tickets[0], state.last_event
        patience = POLL_SECONDS if ticket.state == "working" else LONGEST_WAIT
        piece = _read(call, id, None, offset)
        if piece.run != run and offset > 0:
            # A new attempt: read its output from its start.
            piece = _read(call, id, None, 0)
        run, offset = piece.run, piece.next_offset
        printer.show(piece)
        now = f"{ticket.state} {ticket.attempt} {ticket.reason}"
        if now != before:
            printer.finish()
            _print_state(call, state, started)
            before = now
        if piece.text:
            patience = 0.0
        elif state.settled:
            printer.finish()
            return exit_code(call.legion(), state)


def _print_state(call: CommandCall, state: WaitState, started: float) -> None:
    if call.json:
        call.out(as_json(state, indent=False))
        return
    ticket, screen = state.tickets[0], call.screen
    detail = about(ticket)
    text = f"{symbol(screen, ticket.state)} {ticket.state}" + (f": {detail}" if detail else "")
    passed = screen.dim(f"{duration(time.monotonic() - started):>7}  ")
    call.out(
        passed + screen.paint(screen.cut(f"#{ticket.id} {text}", screen.width - 10), style_of(ticket.state).colour)
    )


class _Printer:
    """Writes an agent's output in pieces. On a terminal only complete lines, so that no escape sequence is split."""

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._rest = ""
        self.showed = False

    def show(self, piece: LogText) -> None:
        if not piece.text:
            return
        self.showed = True
        if self._call.json:
            self._call.out(as_json(piece, indent=False))
        elif not self._call.screen.tty:
            sys.stdout.write(piece.text)
            sys.stdout.flush()
        else:
            lines, newline, self._rest = (self._rest + piece.text).rpartition("\n")
            if newline:
                self._lines(lines)
            if len(self._rest) > LONGEST_LINE:
                self.finish()

    def finish(self) -> None:
        if self._rest:
            self._lines(self._rest)
            self._rest = ""

    def _lines(self, text: str) -> None:
        for line in sanitize_lines(text):
            self._call.out(line)
