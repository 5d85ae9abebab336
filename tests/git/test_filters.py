"""Git filters: trees hold the working form, the hub the stored one, and no agent takes a file out of a filter."""

from __future__ import annotations

import codecs
import hashlib
import shutil
from pathlib import Path

import pytest

from legion.git.hub.filters import FilterSource
from legion.git.hub.lfs import lfs_files
from legion.git.hub.repository import Hub
from legion.git.merge.prediction import OpenChange, Prediction
from legion.git.person.branches import offer
from legion.git.person.collect import collect
from legion.git.trees import setup_changes
from legion.git.trees.check_trees import CheckTrees
from legion.git.trees.snapshots import look
from legion.git.trees.staged_files import passes_a_filter_by, tried
from legion.git.trees.tree import Tree
from legion.git.trees.worktrees import Worktrees
from tests.git.making import Grounds, Person, change
from tests.support.live_trees import confine, live

SECRET = "password=1\n"
STORED = codecs.encode(SECRET, "rot13").encode()
TURN = "tr a-zA-Z n-za-mN-ZA-M"


def define(person: Person) -> None:
    for part, value in {"clean": TURN, "smudge": TURN, "required": "true"}.items():
        person.git("config", f"filter.turn.{part}", value)


@pytest.fixture
def filtered(person: Person, tmp_path: Path) -> Grounds:
    """A project whose *.key files are stored turned by thirteen letters."""
    define(person)
    person.commit({".gitattributes": "*.key filter=turn\n", "a.key": SECRET, "sub/.gitattributes": "s* filter=turn\n"})
    person.commit({"sub/s": SECRET})
    grounds = Grounds(tmp_path / "legion", person)
    return with_source(grounds)


def with_source(grounds: Grounds) -> Grounds:
    source = FilterSource(common_dir=grounds.person.git_dir, confine=confine)
    grounds.hub = Hub(grounds.hub.path, source)
    grounds.worktrees = Worktrees(grounds.hub, grounds.folder / "trees", grounds.trash, grounds.side)
    return grounds


def test_trees_hold_the_working_form_and_the_hub_the_stored_one(filtered: Grounds, tmp_path: Path):
    agent = filtered.agent()
    assert (agent.path / "a.key").read_text() == (agent.path / "sub/s").read_text() == SECRET
    check = CheckTrees(filtered.hub, tmp_path / "checks", filtered.side).prepare("one", filtered.target)
    assert (check / "a.key").read_text() == SECRET
    assert not filtered.save().changed
    agent.write("sub/s2", SECRET)
    agent.write("b.key", SECRET)
    saved = filtered.save()
    assert [filtered.hub.read_file(saved.commit, path) for path in ("a.key", "b.key", "sub/s2")] == [STORED] * 3
    done = collect(filtered.person.path, "main", filtered.hub, saved.commit)
    assert done.files == 2
    assert (filtered.person.path / "b.key").read_text() == SECRET
    assert filtered.person.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "attributes",
    [{".gitattributes": "# none\n"}, {".gitattributes": "*.key -filter\n"}, {"new/.gitattributes": "* !filter\n"}],
)
def test_no_agent_takes_a_file_out_of_a_filter(filtered: Grounds, attributes: dict[str, str]):
    agent = filtered.agent()
    for path, text in attributes.items():
        agent.write(path, text)
    agent.write("new/b.key", SECRET)
    agent.write("a.key", "password=2\n")
    agent.git("add", "-A")
    agent.git("commit", "-q", "-m", "plain in the agent's own repository")
    saved = filtered.save()
    assert filtered.hub.read_file(saved.commit, "new/b.key") == STORED
    plain = agent.git("hash-object", "--no-filters", "new/b.key")
    assert not filtered.hub.has(plain)


def test_a_filter_that_an_agent_adds_is_applied_to_its_own_change(grounds: Grounds):
    define(grounds.person)
    agent = with_source(grounds).agent()
    agent.write("b.key", SECRET)
    agent.write(".gitattributes", "[attr]hide filter=turn\n*.key hide\n")
    saved = grounds.save()
    assert grounds.hub.read_file(saved.commit, "b.key") == STORED
    assert not grounds.hub.has(agent.git("hash-object", "--no-filters", "b.key"))


@pytest.mark.parametrize("rule", ["own", "target", "none"])
def test_a_state_that_was_stored_past_a_filter_is_known_as_that(grounds: Grounds, tmp_path: Path, rule: str):
    """Between the calls of a run git has no filters: what the agent or the target adds meanwhile counts afterwards."""
    define(grounds.person)
    agent, base = with_source(grounds).agent(), grounds.target
    agent.write("b.key", SECRET)
    rules = {"target": "*.key filter=turn\n", "none": "*.key text\n"}
    if rule == "own":
        agent.write(".gitattributes", "*.key filter=turn\n")
    else:
        grounds.person.commit({".gitattributes": rules[rule]})
        grounds.hub.move_target(grounds.hub.fetch_person(grounds.person.git_dir, "main"), expected=base)
    store, index = tmp_path / "state", {"GIT_INDEX_FILE": str(tmp_path / "index")}
    (store / "pack").mkdir(parents=True)
    env = {"GIT_OBJECT_DIRECTORY": str(store), "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(grounds.hub.objects), **index}
    agent.git("read-tree", base, env=env)
    agent.git("-c", "filter.turn.clean=cat", "add", "-A", env=env)
    tree = agent.git("write-tree", env=env)
    assert passes_a_filter_by(grounds.hub, store, tree, base=base) == (rule != "none")


def test_a_filter_that_is_not_defined_stores_nothing(filtered: Grounds):
    filtered.person.git("config", "--remove-section", "filter.turn")
    agent = filtered.agent()
    assert (agent.path / "a.key").read_bytes() == STORED
    agent.write("b.key", SECRET)
    agent.write("plain", "1\n")
    saved = filtered.save()
    assert saved.unreadable == ("b.key",)
    assert filtered.hub.read_file(saved.commit, "plain") == b"1\n"
    assert filtered.hub.read_file(saved.commit, "b.key") is None


def test_a_filter_that_fails_for_one_file_costs_no_other(filtered: Grounds):
    filtered.person.git("config", "filter.turn.clean", f"{TURN} | grep -v refuse")
    agent = filtered.agent()
    agent.write("a.key", "ershfr\n")
    agent.write("b.key", SECRET)
    saved = filtered.save()
    assert saved.unreadable == ("a.key",)
    assert [filtered.hub.read_file(saved.commit, path) for path in ("a.key", "b.key")] == [STORED] * 2


def test_what_the_agents_own_git_wrote_is_not_filtered_twice(filtered: Grounds):
    agent = filtered.agent()
    agent.write("plain", "1\n")
    (agent.path / "a.key").unlink()
    agent.git("checkout", "a.key")
    assert (agent.path / "a.key").read_bytes() == STORED
    saved = filtered.save()
    assert filtered.hub.read_file(saved.commit, "a.key") == STORED


def test_a_tree_follows_filters_that_come_and_go(filtered: Grounds, tmp_path: Path):
    first = filtered.hub.resolve(f"{filtered.target}~2")
    assert first is not None
    without = change(Hub(filtered.hub.path), filtered.target, {".gitattributes": "# none\n"}, tmp_path)
    tree = Tree(filtered.hub, tmp_path / "tree", tmp_path / "index")
    tree.path.mkdir()
    seen = []
    for commit in (filtered.target, without, filtered.target, first):
        tree.show(commit)
        file = tree.path / "a.key"
        seen.append(file.read_bytes() if file.exists() else b"")
    assert seen == [SECRET.encode(), STORED, SECRET.encode(), b""]


def test_a_look_at_open_work_keeps_plain_text_out_of_its_store(filtered: Grounds, tmp_path: Path):
    agent = filtered.agent()
    agent.write("b.key", SECRET)
    change = OpenChange(id=1, base=filtered.target, tree=live(filtered.hub, agent.path))
    looked = Prediction(filtered.hub, tmp_path / "prediction")
    assert looked.tree(change) == filtered.save().tree


def test_no_index_is_kept_that_a_filter_could_have_written(filtered: Grounds, tmp_path: Path):
    agent = filtered.agent()
    agent.write("new.txt", "x\n")
    index = tmp_path / "look/index"
    with look(live(filtered.hub, agent.path), index, parent=filtered.target):
        pass
    assert not index.exists()


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_large_files_travel_through_lfs(person: Person, tmp_path: Path):
    person.git("lfs", "install", "--local")
    person.commit({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": b"\0a" * 5000})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    agent = grounds.agent()
    assert (agent.path / "a.bin").read_bytes() == b"\0a" * 5000
    agent.write("b.bin", b"\0b" * 5000)
    saved = grounds.save()
    stored = grounds.hub.read_file(saved.commit, "b.bin")
    assert stored is not None
    assert stored.startswith(b"version https://git-lfs")
    collect(person.path, "main", grounds.hub, saved.commit)
    assert (person.path / "b.bin").read_bytes() == b"\0b" * 5000
    assert person.git("status", "--porcelain") == ""


@pytest.mark.skipif(shutil.which("git-crypt") is None, reason="git-crypt is not installed")
def test_no_text_that_git_crypt_hides_is_in_the_hub(person: Person, tmp_path: Path):
    person.git("crypt", "init")
    person.commit({".gitattributes": "*.key filter=git-crypt diff=git-crypt\n", "a.key": SECRET})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    agent = grounds.agent()
    assert (agent.path / "a.key").read_text() == SECRET
    agent.write("b.key", "password=2\n")
    saved = grounds.save()
    stored = grounds.hub.read_file(saved.commit, "b.key")
    assert stored is not None
    assert stored.startswith(b"\0GITCRYPT\0")
    collect(person.path, "main", grounds.hub, saved.commit)
    assert (person.path / "b.key").read_text() == "password=2\n"


ODD = (
    "*.key secret\n[attr]secret filter=turn\n",
    f"*.key filter=turn {'x' * 2100}\n",
    "*.key filter=turn\n!a.key -filter\n",
    '"\\141.key" filter=turn\n',
    "a.key filter=turn\na.key filter\n",
    "**/a.key filter=turn\na.key !filter\n",
    "\\a.[k]ey filter=turn # comment\n",
    "a.key/ filter=turn\n",
    "[attr]filter turn\n*.key filter=turn\n",
)


@pytest.mark.parametrize("attributes", ODD, ids=range(len(ODD)))
def test_a_file_is_stored_as_the_persons_own_git_stores_it(person: Person, tmp_path: Path, attributes: str):
    """Also once an agent removed the rules: git itself says what they are."""
    define(person)
    person.commit({".gitattributes": attributes})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    agent = grounds.agent()
    agent.write(".gitattributes", "# none\n")
    agent.write("a.key", SECRET)
    person.write("a.key", SECRET)
    theirs = person.git("cat-file", "blob", person.git("hash-object", "-w", "--path=a.key", "a.key"))
    assert grounds.hub.read_file(grounds.save().commit, "a.key") == f"{theirs}\n".encode()


def test_a_name_that_is_too_long_for_a_rule_is_not_stored_without_its_filter(filtered: Grounds):
    agent = filtered.agent()
    agent.write(".gitattributes", "# none\n")
    long = "/".join(["x" * 200] * 11) + "/b.key"
    agent.write(long, SECRET)
    saved = filtered.save()
    assert filtered.hub.read_file(saved.commit, long) is None
    assert not filtered.hub.has(agent.git("hash-object", "--no-filters", long))


@pytest.mark.parametrize("leaves", ["the target", "the agent's tree"])
def test_readings_around_setup_keep_plain_text_out_of_the_hub(filtered: Grounds, tmp_path: Path, leaves: str):
    """The target has left the filter while an older ticket works, or its agent takes the rules away."""
    agent, base, commit = filtered.agent(), filtered.target, filtered.target
    if leaves == "the target":
        gone = dict.fromkeys((".gitattributes", "sub/.gitattributes"), "# none\n")
        commit = change(Hub(filtered.hub.path), base, gone, tmp_path)
    else:
        agent.write(".gitattributes", "# none\n")
    agent.write("b.key", SECRET)
    tree, index = live(filtered.hub, agent.path), tmp_path / "index"
    known = filtered.worktrees.index("1")
    found = setup_changes.before(tree, commit, base=base, known=known, index=index)
    agent.write("a.key", "password=2\n")
    _, edits = setup_changes.after(tree, commit, found.state, index, base=base)
    assert [edit.path for edit in edits] == ["a.key"]
    for path in ("a.key", "b.key"):
        assert not filtered.hub.has(agent.git("hash-object", "--no-filters", path))


def test_readings_around_setup_use_a_filter_that_the_agent_added(grounds: Grounds, tmp_path: Path):
    define(grounds.person)
    agent = with_source(grounds).agent()
    agent.write(".gitattributes", "*.key filter=turn\n")
    agent.write("b.key", SECRET)
    tree, known = live(grounds.hub, agent.path), grounds.worktrees.index("1")
    setup_changes.before(tree, grounds.target, known=known, index=tmp_path / "index")
    assert not grounds.hub.has(agent.git("hash-object", "--no-filters", "b.key"))


def program(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


def test_a_program_reads_its_own_settings_and_its_folder_beside_the_repository(person: Person, tmp_path: Path):
    own = program(tmp_path / "tools" / "crypt2", 'cat > /dev/null; git config crypt2.word; cat "$GIT_DIR/keys2/one"')
    define(person)
    person.git("config", "filter.turn.clean", f"{own} --keys=keys2")
    person.git("config", "crypt2.word", "the word")
    person.git("config", "other.word", "hidden")
    (person.git_dir / "keys2").mkdir()
    (person.git_dir / "keys2" / "one").write_text("the key\n")
    person.commit({".gitattributes": "*.key filter=turn\n"})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    grounds.agent().write("b.key", SECRET)
    assert grounds.hub.read_file(grounds.save().commit, "b.key") == b"the word\nthe key\n"
    filters = grounds.hub.filters(grounds.target)
    assert filters is not None
    assert "other.word" not in filters.settings


@pytest.mark.parametrize("word", ["--key={}", "file:{}", "a,{}"])
def test_a_file_that_a_word_of_the_command_names_is_shown(person: Person, tmp_path: Path, word: str):
    key = tmp_path / "elsewhere" / "key"
    key.parent.mkdir()
    key.write_text("key\n")
    define(person)
    person.git("config", "filter.turn.clean", f"tr a-zA-Z n-za-mN-ZA-M {word.format(key)}")
    person.commit({".gitattributes": "*.x filter=turn\n"})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    filters = grounds.hub.filters(grounds.target)
    assert filters is not None
    assert filters.readable == (key,)


@pytest.mark.parametrize(
    ("part", "command", "fault"),
    [
        ("clean", TURN, ""),
        ("clean", "cat", "is not what is stored"),
        ("smudge", "false", "it fails on a.key"),
        ("clean", "no-such-program", "it fails on a.key"),
    ],
)
def test_a_filter_is_tried_there_and_back(filtered: Grounds, part: str, command: str, fault: str):
    filtered.person.git("config", f"filter.turn.{part}", command)
    filters = filtered.hub.filters(filtered.target)
    assert filters is not None
    faults = tried(filtered.hub, filters, filtered.target)
    assert fault in faults.get("turn", "")
    assert bool(faults) is bool(fault)


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 3\n"


def test_files_whose_content_is_with_lfs_are_found_in_a_change(filtered: Grounds, tmp_path: Path):
    before = filtered.target
    files = {"b.bin": POINTER, "c.bin": "plain\n", ".gitattributes": "*.bin filter=lfs\n"}
    person = filtered.person
    person.git("config", "filter.lfs.clean", "cat")
    head = change(Hub(filtered.hub.path), before, files, tmp_path)
    assert lfs_files(filtered.hub, before, head) == ("b.bin",)
    assert lfs_files(filtered.hub, head, head) == ()


def test_an_offered_branch_brings_the_content_of_lfs_along(filtered: Grounds, tmp_path: Path):
    content = b"abc"
    id = hashlib.sha256(content).hexdigest()
    store = filtered.hub.path / "lfs/objects" / id[:2] / id[2:4]
    store.mkdir(parents=True)
    (store / id).write_bytes(content)
    head = change(Hub(filtered.hub.path), filtered.target, {"b.bin": POINTER.replace("a" * 64, id)}, tmp_path)
    offer(filtered.person.path, filtered.hub, head, "legion/1-large")
    assert (filtered.person.git_dir / "lfs/objects" / id[:2] / id[2:4] / id).read_bytes() == content
