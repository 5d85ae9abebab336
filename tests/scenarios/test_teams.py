"""Teams over the real daemon, with a scripted model: each role is an agent of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from legion.rehearsal.protocol.log import RequestKind
from legion.wire.ticket_pages import TicketPage
from tests.support.models import Company, company
from tests.support.repository import CHECK

MODELS = {"tech_lead": "opus", "engineer": "haiku", "qa": "sonnet"}
PARTS = {"tech_lead": "advise", "engineer": "build", "qa": "read"}


class Firm:
    """A person whose roles play scripts: what each says is written down under the role's own name."""

    def __init__(self, here: Company) -> None:
        self.here = here
        for role, model in MODELS.items():
            text = f'part = "{PARTS[role]}"\nprompt = "You are the {role}. rehearsal: {role}"\nmodel = "{model}"\n'
            assert "is written" in here.told("role", "edit", role, "--from", "-", stdin=text)

    def play(self, role: str, *steps: str) -> None:
        self.here.script(role, "\n".join(f"[[step]]\n{step}" for step in steps))

    def heard(self) -> list[tuple[str, str, str]]:
        """Script, model and conversation of every request, in the order in which they first came."""
        lines = [line for line in self.here.stage.lines() if line.kind is RequestKind.SCRIPTED and line.script]
        return list(dict.fromkeys((str(line.script), str(line.model), str(line.conversation)) for line in lines))

    def given(self, ticket: int, page: TicketPage, role: str) -> str:
        """What the role's first run was told."""
        seat = f"ticket-{ticket}" if role == "engineer" else f"ticket-{ticket}-{role}"
        run = next(run.id for run in page.runs if run.role == ("" if role == "engineer" else role))
        return (self.here.squad.data.runs / f"{seat}-run-{run}" / "given/briefing.md").read_text()


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firm]:
    with company(
        tmp_path_factory.mktemp("firm"), config=CHECK.replace("attempts = 3", "attempts = 1"), stand_in=True
    ) as here:
        yield Firm(here)


def say(words: object) -> str:
    return f"say = {json.dumps(words if isinstance(words, str) else json.dumps(words))}"


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def test_lead_engineer_and_qa_have_conversations_models_and_rules_of_their_own(firm: Firm):
    here, earlier = firm.here, len(firm.heard())
    firm.play("tech_lead", 'call = {tool = "Read", input = {file_path = "{cwd}/legion.toml"}}', say("Call it x.txt."))
    firm.play("engineer", bash("echo hello > x.txt"), say("Done."))
    approved = {"verdict": "approve", "summary": "It says hello.", "read": ["x.txt"]}
    firm.play("qa", 'call = {tool = "Read", input = {file_path = "{cwd}/x.txt"}}', say(approved))
    ticket = here.project.dispatch("Say hello", "", text="A file that says hello.", team="tech_lead_team")
    page = here.project.until(ticket, "done")
    assert here.project.landed("x.txt") == "hello\n"
    assert page.ticket.attempt == 1
    heard = firm.heard()[earlier:]
    assert [role for role, _, _ in heard] == ["tech_lead", "engineer", "qa"]
    assert [MODELS[role] in model for role, model, _ in heard] == [True, True, True]
    assert len({conversation for _, _, conversation in heard}) == 3
    briefing = firm.given(ticket, page, "engineer")
    assert "--- advice from tech_lead, " in briefing
    assert "Call it x.txt." in briefing
    assert "Call it x.txt." not in firm.given(ticket, page, "tech_lead")
    assert page.crew is not None
    assert [(one.role, one.part, len(one.runs)) for one in page.crew.stages] == [
        ("tech_lead", "advise", 1),
        ("engineer", "build", 1),
        ("qa", "read", 1),
    ]
    shown = here.told("ticket", str(ticket))
    assert "Team tech_lead_team" in shown
    assert "tech_lead advised" in shown
    assert "Call it x.txt." in shown


def test_who_advises_can_write_nothing(firm: Firm):
    here = firm.here
    firm.play("tech_lead", bash("echo evil > evil.txt"), say("I tried to write."))
    firm.play("engineer", bash("ls > listed.txt"), say("Done."))
    ticket = here.project.dispatch("List", "", text="List the files.", team="backend_team")
    here.project.until(ticket, "done")
    assert "evil" not in (here.project.landed("listed.txt") or "")
    assert not list(here.project.worktrees.glob(f"ticket-{ticket}-tech_lead*"))


def test_fresh_eyes_are_advised_anew_with_what_was_tried(firm: Firm):
    here = firm.here
    firm.play("tech_lead", say("Think twice."))
    firm.play("engineer", bash("[ $LEGION_ATTEMPT = 1 ] || date > fresh.txt"), say("Done."))
    before = len(firm.heard())
    ticket = here.project.dispatch("Fresh", "", text="Look again.", team="backend_team")
    page = here.project.until(ticket, "done")
    assert [(run.role, run.attempt) for run in page.runs] == [("tech_lead", 1), ("", 1), ("tech_lead", 2), ("", 2)]
    heard = firm.heard()[before:]
    assert [role for role, _, _ in heard] == ["tech_lead", "engineer", "tech_lead", "engineer"]
    assert len({conversation for _, _, conversation in heard}) == 4
    assert page.crew is not None
    assert [one.turn for one in page.crew.advice] == [0, 1]
    last = here.squad.data.runs / f"ticket-{ticket}-tech_lead-run-{page.runs[2].id}" / "given/briefing.md"
    assert "- attempt 1: it changed nothing" in last.read_text()


def test_a_label_begins_with_the_first_model_of_its_ladder(firm: Firm):
    here = firm.here
    with here.squad.settings.open("a") as settings:
        settings.write('\n[models.by_label]\nurgent = ["opus"]\n')
    firm.play("engineer", bash("date > urgent.txt"), say("Done."))
    before = len(here.stage.lines())
    ticket = here.project.dispatch("Quick", "", text="Quick!", labels=["ui", "urgent"])
    page = here.project.until(ticket, "done")
    assert page.labels == ["ui", "urgent"]
    assert {line.model for line in here.stage.lines()[before:] if line.script} != set()
    assert all("opus" in str(line.model) for line in here.stage.lines()[before:] if line.script)
