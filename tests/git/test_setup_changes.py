"""What only setup did to a tree is no change; what the agent did after it is, whole."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from legion.git.merge.prediction import OpenChange, Prediction
from legion.git.trees import setup_changes
from legion.git.trees.setup_changes import SetupEdit
from tests.git.making import Grounds, Person
from tests.support.live_trees import live


def setup(grounds: Grounds, agent: Person, files: dict[str, str | None], name: str = "1") -> tuple[SetupEdit, ...]:
    """Setup writes (or with None deletes) these files."""
    index, tree = grounds.side / "setup.index", live(grounds.hub, agent.path)
    before = setup_changes.before(tree, grounds.target, known=grounds.worktrees.index(name), index=index)
    write(agent, files)
    return setup_changes.after(tree, grounds.target, before.state, index)[1]


def write(agent: Person, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        (agent.path / path).unlink() if text is None else agent.write(path, text)


def change(grounds: Grounds, edited: tuple[SetupEdit, ...], made: tuple[str, ...] = (), parent: str = "") -> set[str]:
    """The paths that the agent changed."""
    tree = grounds.save(parent=parent or None).tree
    rest = setup_changes.without(grounds.hub, tree, base=grounds.target, edited=edited, made=made)
    found = grounds.hub.differences(grounds.hub.tree_of(grounds.target), rest)
    return {path.decode() for path, _, _ in found}


def test_every_pair_of_what_setup_and_agent_do_to_a_tracked_file(grounds: Grounds):
    contents: tuple[str | None, ...] = ("# A project\n", "by setup\n", "by the agent\n", None)
    for number, (by_setup, by_agent) in enumerate(itertools.product(contents, contents), 1):
        agent = grounds.agent(str(number))
        edited = setup(grounds, agent, {"README.md": by_setup}, str(number))
        write(agent, {"README.md": by_agent} if by_agent is not None or by_setup is not None else {})
        tree = grounds.save(str(number)).tree
        rest = setup_changes.without(grounds.hub, tree, base=grounds.target, edited=edited, made=())
        left = grounds.hub.read_file(rest, "README.md")
        alone = by_agent == by_setup
        expected = contents[0] if alone else by_agent
        assert (left.decode() if left is not None else None) == expected, (by_setup, by_agent)


def test_other_files_of_the_agent_stay_next_to_those_of_setup(grounds: Grounds):
    agent = grounds.agent()
    edited = setup(grounds, agent, {"README.md": "by setup\n", "run.sh": None})
    agent.write("src/app.py", "new\n")
    agent.write("new.txt", "new\n")
    assert [edit.path for edit in edited] == ["README.md", "run.sh"]
    assert change(grounds, edited) == {"src/app.py", "new.txt"}


def test_what_setup_made_does_not_land_though_the_agent_committed_it(grounds: Grounds):
    agent = grounds.agent()
    edited = setup(grounds, agent, {"src/app.egg-info/PKG-INFO": "made\n", "README.md": "by setup\n"})
    agent.commit({"src/app.py": "mine\n"})
    parent = agent.head
    agent.git("push", "-q", grounds.hub.path, f"{parent}:refs/heads/own")
    assert change(grounds, edited, ("src/app.egg-info",), parent) == {"src/app.py"}


def test_a_file_that_the_base_has_is_never_taken_back(grounds: Grounds):
    edit = SetupEdit(path="README.md", before=("100644", "0" * 40), after=entry(grounds, "README.md"))
    grounds.agent()
    assert change(grounds, (edit,), ("src",)) == set()


def entry(grounds: Grounds, path: str) -> tuple[str, str]:
    found = grounds.hub.entries(grounds.hub.tree_of(grounds.target))[path.encode()]
    return found.mode.decode(), found.id


@pytest.mark.parametrize("known", [True, False])
def test_edits_of_setup_predict_no_conflict(grounds: Grounds, tmp_path: Path, known: bool):
    changes = []
    for name in ("1", "2"):
        agent = grounds.agent(name)
        edited = setup(grounds, agent, {"README.md": f"by setup {name}\n"}, name)
        agent.write(f"new{name}.txt", "new\n")
        path, index = agent.path, grounds.worktrees.index(name)
        edits = edited if known else ()
        changes.append(
            OpenChange(id=int(name), base=grounds.target, tree=live(grounds.hub, path), index=index, edited=edits)
        )
    found = Prediction(grounds.hub, tmp_path / "prediction").look(changes, grounds.target)
    assert list(found) == ([] if known else [(1, 2)])
