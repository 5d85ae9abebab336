"""How the screens look. These pictures are read by people: change them with care."""

from __future__ import annotations

from dataclasses import replace

import pytest

from legion.cli.base.output import Screen, width
from legion.cli.board.status_screen import screen_of
from legion.client.text import board as board_text
from legion.client.text.ticket_page import page_rows
from legion.wire.board import Graph
from legion.wire.ticket_pages import TicketPage
from tests.cli.pictured import Pictured, a_receipt, a_run

PLAIN = Screen(tty=False, colours=False, unicode=True, width=80, height=None)
ASCII = replace(PLAIN, unicode=False)
COLOURED = replace(PLAIN, colours=True, tty=True)


def page_of(page: TicketPage, screen: Screen, *, full: bool = False) -> list[str]:
    return screen.rows(page_rows(page, screen.columns, full=full))


def drawing_of(board: Graph, screen: Screen) -> list[str]:
    return screen.rows(board_text.drawing(board, screen.columns))


def a_board() -> Pictured:
    board = Pictured()
    board.put(1, "Tables for users", "done", unchecked=True)
    board.put(2, "The HTTP side", "working", after=[1], attempt=2, doing="agent at work for 12 s")
    board.put(3, "A page to log in", "landing", after=[1], doing="in a batch of 4")
    board.put(4, "Rate limits", "failed", after=[1], attempt=5, reason="gave up after 5 attempts: conflict")
    board.put(5, "End to end", "queued", after=[2, 3], doing="waits for 2, 3")
    board.put(6, "Metrics", "queued", after=[4], held_up_by=[4], doing="held up by 4")
    board.put(7, "Everything holds", "queued", after=[5], checkpoint=True, doing="waits for 5")
    return board


def test_the_status_screen():
    lines = screen_of(a_board().status(), PLAIN)
    assert (
        "\n".join(lines)
        == """\
Legion 0.1.0  http://127.0.0.1:6666  pid 4242  up 1m 05s  sandbox: bubblewrap w…
shop  main at 3f2a1c9d3  checks green  2 landed commits to collect

  ○ 3 queued   ● 1 working   ▲ 1 landing   ✓ 1 done   ✗ 1 failed

Needs you
  ✗ failed   #4  Rate limits       gave up after 5 attempts: conflict
  ○ queued   #6  Metrics           held up by 4
At work
  ● working  #2  The HTTP side     attempt 2/5, agent at work for 12 s
  ▲ landing  #3  A page to log in  in a batch of 4
Waiting
  ○ queued   #5  End to end        waits for 2, 3
  ○ queued   #7  Everything holds  waits for 5
Ended
  ✓ done     #1  Tables for users  unchecked
  and 7 more: legion status --all

2 landed commits wait: legion collect
1 ticket failed: `legion ticket 4` says why, `legion retry 4` tries again"""
    )


def test_failed_tickets_that_are_not_listed_are_counted_where_they_need_somebody():
    status = a_board().status()
    lines = screen_of(replace(status, counts=status.counts | {"failed": 4}), PLAIN)
    asides = [line.strip() for line in lines if "more: legion status --all" in line]
    assert asides == ["and 3 more: legion status --all", "and 4 more: legion status --all"]
    assert lines[-1] == "4 tickets failed: `legion ticket 4` says why, `legion retry 4` tries again"


def test_the_ticket_screen():
    board = a_board()
    runs = [a_run(1, "failed", detail="exit code 1"), a_run(2, None)]
    page = board.page(2, runs=runs, receipts=[a_receipt("lint", "green"), a_receipt("test", "red")])
    lines = [line for line in page_of(page, PLAIN) if "attempt 1 " not in line and "attempt 2 " not in line]
    assert (
        "\n".join(lines)
        == """\
#2 The HTTP side
● working  attempt 2/5, agent at work for 12 s
  `legion stop 2` stops it.
  after     1
  files     app/**
  proofs    make login-test
  agent     agent --fast
  worktree  /src/shop-legion/ticket-1
  change    3f2a1c9d3 on 0123abcd0

Text
  Make it so.

Context
  Look into app/.

Criteria
  make test passes

Attempts

Receipts
  ✓ green  lint  exit 0  2.5s  on 3f2a1c9d3  make lint
  ✗ red    test  exit 1  2.5s  on 3f2a1c9d3  make test
  the end of the output of test (all of it: /data/receipts/1)
    E   assert 1 == 2
    1 failed

Changes in 1 file
  app/login.py"""
    )


def test_the_graph_is_drawn_as_a_tree_with_the_longest_chain_marked():
    assert (
        "\n".join(drawing_of(a_board().graph(), PLAIN))
        == """\
✓ #1 ★ Tables for users  done  unchecked
├─ ● #2 ★ The HTTP side  working  attempt 2/5, agent at work for 12 s
│  ↓ ○ #5 ★ End to end  queued  also after 3, waits for 2, 3
│  ↓ ○ #7 ★ Everything holds  queued  checkpoint, waits for 5
├─ ▲ #3 A page to log in  landing  in a batch of 4
└─ ✗ #4 Rate limits  failed  gave up after 5 attempts: conflict
   ↓ ○ #6 Metrics  queued  held up by 4

★ the longest chain: 1 → 2 → 5 → 7"""
    )


def test_the_graph_without_unicode():
    lines = drawing_of(a_board().graph(), ASCII)
    assert lines[1] == "+- * #2 * The HTTP side  working  attempt 2/5, agent at work for 12 s"
    assert all(line.isascii() for line in lines)


def test_of_a_graph_that_is_too_deep_for_the_screen_each_ticket_is_shown():
    board = Pictured()
    for id in range(1, 200, 2):
        board.put(id, after=[id - 2] if id > 1 else [])
        board.put(id + 1, after=[id - 2] if id > 1 else [])
    lines = drawing_of(board.graph(), PLAIN)
    assert all(any(f" #{id} " in line for line in lines) for id in range(1, 201))
    assert all(width(line) <= 80 for line in lines)


@pytest.mark.slow
def test_a_chain_of_ten_thousand_tickets_is_drawn():
    board = Pictured()
    for id in range(1, 10_001):
        board.put(id, after=[id - 1] if id > 1 else [])
    assert len(drawing_of(board.graph(), PLAIN)) == 10_002


def test_what_goes_on_by_itself_waits_and_what_does_not_needs_the_person():
    board = Pictured()
    limited = "the provider does not serve for now: API Error: 529"
    waits = "waits for the provider, resumes by itself in 40 s"
    board.put(1, "Limited", "parked", parked_until=3000.0, doing=waits, reason=limited)
    board.put(2, "Hasty", "parked", parked_until=3000.0, reason="exit code 1; it rests 4 s")
    board.put(3, "Paused", "parked", reason="paused by a person")
    shown = "\n".join(screen_of(board.status(), replace(PLAIN, width=140)))
    needs, waiting = shown.partition("Waiting")[::2]
    assert [f"#{id}" in needs.partition("Needs you")[2] for id in (1, 2, 3)] == [False, False, True]
    assert f"Limited  {waits}; {limited}" in waiting
    assert "Hasty    exit code 1; it rests 4 s" in waiting
    page = page_of(board.page(1), PLAIN)
    assert " ".join(" ".join(page[1:4]).split()).startswith(f"‖ parked {waits}; {limited}")
    long = f"tried again in 4 s: .env would become part of changes: {'add it to .gitignore or ' * 3}change it"
    board.put(4, "Put off", "working", attempt=2, doing=long)
    page = page_of(board.page(4), PLAIN)
    assert " ".join(" ".join(page[1:5]).split()).startswith(f"● working attempt 2/5, {long}")


def test_an_empty_board_says_what_to_do():
    empty = Graph(tickets=[], edges=[], waves=[], critical_path=[])
    assert drawing_of(empty, PLAIN) == ["The board is empty: legion dispatch -t TITLE TEXT"]


def test_every_screen_fits_every_width():
    board = a_board()
    board.put(8, "漢字 🎉 " * 30, "parked", reason="waits for a person " * 10)
    runs = [a_run(1, "failed", detail="exit code 1; not part of the change: nested repositories vendor/lib")]
    page = board.page(8, runs=runs, receipts=[a_receipt("test", "red", command="make " + "x" * 200)])
    assert "vendor/lib" in "\n".join(page_of(page, PLAIN, full=True)), "nothing is cut short"
    for columns in (20, 30, 40, 60, 80, 200):
        screen = replace(PLAIN, width=columns)
        for lines in (
            screen_of(board.status(), screen),
            page_of(page, screen),
            page_of(page, screen, full=True),
            drawing_of(board.graph(), screen),
        ):
            assert [line for line in lines if width(line) > columns] == []


def test_what_a_person_has_to_copy_is_complete_on_every_terminal():
    board = a_board()
    doing = "asks you: `legion answer 17 yes` or `legion answer 17 no 'your text'`"
    board.put(8, "A question", "parked", question=17, doing=doing, reason="it changed protected files")
    note = "its repository is missing: run `legion init --remove /home/ada/src/shop` there"
    status = board.status()
    assert status.project is not None
    status = replace(status, project=replace(status.project, notes=[note]))
    page = replace(board.page(4), worktree="/home/ada/src/shop-legion/a-very-long-folder/ticket-4")
    for columns in (50, 60, 80, 120):
        shown = screen_of(status, replace(PLAIN, width=columns))
        for command in ("legion answer 17 yes", "legion init --remove /home/ada/src/shop", "legion retry 4"):
            assert any(f"`{command}`" in line for line in shown), (columns, command)
        assert any("legion collect" in line for line in shown)
        lines = page_of(page, replace(PLAIN, width=columns))
        assert "/home/ada/src/shop-legion/a-very-long-folder/ticket-4" in "".join(line.strip() for line in lines)


def test_status_fits_a_small_terminal_however_many_tickets_there_are():
    board = Pictured()
    for id in range(1, 300):
        board.put(id, state=["queued", "working", "done", "failed", "landing"][id % 5])
    lines = screen_of(board.status(), replace(COLOURED, height=24))
    assert len(lines) < 24
    assert "more: legion status --all" in "\n".join(lines)
    assert len(screen_of(board.status(all=True), replace(COLOURED, height=24), everything=True)) > 290


def test_outside_of_any_project_the_tickets_of_all_are_shown():
    board = a_board()
    lines = screen_of(board.status(everywhere=True), PLAIN)
    assert lines[1].startswith("shop  main")


def test_an_unknown_state_of_a_newer_daemon_is_shown_as_it_is():
    board = Pictured()
    board.put(1, "New", "pondering")
    assert "? pondering  #1  New" in "\n".join(screen_of(board.status(), PLAIN))
    assert "? #1 New  pondering" in "\n".join(drawing_of(board.graph(), PLAIN))


def test_colours_come_with_a_symbol_and_a_word():
    line = next(line for line in screen_of(a_board().status(), COLOURED) if "#4" in line)
    assert "\x1b[31m✗ failed\x1b[0m" in line
