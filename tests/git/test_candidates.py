"""Candidates are built in memory, the same each time, with the attributes of the target and no foreign program."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.domain.landing.queue import LandingMode
from legion.git.hub.objects import write_commit
from legion.git.hub.repository import Hub
from legion.git.merge.candidates import MergeCandidate, MergeConflict, attribute_tree, merge, merge_person
from tests.git.conftest import LINES
from tests.git.making import AGENT, LEGION, WHEN, Grounds, Person, change, program
from tests.support.attacks import Attacker, Door, attack


def land(hub: Hub, target: str, proposal: str, mode: LandingMode = LandingMode.MERGE) -> MergeCandidate | MergeConflict:
    return merge(hub, target, proposal, mode=mode, message="Land it", author=AGENT, committer=LEGION, when=WHEN)


def candidate(hub: Hub, target: str, proposal: str, mode: LandingMode = LandingMode.MERGE) -> MergeCandidate:
    landed = land(hub, target, proposal, mode)
    assert isinstance(landed, MergeCandidate)
    return landed


def conflict(hub: Hub, target: str, proposal: str, mode: LandingMode = LandingMode.MERGE) -> MergeConflict:
    landed = land(hub, target, proposal, mode)
    assert isinstance(landed, MergeConflict)
    return landed


def edited(number: int, text: str) -> str:
    return LINES.replace(f"line {number}\n", f"{text}\n")


def parents(hub: Hub, commit: str) -> tuple[str, ...]:
    return tuple(hub._git("rev-parse", f"{commit}^@").text.split())


class TestModes:
    def test_a_merge_has_both_parents_also_where_a_fast_forward_would_do(self, grounds: Grounds, tmp_path: Path):
        proposal = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        landed = candidate(grounds.hub, grounds.target, proposal)
        assert parents(grounds.hub, landed.commit) == (grounds.target, proposal)
        assert landed.tree == grounds.hub.tree_of(proposal) == grounds.hub.tree_of(landed.commit)

    def test_a_squash_is_one_commit_on_the_target(self, grounds: Grounds, tmp_path: Path):
        one = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        two = change(grounds.hub, one, {"b": "2\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"c": "3\n"}, tmp_path)
        landed = candidate(grounds.hub, target, two, LandingMode.SQUASH)
        assert parents(grounds.hub, landed.commit) == (target,)
        assert {"a", "b", "c"} <= set(grounds.names_in(landed.tree))
        text = grounds.hub._git("cat-file", "commit", landed.commit).text
        assert f"author An Agent <agent@example.org> {WHEN} +0000" in text
        assert f"committer Legion <legion@example.org> {WHEN} +0000" in text

    def test_a_rebase_replays_each_commit_with_its_author(self, grounds: Grounds):
        agent = grounds.agent()
        first = agent.commit({"src/app.py": edited(2, "two")}, "first\n\nwith a body")
        agent.git("config", "i18n.commitEncoding", "ISO-8859-1")
        agent.git("-c", "user.name=J\udcf6rg", "commit", "--allow-empty", "-q", "-m", "empty")
        agent.write("src/app.py", edited(2, "two").replace("line 19\n", "nineteen\n"))
        agent.git("-c", "user.name=J\udcf6rg", "commit", "-qam", "second \udce9")
        grounds.hub._git("fetch", "-q", str(agent.path), "HEAD")
        target = change(grounds.hub, grounds.target, {"src/app.py": edited(10, "ten")}, grounds.folder)
        landed = candidate(grounds.hub, target, agent.head, LandingMode.REBASE)
        commits = grounds.hub.commits_between(target, landed.commit)
        assert [commit.subject for commit in commits] == ["first", "second é"]
        assert [commit.author for commit in commits] == ["Legion agent", "Jörg"]
        assert parents(grounds.hub, commits[0].commit) == (target,)
        expected = edited(2, "two").replace("line 10\n", "ten\n").replace("line 19\n", "nineteen\n")
        assert grounds.hub.read_file(landed.commit, "src/app.py") == expected.encode()
        assert first not in {commit.commit for commit in commits}

    def test_a_rebase_leaves_out_what_the_target_has_already(self, grounds: Grounds, tmp_path: Path):
        one = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        two = change(grounds.hub, one, {"b": "2\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path, "the same by somebody else")
        landed = candidate(grounds.hub, target, two, LandingMode.REBASE)
        assert len(grounds.hub.commits_between(target, landed.commit)) == 1

    def test_a_rebase_of_a_change_with_merges_is_one_commit(self, grounds: Grounds, tmp_path: Path):
        one = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        other = change(grounds.hub, grounds.target, {"b": "1\n"}, tmp_path)
        merged = candidate(grounds.hub, one, other).commit
        target = change(grounds.hub, grounds.target, {"c": "1\n"}, tmp_path)
        landed = candidate(grounds.hub, target, merged, LandingMode.REBASE)
        assert parents(grounds.hub, landed.commit) == (target,)
        assert {"a", "b", "c"} <= set(grounds.names_in(landed.tree))

    @pytest.mark.parametrize("mode", [LandingMode.SQUASH, LandingMode.REBASE])
    def test_a_change_that_adds_nothing_gives_the_target(self, grounds: Grounds, tmp_path: Path, mode: LandingMode):
        proposal = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"a": "1\n", "b": "1\n"}, tmp_path)
        assert candidate(grounds.hub, target, proposal, mode).commit == target

    @pytest.mark.parametrize("mode", list(LandingMode))
    def test_the_same_input_gives_the_same_commit(self, grounds: Grounds, tmp_path: Path, mode: LandingMode):
        proposal = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"b": "1\n"}, tmp_path)
        assert land(grounds.hub, target, proposal, mode) == land(grounds.hub, target, proposal, mode)

    @pytest.mark.parametrize("mode", list(LandingMode))
    def test_all_modes_give_the_same_files(self, grounds: Grounds, tmp_path: Path, mode: LandingMode):
        one = change(grounds.hub, grounds.target, {"src/app.py": edited(2, "two")}, tmp_path)
        two = change(grounds.hub, one, {"src/lib.py": edited(3, "three")}, tmp_path)
        target = change(grounds.hub, grounds.target, {"src/app.py": edited(19, "x")}, tmp_path)
        tree = candidate(grounds.hub, target, two, mode).tree
        both = edited(2, "two").replace("line 19\n", "x\n")
        assert grounds.hub._git("cat-file", "blob", f"{tree}:src/app.py").text == both

    def test_many_threads_may_merge_at_once_and_leave_no_litter(self, grounds: Grounds, tmp_path: Path):
        proposals = [change(grounds.hub, grounds.target, {f"f{number}": "1\n"}, tmp_path) for number in range(8)]
        with ThreadPoolExecutor(4) as threads:
            landed = list(threads.map(lambda one: candidate(grounds.hub, grounds.target, one), proposals))
        assert len({one.commit for one in landed}) == 8
        assert list((grounds.hub.path / "merging").glob("*")) == []

    def test_histories_without_a_common_commit_are_a_conflict_in_words(self, grounds: Grounds):
        agent = grounds.agent()
        agent.git("checkout", "-q", "--orphan", "other")
        agent.commit({"a": "1\n"})
        grounds.hub._git("fetch", "-q", str(agent.path), "HEAD")
        stands = conflict(grounds.hub, grounds.target, agent.head)
        assert stands.tree == grounds.hub.tree_of(grounds.target)
        assert "share no history" in stands.files[0].hunks


class TestConflicts:
    @pytest.mark.parametrize("mode", list(LandingMode))
    def test_both_sides_are_shown_with_their_names(self, grounds: Grounds, tmp_path: Path, mode: LandingMode):
        proposal = change(grounds.hub, grounds.target, {"src/app.py": edited(10, "mine")}, tmp_path)
        target = change(grounds.hub, grounds.target, {"src/app.py": edited(10, "landed")}, tmp_path)
        found = conflict(grounds.hub, target, proposal, mode)
        (file,) = found.files
        assert file.path == "src/app.py"
        assert file.hunks == (
            "@@ line 7 @@\nline 7\nline 8\nline 9\n<<<<<<< target\nlanded\n=======\nmine\n>>>>>>> change\n"
            "line 11\nline 12\nline 13"
        )
        marked = grounds.hub._git("cat-file", "blob", f"{found.tree}:src/app.py").text
        assert "<<<<<<< target\nlanded\n=======\nmine\n>>>>>>> change\n" in marked

    def test_hunks_are_bounded(self, grounds: Grounds, tmp_path: Path):
        long = "".join(f"new {number} {'x' * 50}\n" for number in range(1000))
        proposal = change(grounds.hub, grounds.target, {"src/app.py": long}, tmp_path)
        target = change(grounds.hub, grounds.target, {"src/app.py": long.replace("new", "old")}, tmp_path)
        (file,) = conflict(grounds.hub, target, proposal).files
        assert len(file.hunks) <= 4200
        assert file.hunks.endswith("[...]")

    def test_the_rest_of_the_change_is_in_the_marked_tree(self, grounds: Grounds, tmp_path: Path):
        proposal = change(grounds.hub, grounds.target, {"run.sh": "mine\n", "new": "1\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"run.sh": "landed\n", "other": "1\n"}, tmp_path)
        found = conflict(grounds.hub, target, proposal)
        assert {"new", "other"} <= set(grounds.names_in(found.tree))

    def test_deleted_here_and_changed_there_is_said_in_words(self, grounds: Grounds, tmp_path: Path):
        proposal = change(grounds.hub, grounds.target, {"src/app.py": None}, tmp_path)
        target = change(grounds.hub, grounds.target, {"src/app.py": edited(10, "landed")}, tmp_path)
        (file,) = conflict(grounds.hub, target, proposal).files
        assert "deleted in change and modified in target" in file.hunks

    def test_two_names_for_one_file_are_said_in_words(self, grounds: Grounds, tmp_path: Path):
        proposal = change(grounds.hub, grounds.target, {"src/app.py": None, "src/one.py": LINES}, tmp_path)
        target = change(grounds.hub, grounds.target, {"src/lib.py": "x\n"}, tmp_path)
        target = change(grounds.hub, target, {"src/app.py": None, "src/two.py": LINES}, tmp_path)
        files = conflict(grounds.hub, target, proposal).files
        assert any("rename" in file.hunks for file in files)

    def test_binary_files_are_said_in_words(self, grounds: Grounds, tmp_path: Path):
        base = change(grounds.hub, grounds.target, {"pic": b"\0base"}, tmp_path)
        proposal = change(grounds.hub, base, {"pic": b"\0mine"}, tmp_path)
        target = change(grounds.hub, base, {"pic": b"\0landed"}, tmp_path)
        (file,) = conflict(grounds.hub, target, proposal).files
        assert (file.path, "\0" in file.hunks) == ("pic", False)
        assert "onflict" in file.hunks or "binary" in file.hunks

    def test_submodules_that_both_moved_are_a_conflict(self, grounds: Grounds, person: Person):
        def pin(commit: str) -> str:
            person.git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
            person.git("commit", "-q", "-m", "pin")
            return grounds.hub.fetch_person(person.git_dir, "main")

        base = pin("1" * 40)
        target = pin("2" * 40)
        person.git("reset", "-q", base)
        proposal = pin("3" * 40)
        (file,) = conflict(grounds.hub, target, proposal).files
        assert (file.path, "ubmodule" in file.hunks) == ("lib", True)

    def test_odd_names_and_several_files_are_told(self, grounds: Grounds, tmp_path: Path):
        names = ["line\nbreak", "-dash", "é", "caf\udce9"]
        base = change(grounds.hub, grounds.target, dict.fromkeys(names, "base\n"), tmp_path)
        proposal = change(grounds.hub, base, dict.fromkeys(names, "mine\n"), tmp_path)
        target = change(grounds.hub, base, dict.fromkeys(names, "landed\n"), tmp_path)
        files = conflict(grounds.hub, target, proposal).files
        assert {file.path for file in files} == {"line\nbreak", "-dash", "é", "caf\\xe9"}
        assert all("<<<<<<< target" in file.hunks for file in files)

    def test_a_rebase_says_which_commit_of_many_conflicts(self, grounds: Grounds, tmp_path: Path):
        one = change(grounds.hub, grounds.target, {"new": "1\n"}, tmp_path)
        two = change(grounds.hub, one, {"run.sh": "mine\n"}, tmp_path)
        target = change(grounds.hub, grounds.target, {"run.sh": "landed\n"}, tmp_path)
        found = conflict(grounds.hub, target, two, LandingMode.REBASE)
        assert [file.path for file in found.files] == ["run.sh"]
        assert "new" in grounds.names_in(found.tree)


class TestAttributes:
    def sides(self, grounds: Grounds, tmp_path: Path, attributes: str, place: str = "") -> tuple[str, str]:
        files = {f"{place}.gitattributes": attributes, f"{place}log": "base\n"}
        base = change(grounds.hub, grounds.target, files, tmp_path)
        proposal = change(grounds.hub, base, {f"{place}log": "base\nmine\n"}, tmp_path)
        return change(grounds.hub, base, {f"{place}log": "base\nlanded\n"}, tmp_path), proposal

    @pytest.mark.parametrize("place", ["", "deep/er/"])
    def test_a_union_merge_joins_both_sides(self, grounds: Grounds, tmp_path: Path, place: str):
        target, proposal = self.sides(grounds, tmp_path, "log merge=union\n", place)
        landed = candidate(grounds.hub, target, proposal)
        assert grounds.hub.read_file(landed.commit, f"{place}log") == b"base\nlanded\nmine\n"

    def test_a_file_marked_binary_is_never_joined(self, grounds: Grounds, tmp_path: Path):
        base = change(grounds.hub, grounds.target, {".gitattributes": "*.py binary\n"}, tmp_path)
        proposal = change(grounds.hub, base, {"src/app.py": edited(2, "mine")}, tmp_path)
        target = change(grounds.hub, base, {"src/app.py": edited(19, "landed")}, tmp_path)
        conflict(grounds.hub, target, proposal)

    def test_attributes_of_the_change_do_not_count(self, grounds: Grounds, tmp_path: Path):
        base = change(grounds.hub, grounds.target, {"log": "base\n"}, tmp_path)
        files = {"log": "base\nmine\n", ".gitattributes": "log merge=union\n"}
        proposal = change(grounds.hub, base, files, tmp_path)
        target = change(grounds.hub, base, {"log": "base\nlanded\n"}, tmp_path)
        conflict(grounds.hub, target, proposal)

    def test_attributes_that_the_target_dropped_do_not_count(self, grounds: Grounds, tmp_path: Path):
        target, proposal = self.sides(grounds, tmp_path, "log merge=union\n")
        candidate(grounds.hub, target, proposal)
        without = change(grounds.hub, target, {".gitattributes": None}, tmp_path)
        conflict(grounds.hub, without, proposal)

    @pytest.mark.parametrize("attributes", ["log merge=x\n", "[attr]own merge=x\nlog own\n", "log\t-text merge=x\n"])
    def test_a_custom_merge_driver_never_runs_and_its_file_conflicts(
        self, grounds: Grounds, tmp_path: Path, attributes: str
    ):
        proof = tmp_path / "proof"
        driver = program(tmp_path / "driver", proof)
        grounds.hub._git("config", "merge.x.driver", f"{driver} %A")
        target, proposal = self.sides(grounds, tmp_path, attributes)
        (file,) = conflict(grounds.hub, target, proposal).files
        assert file.path == "log"
        assert not proof.exists()

    def test_a_custom_merge_driver_does_not_disturb_files_changed_on_one_side(self, grounds: Grounds, tmp_path: Path):
        base = change(grounds.hub, grounds.target, {".gitattributes": "* merge=x\n"}, tmp_path)
        proposal = change(grounds.hub, base, {"src/app.py": edited(2, "mine")}, tmp_path)
        target = change(grounds.hub, base, {"src/lib.py": edited(2, "landed")}, tmp_path)
        candidate(grounds.hub, target, proposal)

    def test_the_folder_of_attributes_is_never_empty_so_that_no_rename_can_replace_it(self, grounds: Grounds):
        assert list(attribute_tree(grounds.hub, grounds.target).iterdir())

    def test_an_attribute_file_that_is_a_link_is_not_followed(self, grounds: Grounds, tmp_path: Path):
        outside = tmp_path / "outside"
        outside.write_text("log merge=union\n")
        agent = grounds.agent()
        agent.write("log", "base\n")
        (agent.path / ".gitattributes").symlink_to(outside)
        base = grounds.save().commit
        proposal = change(grounds.hub, base, {"log": "base\nmine\n"}, tmp_path)
        target = change(grounds.hub, base, {"log": "base\nlanded\n"}, tmp_path)
        conflict(grounds.hub, target, proposal)


class TestThePersonsCommits:
    def absorb(self, grounds: Grounds, target: str) -> MergeCandidate | MergeConflict | None:
        tip = grounds.hub.fetch_person(grounds.person.git_dir, "main")
        return merge_person(grounds.hub, target, tip, message="Take in", author=LEGION, when=WHEN)

    def test_a_tip_that_holds_the_target_is_the_candidate_itself(self, grounds: Grounds):
        tip = grounds.person.commit({"a": "1\n"})
        assert self.absorb(grounds, grounds.target) == MergeCandidate(commit=tip, tree=grounds.hub.tree_of(tip))

    def test_a_tip_that_the_target_holds_is_nothing_new(self, grounds: Grounds, tmp_path: Path):
        later = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        assert self.absorb(grounds, grounds.target) is None
        assert self.absorb(grounds, later) is None

    def test_commits_on_both_sides_are_merged(self, grounds: Grounds, tmp_path: Path):
        target = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        tip = grounds.person.commit({"b": "1\n"})
        landed = self.absorb(grounds, target)
        assert isinstance(landed, MergeCandidate)
        assert parents(grounds.hub, landed.commit) == (target, tip)

    def test_lines_on_both_sides_are_a_conflict(self, grounds: Grounds, tmp_path: Path):
        target = change(grounds.hub, grounds.target, {"run.sh": "landed\n"}, tmp_path)
        grounds.person.commit({"run.sh": "mine\n"})
        assert isinstance(self.absorb(grounds, target), MergeConflict)


def test_twenty_changes_land_one_after_the_other(grounds: Grounds, tmp_path: Path):
    proposals = [change(grounds.hub, grounds.target, {f"f{number}": "1\n"}, tmp_path) for number in range(20)]
    at = grounds.target
    for proposal in proposals:
        at = candidate(grounds.hub, at, proposal).commit
    assert len(grounds.hub.files(at)) == 25


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("mode", list(LandingMode))
@pytest.mark.parametrize(
    ("subject", "landed"),
    [
        ("g23 \x1b]0;evil\x07", "g23 <U+001B>]0;evil<U+0007>"),
        ("Fix login \u202egnp.exe now", "Fix login <U+202E>gnp.exe now"),
        ("Half \ud83d", "Half \ufffd"),
        ("Überall 👩‍💻", "Überall 👩‍💻"),
    ],
)
def test_a_subject_is_text_in_the_landed_commit(
    grounds: Grounds, tmp_path: Path, mode: LandingMode, subject: str, landed: str
):
    hub = grounds.hub
    tree = hub.tree_of(change(hub, grounds.target, {"a": "1\n"}, tmp_path))
    stamp = AGENT.stamp(WHEN)
    raw = subject.encode("utf-8", "replace" if "\ud83d" in subject else "strict")
    own = write_commit(hub, tree=tree, parents=(grounds.target,), author=stamp, committer=stamp, message=raw)
    made = merge(hub, grounds.target, own, mode=mode, message=subject, author=AGENT, committer=LEGION, when=WHEN)
    assert isinstance(made, MergeCandidate)
    text = hub._git("log", "-1", "--format=%s", made.commit).stdout.decode().rstrip("\n")
    assert text == landed or "\ud83d" in subject
    assert not any(ord(letter) < 0x20 or letter == "\u202e" for letter in text)


def test_a_message_in_another_encoding_keeps_its_bytes(grounds: Grounds):
    hub, stamp = grounds.hub, AGENT.stamp(WHEN)
    japanese = "日本".encode("iso2022_jp")

    def written(message: bytes, encoding: bytes | None) -> bytes:
        tree, parents = hub.tree_of(grounds.target), (grounds.target,)
        return hub.content(
            write_commit(
                hub, tree=tree, parents=parents, author=stamp, committer=stamp, message=message, encoding=encoding
            )
        )

    assert written(japanese, b"ISO-2022-JP").endswith(japanese + b"\n")
    assert written(b"caf\xe9 \x1b[31m", None).endswith(b"\n\ncaf\xe9 [31m\n")
