"""A merge, rebase and the like that an agent left unfinished is recognised, by what real git leaves."""

from __future__ import annotations

import pytest

from legion.git.trees.unsaved import GitOperation, unfinished
from tests.git.making import Grounds, Person


def two_sides(agent: Person) -> None:
    """A branch `side` and the present branch, which conflict in their last commits."""
    agent.git("checkout", "-q", "-b", "side")
    agent.commit({"README.md": "theirs\n"})
    agent.git("checkout", "-q", "-")
    agent.commit({"README.md": "ours\n"})


@pytest.mark.parametrize(
    ("words", "operation"),
    [
        (("merge", "side"), GitOperation.MERGE),
        (("rebase", "side"), GitOperation.REBASE),
        (("rebase", "--apply", "side"), GitOperation.REBASE),
        (("cherry-pick", "side"), GitOperation.CHERRY_PICK),
        (("revert", "--no-edit", "side"), GitOperation.REVERT),
        (("bisect", "start", "HEAD", "HEAD~1"), GitOperation.BISECT),
    ],
)
def test_what_is_in_progress_is_named_until_it_ends(grounds: Grounds, words: tuple[str, ...], operation: GitOperation):
    agent = grounds.agent()
    two_sides(agent)
    assert unfinished(agent.path) is None
    agent.git(*words, accept=(0, 1))
    assert unfinished(agent.path) is operation
    assert operation.value in operation.remedy
    agent.git(operation.value, "reset" if operation is GitOperation.BISECT else "--abort")
    assert unfinished(agent.path) is None


def test_a_git_folder_that_is_gone_or_a_link_says_nothing(grounds: Grounds):
    agent = grounds.agent()
    (agent.path / ".git/MERGE_HEAD").write_text("x")
    (agent.path / ".git").rename(agent.path / "elsewhere")
    assert unfinished(agent.path) is None
    (agent.path / ".git").symlink_to(agent.path / "elsewhere")
    assert unfinished(agent.path) is None
