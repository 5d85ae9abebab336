"""Changes in work are merged with each other: exact lines, no objects in the hub, no trouble from odd trees."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

from legion.domain.landing.conflicts import ConflictSpan
from legion.git.merge.prediction import OpenChange, Prediction
from tests.git.conftest import LINES
from tests.git.making import Grounds, change
from tests.git.test_candidates import edited
from tests.support.live_trees import live


def standing(grounds: Grounds, id: int, base: str | None = None) -> OpenChange:
    return OpenChange(id=id, base=base or grounds.target, tree=live(grounds.hub, grounds.worktrees.path(str(id))))


def objects(grounds: Grounds) -> set[Path]:
    return {Path(folder, name) for folder, _, names in os.walk(grounds.hub.objects) for name in names}


def test_two_that_change_the_same_lines_are_told_apart_from_those_that_do_not(grounds: Grounds, tmp_path: Path):
    texts = {1: edited(5, "five"), 2: edited(5, "FIVE"), 3: edited(15, "fifteen")}
    for id, text in texts.items():
        grounds.agent(str(id)).write("src/app.py", text)
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    before = objects(grounds)
    found = prediction.look([standing(grounds, id) for id in texts], grounds.target)
    assert found == {(1, 2): (ConflictSpan(path="src/app.py", mine=(5, 5), theirs=(5, 5)),)}
    assert objects(grounds) == before


def test_the_lines_are_those_of_each_sides_own_file_with_what_is_not_committed(grounds: Grounds, tmp_path: Path):
    one, two = grounds.agent("1"), grounds.agent("2")
    one.write("src/app.py", "new on top\n" * 3 + edited(5, "five\nand more").replace("line 18\n", "l18\n"))
    two.write("src/app.py", edited(5, "FIVE").replace("line 18\n", "L18\n"))
    found = Prediction(grounds.hub, tmp_path / "foresight").look(
        [standing(grounds, 1), standing(grounds, 2)], grounds.target
    )
    assert found[(1, 2)] == (
        ConflictSpan(path="src/app.py", mine=(8, 9), theirs=(5, 5)),
        ConflictSpan(path="src/app.py", mine=(22, 22), theirs=(18, 18)),
    )


def test_a_change_of_the_same_length_in_the_second_of_the_checkout_is_seen_in_the_next(
    grounds: Grounds, tmp_path: Path
):
    """Git compares seconds and lengths of files, and looks at those twice that are as young as the index."""
    for name in map(str, range(1, 20)):
        file = grounds.agent(name).path / "src/app.py"
        second = int(file.stat().st_mtime)
        file.write_text(LINES.replace("line 5\n", "LINE 5\n"))
        young = (file, grounds.worktrees.index(name))
        if all(int(one.stat().st_mtime) == second for one in young):
            break
    else:
        raise AssertionError("no checkout and change within one second")
    threading.Event().wait(second + 1 - time.time())
    change = OpenChange(
        id=1,
        base=grounds.target,
        tree=live(grounds.hub, grounds.worktrees.path(name)),
        index=grounds.worktrees.index(name),
    )
    seen = Prediction(grounds.hub, tmp_path / "foresight").tree(change)
    assert seen == grounds.save(name).tree != grounds.hub.tree_of(grounds.target)


def test_a_round_sees_what_changed_since_the_last_and_forgets_what_is_mended(grounds: Grounds, tmp_path: Path):
    one, two = grounds.agent("1"), grounds.agent("2")
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    both = [standing(grounds, 1), standing(grounds, 2)]
    assert prediction.look(both, grounds.target) == {}
    one.write("src/app.py", edited(5, "five"))
    assert prediction.look(both, grounds.target) == {}
    two.write("src/app.py", edited(5, "FIVE"))
    assert set(prediction.look(both, grounds.target)) == {(1, 2)}
    assert set(prediction.look(both, grounds.target)) == {(1, 2)}
    two.write("src/app.py", LINES)
    assert prediction.look(both, grounds.target) == {}
    prediction.forget()
    two.write("new.txt", "new\n")
    assert prediction.look(both, grounds.target) == {}
    assert not (tmp_path / "foresight" / "index-9").exists()


def test_a_change_conflicts_with_what_landed_since_it_began(grounds: Grounds, tmp_path: Path):
    old = grounds.target
    grounds.agent("1").write("src/app.py", edited(5, "five"))
    grounds.agent("2").write("src/lib.py", edited(5, "five"))
    landed = change(grounds.hub, old, {"src/app.py": edited(5, "landed")}, tmp_path)
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    found = prediction.look([standing(grounds, 1, old), standing(grounds, 2, old)], landed)
    assert found == {(1, 0): (ConflictSpan(path="src/app.py", mine=(5, 5), theirs=(5, 5)),)}


def test_a_proposed_change_is_looked_at_by_its_commit(grounds: Grounds, tmp_path: Path):
    proposed = change(grounds.hub, grounds.target, {"src/app.py": edited(5, "proposed")}, tmp_path)
    grounds.agent("1").write("src/app.py", edited(5, "five"))
    waiting = OpenChange(id=7, base=grounds.target, commit=proposed)
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    for _ in range(2):
        assert set(prediction.look([standing(grounds, 1), waiting], grounds.target)) == {(1, 7)}


def test_a_change_that_was_sent_back_is_looked_at_in_its_tree_again(grounds: Grounds, tmp_path: Path):
    grounds.agent("1").write("src/app.py", edited(5, "five"))
    grounds.agent("2").write("src/app.py", edited(5, "FIVE"))
    elsewhere = change(grounds.hub, grounds.target, {"new": "1\n"}, tmp_path)
    proposed = OpenChange(id=1, base=grounds.target, commit=elsewhere)
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    for one, pairs in ((standing(grounds, 1), {(1, 2)}), (proposed, set()), (standing(grounds, 1), {(1, 2)})):
        assert set(prediction.look([one, standing(grounds, 2)], grounds.target)) == pairs


def test_deleted_here_and_changed_there_is_a_conflict_without_lines(grounds: Grounds, tmp_path: Path):
    (grounds.agent("1").path / "src/app.py").unlink()
    grounds.agent("2").write("src/app.py", edited(5, "FIVE"))
    found = Prediction(grounds.hub, tmp_path / "foresight").look(
        [standing(grounds, 1), standing(grounds, 2)], grounds.target
    )
    assert found == {(1, 2): (ConflictSpan(path="src/app.py", mine=(0, 0), theirs=(0, 0)),)}


def test_odd_trees_are_left_out_and_the_others_are_looked_at(grounds: Grounds, tmp_path: Path):
    """A tree that is gone, one that is a link, a nested repository, an unreadable name, a .git that lies."""
    for id in (1, 2):
        agent = grounds.agent(str(id))
        agent.write("src/app.py", edited(5, f"five {id}"))
        agent.write("odd \n name.txt", f"{id}\n")
        (agent.path / "nested").mkdir()
        shutil.rmtree(agent.path / ".git")
        agent.write(".git", "gitdir: /nonexistent\n")
    linked = grounds.worktrees.path("4")
    linked.symlink_to(grounds.worktrees.path("1"))
    prediction = Prediction(grounds.hub, tmp_path / "foresight")
    found = prediction.look([standing(grounds, id) for id in (1, 2, 3, 4)], grounds.target)
    assert set(found) == {(1, 2)}
    assert ConflictSpan(path="src/app.py", mine=(5, 5), theirs=(5, 5)) in found[(1, 2)]
