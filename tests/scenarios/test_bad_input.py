"""Bad input gets one clear sentence that says what to do, a fitting exit code, and changes nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.wire.errors import BadInput
from legion.wire.tickets import Dispatch
from tests.support.legion import Project, Squad, new
from tests.support.repository import Repository

USAGE, NOT_FOUND, NOT_ALLOWED = 2, 3, 4


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


def shallow(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.commit("second", {"a.txt": "a\n"})
    git(folder, "clone", "-q", "--depth=1", f"file://{repository.root}", "shallow")
    return folder / "shallow"


def large_files(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.commit("lfs", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    return repository.root


def encrypted(folder: Path) -> Path:
    repository = Repository(folder / "ada")
    repository.commit("crypt", {".gitattributes": "*.key filter=git-crypt diff=git-crypt\n"})
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
    (shallow, USAGE, "shallow clone: run `git fetch --unshallow` first"),
    (large_files, NOT_ALLOWED, "keeps files in Git LFS"),
    (encrypted, NOT_ALLOWED, "git filter 'git-crypt'"),
    (a_folder_for_a_file, USAGE, "legion.toml is not a regular file: move it away and try again"),
    (a_link_to_nowhere, USAGE, "legion.toml is not a regular file: move it away and try again"),
]


@pytest.mark.parametrize(("make_it", "code", "words"), UNFIT, ids=[case[0].__name__ for case in UNFIT])
def test_a_repository_that_cannot_be_a_project_is_refused_and_left_alone(
    house: Squad, tmp_path: Path, make_it: Callable[[Path], Path], code: int, words: str
):
    place = make_it(tmp_path)
    before = everything(tmp_path)
    said = house.cli("init", cwd=place)
    assert_one_sentence(said, code, words)
    assert everything(tmp_path) == before
    assert str(place) not in [project.root for project in house.client.status(None).projects]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_one_sentence(said: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert (said.returncode, said.stdout) == (code, ""), said
    complaint = [line for line in said.stderr.splitlines() if line != "Starting Legion ..."]
    assert words in complaint[0]
    assert len(complaint) == 1
    assert complaint[0].endswith((".", "?"))


def test_a_command_outside_of_any_project_says_so(house: Squad, tmp_path: Path):
    assert_one_sentence(
        house.cli("dispatch", "-t", "a", cwd=tmp_path), NOT_FOUND, "is in no Legion project: run `legion init`"
    )


def test_a_ticket_that_is_not_there_says_so(house: Squad, tmp_path: Path):
    for words in (["ticket", "99999"], ["stop", "99999"], ["log", "99999"], ["diff", "99999"], ["drop", "99999"]):
        assert_one_sentence(house.cli(*words, cwd=tmp_path), NOT_FOUND, "There is no ticket 99999")


def test_a_dirty_tree_is_a_project_and_its_uncommitted_files_are_mentioned(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.write({"README.txt": "changed\n", "new.txt": "new\n"})
    said = house.cli("init", cwd=repository.root)
    assert said.returncode == 0
    assert "2 files are not committed; agents see only what is committed" in said.stderr + said.stdout
    assert repository.git("status", "--porcelain").split() == ["M", "README.txt", "??", "new.txt"]


def test_worktrees_of_another_legion_are_left_alone(house: Squad, tmp_path: Path):
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


def test_another_init_of_what_is_trusted_asks_for_no_trust_and_survives_an_odd_file(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    house.adopt(repository)
    assert "legion trust" not in house.cli("init", cwd=repository.root).stderr
    (repository.root / "legion.toml").unlink()
    (repository.root / "legion.toml").mkdir()
    assert house.cli("status", cwd=repository.root).returncode == 0


def test_submodules_stay_as_they_are(house: Squad, tmp_path: Path):
    library = Repository(tmp_path / "library")
    repository = Repository(tmp_path / "ada")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "lib")
    repository.commit("with a library", {})
    pinned = repository.git("rev-parse", "HEAD:lib")
    said = house.cli("init", cwd=repository.root)
    assert "Submodules are not checked out in worktrees" in said.stderr + said.stdout
    project = house.init(repository)
    project.trust()
    ticket = project.dispatch("a", "ls lib > a.txt; echo more > b.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    assert project.landed("a.txt") == ""
    assert project.hub_git("rev-parse", "refs/legion/target:lib").strip() == pinned


def test_a_linked_checkout_of_the_person_belongs_to_the_same_project(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    repository.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    project = house.adopt(repository)
    (tmp_path / "linked/deep").mkdir()
    said = house.cli("dispatch", "-t", "from there", "--command", "touch a.txt", cwd=tmp_path / "linked/deep")
    assert said.returncode == 0, said.stderr
    project.until_settled()
    assert list(project.states().values()) == ["done"]
    assert said.stdout == f"Ticket ID: {next(iter(project.states()))}\n"


def test_an_init_in_a_linked_checkout_lands_on_the_branch_of_that_checkout(house: Squad, tmp_path: Path):
    repository = Repository(tmp_path / "ada")
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", "-b", "side", str(linked))
    assert house.cli("init", cwd=linked).returncode == 0
    assert house.cli("trust", cwd=linked).returncode == 0
    said = house.cli("dispatch", "-t", "there", "--command", "touch a.txt", cwd=linked)
    assert said.returncode == 0, said.stderr
    assert house.cli("wait", cwd=linked).returncode == 0
    assert house.cli("collect", cwd=linked).returncode == 0
    assert (linked / "a.txt").exists()
    assert repository.git("rev-parse", "side") != repository.git("rev-parse", "main")


def test_a_ticket_cannot_come_after_one_that_is_not_there(project: Project):
    with pytest.raises(BadInput, match="There is no ticket 99999 in this project to come after"):
        project.dispatch("a", "true", after=[99999])
    assert project.states() == {}


def test_a_ticket_cannot_come_after_one_of_another_project(make: Callable[..., Project]):
    mine, theirs = make(), make()
    other = theirs.dispatch("theirs", "touch a.txt")
    with pytest.raises(BadInput, match=f"Ticket {other} belongs to another project"):
        mine.dispatch("mine", "true", after=[other])


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
    "questions of a plain program": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nask = true\n',
        "Ticket 'a': --ask needs a driver that can talk. Remove --ask or choose --driver claude.",
    ),
    "a budget for a checkpoint": (
        '[[ticket]]\ntitle = "a"\ncheckpoint = true\nbudget = 2\n',
        "Ticket 'a': a checkpoint has no agent. Remove --budget.",
    ),
    "too many attempts": (
        '[[ticket]]\ntitle = "a"\ncommand = "true"\nmax_attempts = 50\n',
        "`max_attempts` must be a whole number from 1 to 20, not 50",
    ),
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_plan_with_one_bad_ticket_creates_nothing(project: Project, name: str):
    text, words = BAD_PLANS[name]
    good = '[[ticket]]\nkey = "fine"\ntitle = "fine"\ncommand = "touch fine.txt"\n'
    plan = text if name in ("no table", "no TOML") else good + text
    said = project.squad.cli("dispatch", "--from", "-", cwd=project.repository.root, stdin=plan)
    assert_one_sentence(said, USAGE, words)
    assert project.states() == {}


TITLES = {
    "quotes": """it's "quoted" `and` $(touch pwned) \\ ; rm -rf .""",
    "newlines": "one\ntwo\r\n\tthree",
    "a leading dash": "--force -rf",
    "emoji": "fix 🚀 and ünïcödé \u202esdrawkcab",
    "control characters": "red \x1b[31malert\x07 \x08\x7f",
    "a comment": "# not a comment",
    "a trailer": "Ticket: 99",
    "a percent sign": "100%s %n %%",
}


def test_any_title_goes_through_to_the_landed_commit_and_to_no_terminal_as_it_is(project: Project):
    where = project.repository.root
    wanted = {}
    for name, title in TITLES.items():
        agent = f"touch '{name}.txt'"
        said = project.squad.cli("dispatch", f"--title={title}", "--command", agent, "--", title, cwd=where)
        assert said.returncode == 0, said.stderr
        wanted[int(said.stdout.removeprefix("Ticket ID: "))] = title
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    pages = {ticket: project.ticket(ticket) for ticket in wanted}
    one_line = {ticket: " ".join(title.split()) for ticket, title in wanted.items()}
    assert {ticket: page.text for ticket, page in pages.items()} == wanted
    assert {ticket: page.ticket.title for ticket, page in pages.items()} == one_line
    assert sorted(project.landed_titles()) == sorted([*one_line.values(), "first"])
    assert project.landed("pwned") is None
    ticket = next(number for number, title in wanted.items() if "\x1b" in title)
    for words in (["status"], ["ticket", str(ticket)], ["graph"]):
        assert not {"\x1b", "\x07", "\x08", "\x7f", "\u202e"} & set(project.squad.cli(*words, cwd=where).stdout)


def test_texts_of_a_megabyte_reach_the_agent_whole(project: Project):
    text = "word " * 200_000
    ticket = project.dispatch("long", 'wc -c < "$LEGION_BRIEFING" > size.txt', text=text, context=text, plan=text)
    project.until_settled()
    assert int(project.landed("size.txt") or 0) > 3_000_000
    assert project.ticket(ticket).text == text
    shown = project.squad.cli("status", "--json", cwd=project.repository.root)
    assert len(shown.stdout) < 200_000
    assert text[:1000] not in shown.stdout
    assert json.loads(shown.stdout)["tickets"][0]["state"] == "done"


def test_texts_that_are_far_too_long_or_no_text_at_all_are_refused(project: Project):
    with pytest.raises(BadInput, match="send less at once"):
        project.dispatch("huge", "true", text="x" * 70_000_000)
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
