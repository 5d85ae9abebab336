"""A difference is read as git writes it, whatever its lines and names look like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legion.domain.review import diffs

LINES = st.lists(st.sampled_from(["", "a", "-- b", "++ c", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ d"]), max_size=8)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diffs")


@settings(max_examples=40, deadline=None)
@given(before=LINES, after=LINES)
def test_what_went_and_came_turns_one_text_into_the_other(folder, before, after):
    (folder / "one").write_text("".join(f"{line}\n" for line in before))
    (folder / "two").write_text("".join(f"{line}\n" for line in after))
    text = git(folder, "diff", "--no-index", "--unified=0", "one", "two")
    (file,) = diffs.read(text) or (diffs.FileDiff(path="two"),)
    lines = list(before)
    for hunk in reversed(file.hunks):
        start = hunk.removed[0].number - 1 if hunk.removed else int(hunk.text.split()[1].split(",")[0][1:])
        assert [line.text for line in hunk.removed] == lines[start : start + len(hunk.removed)]
        lines[start : start + len(hunk.removed)] = [line.text for line in hunk.added]
    assert lines == after


@pytest.mark.parametrize("name", ["plain.txt", "with space.txt", 'quo"te.txt', "tab\there.txt", "ümlaut.txt"])
def test_every_name_is_read_as_it_is(tmp_path, name):
    git(tmp_path, "init", "--quiet")
    (tmp_path / name).write_text("a\n")
    (tmp_path / "empty.txt").write_text("")
    git(tmp_path, "add", "--all")
    found = diffs.read(git(tmp_path, "-c", "core.quotePath=false", "diff", "--cached", "--no-renames"))
    assert {(file.path, file.new, file.gone) for file in found} == {(name, True, False), ("empty.txt", True, False)}
