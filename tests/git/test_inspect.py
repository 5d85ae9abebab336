"""Looking at a repository sees the facts and leaves no trace."""

from __future__ import annotations

import os

import pytest

from legion.git.core.errors import NotARepository
from legion.git.person.inspect import file_names, look
from tests.git.making import Person, photograph, program


def test_a_clean_repository_has_its_facts(person: Person):
    facts = look(person.path)
    assert facts.root == person.path
    assert facts.common_dir == facts.git_dir == person.git_dir
    assert (facts.branch, facts.head) == ("main", person.head)
    assert (facts.is_bare, facts.is_shallow, facts.is_partial, facts.dirty_files) == (False, False, False, 0)


def test_a_subfolder_belongs_to_its_repository(person: Person):
    assert look(person.path / "src").root == person.path


def test_a_linked_worktree_has_a_root_of_its_own_and_a_common_folder(person: Person, tmp_path):
    person.git("worktree", "add", "-q", "-b", "side", tmp_path / "linked")
    facts = look(tmp_path / "linked")
    assert facts.root == tmp_path / "linked"
    assert facts.common_dir == person.git_dir
    assert facts.git_dir == person.git_dir / "worktrees/linked"
    assert facts.branch == "side"


def test_an_empty_repository_has_a_branch_and_no_head(tmp_path):
    facts = look(Person.with_repository(tmp_path / "empty").path)
    assert (facts.branch, facts.head) == ("main", None)


def test_a_detached_head_has_no_branch(person: Person):
    person.git("checkout", "-q", "--detach")
    assert (look(person.path).branch, look(person.path).head) == (None, person.head)


def test_changed_and_new_files_are_counted(person: Person):
    person.write("README.md", "changed\n")
    person.write("new name\nwith a line break", "x")
    assert look(person.path).dirty_files == 2


def test_a_bare_and_a_shallow_repository_are_told(person: Person, tmp_path):
    person.commit({"a": "1"})
    person.git("clone", "-q", "--bare", ".", tmp_path / "bare")
    person.git("clone", "-q", "--depth=1", f"file://{person.path}", tmp_path / "shallow")
    assert look(tmp_path / "bare").is_bare
    assert look(tmp_path / "shallow").is_shallow


def test_a_partial_clone_is_told(person: Person, tmp_path):
    person.git("config", "uploadpack.allowFilter", "true")
    person.git("clone", "-q", "--filter=blob:none", f"file://{person.path}", tmp_path / "partial")
    assert look(tmp_path / "partial").is_partial


@pytest.mark.parametrize("where", ["nowhere", "folder", "file"])
def test_what_is_no_repository_is_refused_with_a_sentence(tmp_path, where: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(NotARepository, match=r"is not .*; "):
        look(tmp_path / where)


def test_the_inside_of_a_git_folder_is_refused(person: Person):
    with pytest.raises(NotARepository, match=r"inside a \.git folder"):
        look(person.git_dir / "objects")


def test_looking_changes_no_byte_and_no_time(person: Person):
    os.utime(person.path / "README.md", (1, 1))
    before = photograph(person.path)
    look(person.path)
    assert photograph(person.path) == before


def test_looking_runs_no_filter(person: Person, tmp_path):
    proof = tmp_path / "proof"
    person.commit({".gitattributes": "*.md filter=x\n"})
    person.git("config", "filter.x.clean", str(program(tmp_path / "evil", proof)))
    person.git("config", "filter.x.required", "true")
    # Only a file of the same size makes git read its content, and filter it.
    person.write("README.md", "# B project\n")
    person.write("src/app.py", "changed\n")
    # What only the filter could compare does not count.
    assert look(person.path).dirty_files == 1
    assert not proof.exists()


def test_the_files_of_a_checkout_are_listed_at_any_depth_without_ignored_ones(person: Person):
    person.write(".gitignore", "made/\n")
    person.write("src/package/inner/core.py", "")
    person.write("made/by-setup.txt", "")
    names = file_names(person.path)
    assert "src/package/inner/core.py" in names
    assert "made/by-setup.txt" not in names
    person.write("a/b.txt", "")
    shallow = tuple(name for name in names if "/" not in name)
    assert file_names(person.path, most=len(shallow)) == shallow
