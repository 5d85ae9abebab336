"""States of a tree from call to call, kept by plain git beside a hub, in a bounded space."""

from __future__ import annotations

import os
from pathlib import Path

from legion.drivers.tree_states import StateRecorder, StateStore, TreeState
from legion.git.hub import states
from legion.git.hub.objects import Signature
from legion.git.hub.repository import Hub
from legion.git.trees.live import Quarantine
from tests.support.live_trees import live
from tests.support.repository import Repository

AUTHOR = Signature(name="Ada", email="ada@localhost")


class Studio:
    def __init__(self, folder: Path, most: int = 100, most_bytes: int = 1 << 30) -> None:
        repository = Repository(folder / "ada")
        self.hub = Hub.create(repository.root / ".git", folder / "hub.git")
        self.base = self.hub.start_target(self.hub.fetch_person(repository.root / ".git", "main"))
        self.tree, self.folder = repository.root, folder / "kept"
        place = Quarantine(self.hub, self.folder / "reader")
        prefix, env = place.prefix(live(self.hub, self.tree), store=self.folder)
        self.store = StateStore(
            prefix=prefix,
            env=env,
            folder=str(self.folder),
            base=self.base,
            seed=str(folder / "no-index"),
            most=most,
            most_bytes=most_bytes,
        )
        self.recorder = StateRecorder(self.store)

    def rolls(self) -> list[str]:
        return sorted(place.name for place in self.folder.iterdir() if place.name.isdecimal())


def test_each_state_comes_into_the_hub_as_it_was(tmp_path: Path):
    studio = Studio(tmp_path)
    shots = []
    for name in ("one", "two"):
        (studio.tree / f"{name}.txt").write_text(name)
        shots.append(studio.recorder.record())
    first, second = shots
    assert first is not None
    assert second is not None
    objects = studio.folder / "0/objects"
    assert states.holds(studio.hub, objects, first.tree)
    assert studio.hub.resolve(first.tree) is None, "nothing of it is in the hub before it is wanted"
    commit = states.bring_in(
        studio.hub, objects, first.tree, base=studio.base, keep_as="rewind/1/1-2", message="back", author=AUTHOR
    )
    changed = [change.path for change in studio.hub.changed_files(studio.base, commit)]
    assert changed == ["one.txt"]
    assert not (studio.hub.path / "index").exists()


def test_a_call_that_changes_nothing_leaves_the_state_of_the_one_before(tmp_path: Path):
    studio = Studio(tmp_path, most=4)
    file, trees = studio.tree / "file.txt", []
    for text in ("one", "one", "two", "two", "one", "one"):
        file.write_text(text)
        shot = studio.recorder.record()
        assert shot is not None
        assert states.holds(studio.hub, studio.folder / str(shot.roll) / "objects", shot.tree)
        trees.append(shot.tree)
    one, two = trees[0], trees[2]
    assert one != two
    assert trees == [one, one, two, two, one, one], "also across rolls"
    file.chmod(0o755)
    assert (studio.recorder.record() or TreeState(tree=one, roll=0, ms=0)).tree not in (one, two)


def test_the_oldest_states_go_when_there_are_too_many(tmp_path: Path):
    studio = Studio(tmp_path, most=2)
    shots = []
    for number in range(5):
        (studio.tree / "file.txt").write_text(str(number))
        shots.append(studio.recorder.record())
    assert [shot.roll for shot in shots if shot is not None] == [0, 0, 1, 1, 2]
    assert studio.rolls() == ["1", "2"]
    for shot in shots[2:]:
        assert shot is not None
        assert states.holds(studio.hub, studio.folder / str(shot.roll) / "objects", shot.tree)
    assert not states.holds(studio.hub, studio.folder / "0/objects", shots[0].tree if shots[0] else "")


def test_the_oldest_states_go_when_they_take_too_much_room(tmp_path: Path):
    studio = Studio(tmp_path, most_bytes=200_000)
    for _ in range(31):
        (studio.tree / "file.txt").write_bytes(os.urandom(20_000))
        assert studio.recorder.record() is not None
    assert studio.rolls() == ["2", "3"]


def test_a_tree_that_is_gone_costs_nothing_but_the_state(tmp_path: Path):
    studio = Studio(tmp_path)
    studio.tree.rename(tmp_path / "elsewhere")
    assert [studio.recorder.record() for _ in range(5)] == [None] * 5
    assert studio.recorder.gave_up, "after a while nothing more is tried"


def test_what_a_killed_git_leaves_behind_costs_one_state(tmp_path: Path):
    studio = Studio(tmp_path)
    assert studio.recorder.record() is not None
    left = [studio.folder / "0" / name for name in ("index.lock", "objects/tmp_obj_half", "objects/pack/tmp_pack_half")]
    for file in left:
        file.touch()
    (studio.tree / "new.txt").write_text("new")
    assert studio.recorder.record() is None
    assert not [file for file in left if file.exists()]
    assert studio.recorder.record() is not None
