"""Files of roles and teams over the real daemon, with plain programs as agents: what is refused, trusted and kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.errors import BadInput, NotFound
from legion.wire.mail import AnswerQuestion
from legion.wire.projects import Trust
from tests.support.legion import Project, Squad, squad
from tests.support.looking import until_seen
from tests.support.readers import approve, changes, finding
from tests.support.repository import CHECK, Repository

DRIVERS = """
[drivers.says]
run = "sh -c 'cat {folder}/$LEGION_ROLE; cp \\"$LEGION_BRIEFING\\" {folder}/told-$LEGION_ROLE-$LEGION_TICKET'"

[drivers.fails]
run = "sh -c 'exit 3'"
"""


class Firm:
    """A daemon whose advisers and readers print what stands under their names."""

    def __init__(self, one: Squad, folder: Path, project: Project) -> None:
        self.squad = one
        self.folder = folder
        self.project = project

    def write(self, kind: str, name: str, text: str) -> Path:
        path = self.squad.settings.parent / f"{kind}s" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def role(self, name: str, part: str, says: str = "", driver: str = "says", prompt: str = "Your part.") -> None:
        (self.folder / name).write_text(says)
        self.write("role", name, f'part = "{part}"\nprompt = "{prompt}"\ndriver = "{driver}"\n')

    def cli(self, *words: str, stdin: str = "") -> tuple[int, str]:
        done = self.squad.cli(*words, cwd=self.project.repository.root, stdin=stdin)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firm]:
    folder = tmp_path_factory.mktemp("firm")
    said = folder / "said"
    said.mkdir()
    walls = f'[sandbox]\nwrite = ["{said}"]\n'
    with squad(folder, settings=walls + DRIVERS.replace("{folder}", str(said))) as one:
        yield Firm(one, said, one.adopt(Repository(folder / "ada", CHECK)))


def test_advice_is_given_once_and_stands_in_every_attempts_briefing(firm: Firm):
    firm.role("wise", "advise", "Mind the gap.\n")
    firm.write("team", "pair", 'roles = ["wise", "engineer"]')
    agent = 'grep -q "Mind the gap" "$LEGION_BRIEFING" || exit 3; [ $LEGION_ATTEMPT = 1 ] || echo done > gap.txt'
    ticket = firm.project.dispatch("Gap", agent, team="pair")
    page = firm.project.until(ticket, "done")
    assert page.ticket.attempt == 2
    assert [run.role for run in page.runs] == ["wise", "", ""]
    assert page.crew is not None
    assert [one.text for one in page.crew.advice] == ["Mind the gap."]
    moved = [str(event.data["reason"]) for event in page.history if event.data.get("rule") == "advice-first"]
    assert moved == ["wise has advised"]


def test_an_adviser_that_fails_costs_attempts_and_the_builder_is_never_started(firm: Firm):
    firm.role("broken", "advise", driver="fails")
    firm.write("team", "unlucky", 'roles = ["broken", "engineer"]')
    ticket = firm.project.dispatch("Never", "echo never > never.txt", team="unlucky", max_attempts=2)
    page = firm.project.until(ticket, "failed")
    assert [run.role for run in page.runs] == ["broken", "broken"]
    assert "broken gave no advice: its program failed (exit code 3)" in page.ticket.reason
    firm.role("broken", "advise", "Now I know.")
    firm.project.retry(ticket)
    assert firm.project.until(ticket, "failed").ticket.reason == page.ticket.reason, "it keeps the role it had"


def test_a_lead_and_a_qa_that_disagree_for_ever_end_in_one_question(firm: Firm):
    firm.role("lead", "advise", "Write the word yes.\n")
    wrong = finding("word.txt", 1, "The word must be no.")
    firm.role("strict", "read", json.dumps(changes("word.txt", findings=[wrong])))
    firm.write("team", "quarrel", 'roles = ["lead", "engineer", "strict"]\nrounds = 2')
    agent = 'grep -q "the word yes" "$LEGION_BRIEFING"; echo "yes $LEGION_ATTEMPT" > word.txt'
    ticket = firm.project.dispatch("Word", agent, team="quarrel", max_attempts=9)
    page = firm.project.until(ticket, "parked")
    (one,) = [one for one in firm.squad.client.inbox().questions if one.ticket == ticket]
    assert "The word must be no." in one.words
    assert [run.role for run in page.runs] == ["lead", "", "strict", "", "strict"]
    assert "--- advice to its author from lead" in (firm.folder / f"told-strict-{ticket}").read_text()
    code, shown = firm.cli("ticket", str(ticket))
    assert code == 0
    assert "Team quarrel" in shown
    assert f"legion answer {one.id} land" in shown
    firm.squad.client.answer(one.id, AnswerQuestion(choice="land"))
    page = firm.project.until(ticket, "done")
    assert [one for one in firm.squad.client.inbox().questions if one.ticket == ticket] == []
    assert firm.project.landed("word.txt") == "yes 2\n"


def test_a_ticket_keeps_its_team_whatever_is_edited_in_the_middle(firm: Firm):
    firm.role("first", "advise", "As I always say.\n", prompt="As it was.")
    firm.role("second", "read", "{}")
    firm.write("team", "keeps", 'roles = ["first", "engineer"]')
    firm.project.pause()
    ticket = firm.project.dispatch("Waits", "echo kept > kept.txt", team="keeps")
    firm.role("first", "advise", "As I always say.\n", prompt="Another one now.")
    firm.write("team", "keeps", 'roles = ["first", "engineer", "second"]')
    page = firm.project.ticket(ticket)
    assert page.crew is not None
    assert [stage.role for stage in page.crew.stages] == ["first", "engineer"]
    assert "keeps the one from its dispatch" in page.crew.changed
    assert "keeps the one from its dispatch" in " ".join(firm.cli("ticket", str(ticket))[1].split())
    (firm.squad.settings.parent / "teams/keeps.toml").unlink()
    assert "There is no team 'keeps'" in firm.cli("ticket", str(ticket))[1]
    firm.project.resume()
    assert [run.role for run in firm.project.until(ticket, "done").runs] == ["first", ""]
    told = (firm.folder / f"told-first-{ticket}").read_text()
    assert "As it was." in told
    assert "Another one now." not in told


def test_files_that_make_no_sense_are_refused_with_line_and_reason(firm: Firm):
    role = firm.write("role", "odd", 'part = "read"\n\nprompt = 7\n')
    team = firm.write("team", "odd", 'roles = ["engineer", "odd"]')
    said = f"In {role}, line 3, `prompt` must be a text that is not empty, not 7."
    assert firm.cli("team", "show", "odd") == (2, f"{said}\n")
    assert firm.cli("role", "show", "odd") == (2, f"{said}\n")
    assert firm.cli("dispatch", "--team", "odd", "anything") == (2, f"{said}\n")
    assert said in " ".join(firm.cli("team", "list")[1].split())
    team.write_text('about = "x"\nroles = "engineer"\n')
    code, said = firm.cli("dispatch", "--team", "odd", "anything")
    assert code == 2
    assert f"In {team}, line 2, `roles` must be a list of roles" in said
    with pytest.raises(BadInput):
        firm.project.dispatch("Odd", "true", team="odd")
    before = role.read_text()
    code, said = firm.cli("role", "edit", "odd", "--from", "-", stdin="part = 1\n")
    assert code == 2
    assert role.read_text() == before
    assert firm.cli("role", "edit", "odd", "--from", "-", stdin='part = "read"\nprompt = "Fine."\n')[0] == 0
    assert 'prompt = "Fine."' in role.read_text()


def test_unknown_names_are_refused_with_the_list(firm: Firm):
    code, said = firm.cli("dispatch", "--team", "tech_lead_taem", "anything")
    assert code == 3
    assert "There is no team 'tech_lead_taem'; did you mean tech_lead_team: choose one of " in said
    assert "backend_team" in said
    firm.write("team", "ghosts", 'roles = ["engineer", "ghost"]')
    with pytest.raises(NotFound, match="names the role 'ghost', which does not exist: choose from "):
        firm.project.dispatch("Ghost", "true", team="ghosts")
    code, said = firm.cli("team", "remove", "ghosts")
    assert code == 0
    kept = firm.squad.settings.parent / "teams/ghosts.toml.removed"
    assert said == f"The team ghosts is removed. Its text is kept in {kept}.\n"
    assert "There is no team 'ghosts'" in firm.cli("team", "remove", "ghosts")[1]


def test_a_role_that_a_team_needs_is_not_removed_and_a_shipped_one_comes_back(firm: Firm):
    firm.role("needed", "read", "{}")
    firm.write("team", "needing", 'roles = ["engineer", "needed"]')
    code, said = firm.cli("role", "remove", "needed")
    assert (code, "is needed by needing: remove it there first" in said) == (5, True)
    assert firm.cli("team", "remove", "needing")[0] == 0
    assert firm.cli("role", "remove", "needed")[0] == 0
    code, said = firm.cli("role", "remove", "qa")
    assert (code, "is shipped and cannot be removed" in said) == (4, True)
    firm.write("role", "qa", "nonsense")
    assert "; the shipped one counts now." in firm.cli("role", "remove", "qa")[1]
    assert firm.cli("role", "show", "qa")[0] == 0


def test_a_repositorys_definitions_count_once_they_are_trusted_and_cannot_widen(firm: Firm, tmp_path: Path):
    project = firm.squad.adopt(Repository(tmp_path / "theirs", CHECK))
    firm.role("guard", "read", json.dumps(approve("g.txt")))
    theirs = {
        ".legion/roles/engineer.toml": 'part = "build"\nprompt = "Ours, with care."\n',
        ".legion/roles/thief.toml": 'part = "read"\nprompt = "x"\nprovider = "anthropic"\n',
        ".legion/teams/house.toml": 'roles = ["engineer", "guard"]\n',
        ".legion/teams/thieves.toml": 'roles = ["engineer", "thief"]\n',
    }
    project.repository.commit("teams", theirs)
    keeps = 'cp "$LEGION_BRIEFING" told.txt'
    with pytest.raises(NotFound, match=r"\.legion/teams/house\.toml of your checkout alone: commit it"):
        project.dispatch("House", keeps, team="house")
    until_seen(firm.squad, lambda: len(firm.squad.client.teams(project.cwd).untrusted) == 4, "the new files")
    with pytest.raises(NotFound, match=r"\.legion/teams/house\.toml alone, which you have not trusted"):
        project.dispatch("House", keeps, team="house")
    made = firm.squad.cli("dispatch", "-t", "Plain", "--command", keeps, cwd=project.repository.root)
    assert "Note: .legion/roles/engineer.toml has no effect before you trust it" in made.stderr
    shown = firm.squad.client.trustable(project.cwd).texts
    assert len([text for text in shown if ".legion/" in text.file and not text.trusted]) == 4
    firm.squad.client.trust(Trust(cwd=project.cwd, hashes=[text.hash for text in shown]))
    ticket = project.dispatch("House", keeps.replace("told", "g"), team="house")
    project.until(ticket, "done")
    assert "Ours, with care." in (project.landed("g.txt") or "")
    with pytest.raises(BadInput, match=r"thief\.toml, line 3, `provider` is yours alone to choose"):
        project.dispatch("Thief", "true", team="thieves")
    project.repository.commit("more", {".legion/roles/engineer.toml": 'part = "build"\nprompt = "Changed."\n'})
    changed = [".legion/roles/engineer.toml"]
    until_seen(firm.squad, lambda: firm.squad.client.teams(project.cwd).untrusted == changed, "the changed file")
