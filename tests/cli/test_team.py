"""`legion team` and `legion role` as a person uses them: in an editor, which may be left with nonsense in it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.standin import StandIn
from tests.api.standin_teams import a_role, a_team

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
def edit(service: StandIn, tmp_path: Path) -> Edit:
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


def test_what_the_editor_leaves_is_saved(edit: Edit, service: StandIn, tmp_path: Path):
    code, said = edit("team", "edit", "pair", texts=('roles = ["engineer"]\n',))
    assert (code, said) == (0, "The team pair is written.\n")
    ((kind, saved),) = service.saved
    assert (kind, saved.name, saved.text, saved.new) == ("team", "pair", 'roles = ["engineer"]\n', False)
    assert not list(tmp_path.glob("legion-*"))


def test_nonsense_is_told_and_edited_again(edit: Edit, service: StandIn, tmp_path: Path):
    code, said = edit("role", "new", "pm", "--like", "qa", texts=("nonsense", "fine"), typed="y\n")
    assert code == 0
    assert "In t.toml, line 1, `roles` must be a list of roles." in said
    assert [(kind, saved.text, saved.new) for kind, saved in service.saved] == [("role", "fine", True)]
    assert (tmp_path / "editor/seen-0").read_text() == 'about = "qa"\n'
    assert (tmp_path / "editor/seen-1").read_text() == "nonsense"


def test_nonsense_that_is_given_up_is_kept_aside(edit: Edit, service: StandIn, tmp_path: Path):
    code, said = edit("team", "edit", "pair", texts=("nonsense",), typed="n\n")
    assert code == 2
    assert service.saved == []
    (kept,) = tmp_path.glob("legion-pair-*.toml")
    assert kept.read_text() == "nonsense"
    assert f"legion team edit pair --from {kept}" in said


def test_a_text_that_nobody_changed_is_not_saved(edit: Edit, service: StandIn):
    assert edit("team", "edit", "pair", texts=()) == (0, "Nothing was changed.\n")
    assert service.saved == []


def test_without_a_terminal_a_file_is_asked_for(legion, service: StandIn, program):
    ended = program("team", "edit", "pair")
    assert ended.code == 2
    assert "legion team edit pair --from FILE" in ended.err
    assert program("team", "edit", "pair", "--from", "-", stdin=b"fine").code == 0
    assert [saved.text for _, saved in service.saved] == ["fine"]
    assert legion("team", "edit", "pair", "--from", "nowhere.toml").code == 3
    assert legion("team", "edit", "pair", "--from", ".").code == 2


def test_a_list_tells_what_cannot_be_used_and_what_is_not_trusted(legion, service: StandIn):
    service.teams_there["odd"] = a_team("odd", fault="In odd.toml, line 3, `roles` names no role.")
    shown = legion("team", "list").out
    assert "cannot be used" in shown
    assert "In odd.toml, line 3, `roles` names no role." in shown
    assert ".legion/teams/other.toml" in shown
    service.roles_there["odd"] = a_role("odd", "", fault="In odd.toml, line 1, `part` must be.")
    assert "In odd.toml, line 1, `part` must be." in legion("role", "list").out


def test_what_a_file_says_cannot_command_the_terminal(legion, service: StandIn):
    service.roles_there["qa"] = a_role("qa", "read", about="\x1b[2Jgone", model="\x1b]0;x\x07")
    assert "\x1b" not in legion("role", "show", "qa").out + legion("role", "list").out + legion("team", "list").out
