"""A change that adds a large file, or hides characters, asks first, unless its ticket declares the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings, UserConfig
from legion.config.sections.evidence import ProtectionSettings
from legion.domain.review.additions import HiddenCharacter
from legion.domain.tickets.ticket import Change, Park, Ticket
from legion.jobs.checks import approvals
from legion.jobs.context import Context
from legion.store.board import questions
from tests.support.attacks import Attacker, Door, attack
from tests.support.board import Board
from tests.support.repository import Repository


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    theirs = Repository(tmp_path / "shop")
    theirs.git("checkout", "--quiet", "-b", "change")
    theirs.commit("A change", {"data.bin": "x" * 3000, "small.txt": "x" * 100})
    theirs.git("checkout", "--quiet", "main")
    theirs.git("merge", "--quiet", "--no-ff", "--no-edit", "change")
    one = Board(tmp_path)
    yield one
    one.close()


def limited(board: Board, megabytes: float) -> Context:
    settings = UserConfig(protection=ProtectionSettings(trial=False, file_mb=megabytes))
    return replace(board.context, settings=CurrentSettings(settings))


def concern(board: Board, ticket: Ticket, megabytes: float) -> approvals.ApprovalConcern | None:
    base = board.repository.git("rev-parse", "main~1")
    change = Change(base=base, commit=board.change)
    return approvals.concern(limited(board, megabytes), board.context.project(1), ticket, change)


def test_a_large_file_is_asked_about_and_a_declared_one_is_not(board: Board):
    about = concern(board, board.put(1, state="working"), 0.002)
    assert about is not None
    assert about.paths == ("data.bin",)
    assert "Files are larger than `protection.file_mb`:\n- data.bin: 0 MB" in about.question
    assert about.reason == "it adds large files (data.bin)"
    with board.store.write() as tx:
        assert isinstance(approvals.settle(tx, board.tickets[1], about, 60), Park)
    assert concern(board, board.tickets[1], 0) is None
    assert concern(board, board.tickets[1], 0.003) is None
    assert concern(board, board.put(2, state="working", files=["data.bin"]), 0.002) is None


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("code", [0x202A, 0x202E, 0x2066, 0x2069, 0xE0041])
def test_code_that_reads_as_other_code_is_asked_about(tmp_path: Path, code: int):
    theirs = Repository(tmp_path / "shop")
    theirs.git("checkout", "--quiet", "-b", "change")
    theirs.commit("A change", {"auth.py": f'access = "user{chr(code)} # admin only"\n', "note.md": "zero\u200bwidth\n"})
    theirs.git("checkout", "--quiet", "main")
    theirs.git("merge", "--quiet", "--no-ff", "--no-edit", "change")
    board = Board(tmp_path)
    try:
        about = concern(board, board.put(1, state="working"), 1.0)
        assert about is not None
        assert f"other code than it is:\n- auth.py:1 has U+{code:04X}" in about.question
        assert about.reason == "it hides characters (auth.py)"
        assert concern(board, board.put(2, state="working", files=["auth.py"]), 1.0) is None
        assert [one.code for one in found(board)] == [f"U+{code:04X}", "U+200B"]
    finally:
        board.close()


def found(board: Board) -> Sequence[HiddenCharacter]:
    base = board.repository.git("rev-parse", "main~1")
    return approvals.find_hidden(board.context.project(1), Change(base=base, commit=board.change))


def test_what_tools_left_is_asked_about_and_a_no_says_what_to_do(tmp_path: Path):
    theirs = Repository(tmp_path / "shop")
    theirs.git("checkout", "--quiet", "-b", "change")
    theirs.commit("A change", {"a.py": "1\n", "__pycache__/a.cpython-311.pyc": "x\n"})
    theirs.git("checkout", "--quiet", "main")
    theirs.git("merge", "--quiet", "--no-ff", "--no-edit", "change")
    board = Board(tmp_path)
    try:
        about = concern(board, board.put(1, state="working"), 1.0)
        assert about is not None
        assert about.paths == ("__pycache__/a.cpython-311.pyc",)
        assert "a no keeps them out):\n- __pycache__/a.cpython-311.pyc: compiled Python" in about.question
        assert concern(board, board.put(2, state="working", files=["__pycache__"]), 1.0) is None
        with board.store.write() as tx:
            approvals.settle(tx, board.tickets[1], about, 60)
            (question,) = questions.open_ones(tx)
            questions.settle(tx, question.id, "no")
            step = approvals.settle(tx, board.tickets[1], about, 60)
        assert "add it to .gitignore" in repr(step)
    finally:
        board.close()
