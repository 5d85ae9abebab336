"""`legion team` and `legion team role` as a person uses them: in an editor, which may be left with nonsense in it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.config.files.teams import DefinitionKind, file_of
from legion.domain.errors import BadInput
from legion.wire.teams import SaveDefinition, Teams
from tests.support.board import Board

EDITOR = """\
#!/bin/sh
# Writes the next of the prepared texts; leaves the file alone where there is none.
n=$(ls {folder} | grep -c '^seen-')
cp "$1" {folder}/seen-$n
[ -f {folder}/text-$n ] && cp {folder}/text-$n "$1"
exit 0
"""

Edit = Callable[..., tuple[int, str]]


@pytest.fixture
def edit(board: Board, tmp_path: Path) -> Edit:
    """Runs a command at a terminal whose editor writes these texts, one each time; what the person types comes next."""

    def call(*words: str, texts: tuple[str, ...], typed: str = "") -> tuple[int, str]:
        folder = tmp_path / "editor"
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"text-{number}").write_text(text)
        editor = folder / "edit.sh"
        editor.write_text(EDITOR.format(folder=folder))
        editor.chmod(0o755)
        ours, theirs = pty.openpty()
        try:
            os.write(ours, typed.encode())
            done = subprocess.run(
                [sys.executable, "-m", "legion", *words],
                stdin=theirs,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                env={**os.environ, "EDITOR": str(editor), "VISUAL": "", "TMPDIR": str(tmp_path)},
            )
        finally:
            os.close(ours)
            os.close(theirs)
        return done.returncode, done.stdout + done.stderr

    return call


TEAM = 'about = "mine"\nroles = ["engineer"]\n'
ROLE = 'about = "mine"\npart = "advise"\nprompt = "Be good."\n'


def test_what_the_editor_leaves_is_saved(edit: Edit, board: Board, tmp_path: Path):
    code, said = edit("team", "edit", "qa_team", texts=(TEAM,))
    assert code == 0
    assert said.startswith("The team qa_team is written to ")
    assert board.service.team_text(board.cwd, "qa_team").text == TEAM
    assert board.callers.sent[-1]["wanted"].new is False
    assert not list(tmp_path.glob("legion-*"))


def test_nonsense_is_told_and_edited_again(edit: Edit, board: Board, tmp_path: Path):
    template = board.service.role_text(board.cwd, "critic", new=True, like="qa").text
    with pytest.raises(BadInput) as refused:
        board.service.save_role(SaveDefinition(cwd=board.cwd, name="critic", text="nonsense", new=True))
    code, said = edit("role", "new", "critic", "--like", "qa", texts=("nonsense", ROLE), typed="y\n")
    assert code == 0
    assert refused.value.message in said
    assert board.service.role_text(board.cwd, "critic").text == ROLE
    assert board.callers.sent[-1]["wanted"].new is True
    assert (tmp_path / "editor/seen-0").read_text() == template
    assert (tmp_path / "editor/seen-1").read_text() == "nonsense"


def test_nonsense_that_is_given_up_is_kept_aside(edit: Edit, board: Board, tmp_path: Path):
    code, said = edit("team", "edit", "qa_team", texts=("nonsense",), typed="n\n")
    assert code == 2
    assert is_shipped(board)
    (kept,) = tmp_path.glob("legion-qa_team-*.toml")
    assert kept.read_text() == "nonsense"
    assert f"legion team edit qa_team --from {kept}" in said


def test_a_text_that_nobody_changed_is_not_saved(edit: Edit, board: Board):
    assert edit("team", "edit", "qa_team", texts=()) == (0, "Nothing was changed.\n")
    assert is_shipped(board)


def is_shipped(board: Board) -> bool:
    return board.service.team(board.cwd, "qa_team").team.origin == "shipped"


def test_without_a_terminal_a_file_is_asked_for(legion, board: Board, program):
    ended = program("team", "edit", "qa_team")
    assert ended.code == 2
    assert "legion team edit qa_team --from FILE" in ended.err
    assert program("team", "edit", "qa_team", "--from", "-", stdin=TEAM.encode()).code == 0
    assert board.service.team_text(board.cwd, "qa_team").text == TEAM
    assert legion("team", "edit", "qa_team", "--from", "nowhere.toml").code == 3
    assert legion("team", "edit", "qa_team", "--from", ".").code == 2


def own_file(kind: DefinitionKind, name: str, text: str) -> None:
    file = file_of(kind, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_list_tells_what_cannot_be_used(legion, board: Board):
    own_file(DefinitionKind.TEAM, "odd", 'about = "x"\nroles = ["no-such-role"]\n')
    own_file(DefinitionKind.ROLE, "odd", 'about = "x"\npart = "sing"\n')
    for words, fault in (
        ("team", next(one.fault for one in board.service.teams(board.cwd).teams if one.name == "odd")),
        ("role", next(one.fault for one in board.service.roles(board.cwd).roles if one.name == "odd")),
    ):
        shown = legion(words, "list").out
        assert "cannot be used" in shown
        assert fault
        assert "".join(fault.split()) in "".join(shown.split())


def test_a_list_tells_what_is_not_trusted(legion, board: Board):
    found = Teams(teams=[], untrusted=[".legion/teams/other.toml"])
    board.callers.instead = {"teams": found}
    assert ".legion/teams/other.toml" in legion("team", "list").out


def test_what_a_file_says_cannot_command_the_terminal(legion, board: Board):
    own_file(
        DefinitionKind.ROLE,
        "qa",
        'about = "\\u001b[2Jgone"\npart = "read"\nmodel = "\\u001b]0;x\\u0007"\nprompt = "b"\n',
    )
    shown = legion("role", "show", "qa")
    assert "\x1b" not in shown.out + shown.err + legion("role", "list").out + legion("team", "list").out


def test_a_role_that_would_break_a_team_is_not_written(legion, board: Board, tmp_path: Path):
    text = tmp_path / "engineer.toml"
    text.write_text(ROLE)
    ended = legion("role", "edit", "engineer", "--from", str(text))
    assert ended.code != 0
    assert "The role engineer is not written, because as `advise` it would break the team" in ended.err
    assert not file_of(DefinitionKind.ROLE, "engineer").exists()
    text.write_text(ROLE.replace("advise", "build"))
    assert legion("role", "edit", "engineer", "--from", str(text)).code == 0
