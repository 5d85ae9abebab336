"""Plans that start with a specification, and tickets with a condition, on the real store and real git."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.domain.plans.expansion import expand
from legion.domain.plans.template import read
from legion.domain.tickets.ticket import Fail, Propose, Start
from legion.jobs.plan import planner_run
from legion.jobs.plan.result_conditions import ResultConditions
from legion.jobs.run import job
from legion.store.board import goals, tickets
from legion.wire.errors import BadInput, StateConflict
from legion.wire.plans import NamedEpic, PlanPage, RejectPlan, SavePlan
from tests.support.office import Office, office
from tests.support.planner import TWO, Planner, ticket
from tests.support.repository import CHECK


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("specifications"), config=CHECK) as one:
        yield one


STAGES = ("# Requirements\n1. A cart.", "# Research\nshop.py:3", "# Cart\nDraft.", "# Cart\nCorrected.")


def test_a_specification_is_written_stage_by_stage_and_then_planned_from(desk: Office):
    planner = Planner(desk)
    page = planner.plan(*STAGES[:2], spec=True)
    assert (page.plan.state, page.plan.rounds) == ("planning", 0)
    assert [one.stage for one in page.documents] == ["gather", "research"]
    assert _stages(desk, page.plan.id) == ["done", "done", "working", "waiting", "waiting"]
    conversation = _conversation(desk, page)
    page = planner.answer(page.plan.id, "   ", *STAGES[2:])
    assert [one.text for one in page.documents] == list(STAGES)
    assert _conversation(desk, page) != conversation, "the critic must not be the author"
    page = planner.answer(page.plan.id, TWO)
    assert _stages(desk, page.plan.id) == ["done"] * 5
    assert (page.plan.state, [one.key for one in page.tickets]) == ("ready", ["schema", "login"])
    project = desk.context.project(1)
    with desk.context.store.read() as tx:
        prompts = planner_run.prompts(project, tx, goals.get(tx, int(page.plan.id[1:])))
    assert "Corrected." in prompts.first
    assert "Draft." not in prompts.first


def test_an_author_that_only_answers_with_nothing_fails_the_plan_and_may_ask_first(desk: Office):
    planner = Planner(desk)
    assert planner.plan("", "no heading", "# x" * 30_000, spec=True).plan.state == "failed"
    asked = {"questions": [{"text": "Which file?", "proposals": ["one.txt", "two.txt"]}]}
    page = planner.plan(asked, spec=True, questions=True)
    assert (page.plan.state, page.documents) == ("asking", [])
    assert _stages(desk, page.plan.id)[0] == "asking"
    stopped = desk.person.stop_epic(NamedEpic(cwd=desk.cwd, epic=page.plan.id))
    assert (stopped.message, stopped.tickets) == (f"{page.plan.id} is dropped.", [])
    assert _stages(desk, page.plan.id)[0] == "stopped"
    with pytest.raises(BadInput, match="add --spec"):
        planner.plan(keep_docs=True)


def test_kept_documents_land_by_a_ticket_of_their_own_before_the_others(desk: Office):
    planner = Planner(desk)
    page = planner.plan(*STAGES, TWO, spec=True, keep_docs=True)
    assert page.plan.state == "ready", page.findings
    assert [(one.key, one.after) for one in page.tickets] == [
        ("specification", []),
        ("schema", ["specification"]),
        ("login", ["schema"]),
    ]
    desk.person.reject_plan(int(page.plan.id[1:]), RejectPlan(why="Smaller."))
    again = planner.answer(page.plan.id, {"tickets": [ticket("specification"), ticket("schema", new_files=["db.sql"])]})
    assert [one.key for one in again.tickets] == ["specification", "schema"], "a planner cannot replace that ticket"
    number = planner.approve(again).tickets["specification"]
    project = desk.context.project(1)
    with desk.context.store.read() as tx:
        made, other = tickets.get_many(tx, (number, number + 1))
    assert job.files_of(desk.context, project, other) == {}
    step, _ = job.write(desk.context, project, made, job.files_of(desk.context, project, made))
    assert isinstance(step, Propose)
    changed = {one.path for one in project.hub.changed_files(step.change.base, step.change.commit)}
    assert changed == {f"docs/specs/{page.plan.id}.md", f"docs/specs/{page.plan.id}-notes.md"}


def test_a_specification_waits_is_edited_sent_back_and_planned_from_word_for_word(desk: Office):
    planner = Planner(desk)
    page = planner.plan(*STAGES, stop_at="spec")
    id = int(page.plan.id[1:])
    assert (page.plan.state, page.plan.offers) == (
        "written",
        ["approve_plan", "reject_plan", "plan_text", "save_plan", "drop_plan"],
    )
    with desk.context.store.read() as tx:
        assert id not in [one.id for one in goals.being_planned(tx)]
    with pytest.raises(BadInput, match="has no tickets yet"):
        planner.approve(page, "schema")
    there = desk.person.plan_text(id)
    assert there.text == "# Cart\nCorrected.\n"
    with pytest.raises(BadInput, match="no heading"):
        desk.person.save_plan(id, SavePlan(text="nothing", version=there.version))
    mine = "# Cart\nIt holds\n  40 things -- no more.\n"
    desk.person.save_plan(id, SavePlan(text=mine, version=there.version))
    with pytest.raises(StateConflict, match="changed while you edited it"):
        desk.person.save_plan(id, SavePlan(text="# Older", version=there.version))

    desk.person.reject_plan(id, RejectPlan(why="Say how it is emptied."))
    prompt = _prompt(desk, id)
    assert "40 things -- no more." in prompt
    assert "Say how it is emptied." in prompt
    assert "Correct the specification" in prompt
    page = planner.answer(page.plan.id, "# Cart\nEmptied.")
    assert (page.plan.state, [one.stage for one in page.documents]) == (
        "written",
        ["gather", "research", "write", "criticise"],
    )
    desk.person.save_plan(id, SavePlan(text=mine, version=desk.person.plan_text(id).version))
    assert planner.approve(page, dry_run=True).message.endswith("would be planned from its specification.")
    assert (planner.approve(page).state, desk.person.plan_page(id).plan.state) == ("planning", "planning")
    assert mine in _prompt(desk, id)
    assert "Emptied" not in _prompt(desk, id)
    with pytest.raises(StateConflict, match="has nothing to approve"):
        planner.approve(page)
    page = planner.answer(page.plan.id, TWO)
    assert page.plan.state == "ready"


def test_how_much_is_written_is_chosen_by_rule_or_by_the_person(desk: Office):
    planner = Planner(desk)
    page = planner.plan(depth="auto", stop_at="spec")
    assert (page.spec, page.depth) == (True, "short: 2 points, 5 words")
    page = planner.answer(page.plan.id, "# Cart\nDraft.", "# Cart\nCorrected.")
    assert (page.plan.state, _stages(desk, page.plan.id)) == ("written", ["done", "done", "asking"])
    page = planner.plan(TWO, depth="auto")
    assert (page.spec, page.depth, page.plan.state) == (False, "none: 2 points, 5 words", "ready")
    assert planner.plan(depth="full").depth == ""
    for wrong in ({"depth": "deep"}, {"stop_at": "plan"}):
        with pytest.raises(BadInput, match="not '"):
            planner.plan(**wrong)


def _prompt(desk: Office, id: int) -> str:
    project = desk.context.project(1)
    with desk.context.store.read() as tx:
        return planner_run.prompts(project, tx, goals.get(tx, id)).first


def _stages(desk: Office, epic: str) -> list[str]:
    return [one.state for one in desk.person.epic(desk.cwd, epic).stages]


def _conversation(desk: Office, page: PlanPage) -> str:
    with desk.context.store.read() as tx:
        return goals.get(tx, int(page.plan.id[1:])).conversation


def test_a_ticket_with_a_condition_is_a_draft_until_the_result_is_there(desk: Office):
    planner = Planner(desk)
    answer = {
        "tickets": [
            ticket("audit", new_files=["audit.md"], text="Look."),
            ticket("fix", when="audit.failed"),
            ticket("praise", when="audit.landed", criteria=[{"text": "It is kind", "why_not": "taste"}]),
            ticket("end", "praise"),
            ticket("more", when="audit.result == 'findings'"),
        ]
    }
    with pytest.raises(BadInput, match="Ticket fix comes after audit, which is not approved"):
        planner.approve(planner.plan(answer), "fix")
    page = planner.plan(answer)
    made = planner.approve(page).tickets
    assert _state(desk, made["fix"]) == "draft"
    assert desk.person.ticket(made["fix"]).ticket.reason == "it starts only if audit.failed"
    look = ResultConditions(desk.context).look
    look()
    assert _state(desk, made["fix"]) == "draft", "nothing has ended"
    with desk.context.store.write() as tx:
        tickets.move(tx, made["audit"], Start("c" * 40))
        tickets.move(tx, made["audit"], Fail("no luck"))
    look()
    look()
    states = [_state(desk, made[key]) for key in ("fix", "praise", "end", "more")]
    assert states == ["queued", "stopped", "queued", "stopped"]
    assert desk.person.ticket(made["praise"]).ticket.reason.startswith("not needed: landed")
    assert desk.person.ticket(made["end"]).ticket.after == [], "it comes after what the one that is not needed did"

    text = desk.person.template_from(desk.cwd, page.plan.epic).text
    again = expand(read("audits", text, "audits.toml"), {}, lambda _: [])
    assert [(one.key, one.after, str(one.when or "")) for one in again.tickets] == [
        ("make-audit", (), ""),
        ("make-fix", (), "make-audit.failed"),
        ("make-praise", (), "make-audit.landed"),
        ("make-end", ("make-praise",), ""),
        ("make-more", (), "make-audit.result == 'findings'"),
    ]
    assert (again.tickets[0].text, again.tickets[2].criteria[0].why_not) == ("Look.", "taste")
    assert again.tickets[0].new_files == ("audit.md",), "it has not landed"


def _state(desk: Office, number: int) -> str:
    return desk.person.ticket(number).ticket.state
