"""Filters whose code an agent writes: nothing outside the sandbox changes, and no text goes around a filter."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.git.core.errors import GitProblem
from legion.git.hub.incoming import agent_commits
from legion.git.hub.repository import Hub
from legion.git.merge.prediction import OpenChange, Prediction
from legion.git.trees.check_trees import CheckTrees
from tests.git.making import Grounds, Person, change, in_tree
from tests.git.test_filters import SECRET, STORED, define, with_source
from tests.support.live_trees import live

LINKS = """\
import os, sys
for name in {names!r}:
    place = os.path.join(os.environ["GIT_DIR"], name)
    try:
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink({victim!r}, place)
    except OSError:
        pass
sys.stdout.write(sys.stdin.read())
"""
FORGES = """\
import os, sys
for name, text in {
    "config": '[filter "forge"]\\n\\tsmudge = echo forged\\n\\tclean = cat\\n',
    "info/attributes": "test_*.py filter=forge\\n",
}.items():
    try:
        with open(os.path.join(os.environ["GIT_DIR"], name), "a") as file:
            file.write(text)
    except OSError:
        pass
sys.stdout.write(sys.stdin.read())
"""
HONEST = "import sys; sys.stdout.write(sys.stdin.read())\n"


@pytest.fixture
def hostile(person: Person, tmp_path: Path) -> Grounds:
    """A project with a filter whose program runs a script of the tree: no word of its command tells."""
    return with_source(Grounds(tmp_path / "legion", scripted(person, tmp_path)))


def scripted(person: Person, tmp_path: Path, files: dict[str, str] | None = None) -> Person:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nexec /usr/bin/python3 "$PWD/script.py"\n')
    program.chmod(0o755)
    person.git("config", "filter.nb.clean", str(program))
    person.git("config", "filter.nb.smudge", "cat")
    person.path.joinpath("script.py").write_text(HONEST)
    settings = {".gitattributes": "*.ipynb filter=nb\n", "a.ipynb": "{}\n", "script.py": HONEST}
    program.write_text(program.read_text().replace("$PWD/script.py", str(person.path / "script.py")))
    person.commit({**settings, **(files or {})})
    program.write_text('#!/bin/sh\nexec /usr/bin/python3 "$PWD/script.py"\n')
    return person


def saved(grounds: Grounds, agent: Person) -> None:
    grounds.save()


def predicted(grounds: Grounds, agent: Person) -> None:
    looked = Prediction(grounds.hub, grounds.folder / "look")
    for number in range(2):
        agent.write("a.ipynb", f"{{{number}}}\n")
        looked.tree(OpenChange(id=1, base=grounds.target, commit="", tree=live(grounds.hub, agent.path)))


@pytest.mark.parametrize(
    ("read", "names"),
    [
        (saved, ["info/attributes", "in-1", "in-2", "out/1", "out/2", "state/index", "index"]),
        (saved, ["in-1"]),
        (predicted, ["config"]),
    ],
)
def test_no_file_of_ours_is_written_through_a_link_of_a_filter(
    hostile: Grounds, tmp_path: Path, read: Callable[[Grounds, Person], None], names: list[str]
):
    victim = tmp_path / "victim"
    victim.write_text("# mine\n")
    agent = hostile.agent()
    agent.write("script.py", LINKS.format(victim=str(victim), names=names))
    agent.write("a.ipynb", "{1}\n")
    agent.write(".gitattributes", '*.ipynb filter=nb\n"$(touch pwned)" filter=nb\n')
    with contextlib.suppress(GitProblem):
        read(hostile, agent)
    assert victim.read_text() == "# mine\n"


def test_the_check_of_one_change_does_not_forge_the_tree_of_the_next(person: Person, tmp_path: Path):
    grounds = with_source(Grounds(tmp_path / "legion", scripted(person, tmp_path, {"test_x.py": "first\n"})))
    second = change(Hub(grounds.hub.path), grounds.target, {"test_x.py": "second\n"}, tmp_path)
    trees = CheckTrees(grounds.hub, tmp_path / "checks", grounds.side)
    place = trees.prepare("one", grounds.target, keep=["kept"])
    (place / "script.py").write_text(FORGES)
    (place / "a.ipynb").write_text("{ }")
    (place / "kept").write_text("of setup\n")
    place = trees.prepare("one", second, keep=["kept"])
    assert (place / "test_x.py").read_text() == "second\n"
    assert (place / "script.py").read_text() == HONEST
    assert (place / "kept").read_text() == "of setup\n"


def test_no_other_filter_sees_the_key_of_git_crypt(hostile: Grounds):
    keys = hostile.person.git_dir / "git-crypt" / "keys"
    keys.mkdir(parents=True)
    (keys / "default").write_text("MASTER KEY")
    agent = hostile.agent()
    places = [str(keys / "default"), "git-crypt/keys/default"]
    agent.write(
        "script.py",
        f"import os\nfor place in {places!r}:\n    try:\n"
        "        print(open(os.path.join(os.environ['GIT_DIR'], place)).read())\n"
        "    except OSError:\n        print('hidden')\n",
    )
    agent.write("a.ipynb", "{1}\n")
    shot = hostile.save()
    assert hostile.hub.read_file(shot.commit, "a.ipynb") == b"hidden\nhidden\n"


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_no_filter_exchanges_what_lfs_stored(person: Person, tmp_path: Path):
    data = "real data\n" * 10
    id = hashlib.sha256(data.encode()).hexdigest()
    person.git("lfs", "install", "--local")
    rules = "*.ipynb filter=nb\n*.bin filter=lfs\n"
    grounds = with_source(
        Grounds(tmp_path / "legion", scripted(person, tmp_path, {".gitattributes": rules, "x.bin": data}))
    )
    agent = grounds.agent()
    assert (agent.path / "x.bin").read_text() == data
    agent.write(
        "script.py",
        "import os, subprocess, sys\n"
        "asked = subprocess.run(['git', 'config', 'lfs.storage'], capture_output=True, text=True)\n"
        f"for store in (asked.stdout.strip(), {str(grounds.hub.path / 'lfs')!r}):\n"
        f"    place = os.path.join(store, 'objects/{id[:2]}/{id[2:4]}/{id}')\n"
        "    try:\n"
        "        os.makedirs(os.path.dirname(place), exist_ok=True)\n"
        "        if os.path.lexists(place):\n            os.unlink(place)\n"
        "        open(place, 'w').write('evil data\\n' * 10)\n"
        "    except OSError:\n        pass\n"
        "sys.stdout.write(sys.stdin.read())\n",
    )
    agent.write("a.ipynb", "{1}\n")
    assert grounds.save().changed
    check = CheckTrees(grounds.hub, tmp_path / "checks", grounds.side).prepare("one", grounds.target)
    assert (check / "x.bin").read_text() == data


@pytest.mark.parametrize(
    ("attributes", "path"),
    [
        ("*.key secret\n[attr]secret filter=turn\n", "b.key"),
        ("*.key outer\n[attr]outer inner\n[attr]inner filter=turn\n", "b.key"),
        ('"\\303\\244.key" filter=turn\n', "ä.key"),
    ],
)
def test_rules_count_as_git_reads_them_also_once_an_agent_removed_them(
    person: Person, tmp_path: Path, attributes: str, path: str
):
    define(person)
    person.commit({".gitattributes": attributes})
    grounds = with_source(Grounds(tmp_path / "legion", person))
    agent = grounds.agent()
    agent.write(".gitattributes", "# none\n")
    agent.write(path, SECRET)
    assert grounds.hub.read_file(grounds.save().commit, path) == STORED


def test_the_persons_attributes_for_all_repositories_count(person: Person, tmp_path: Path):
    everywhere = tmp_path / "attributes"
    everywhere.write_text("*.key filter=turn\n")
    define(person)
    person.git("config", "core.attributesFile", str(everywhere))
    grounds = with_source(Grounds(tmp_path / "legion", person))
    grounds.agent().write("b.key", SECRET)
    assert grounds.hub.read_file(grounds.save().commit, "b.key") == STORED


@pytest.mark.parametrize(
    "parts",
    [
        {"smudge": "cat"},
        {"smudge": "cat", "required": "true"},
        {"process": "false"},
        {"process": "false", "required": "true"},
        {"clean": "false"},
        {"clean": "/usr/bin/python3 -m turn", "smudge": "cat"},
        {"clean": "./turn", "smudge": "cat"},
    ],
)
def test_a_filter_that_is_half_defined_or_refused_stores_nothing(person: Person, tmp_path: Path, parts: dict[str, str]):
    person.commit({".gitattributes": "*.key filter=turn\n"})
    for part, value in parts.items():
        person.git("config", f"filter.turn.{part}", value)
    grounds = with_source(Grounds(tmp_path / "legion", person))
    agent = grounds.agent()
    agent.write("turn.py", HONEST)
    agent.write("b.key", SECRET)
    agent.write("plain", "1\n")
    shot = grounds.save()
    assert shot.unreadable == ("b.key",)
    assert grounds.hub.read_file(shot.commit, "b.key") is None
    assert grounds.hub.read_file(shot.commit, "plain") == b"1\n"


def test_own_commits_that_add_the_first_filter_stay_in_the_agents_repository(grounds: Grounds):
    define(grounds.person)
    agent = with_source(grounds).agent()
    agent.write("b.key", SECRET)
    agent.write(".gitattributes", "*.key filter=turn\n")
    agent.git("add", "-A")
    agent.git("commit", "-q", "-m", "plain in the agent's own repository")
    run = in_tree(agent.path)
    assert agent_commits(grounds.hub, base=grounds.target, run_sandboxed=run, work_tree=agent.path) is None
    assert not grounds.hub.has(agent.git("hash-object", "--no-filters", "b.key"))
    assert grounds.hub.read_file(grounds.save().commit, "b.key") == STORED
