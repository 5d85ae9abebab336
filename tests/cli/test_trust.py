"""`legion trust`: it shows each text in full, and trusts exactly what it has shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.events import EventKind
from legion.jobs.landing.target import with_landed_config
from legion.store.board import projects
from tests.support.board import Board
from tests.support.repository import Repository

EVIL = '[checks.test]\nrun = "curl evil"\n'


@pytest.fixture
def texts(board: Board) -> Iterator[dict[str, str]]:
    """The hashes of legion.toml by place: as landed, which is trusted, and as a person has changed it since."""
    file = board.repository.root / "legion.toml"
    kept = file.read_text()
    file.write_text(EVIL)
    yield {one.place: one.hash for one in board.service.trustable(board.cwd).texts}
    file.write_text(kept)
    board.trust()


def trusted(board: Board) -> set[str]:
    return {one.hash for one in board.service.trustable(board.cwd).texts if one.trusted}


def test_trust_shows_what_is_new_and_trusts_exactly_that(legion, board: Board, texts):
    ended = legion("trust")
    assert ended.out == "The commands in legion.toml of shop are trusted.\n"
    assert f"{board.cwd}/legion.toml, in your checkout ({texts['checkout'][:12]}, not trusted yet)" in ended.err
    assert '  run = "curl evil"\n' in ended.err
    shown, _, difference = ended.err.partition("What changed since you trusted it last:\n")
    assert "make test" not in shown
    assert difference.splitlines()[4:6] == ['  -run = "make test"', '  +run = "curl evil"']
    assert list(board.callers.sent[-1]["wanted"].hashes) == [texts["checkout"]]
    assert texts["checkout"] in trusted(board)


def test_trust_where_nothing_is_new_means_the_texts_that_it_shows(legion, board: Board):
    """An empty list could stand for anything that lies there a moment later."""
    assert "make test" in legion("trust").err
    assert set(board.callers.sent[-1]["wanted"].hashes) == trusted(board)


def test_trust_with_json_shows_the_text_too(legion):
    assert "make test" in legion("trust", "--json").err


def test_trust_show_shows_every_text_and_trusts_none(legion, board: Board, texts):
    before = trusted(board)
    shown = legion("trust", "--show").out
    for words in ("as landed", "make test", "not trusted yet", "in your checkout", "curl evil"):
        assert words in shown
    assert trusted(board) == before


@pytest.mark.parametrize("hidden", ["\x9d; curl evil \x9c", "\x9b; curl evil", "\u202elive\u2066"])
def test_nothing_in_a_text_hides_from_who_is_to_trust_it(legion, board: Board, texts, hidden):
    (board.repository.root / "legion.toml").write_text(f'[checks.test]\nrun = "make test {hidden}"\n')
    shown = legion("trust", "--show").out
    assert "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in hidden) in shown
    assert not any(letter in shown for letter in hidden if not letter.isprintable())


def test_a_landed_text_is_compared_with_the_last_that_was_trusted(tmp_path: Path):
    theirs = Repository(tmp_path / "shop", '[checks.test]\nrun = "make test"\n')
    theirs.git("branch", "change")
    board = Board(tmp_path)
    try:
        for run in ("make all", "curl evil"):
            theirs.commit(run, {"legion.toml": f'[checks.test]\nrun = "{run}"\n'})
            hub = board.context.hub(1)
            before = hub.target()
            assert before is not None
            hub.move_target(hub.fetch_person(theirs.root / ".git", "main"), expected=before)
        with board.store.write() as tx:
            landed = replace(projects.get(tx, 1), target=hub.target() or "")
            projects.save(tx, with_landed_config(hub, landed), EventKind.TARGET_MOVED, {})
        (text,) = board.service.trustable(board.cwd).texts
    finally:
        board.close()
    assert (text.trusted, text.difference.splitlines()[-2:]) == (False, ['-run = "make test"', '+run = "curl evil"'])
