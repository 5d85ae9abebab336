"""Commits of an agent come in whole and sound, or not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.git.hub.incoming import agent_commits, is_at
from legion.system.crash import Point
from legion.system.process import FinishedProcess
from tests.git.making import Grounds, Person, change, dies_at, in_tree


def fetch(grounds: Grounds, agent: Person) -> str | None:
    return agent_commits(grounds.hub, base=grounds.target, run_sandboxed=in_tree(agent.path))


def read_as_files(grounds: Grounds, agent: Person) -> str | None:
    """What comes without any git in the agent's repository."""
    return agent_commits(grounds.hub, base=grounds.target, run_sandboxed=said(b"", 1), work_tree=agent.path)


def said(stdout: bytes, code: int = 0) -> Callable[[object], FinishedProcess]:
    return lambda argv: FinishedProcess(argv=("git",), code=code, stdout=stdout, stderr=b"")


def objects_of(grounds: Grounds) -> set[str]:
    listed = grounds.hub._git("cat-file", "--batch-check=%(objectname)", "--batch-all-objects").text
    return set(listed.split())


def test_commits_of_the_agent_arrive_with_their_history(grounds: Grounds):
    agent = grounds.agent()
    first = agent.commit({"a": "1\n"}, "first of the agent")
    second = agent.commit({"a": "2\n"}, "second of the agent")
    assert fetch(grounds, agent) == second
    assert [commit.commit for commit in grounds.hub.commits_between(grounds.target, second)] == [first, second]
    assert list((grounds.hub.path / "incoming").iterdir()) == []
    grounds.hub._git("fsck")


def test_the_snapshot_goes_on_top_of_the_agents_commits(grounds: Grounds):
    agent = grounds.agent()
    agent.commit({"a": "1\n"})
    agent.write("b", "not committed\n")
    head = fetch(grounds, agent)
    saved = grounds.save(parent=head)
    assert grounds.hub.read_file(saved.commit, "b") == b"not committed\n"
    assert grounds.hub.merge_base(saved.commit, agent.head) == agent.head


def test_an_agent_that_committed_nothing_has_nothing_to_bring(grounds: Grounds):
    agent = grounds.agent()
    agent.write("a", "1\n")
    assert fetch(grounds, agent) is None


def test_a_detached_head_is_brought_too(grounds: Grounds):
    agent = grounds.agent()
    agent.git("checkout", "-q", "--detach")
    head = agent.commit({"a": "1\n"})
    assert fetch(grounds, agent) == head


def test_a_history_that_does_not_hold_the_base_is_left_out(grounds: Grounds):
    agent = grounds.agent()
    agent.git("checkout", "-q", "--orphan", "other")
    agent.commit({"a": "1\n"})
    assert fetch(grounds, agent) is None


def test_a_broken_git_folder_brings_nothing(grounds: Grounds):
    agent = grounds.agent()
    agent.commit({"a": "1\n"})
    (agent.path / ".git/HEAD").write_text("garbage")
    assert fetch(grounds, agent) is None


def bundle_of(grounds: Grounds) -> tuple[bytes, str]:
    agent = grounds.agent()
    head = agent.commit({"a": "1\n", "b": os.urandom(4000)})
    argv = ("git", "bundle", "create", "--quiet", "-", "HEAD", "--not", grounds.target)
    return in_tree(agent.path)(argv).stdout, head


@pytest.mark.parametrize(
    "deed", ["nothing", "noise", "header only", "cut", "flipped", "other id", "failed", "no newline"]
)
def test_garbage_never_reaches_the_hub(grounds: Grounds, deed: str):
    bundle, head = bundle_of(grounds)
    before = objects_of(grounds)
    start = bundle.index(b"PACK")
    output, code = {
        "nothing": (b"", 0),
        "noise": (os.urandom(10_000), 0),
        "header only": (bundle[:start], 0),
        "cut": (bundle[:-300], 0),
        "flipped": (bundle[: start + 60] + bytes([bundle[start + 60] ^ 255]) + bundle[start + 61 :], 0),
        "other id": (bundle.replace(head.encode(), b"1" * 40), 0),
        "failed": (bundle, 1),
        "no newline": (b"# v2 git bundle", 0),
    }[deed]
    taken = agent_commits(grounds.hub, base=grounds.target, run_sandboxed=said(output, code))
    assert taken is None
    assert objects_of(grounds) == before


def test_more_than_the_limit_is_left_out(grounds: Grounds):
    bundle, head = bundle_of(grounds)
    run = said(bundle)
    assert agent_commits(grounds.hub, base=grounds.target, run_sandboxed=run, max_bytes=1000) is None
    assert agent_commits(grounds.hub, base=grounds.target, run_sandboxed=run) == head


def raw_bundle(grounds: Grounds, folder: Path, tree: bytes) -> bytes:
    """A bundle of one commit with a hand-made tree that git itself would never write."""
    agent = grounds.agent("evil")
    env = {"PATH": os.environ["PATH"], "GIT_DIR": str(agent.path / ".git")}

    def store(kind: str, content: bytes) -> str:
        argv = ["git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
        return subprocess.run(argv, input=content, env=env, check=True, capture_output=True).stdout.decode().strip()

    blob = store("blob", b"[core]\n")
    tree_id = store("tree", tree.replace(b"BLOB", bytes.fromhex(blob)))
    stamp = "x <x@x> 1 +0000"
    lines = f"tree {tree_id}\nparent {grounds.target}\nauthor {stamp}\ncommitter {stamp}\n\nevil\n"
    head = store("commit", lines.encode())
    packed = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"],
        input=f"{blob}\n{tree_id}\n{head}\n".encode(),
        env=env,
        check=True,
        capture_output=True,
    ).stdout
    return f"# v2 git bundle\n-{grounds.target} base\n{head} HEAD\n\n".encode() + packed


@pytest.mark.parametrize(
    "tree", [b"40000 .git\0BLOB", b"100644 ../x\0BLOB", b"100644 .git\0BLOB", b"100644 b\0BLOB100644 a\0BLOB"]
)
def test_objects_that_git_would_refuse_from_a_stranger_are_refused(grounds: Grounds, tmp_path: Path, tree: bytes):
    before = objects_of(grounds)
    run = said(raw_bundle(grounds, tmp_path, tree))
    assert agent_commits(grounds.hub, base=grounds.target, run_sandboxed=run) is None
    assert objects_of(grounds) == before


def test_the_hand_made_bundle_is_taken_where_its_tree_is_sound(grounds: Grounds, tmp_path: Path):
    run = said(raw_bundle(grounds, tmp_path, b"100644 a\0BLOB"))
    head = agent_commits(grounds.hub, base=grounds.target, run_sandboxed=run)
    assert head is not None
    assert grounds.hub.read_file(head, "a") == b"[core]\n"


def test_a_commit_whose_files_are_missing_is_left_out(grounds: Grounds, tmp_path: Path):
    agent = grounds.agent()
    head = agent.commit({"a": "not sent\n"})
    env = {"PATH": os.environ["PATH"], "GIT_DIR": str(agent.path / ".git")}
    argv = ["git", "pack-objects", "--stdout", "-q"]
    packed = subprocess.run(argv, input=f"{head}\n".encode(), env=env, check=True, capture_output=True).stdout
    bundle = f"# v2 git bundle\n-{grounds.target} base\n{head} HEAD\n\n".encode() + packed
    assert agent_commits(grounds.hub, base=grounds.target, run_sandboxed=said(bundle)) is None


def test_a_crash_before_keeping_costs_nothing(grounds: Grounds):
    agent = grounds.agent()
    head = agent.commit({"a": "1\n"})
    assert dies_at(Point.GIT_COMMITS_BEFORE_KEEP, lambda: fetch(grounds, agent))
    assert fetch(grounds, agent) == head
    assert change(grounds.hub, head, {"b": "1\n"}, grounds.folder)


def test_a_small_change_becomes_loose_objects_and_a_large_one_a_pack(grounds: Grounds):
    def packs() -> int:
        return len(list((grounds.hub.objects / "pack").glob("*.pack")))

    before = packs()
    agent = grounds.agent()
    agent.commit({"a": "1\n"})
    assert fetch(grounds, agent) == agent.head
    assert packs() == before
    many = grounds.agent("many")
    many.commit({f"file{number}": f"{number}\n" for number in range(120)})
    assert fetch(grounds, many) == many.head
    large = grounds.agent("large")
    large.commit({"noise": os.urandom(300_000)})
    assert fetch(grounds, large) == large.head
    assert packs() == before + 2
    grounds.hub._git("fsck", "--strict")


def test_objects_that_the_hub_has_already_stay_as_they_are(grounds: Grounds):
    bundle, head = bundle_of(grounds)
    for _ in range(2):
        taken = agent_commits(grounds.hub, base=grounds.target, run_sandboxed=said(bundle))
        assert taken == head
        assert list((grounds.hub.path / "incoming").iterdir()) == []
    grounds.hub._git("fsck")


class TestReadingTheHeadWithoutGit:
    def test_a_new_worktree_is_at_its_base_and_a_commit_moves_it(self, grounds: Grounds):
        agent = grounds.agent()
        assert is_at(agent.path, grounds.target)
        agent.commit({"a": "1\n"})
        assert not is_at(agent.path, grounds.target)

    def test_a_detached_head_is_read(self, grounds: Grounds):
        agent = grounds.agent()
        agent.git("checkout", "-q", "--detach")
        assert is_at(agent.path, grounds.target)
        agent.commit({"a": "1\n"})
        assert not is_at(agent.path, grounds.target)

    def test_whatever_is_not_plain_is_left_to_git(self, grounds: Grounds, tmp_path: Path):
        agent = grounds.agent()
        agent.git("pack-refs", "--all")
        assert not is_at(agent.path, grounds.target)
        head = agent.path / ".git/HEAD"
        for content in ("ref: refs/heads/../../HEAD\n", "ref: refs/heads/a\0b\n", "", "\udcff"):
            head.write_bytes(os.fsencode(content))
            assert not is_at(agent.path, grounds.target)
        head.unlink()
        os.mkfifo(head)
        assert not is_at(agent.path, grounds.target)
        head.unlink()
        (tmp_path / "elsewhere").write_text(f"{grounds.target}\n")
        head.symlink_to(tmp_path / "elsewhere")
        assert not is_at(agent.path, grounds.target)
        assert not is_at(tmp_path / "nowhere", grounds.target)


class TestReadingCommitsWithoutGit:
    def test_a_few_commits_arrive_with_their_history(self, grounds: Grounds):
        agent = grounds.agent()
        first = agent.commit({"a": "1\n", "folder/b": "2\n"})
        agent.git("checkout", "-q", "-b", "side", grounds.target)
        agent.commit({"c": "3\n"})
        agent.git("merge", "-q", "--no-ff", "-m", "both", first)
        agent.write("d", "added and not committed\n")
        agent.git("add", "d")
        assert read_as_files(grounds, agent) == agent.head
        assert len(grounds.hub.commits_between(grounds.target, agent.head)) == 3
        assert grounds.hub.read_file(agent.head, "folder/b") == b"2\n"
        assert grounds.hub.straight_line(grounds.target, agent.head) is None
        grounds.hub._git("fsck", "--strict")

    def test_commits_with_long_ids_arrive(self, tmp_path: Path):
        person = Person.with_repository(tmp_path / "repo", "--object-format=sha256")
        person.commit({"a": "1\n"})
        grounds = Grounds(tmp_path / "legion", person)
        agent = grounds.agent()
        agent.commit({"b": "2\n"})
        assert read_as_files(grounds, agent) == agent.head

    def test_an_unrelated_or_forged_history_is_left_out(self, grounds: Grounds):
        agent = grounds.agent()
        agent.git("checkout", "-q", "--orphan", "other")
        head = agent.commit({"a": "1\n"})
        before = objects_of(grounds)
        assert read_as_files(grounds, agent) is None
        (agent.path / ".git/HEAD").write_text(f"{grounds.target[::-1]}\n")
        renamed = agent.path / ".git/objects" / grounds.target[::-1][:2] / grounds.target[::-1][2:]
        renamed.parent.mkdir(exist_ok=True)
        (agent.path / ".git/objects" / head[:2] / head[2:]).rename(renamed)
        assert read_as_files(grounds, agent) is None
        assert objects_of(grounds) == before

    @pytest.mark.parametrize(
        "deed", ["packed", "many", "large", "bomb", "noise", "cut", "link", "linked folder", "pipe", "linked objects"]
    )
    def test_whatever_is_not_plain_is_left_to_git(self, grounds: Grounds, tmp_path: Path, deed: str):
        agent = grounds.agent()
        content = {"large": os.urandom(300_000), "bomb": b"0" * 20_000_000}.get(deed, b"1")
        files = {"a": content} if deed != "many" else {f"f{number}": str(number) for number in range(120)}
        head = agent.commit(files)
        objects = agent.path / ".git/objects"
        commit = objects / head[:2] / head[2:]
        match deed:
            case "packed":
                agent.git("repack", "-adq")
            case "noise" | "cut":
                kept = os.urandom(100) if deed == "noise" else commit.read_bytes()[:-5]
                commit.unlink()
                commit.write_bytes(kept)
            case "link":
                commit.rename(tmp_path / "commit")
                commit.symlink_to(tmp_path / "commit")
            case "linked folder":
                commit.parent.rename(tmp_path / "folder")
                commit.parent.symlink_to(tmp_path / "folder")
            case "linked objects":
                objects.rename(tmp_path / "objects")
                objects.symlink_to(tmp_path / "objects")
            case "pipe":
                commit.unlink()
                os.mkfifo(commit)
        before = objects_of(grounds)
        assert read_as_files(grounds, agent) is None
        assert objects_of(grounds) == before
