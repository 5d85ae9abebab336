"""A snapshot holds what the agent left, runs nothing of it, and can be repeated."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from legion.git.core.errors import TreeGone
from legion.git.trees.unsaved import kept_out, unsaved
from legion.system import trees
from legion.system.crash import Point
from legion.system.process import run
from tests.git.making import Grounds, Person, as_user, dies_at, photograph, program, save
from tests.support.attacks import Attacker, Door, attack
from tests.support.live_trees import live
from tests.system.test_trees import nest

# Filters, hooks, monitors, converters: everything by which a repository can name a program.
DRIVERS = """\
[core]
\tbare = false
\tfsmonitor = {evil}
\thooksPath = {hooks}
\tsshCommand = {evil}
\tattributesFile = {attributes}
\tworktree = {tree}
[filter "x"]
\tclean = {evil}
\tsmudge = {evil}
\tprocess = {evil}
\trequired = true
[diff "x"]
\ttextconv = {evil}
\tcommand = {evil}
[merge "x"]
\tdriver = {evil}
"""


def test_changed_new_and_deleted_files_are_saved_committed_or_not(grounds: Grounds):
    agent = grounds.agent()
    agent.commit({"committed.txt": "1\n"})
    agent.write("README.md", "changed\n")
    agent.write("new.txt", "new\n")
    (agent.path / "run.sh").unlink()
    saved = grounds.save()
    assert saved.changed
    expected = [".gitignore", "README.md", "committed.txt", "new.txt", "src/app.py", "src/lib.py"]
    assert grounds.names_in(saved.tree) == expected
    assert grounds.hub.read_file(saved.commit, "README.md") == b"changed\n"
    assert [commit.commit for commit in grounds.hub.commits_between(grounds.target, saved.commit)] == [saved.commit]


def test_an_untouched_tree_gives_the_parent(grounds: Grounds):
    grounds.agent()
    saved = grounds.save()
    assert (saved.commit, saved.changed) == (grounds.target, False)


def test_the_same_tree_gives_the_same_commit_with_a_warm_index_and_without(grounds: Grounds):
    agent = grounds.agent()
    agent.write("a", "1\n")
    first = grounds.save()
    second = grounds.save()
    grounds.worktrees.index("1").unlink()
    third = grounds.save()
    assert first == second == third


def test_an_index_of_an_earlier_snapshot_does_not_decide_what_is_tracked(grounds: Grounds):
    agent = grounds.agent()
    agent.write("made.tmp", "1\n")
    grounds.save()
    agent.write(".gitignore", "*.tmp\n")
    warm = grounds.save()
    grounds.worktrees.index("1").unlink()
    assert grounds.save() == warm
    assert "made.tmp" not in grounds.names_in(warm.tree)


def test_a_file_that_the_agent_committed_though_ignored_stays_in(grounds: Grounds):
    agent = grounds.agent()
    agent.write("forced.log", "kept\n")
    agent.git("add", "-f", "forced.log")
    agent.git("commit", "-q", "-m", "forced")
    grounds.hub._git("fetch", "-q", str(agent.path), "HEAD")
    agent.write("b", "2\n")
    saved = grounds.save(parent=agent.head)
    assert "forced.log" in grounds.names_in(saved.tree)


def test_a_change_of_the_same_size_at_the_same_moment_is_seen(grounds: Grounds):
    agent = grounds.agent()
    file = agent.write("a", "1111\n")
    for content in ("2222\n", "3333\n", "4444\n", "5555\n"):
        file.write_text(content)
        saved = grounds.save()
        assert grounds.hub.read_file(saved.commit, "a") == content.encode()


def test_ignored_files_stay_on_disk_and_out_of_the_commit(grounds: Grounds):
    agent = grounds.agent()
    agent.write("debug.log", "secret\n")
    agent.write("build/out", "1")
    saved = grounds.save()
    assert not saved.changed
    assert (agent.path / "debug.log").read_text() == "secret\n"


def test_a_tree_that_ignores_everything_keeps_its_tracked_files(grounds: Grounds):
    agent = grounds.agent()
    agent.write(".gitignore", "*\n")
    agent.write("new", "1\n")
    agent.write("README.md", "changed\n")
    saved = grounds.save()
    assert grounds.names_in(saved.tree) == [".gitignore", "README.md", "run.sh", "src/app.py", "src/lib.py"]
    assert grounds.hub.read_file(saved.commit, "README.md") == b"changed\n"


class TestNestedRepositories:
    def test_one_with_commits_is_reported_and_stays_on_disk_only(self, grounds: Grounds):
        agent = grounds.agent()
        nested = Person.with_repository(agent.path / "vendor/thing")
        nested.commit({"inner": "1\n"})
        agent.write("outer", "1\n")
        saved = grounds.save()
        assert saved.nested == ("vendor/thing",)
        assert "outer" in grounds.names_in(saved.tree)
        assert not any(name.startswith("vendor") for name in grounds.names_in(saved.tree))
        assert (nested.path / "inner").exists()
        assert (nested.path / ".git").is_dir()

    def test_one_without_commits_does_not_stop_the_rest(self, grounds: Grounds):
        agent = grounds.agent()
        Person.with_repository(agent.path / "nested").write("inner", "1\n")
        agent.write("outer", "1\n")
        (agent.path / "run.sh").unlink()
        saved = grounds.save()
        assert saved.nested == ("nested",)
        assert "outer" in grounds.names_in(saved.tree)
        assert "run.sh" not in grounds.names_in(saved.tree)

    def test_a_tree_with_nothing_but_a_nested_repository_is_unchanged(self, grounds: Grounds):
        agent = grounds.agent()
        Person.with_repository(agent.path / "nested").commit({"inner": "1\n"})
        saved = grounds.save()
        assert (saved.changed, saved.tree) == (False, grounds.hub.tree_of(grounds.target))

    def test_a_repository_planted_in_a_tracked_folder_hides_nothing(self, grounds: Grounds):
        agent = grounds.agent()
        Person.with_repository(agent.path / "src")
        agent.write("src/app.py", "changed\n")
        agent.write("src/new.py", "new\n")
        saved = grounds.save()
        assert grounds.hub.read_file(saved.commit, "src/app.py") == b"changed\n"
        assert grounds.hub.read_file(saved.commit, "src/new.py") == b"new\n"

    def test_one_in_the_place_of_a_tracked_file_deletes_that_file(self, grounds: Grounds):
        agent = grounds.agent()
        (agent.path / "run.sh").unlink()
        Person.with_repository(agent.path / "run.sh").commit({"inner": "1\n"})
        saved = grounds.save()
        assert (saved.nested, saved.changed) == (("run.sh",), True)
        assert "run.sh" not in grounds.names_in(saved.tree)


@pytest.mark.parametrize("deed", ["leave", "fill", "remove", "replace", "move on"])
def test_submodules_stay_as_they_were(person: Person, tmp_path: Path, deed: str):
    library = Person.with_repository(tmp_path / "library")
    pinned = library.commit({"lib": "1\n"})
    person.git("update-index", "--add", "--cacheinfo", f"160000,{pinned},lib")
    person.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ../library\n')
    person.git("add", ".gitmodules")
    person.git("commit", "-q", "-m", "submodule")
    grounds = Grounds(tmp_path / "legion", person)
    agent = grounds.agent()
    lib = agent.path / "lib"
    if deed == "fill":
        (lib / "file").write_text("1\n")
    elif deed == "remove":
        lib.rmdir()
    elif deed == "replace":
        lib.rmdir()
        lib.write_text("a file\n")
    elif deed == "move on":
        Person.with_repository(lib).commit({"lib": "2\n"})
    agent.write("other", "1\n")
    saved = grounds.save()
    assert grounds.hub._git("ls-tree", saved.tree, "lib").text.split()[:3] == ["160000", "commit", pinned]
    assert saved.submodules == (() if deed == "leave" else ("lib",)), "what was done to it is named"
    assert "other" in grounds.names_in(saved.tree)


@pytest.mark.parametrize("fate", ["removed", "file", "symlink", "broken"])
def test_whatever_became_of_the_agents_git_folder_its_files_are_saved(grounds: Grounds, tmp_path: Path, fate: str):
    agent = grounds.agent()
    shutil.rmtree(agent.path / ".git")
    other = Person.with_repository(tmp_path / "other")
    if fate == "file":
        (agent.path / ".git").write_text(f"gitdir: {other.git_dir}\n")
    elif fate == "symlink":
        (agent.path / ".git").symlink_to(other.git_dir)
    elif fate == "broken":
        (agent.path / ".git").write_bytes(b"\xff" * 100)
    agent.write("a", "1\n")
    before = photograph(other.path)
    saved = grounds.save()
    assert "a" in grounds.names_in(saved.tree)
    assert photograph(other.path) == before


def test_nothing_that_the_agent_planted_runs(grounds: Grounds, tmp_path: Path):
    proof = tmp_path / "proof"
    evil = program(tmp_path / "evil", proof)
    agent = grounds.agent()
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        program(hooks / hook, proof)
        program(agent.path / ".git/hooks" / hook, proof)
    (tmp_path / "attributes").write_text("* filter=x diff=x merge=x\n")
    config = DRIVERS.format(evil=evil, hooks=hooks, attributes=tmp_path / "attributes", tree=agent.path)
    (agent.path / ".git/config").write_text(config)
    agent.write(".gitattributes", "* filter=x diff=x merge=x ident\n")
    agent.write(".gitconfig", config)
    agent.write("README.md", "changed\n")
    agent.write("new", "1\n")
    saved = grounds.save()
    grounds.hub.diff(grounds.target, saved.commit)
    grounds.hub.changed_files(grounds.target, saved.commit)
    assert grounds.hub.read_file(saved.commit, "new") == b"1\n"
    assert not proof.exists()


@pytest.mark.parametrize("way", ["gitfile", "commondir"])
def test_a_git_folder_that_points_elsewhere_does_not_lead_us_there(grounds: Grounds, tmp_path: Path, way: str):
    proof = tmp_path / "proof"
    other = Person.with_repository(tmp_path / "other")
    other.git("config", "filter.x.clean", str(program(tmp_path / "evil", proof)))
    agent = grounds.agent()
    if way == "gitfile":
        shutil.rmtree(agent.path / ".git")
        (agent.path / ".git").write_text(f"gitdir: {other.git_dir}\n")
    else:
        (agent.path / ".git/commondir").write_text(f"{other.git_dir}\n")
    agent.write(".gitattributes", "* filter=x\n")
    agent.write("README.md", "changed\n")
    grounds.save()
    assert not proof.exists()


def test_hiding_marks_in_the_agents_index_hide_nothing(grounds: Grounds):
    agent = grounds.agent()
    agent.git("update-index", "--skip-worktree", "README.md")
    agent.git("update-index", "--assume-unchanged", "src/app.py")
    agent.write("README.md", "hidden\n")
    agent.write("src/app.py", "hidden too\n")
    saved = grounds.save()
    assert grounds.hub.read_file(saved.commit, "README.md") == b"hidden\n"
    assert grounds.hub.read_file(saved.commit, "src/app.py") == b"hidden too\n"


@pytest.mark.parametrize(
    "name", ["line\nbreak", "-dash", "--all", ":(exclude)x", "*", "é", os.fsdecode(b"caf\xe9"), " "]
)
def test_odd_names_are_saved_as_they_are(grounds: Grounds, name: str):
    agent = grounds.agent()
    agent.write(name, "odd\n")
    assert name in grounds.names_in(grounds.save().tree)


def test_executable_bits_and_links_are_saved_and_links_never_followed(grounds: Grounds, tmp_path: Path):
    (tmp_path / "secret").write_text("secret\n")
    agent = grounds.agent()
    (agent.path / "run.sh").chmod(0o755)
    (agent.path / "out").symlink_to(tmp_path / "secret")
    (agent.path / "dangling").symlink_to("nowhere")
    saved = grounds.save()
    listed = grounds.hub._git("ls-tree", "-r", saved.tree).text.splitlines()
    modes = {line.split("\t")[1]: line.split()[0] for line in listed}
    assert (modes["run.sh"], modes["out"], modes["dangling"]) == ("100755", "120000", "120000")
    assert grounds.hub._git("cat-file", "blob", f"{saved.tree}:out").text == str(tmp_path / "secret")


def test_a_tracked_folder_that_became_a_link_is_saved_as_a_link(grounds: Grounds, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("not yours\n")
    agent = grounds.agent()
    shutil.rmtree(agent.path / "src")
    (agent.path / "src").symlink_to(outside)
    saved = grounds.save()
    assert [name for name in grounds.names_in(saved.tree) if name.startswith("src")] == ["src"]


def test_pipes_and_sockets_are_passed_over(grounds: Grounds):
    agent = grounds.agent()
    os.mkfifo(agent.path / "pipe")
    folder = os.open(agent.path, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as door:
        # Short, wherever the tests are.
        door.bind(f"/proc/self/fd/{folder}/door")
        os.close(folder)
        agent.write("a", "1\n")
        saved = grounds.save()
    assert {"pipe", "door"}.isdisjoint(grounds.names_in(saved.tree))
    assert "a" in grounds.names_in(saved.tree)


def test_a_file_of_any_size_is_left_out_and_named(grounds: Grounds):
    agent = grounds.agent()
    agent.write("new.txt", "new\n")
    huge = ("src/app.py", "src/[a]*\n", ":(top)x", "ignored.log")
    for name in huge:
        agent.path.joinpath(name).touch()
        # It takes no room on the disk, and git would read it for weeks.
        os.truncate(agent.path / name, 1 << 42)
    saved = grounds.save()
    assert saved.large == tuple(sorted(huge[:3]))
    assert saved.unreadable == ()
    assert "new.txt" in grounds.names_in(saved.tree)
    assert {*huge[1:]}.isdisjoint(grounds.names_in(saved.tree))
    assert grounds.hub.read_file(saved.commit, "src/app.py") == grounds.hub.read_file(grounds.target, "src/app.py")


def test_a_link_above_what_setup_made_says_nothing_about_the_rest(grounds: Grounds):
    agent = grounds.agent()
    (grounds.hub.path / "info").mkdir(exist_ok=True)
    (grounds.hub.path / "info/exclude").write_text("/made\n/gone/made\n")
    agent.write("made", "1")
    (agent.path / "gone").symlink_to("/")
    assert kept_out(live(grounds.hub, agent.path), ["gone/made", "made"]) == ("made",)


@attack(Attacker.AGENT, Door.TREES)
@pytest.mark.parametrize(
    "name", [".gitignore", ".gitattributes", ".gitmodules", "src/.gitignore", "nested/.git/HEAD", "nested/.git"]
)
def test_a_pipe_in_the_place_of_a_file_that_git_opens_is_no_obstacle(grounds: Grounds, name: str):
    agent = grounds.agent()
    agent.write(name, "")
    (agent.path / name).unlink()
    os.mkfifo(agent.path / name)
    agent.write("new.txt", "1\n")
    saved = grounds.save(timeout=20)
    assert "new.txt" in grounds.names_in(saved.tree)
    assert not os.path.lexists(agent.path / name), "git would wait for it for ever"
    assert [entry.name for entry in grounds.worktrees.index("1").parent.iterdir()] == ["1.index"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_file_that_cannot_be_read_is_reported_and_the_rest_is_saved(person: Person):
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        grounds = Grounds(Path(folder) / "legion", person)
        agent = grounds.agent()
        agent.write("locked", "1\n").chmod(0)
        agent.write("open", "1\n")
        run(("chown", "-R", str(nobody), folder))
        said = as_user(nobody, lambda: " ".join((grounds.save().tree, *grounds.save().unreadable)))
        tree, *unreadable = said.split()
        assert unreadable == ["locked"]
        assert grounds.hub.read_file(tree, "open") == b"1\n"


def test_a_huge_file_is_saved_whole(grounds: Grounds):
    agent = grounds.agent()
    with (agent.path / "huge").open("wb") as file:
        file.truncate(80 * 1024 * 1024)
        file.write(b"end")
    saved = grounds.save()
    size = grounds.hub._git("cat-file", "-s", f"{saved.tree}:huge").text
    assert int(size) == 80 * 1024 * 1024
    assert grounds.hub.changed_files(grounds.target, saved.commit)[0].additions is None


def test_a_tree_that_is_gone_or_a_link_is_refused(grounds: Grounds, tmp_path: Path):
    agent = grounds.agent()
    elsewhere = agent.path.rename(tmp_path / "elsewhere")
    with pytest.raises(TreeGone, match="not a folder any more"):
        grounds.save()
    agent.path.symlink_to(elsewhere)
    with pytest.raises(TreeGone):
        grounds.save()


def test_a_message_may_be_anything(grounds: Grounds):
    agent = grounds.agent()
    agent.write("a", "1\n")
    message = "--quotes ' \" \0 <b>\n" + "long " * 200_000 + "\N{ROCKET}"
    saved = save(grounds.hub, agent.path, grounds.worktrees.index("1"), parent=grounds.target, message=message)
    text = grounds.hub._git("cat-file", "commit", saved.commit).stdout
    assert text.endswith("\N{ROCKET}\n".encode())


@pytest.mark.parametrize("point", [Point.GIT_SNAPSHOT_BEFORE_COMMIT, Point.GIT_SNAPSHOT_AFTER_COMMIT])
def test_a_crash_in_a_snapshot_costs_nothing(grounds: Grounds, point: Point):
    agent = grounds.agent()
    agent.write("a", "1\n")
    assert dies_at(point, grounds.save)
    again = grounds.save()
    assert grounds.hub.read_file(again.commit, "a") == b"1\n"
    assert grounds.save() == again


def test_what_git_leaves_out_without_a_message_is_named_with_its_kind(grounds: Grounds):
    agent = grounds.agent()
    os.mkfifo(agent.path / "pipe")
    os.mkfifo(agent.path / "ignored.log")
    (agent.path / "src" / "made").mkdir()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(agent.path / "src" / "socket"))
    os.mkfifo(agent.path / "src" / "made" / "pipe")
    nest(agent.path, 1000)
    agent.write("plain", "1\n")
    assert grounds.save().unreadable == ()
    found = unsaved(live(grounds.hub, agent.path), skip={".git", "src/made"})
    deep = next(path for path in found if path.startswith("deeper/"))
    assert len(deep) <= 120
    assert found == {deep: "a path that is too long", "pipe": "a named pipe", "src/socket": "a socket"}
    trees.remove(agent.path)


def test_a_tree_of_plain_files_has_nothing_to_name(grounds: Grounds):
    agent = grounds.agent()
    agent.write("new", "1\n")
    (agent.path / "link").symlink_to("missing")
    assert unsaved(live(grounds.hub, agent.path), skip={".git"}) == {}
