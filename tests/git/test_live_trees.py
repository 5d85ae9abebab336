"""Whoever reads the tree of a working agent reads nothing else, whatever the agent does to the tree meanwhile."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from legion.domain.errors import LegionError
from legion.drivers.claude import transcript
from legion.drivers.tree_states import StateRecorder, StateStore
from legion.git.core.errors import TreeUnreadable
from legion.git.hub.incoming import agent_commits, is_at, new_commits
from legion.git.merge.prediction import OpenChange, Prediction
from legion.git.trees import setup_changes
from legion.git.trees.live import LiveTree, Quarantine
from legion.git.trees.obstacles import obstacles, remove_pipes
from legion.git.trees.snapshots import look, snapshot
from legion.git.trees.unsaved import kept_out, unfinished, unsaved
from legion.jobs.workspace import quota
from legion.runner.sandbox import Sandbox, wrap
from legion.system import safe_files, trees
from legion.system.process import FinishedProcess, run
from tests.git.conftest import fresh_grounds, fresh_person
from tests.git.making import AGENT, WHEN, Grounds
from tests.git.swapping import LARGE, MANY, TRICKS
from tests.support.attacks import Attacker, Door, attack
from tests.support.live_trees import live
from tests.support.sampling import sampled

Started = tuple[Sequence[str], Mapping[str, str]]
SECRET = b"the secret of the person"
QUICK = {"conversation", "file for an agent program", "head"}
"""Readings that take so little time that each is tried thirty times as often."""
SCRIPT = Path(__file__).with_name("swapping.py")


@dataclass
class Scene:
    """A working agent that plays one trick, and what the person keeps beside its tree."""

    grounds: Grounds
    tree: LiveTree
    kept: Path
    side: Path

    def holds_secret(self) -> list[str]:
        """The stores of objects in which the secret is."""
        stores = [self.grounds.hub.objects, *(place for place in self.side.rglob("objects") if place.is_dir())]
        return [str(store) for store in stores if SECRET in everything_in(self.grounds, store)]


def everything_in(grounds: Grounds, store: Path) -> bytes:
    env = {"PATH": "/usr/bin:/bin", "GIT_DIR": str(grounds.hub.path), "GIT_OBJECT_DIRECTORY": str(store)}
    return run(("/usr/bin/git", "cat-file", "--batch-all-objects", "--batch"), env=env).stdout


@contextlib.contextmanager
def playing(trick: str, grounds: Grounds, folder: Path, *, inside: bool = True) -> Iterator[Scene]:
    """The agent at work. With `inside` it is in its sandbox, as agents are."""
    kept = folder / "kept"
    (kept / "repository").mkdir(parents=True)
    (kept / "projects/p").mkdir(parents=True)
    for name in ("token", *MANY, "repository/HEAD", "repository/MERGE_HEAD", "projects/p/conversation.jsonl"):
        (kept / name).write_bytes(SECRET)
    with (kept / "secret-and-large").open("wb") as file:
        file.truncate(3 << 30)
    os.mkfifo(kept / "secret-pipe")
    os.mkfifo(kept / ".git-secret-pipe")
    tree = grounds.agent().path
    argv: Sequence[str] = (sys.executable, str(SCRIPT), trick, str(tree), str(kept))
    env: Mapping[str, str] = {"PATH": "/usr/bin:/bin"}
    if inside:
        # The whole installation of Python, which may be anywhere.
        seen = {Path(sys.prefix), Path(sys.base_prefix), SCRIPT} - {Path("/usr")}
        box = Sandbox(home=Path.home(), writable=(tree,), readable=tuple(seen))
        wrapped = wrap(argv, box, cwd=tree, env=env)
        argv, env = wrapped.argv, wrapped.env
    with subprocess.Popen(argv, env=dict(env), stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline() == b"ready\n"
            yield Scene(grounds, live(grounds.hub, tree), kept, folder / "side")
        finally:
            agent.kill()


def diffed(scene: Scene) -> object:
    grounds = scene.grounds
    with look(scene.tree, scene.side / "look", parent=grounds.target, timeout=20, durable=False) as seen:
        return seen.place.history.diff(grounds.target, seen.tree)


def predicted(scene: Scene) -> object:
    prediction = Prediction(scene.grounds.hub, scene.side / "prediction")
    return prediction.look([OpenChange(id=1, base=scene.grounds.target, tree=scene.tree)], scene.grounds.target)


def state_recorded(scene: Scene) -> object:
    folder = scene.side / "states"
    prefix, env = Quarantine(scene.grounds.hub, folder / "reader").prefix(scene.tree, store=folder)
    seed = str(folder / "no-index")
    store = StateStore(
        prefix=prefix, env=env, folder=str(folder), base=scene.grounds.target, seed=seed, most=100, most_bytes=1 << 30
    )
    with contextlib.suppress(FileExistsError):
        return StateRecorder(store).record()
    return None


def commits_read(scene: Scene) -> object:
    def bundle(argv: Sequence[str]) -> FinishedProcess:
        tree = scene.tree.path
        shown = (tree, scene.grounds.hub.objects)
        remove_pipes(tree / ".git")
        box = Sandbox(home=Path.home(), readable=shown, small=True)
        wrapped = wrap(argv, box, cwd=tree, env={"PATH": "/usr/bin:/bin"})
        return run(wrapped.argv, env=wrapped.env, timeout=20, idle=3)

    grounds = scene.grounds
    return agent_commits(grounds.hub, base=grounds.target, run_sandboxed=bundle, work_tree=scene.tree.path)


def file_read(scene: Scene) -> object:
    paths = ("swap", "swap/token", f"swap/{scene.kept.name}/token", ".gitignore", "linked", "nested/.git")
    return [safe_files.read(scene.tree.path, path) for path in paths]


def transcript_copied(scene: Scene) -> object:
    with contextlib.suppress(OSError):
        transcript.copy(scene.tree.path / "projects/p/conversation.jsonl", scene.side, "copy", Path("/tree"))
        return (scene.side / "projects/-tree/copy.jsonl").read_bytes()
    return None


def setup_read(scene: Scene) -> object:
    target, index = scene.grounds.target, scene.grounds.side / "setup.index"
    found = setup_changes.before(scene.tree, target, known=scene.grounds.worktrees.index("1"), index=index)
    return found, setup_changes.after(scene.tree, target, found.state, index)


READERS: dict[str, Callable[[Scene], object]] = {
    "diff": diffed,
    "save": lambda scene: scene.grounds.save(timeout=20),
    "prediction": predicted,
    "state between calls": state_recorded,
    "setup": setup_read,
    "unsaved files": lambda scene: unsaved(scene.tree),
    "files that setup made": lambda scene: kept_out(scene.tree, ["swap/token", "new"]),
    "disk quota": lambda scene: quota.measure((scene.tree.path,)).bytes > 1 << 30 and SECRET,
    "large files": lambda scene: obstacles(scene.tree.path),
    "commits": commits_read,
    "loose objects": lambda scene: new_commits(scene.tree.path),
    "head": lambda scene: is_at(scene.tree.path, scene.grounds.target),
    "unfinished merge": lambda scene: unfinished(scene.tree.path),
    "size of a worktree": lambda scene: trees.size(scene.tree.path) > 1 << 30 and SECRET,
    "file for an agent program": file_read,
    "conversation": transcript_copied,
}


@pytest.fixture(scope="module", params=sampled(sorted(TRICKS), len(TRICKS) // 2))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One agent for all readers: starting it takes longer than a reading. `make soak` has all tricks."""
    folder = tmp_path_factory.mktemp("live")
    with playing(request.param, fresh_grounds(folder, fresh_person(folder)), folder) as scene:
        yield scene


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.soak)])
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_a_live_tree_reads_nothing_else(reader: str, rounds: int, scene: Scene):
    before = sorted(scene.kept.rglob("*"))
    for _ in range(rounds * (30 if reader in QUICK else 1)):
        try:
            answer = repr(READERS[reader](scene))
        except LegionError as refused:
            answer = refused.message
            assert "try again" in answer, "a reading that failed says what to do"
        for found in ("secret", "MERGE"):
            assert found not in answer
    assert scene.holds_secret() == []
    assert sorted(scene.kept.rglob("*")) == before, "nothing is made there either"
    assert leftovers(scene.grounds) == []


def leftovers(grounds: Grounds) -> list[Path]:
    objects = grounds.hub.objects
    return [*(grounds.hub.path / "incoming").glob("*"), *objects.glob("tmp_*"), *objects.glob("*/tmp_*")]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ('"$@" | head -n 1', "did not run to its end"),
        ('"$@"; exit 9', "its sandbox failed"),
        ('"$@"; rm "$GIT_DIR/out/1"', "its answer is gone"),
        ("exit 0", "did not run to its end"),
        ("echo broken >&2; exit 1", "broken"),
    ],
)
def test_a_reading_that_breaks_off_says_so_and_is_no_empty_tree(grounds: Grounds, trouble: str, said: str):
    def breaking(
        argv: Sequence[str], *, env: Mapping[str, str], **_: object
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        return ("/bin/sh", "-c", trouble, "sh", *argv), env

    agent = grounds.agent()
    agent.write("new.txt", "1\n")
    tree = replace(live(grounds.hub, agent.path), confine=breaking)
    with (
        pytest.raises(TreeUnreadable, match=said),
        look(tree, grounds.side / "look", parent=grounds.target, durable=False),
    ):
        pass


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.parametrize("content", [b"no object", zlib.compress(b"blob 3\0bad")])
def test_an_object_that_is_not_what_its_name_says_never_enters_the_hub(grounds: Grounds, content: bytes):
    """As code of an agent would write it that a filter runs."""
    name = "aa" + "b" * 38
    forge = (
        '"$@"; mkdir -p "$GIT_DIR/objects/aa"; cp forged "$GIT_DIR/objects/aa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"'
    )

    def forging(argv: Sequence[str], *, env: Mapping[str, str], **_: object) -> tuple[Sequence[str], Mapping[str, str]]:
        return ("/bin/sh", "-c", f'cd "$GIT_WORK_TREE"; {forge}', "sh", *argv), env

    agent = grounds.agent()
    (agent.path / "forged").write_bytes(content)
    tree = replace(live(grounds.hub, agent.path), confine=forging)
    with pytest.raises(LegionError, match="damaged object"):
        snapshot(tree, grounds.side / "forged", parent=grounds.target, message="x", author=AGENT, when=WHEN)
    assert not (grounds.hub.objects / name[:2] / name[2:]).exists()
    assert leftovers(grounds) == []


def test_the_same_exchange_gets_through_without_a_sandbox(grounds: Grounds, tmp_path: Path):
    """So that the cases above prove something."""

    def unconfined(
        argv: Sequence[str], *, env: Mapping[str, str], **_: object
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        return argv, env

    with playing("folder_for_link", grounds, tmp_path) as scene:
        # Git lists all files, then reads them in order: this one takes it longer than many exchanges.
        (scene.tree.path / "first").write_bytes(os.urandom(LARGE // 16))
        scene.tree = replace(scene.tree, confine=unconfined)
        deadline = time.monotonic() + 60
        found = ""
        while SECRET.decode() not in found and time.monotonic() < deadline:
            with contextlib.suppress(LegionError):
                found = str(diffed(scene))
        assert SECRET.decode() in found
