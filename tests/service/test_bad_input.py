"""Bad input gets one clear sentence that says what to do, a fitting exit code, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.wire.dispatch import Dispatch
from legion.wire.errors import BadInput
from tests.support.legion import Project, new
from tests.support.office import QuietSquad
from tests.support.repository import Repository

USAGE, NOT_FOUND, NOT_ALLOWED = 2, 3, 4


@pytest.fixture(scope="module")
def empty_project(house: QuietSquad, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for all that is refused: it never gets a ticket."""
    return house.adopt(Repository(tmp_path_factory.mktemp("refused") / "ada"))


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def no_repository(folder: Path) -> Path:
    return folder


def empty(folder: Path) -> Path:
    git(folder, "init", "-q")
    return folder


def bare(folder: Path) -> Path:
    git(folder, "clone", "-q", "--bare", str(Repository(folder / "ada").root), "bare.git")
    return folder / "bare.git"


def detached(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.git("checkout", "-q", "--detach")
    return repository.root


def damaged(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.commit("second", {"a.txt": "a text of its own\n"})
    id = repository.git("rev-parse", "HEAD:a.txt").strip()
    (repository.root / ".git/objects" / id[:2] / id[2:]).unlink()
    return repository.root


def unreadable_commit(folder: Path) -> Path:
    """As where the files belong to another user."""
    repository = Repository(folder / "ada")
    id = repository.git("rev-parse", "HEAD").strip()
    (repository.root / ".git/objects" / id[:2] / id[2:]).unlink()
    return repository.root


def of_another_user(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    for path in (repository.root, *repository.root.rglob("*")):
        os.chown(path, 12345, -1)
    return repository.root


def a_folder_for_a_file(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.git("rm", "-q", "legion.toml")
    (repository.root / "legion.toml").mkdir()
    return repository.root


def a_link_to_nowhere(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.git("rm", "-q", "legion.toml")
    (repository.root / "legion.toml").symlink_to(folder / "planted.toml")
    return repository.root


UNFIT = [
    (no_repository, USAGE, "is not in a git repository; run `git init` there first"),
    (empty, USAGE, "has no commit yet: make a first one"),
    (bare, USAGE, "bare repository: run `legion init` in a checkout of it"),
    (detached, USAGE, "HEAD is detached here: switch to the branch"),
    (damaged, USAGE, "The repository lacks 1 object that commit"),
    (unreadable_commit, USAGE, "The last commit of main cannot be read: see `git fsck`"),
    (a_folder_for_a_file, USAGE, "legion.toml is not a regular file: move it away and try again"),
    (a_link_to_nowhere, USAGE, "legion.toml is not a regular file: move it away and try again"),
]


@pytest.mark.parametrize(("make_it", "code", "words"), UNFIT, ids=[case[0].__name__ for case in UNFIT])
def test_a_repository_that_cannot_be_a_project_is_refused_and_left_alone(
    house: QuietSquad, tmp_path: Path, make_it: Callable[[Path], Path], code: int, words: str
):
    place = make_it(tmp_path)
    before = everything(tmp_path)
    said = house.cli("init", cwd=place)
    assert_one_sentence(said, code, words)
    assert everything(tmp_path) == before
    assert str(place) not in [project.root for project in house.client.status(None).projects]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_repository_of_another_user_is_refused_with_the_reason(house: QuietSquad, tmp_path: Path):
    place = of_another_user(tmp_path)
    assert_one_sentence(house.cli("init", cwd=place), USAGE, "belongs to another user, so git does not copy it")
    assert str(place) not in [project.root for project in house.client.status(None).projects]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_one_sentence(said: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert (said.returncode, said.stdout) == (code, ""), said
    # A slow command says what it does meanwhile.
    complaint = [line for line in said.stderr.splitlines() if not line.endswith(" ...")]
    assert words in complaint[0]
    assert len(complaint) == 1
    assert complaint[0].endswith((".", "?"))


def test_a_command_outside_of_any_project_says_so(house: QuietSquad, tmp_path: Path):
    assert_one_sentence(
        house.cli("dispatch", "-t", "a", cwd=tmp_path), NOT_FOUND, "is in no Legion project: run `legion init`"
    )


def test_a_ticket_that_is_not_there_says_so(house: QuietSquad, tmp_path: Path):
    for words in (["ticket", "99999"], ["stop", "99999"], ["log", "99999"], ["diff", "99999"], ["drop", "99999"]):
        assert_one_sentence(house.cli(*words, cwd=tmp_path), NOT_FOUND, "There is no ticket 99999")


def test_a_dirty_tree_is_a_project_and_its_uncommitted_files_are_mentioned(house: QuietSquad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.write({"README.txt": "changed\n", "new.txt": "new\n"})
    said = house.cli("init", cwd=repository.root)
    assert said.returncode == 0
    assert "2 files are not committed; agents see only what is committed" in said.stderr + said.stdout
    assert repository.git("status", "--porcelain").split() == ["M", "README.txt", "??", "new.txt"]


def test_worktrees_of_another_legion_are_left_alone(house: QuietSquad, tmp_path: Path):
    """One with other data, or one whose data is gone: its tickets have the same numbers."""
    repository = Repository(tmp_path / "ada")
    theirs = tmp_path / "ada-legion/ticket-1/theirs.txt"
    theirs.parent.mkdir(parents=True)
    theirs.touch()

    def folder() -> str:
        return str(json.loads(house.cli("init", "--json", cwd=repository.root).stdout)["worktrees"])

    assert folder() == f"{tmp_path}/ada-legion-2"
    assert folder() == f"{tmp_path}/ada-legion-2"
    assert house.cli("init", "--remove", cwd=repository.root).returncode == 0
    assert folder() == f"{tmp_path}/ada-legion-2"
    assert [path.name for path in theirs.parent.iterdir()] == ["theirs.txt"]


def test_another_init_of_what_is_trusted_asks_for_no_trust_and_survives_an_odd_file(house: QuietSquad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    house.adopt(repository)
    assert "legion trust" not in house.cli("init", cwd=repository.root).stderr
    (repository.root / "legion.toml").unlink()
    (repository.root / "legion.toml").mkdir()
    assert house.cli("status", cwd=repository.root).returncode == 0


def test_a_ticket_cannot_come_after_one_that_is_not_there(empty_project: Project):
    with pytest.raises(BadInput, match="There is no ticket 99999 to come after"):
        empty_project.dispatch("a", "true", after=[99999])
    assert empty_project.states() == {}


@pytest.mark.parametrize("name", ["text", "context", "criteria", "plan"])
def test_a_text_of_two_megabytes_is_refused_whichever_client_sends_it(empty_project: Project, name: str):
    with pytest.raises(BadInput, match=f"{name} must be a text of at most 1,000,000 characters, not of 2,000,000"):
        empty_project.dispatch("a", "true", **{name: "x" * 2_000_000})
    assert empty_project.states() == {}


BAD_PLANS = {
    "a circle": (
        """
        [[ticket]]
        key = "a"
        title = "a"
        after = ["b"]
        [[ticket]]
        key = "b"
        title = "b"
        after = ["a"]
        """,
        "wait for each other in a circle (a after b after a): remove one of the edges",
    ),
    "itself": ('[[ticket]]\nkey = "a"\ntitle = "a"\nafter = ["a"]\ncommand = "true"\n', "(a after a)"),
    "an unknown key": ('[[ticket]]\nkey = "a"\ntitle = "a"\nafter = ["c"]\ncommand = "true"\n', "names `c`"),
    "a ticket with an unknown driver": (
        '[[ticket]]\ntitle = "good"\ncommand = "true"\n[[ticket]]\ntitle = "bad"\ndriver = "nobody"\n',
        'There is no driver "nobody"',
    ),
    "an unknown ticket": ('[[ticket]]\ntitle = "a"\nafter = [99999]\ncommand = "true"\n', "There is no ticket 99999"),
    "a misspelt field": ('[[ticket]]\ntitel = "a"\n', "did you mean `title`?"),
    "no table": ("ticket = 3\n", "has no [[ticket]]"),
    "no TOML": ("[[ticket\n", "is not valid TOML"),
    "no title": ('[[ticket]]\ntitle = "  "\ncommand = "true"\n', "neither `title` nor `text`"),
    "a strange glob": ('[[ticket]]\ntitle = "a"\ncommand = "true"\nfiles = ["../up"]\n', "../up"),
    "a budget for a plain program": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nbudget = 2\n',
        "Ticket 'a': --budget needs a driver that can keep a budget. Remove --budget or choose --driver claude.",
    ),
    "a model for a plain program": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nmodel = "opus"\n',
        "Ticket 'a': --model needs a driver that can take a model. Remove --model or choose --driver claude.",
    ),
    "questions of a plain program": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nask = true\n',
        "Ticket 'a': --ask needs a driver that can ask a person. Remove --ask or choose --driver claude.",
    ),
    "a budget for a checkpoint": (
        '[[ticket]]\ntitle = "a"\ncheckpoint = true\nbudget = 2\n',
        "Ticket 'a': a checkpoint has no agent. Remove --budget.",
    ),
    "a text of two megabytes": (
        f'[[ticket]]\ntitle = "a"\ncommand = "true"\ntext = "{"x" * 2_000_000}"\n',
        "`text` must be a text of at most 1,000,000 characters, not of 2,000,000.",
    ),
    "too many attempts": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nmax_attempts = 50\n',
        "`max_attempts` must be a whole number from 1 to 20, not 50",
    ),
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_plan_with_one_bad_ticket_creates_nothing(empty_project: Project, name: str):
    text, words = BAD_PLANS[name]
    good = '[[ticket]]\nkey = "fine"\ntitle = "fine"\ncommand = "touch fine.txt"\n'
    plan = text if name in ("no table", "no TOML") else good + text
    said = empty_project.squad.cli("dispatch", "--from", "-", cwd=empty_project.repository.root, stdin=plan)
    assert_one_sentence(said, USAGE, words)
    assert empty_project.states() == {}


def test_a_request_that_is_far_too_long_is_refused(empty_project: Project):
    with pytest.raises(BadInput, match="send less at once"):
        empty_project.dispatch("huge", "true", text="x" * 70_000_000)
    assert empty_project.states() == {}


def test_texts_that_are_too_long_or_no_text_at_all_are_refused(project: Project):
    with pytest.raises(BadInput, match="NUL"):
        project.dispatch("nul", "true", text="a\0b")
    with pytest.raises(BadInput, match="300"):
        project.dispatch("t" * 301, "true")
    with pytest.raises(BadInput, match="title"):
        project.dispatch("   ", "true")
    assert project.states() == {}


def test_a_repeated_request_answers_with_the_first_result(project: Project):
    request = Dispatch(cwd=project.cwd, tickets=[new("once", "touch a.txt")], request="abc")
    assert project.squad.client.dispatch(request).ids == project.squad.client.dispatch(request).ids
    assert len(project.states()) == 1


def test_a_checkpoint_has_no_agent(empty_project: Project):
    with pytest.raises(BadInput, match="a checkpoint has no agent"):
        empty_project.dispatch("gate", "true", checkpoint=True)


def test_a_legion_toml_that_makes_no_sense_is_refused_with_what_is_wrong(house: QuietSquad, tmp_path: Path):
    repository = Repository(tmp_path / "ada", "[checks.test]\nrum = 'true'\n")
    with pytest.raises(BadInput, match="rum"):
        house.init(repository)
    assert house.client.status(str(repository.root)).project is None


def test_a_legion_toml_that_is_committed_broken_is_refused_though_the_checkout_has_a_good_one(
    house: QuietSquad, tmp_path: Path
):
    repository = Repository(tmp_path / "ada", "[checks")
    repository.write({"legion.toml": "[checks.test]\nrun = 'true'\n"})
    with pytest.raises(BadInput, match=r"legion\.toml as it is committed"):
        house.init(repository)
    assert house.client.status(str(repository.root)).project is None
