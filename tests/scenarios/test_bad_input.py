"""Bad input gets one clear sentence that says what to do, a fitting exit code, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

from legion.domain.text import reveal
from tests.support.legion import Project, Squad
from tests.support.repository import Repository


def test_submodules_stay_as_they_are(house: Squad, tmp_path: Path):
    library = Repository(tmp_path / "library")
    repository = Repository(tmp_path / "ada")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "lib")
    repository.commit("with a library", {})
    pinned = repository.git("rev-parse", "HEAD:lib")
    project = house.init(repository)
    project.trust()
    ticket = project.dispatch("a", "ls lib > a.txt; echo more > b.txt")
    project.until_settled()
    assert project.state(ticket) == "done"
    there = sorted(one.name for one in library.root.iterdir() if one.name != ".git")
    assert project.landed("a.txt") == "".join(f"{name}\n" for name in there), "as the person's clone has it"
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
    assert sorted(project.landed_titles()) == sorted([*map(reveal, one_line.values()), "first"])
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
