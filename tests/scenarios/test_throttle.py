"""Limits and budgets over a real daemon: fewer runs near a limit, none at it, and a person can switch that off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from legion.wire.mail import AnswerQuestion
from tests.support.gates import Gate
from tests.support.legion import Project, squad
from tests.support.looking import until_seen
from tests.support.models import KEY, Company, company
from tests.support.readers import ALWAYS, approve
from tests.support.repository import Repository
from tests.support.settings import without_trial
from tests.support.staff import Staff


def script(here: Company, name: str, used: float, *, resets_in: float = 3000, command: str = "", cost: int = 1) -> None:
    words = json.dumps(command or f"echo {name} > {name}-$LEGION_TICKET.txt")
    usage = f"{{input = {cost}, output = 0, cache_read = 0, cache_write = 0}}"
    here.script(
        name,
        f"""
        [[step]]
        say = "I work."
        usage = {usage}
        limit = {{resets_in = {resets_in}, utilization = {used}}}
        call = {{tool = "Bash", input = {{command = {words}}}}}

        [[step]]
        say = "Done."
        usage = {usage}
        limit = {{resets_in = {resets_in}, utilization = {used}}}
        """,
    )


def paces(here: Company) -> list[tuple[object, object]]:
    lines = here.squad.client.history(None).lines
    return [(line.data["from"], line.data["to"]) for line in lines if line.kind == "throttle.changed"]


@pytest.mark.timeout(300)
def test_fewer_work_before_the_wall_none_at_it_all_behind_the_reset_and_a_person_can_switch_that_off(tmp_path: Path):
    with company(tmp_path, stand_in=True) as here:
        gate = Gate(tmp_path / "gates", "slow")
        script(here, "near", 0.95)
        script(here, "pausing", 0.95, command=f"{gate.pause}; echo x > x$LEGION_TICKET.txt")
        here.project.until(here.dispatch("near"), "done")
        here.project.until_true(lambda: paces(here) == [("open", "slow")])
        one, two = here.dispatch("pausing"), here.dispatch("pausing")
        gate.arrived()
        words = "waits, because fewer agents run at once near the limit (rehearsal: 95% of 5h is used)"
        here.project.until_true(lambda: words in here.project.ticket(two).ticket.doing)
        assert (here.project.state(one), here.project.state(two)) == ("working", "queued")
        gate.open(2)
        for ticket in (one, two):
            here.project.until(ticket, "done")
        gate.close()

        script(here, "used-up", 1.0, resets_in=8)
        script(here, "behind", 0.1)
        here.project.until(here.dispatch("used-up"), "done")
        here.project.until_true(lambda: paces(here)[1:2] == [("slow", "closed")])
        here.project.until(here.dispatch("behind"), "done")
        assert paces(here)[1:] == [("slow", "closed"), ("closed", "open")]

        script(here, "first", 0.99)
        script(here, "second", 0.99)
        here.project.until(here.dispatch("first"), "done")
        here.project.until_true(lambda: paces(here)[3:] == [("open", "closed")])
        held = here.dispatch("second")
        plain = here.project.dispatch("plain", "echo plain > plain.txt")
        here.project.until(plain, "done")
        line = here.project.ticket(held).ticket
        assert (line.state, line.attempt) == ("queued", 0)
        assert "waits for the reset of the limit (rehearsal: 99% of 5h is used); starts in" in line.doing
        here.squad.settings.write_text(here.squad.settings.read_text() + "\n[governor]\non = false\n")
        here.project.until(held, "done")

        # A standing agent rests as long as the provider says, and not for a pause of our own.
        staff = Staff(here)
        staff.script("walled", "status = 429\nlimit = {resets_in = 3000}")
        staff.hire("walled")
        rests = re.compile(r"waits for the provider, in \d\d min")
        until_seen(here.squad, lambda: rests.search(staff.lines()["walled"].doing), "it rests")


@pytest.mark.timeout(300)
def test_another_provider_of_the_route_is_asked_at_the_wall_and_only_when_all_are_there_is_anybody_held(tmp_path: Path):
    with company(tmp_path, stand_in=True) as here:
        here.told("provider", "add", "other", "--url", here.stage.url, "--key-stdin", stdin=KEY)
        for name in ("first", "third"):
            script(here, name, 0.99)
        here.project.until(here.dispatch("first"), "done")
        here.project.until_true(lambda: paces(here) == [("open", "closed")])
        here.told("route", "set", "claude-haiku-*", "rehearsal", "other")
        held = here.dispatch("third", model="sonnet")
        here.project.until_true(lambda: "rehearsal: 99% of 5h is used" in here.project.ticket(held).ticket.doing)
        # The first asked refuses, so the second answers, and says that it is as good as used up.
        here.script(
            "second",
            """
            [[step]]
            say = "I work."
            status = 429
            times = 1
            limit = {resets_in = 3000, utilization = 0.98}
            call = {tool = "Bash", input = {command = "echo 2 > second.txt"}}

            [[step]]
            say = "Done."
            """,
        )
        here.told("route", "set", "claude-sonnet-*", "rehearsal", "other")
        here.project.stop(held)
        here.project.until(here.dispatch("second", model="sonnet"), "done")
        here.project.until_true(lambda: len(paces(here)) == 2)
        held = here.dispatch("third", model="sonnet")
        here.project.until_true(lambda: "waits for the reset" in here.project.ticket(held).ticket.doing)
        assert here.project.state(held) == "queued"


@pytest.fixture(scope="module")
def of_epics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("epics"), settings="[budgets]\nepic_usd = 0.02\n", stand_in=True) as one:
        yield one


def test_a_spent_budget_ends_the_run_keeps_its_work_and_goes_on_when_it_is_raised(of_epics: Company):
    here = of_epics
    here.script(
        "dear",
        """
        [[step]]
        say = "I work."
        usage = {input = 10000, output = 0, cache_read = 0, cache_write = 0}
        call = {tool = "Bash", input = {command = "echo kept > kept.txt"}}

        [[step]]
        delay = 120
        say = "Done."
        """,
    )
    script(here, "cheap", 0.1)
    ticket = here.dispatch("dear", model="claude-sonnet-4-5", epic="login")
    here.project.until_true(lambda: [run.outcome for run in here.project.ticket(ticket).runs] == ["stopped"])
    page = here.project.until(ticket, "queued")
    words = "the budget of epic login, of $0.02 is spent ($0.03): raise `budgets.epic_usd` in your settings"
    until_seen(here.squad, lambda: words in here.project.ticket(ticket).ticket.doing, words)
    assert page.ticket.attempt == 1
    saved = here.project.hub_git("show", f"{page.runs[0].saved}:kept.txt")
    assert saved == "kept\n"
    assert here.cli("wait", str(ticket)).returncode != 0
    other = here.dispatch("cheap", epic="other")
    here.project.until(other, "done")
    here.script("dear", '[[step]]\nsay = "Done."\n')
    before = here.squad.settings.read_text()
    here.squad.settings.write_text(before.replace("0.02", "5"))
    here.project.until(ticket, "done")
    assert here.project.landed("kept.txt") == "kept\n"
    here.squad.settings.write_text(before)


def spend(here: Company, epic: str = "") -> None:
    """Three cents, by a ticket that has had its run; and a script for others that cost next to nothing."""
    script(here, "dear", 0.1, cost=5000)
    script(here, "cheap", 0.1)
    ticket = here.dispatch("dear", model="claude-sonnet-4-5", epic=epic)
    here.project.until_true(lambda: any(run.ended_at is not None for run in here.project.ticket(ticket).runs))
    # The gateway records within a second what was spent.
    until_seen(here.squad, lambda: spent(here, ticket) > 0.02, "what it spent")


def spent(here: Company, ticket: int) -> float:
    usage = here.project.ticket(ticket).usage
    return 0.0 if usage is None else usage.usd


def test_a_spent_budget_of_many_is_one_question_and_more_lets_all_of_them_go_on(of_epics: Company):
    here = of_epics
    spend(here, epic="signup")
    waiting = [here.dispatch("cheap", epic="signup"), here.dispatch("cheap", epic="signup")]
    here.project.until_true(lambda: bool(here.squad.client.inbox().questions))
    (question,) = here.squad.client.inbox().questions
    assert (question.kind, question.ticket, question.choices) == ("budget", None, ["more", "leave"])
    assert question.words.startswith("The budget of epic signup of $0.02 is spent ($0.03), and work waits for it.")
    assert "budget, all work of ada" in here.told("inbox")
    here.squad.kill()
    here.start()
    held = "the budget of epic"
    until_seen(here.squad, lambda: here.project.ticket(waiting[1]).ticket.doing.startswith(held), held)
    assert [one.id for one in here.squad.client.inbox().questions] == [question.id]
    assert "There is $0.02 more to spend" in here.told("answer", str(question.id), "more")
    for ticket in waiting:
        here.project.until(ticket, "done")
    assert here.squad.client.inbox().questions == []


def test_a_budget_that_is_raised_takes_its_question_back_and_a_no_is_not_asked_again(tmp_path: Path):
    with company(tmp_path, settings="[budgets]\nday_usd = 0.02\n", stand_in=True) as here:
        spend(here)
        waiting = here.dispatch("cheap")
        here.project.until_true(lambda: bool(here.squad.client.inbox().questions))
        (question,) = here.squad.client.inbox().questions
        assert "It stays as it is." in here.told("answer", str(question.id), "leave")
        other = here.dispatch("cheap")
        until_seen(here.squad, lambda: "budget" in here.project.ticket(other).ticket.doing, "what it waits for")
        assert here.squad.client.inbox().questions == []
        here.squad.settings.write_text(here.squad.settings.read_text().replace("0.02", "0.025"))
        here.project.until_true(lambda: bool(here.squad.client.inbox().questions), patience=120)
        here.squad.settings.write_text(here.squad.settings.read_text().replace("0.025", "5"))
        for ticket in (waiting, other):
            here.project.until(ticket, "done")
        assert here.squad.client.inbox().questions == []


@pytest.mark.timeout(300)
def test_a_budget_that_is_spent_by_who_reads_a_change_is_the_same_one_question(tmp_path: Path):
    """A ticket's own budget is not what is spent, so nothing is asked about the ticket."""
    settings = '[budgets]\nday_usd = 0.02\n[reviewer]\nmodel = "claude-sonnet-4-5"\n'
    usage = "usage = {input = 10000, output = 0, cache_read = 0, cache_write = 0}"
    look = 'say = "I look."\ncall = {tool = "Read", input = {file_path = "{cwd}/README.txt"}}'
    verdict = f"say = {json.dumps(json.dumps(approve('built.txt')))}"
    with company(tmp_path, settings=settings, config=ALWAYS, stand_in=True) as here:
        script(here, "built", 0.1, command="echo 'rehearsal: read' > built.txt")
        here.script("read", f"[[step]]\n{usage}\n{look}\n\n[[step]]\ndelay = 120\n{verdict}\n")
        ticket = here.dispatch("built")
        here.project.until_true(lambda: bool(here.squad.client.inbox().questions))
        (question,) = here.squad.client.inbox().questions
        assert (question.kind, question.ticket) == ("budget", None)
        page = here.project.ticket(ticket)
        assert (page.ticket.state, page.ticket.attempt) == ("reviewing", 1)
        assert "today's budget of $0.02 is spent" in page.ticket.doing
        assert [run.outcome for run in page.runs] == ["finished", "stopped"]
        # From now on it costs next to nothing, wherever in its script the conversation goes on.
        here.script("read", f"[[step]]\n{usage.replace('10000', '1')}\n{verdict}\n\n" * 3)
        here.told("answer", str(question.id), "more")
        here.project.until(ticket, "done")
        assert here.squad.client.inbox().questions == []


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Each test has settings of its own."""
    folder = tmp_path_factory.mktemp("rhythm")
    with squad(folder) as one:
        yield one.adopt(Repository(folder / "ada"))


def test_while_so_many_wait_for_the_person_nothing_new_begins(calm: Project):
    one = calm.squad
    one.settings.write_text(without_trial("[rhythm]\nwaiting = 1\n"))
    asks = calm.dispatch("asks", "mkdir .github; echo a > .github/a.yml")
    calm.until(asks, "parked")
    held = calm.dispatch("held", "echo b > b.txt")
    words = "waits until you have settled others: 1 ticket waits for you"
    calm.until_true(lambda: calm.ticket(held).ticket.doing == words)
    assert "waits until you have settled others" in one.cli("status", cwd=calm.repository.root).stdout
    (question,) = one.client.inbox().questions
    one.client.answer(question.id, AnswerQuestion(choice="yes"))
    calm.until(held, "done")
    calm.until(asks, "done")


def test_agents_begin_one_after_the_other(calm: Project):
    calm.squad.settings.write_text(without_trial("[rhythm]\nstagger = 1.5\n"))
    ids = [calm.dispatch(f"t{n}", f"sleep 4; echo {n} > {n}.txt") for n in range(3)]
    calm.until_settled(*ids)
    starts = sorted(calm.ticket(id).runs[0].started_at for id in ids)
    assert [calm.state(id) for id in ids] == ["done"] * 3
    assert all(later - earlier >= 1.5 for earlier, later in pairwise(starts))


def test_in_quiet_hours_nothing_begins_and_it_is_said(calm: Project):
    calm.squad.settings.write_text(without_trial('[rhythm]\nquiet = "00:00-23:59"\n'))
    ticket = calm.dispatch("t", "echo a > a.txt")
    until_seen(calm.squad, lambda: "quiet hours" in calm.ticket(ticket).ticket.doing, "what it waits for")
    calm.squad.settings.write_text(without_trial(""))
    calm.until(ticket, "done")
