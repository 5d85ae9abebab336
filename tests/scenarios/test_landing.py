"""Changes reach the target: together, tested, in order; what does not fit goes back to its agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from legion.wire.history import HistoryLine
from legion.wire.ticket_pages import TicketPage
from tests.scenarios.conftest import shared_project
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One for the tests that look at their own tickets and files only."""
    yield from shared_project(house, tmp_path_factory.mktemp("landing"))


def test_tickets_go_from_words_to_landed_code_and_red_and_empty_changes_go_back(project: Project):
    mends = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > mended.txt; exit; fi
    grep -q mended.txt "$LEGION_BRIEFING" && echo fine > mended.txt
    """
    first, second, mended, empty = project.dispatch_all(
        [
            new("first", "echo one > a.txt", key="one"),
            new("second", "cat a.txt a.txt > b.txt", after_keys=["one"]),
            new("mend", mends),
            new("nothing", "true", max_attempts=2),
        ]
    )
    project.until_settled()
    page = project.ticket(first)
    assert page.ticket.state == "done"
    assert {(receipt.command, receipt.verdict) for receipt in page.receipts} >= {("sh check.sh", "green")}
    assert (project.state(second), project.landed("b.txt")) == ("done", "one\none\n"), "it starts from landed code"
    page = project.ticket(mended)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert project.landed("mended.txt") == "fine\n"
    page = project.ticket(empty)
    assert page.ticket.state == "failed"
    assert "changed nothing" in page.ticket.reason


def test_one_bad_change_does_not_hold_up_the_others(project: Project):
    good = [project.dispatch(f"good {n}", f"echo {n} > {n}.txt") for n in range(4)]
    bad = project.dispatch("bad", "echo BROKEN > bad.txt", max_attempts=1)
    project.until_settled()
    assert {project.state(ticket) for ticket in good} == {"done"}
    assert project.state(bad) == "failed"
    assert project.landed("bad.txt") is None


def test_two_that_touch_the_same_lines_both_land_after_one_resolves(project: Project):
    agent = """
    if grep -q '<<<<<<<' README.txt; then
        sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' README.txt
    else
        echo "$LEGION_TICKET was here" > README.txt
    fi
    """
    one, two = project.dispatch("one", agent), project.dispatch("two", agent)
    project.until_settled()
    assert (project.state(one), project.state(two)) == ("done", "done")
    text = project.landed("README.txt") or ""
    assert f"{one} was here" in text
    assert f"{two} was here" in text


def test_the_persons_own_commits_are_absorbed_and_collect_fast_forwards(project: Project):
    project.dispatch("agent", "echo agent > agent.txt")
    project.until_settled()
    mine = project.repository.commit("mine", {"mine.txt": "mine\n"})
    project.dispatch("later", "cat mine.txt > later.txt")
    project.until_settled()
    project.collect()
    assert project.landed("later.txt") == "mine\n"
    assert mine in project.repository.git("log", "--format=%H")
    assert (project.repository.root / "agent.txt").read_text() == "agent\n"
    assert project.repository.git("status", "--porcelain") == ""


def held(make: Callable[..., Project], gate: Gate, agents: Sequence[str]) -> tuple[Project, list[int]]:
    """All these changes wait for landing at the same time, because the check of one before them stands at the gate."""
    check = f"if [ -e hold.txt ] && ! ls change*.txt; then {gate.pause}; fi; sh check.sh"
    project = make(
        f"[checks.test]\nrun = '''{check}'''\n[agents]\nparallel = 8\nattempts = 2\n[landing]\nchecks_at_once = 4\n"
        # They wait for each other, and not for a place in a batch that is built ahead.
        "speculate = false\n"
    )
    project.dispatch("hold", "echo held > README.txt; touch hold.txt")
    gate.arrived()
    tickets = project.dispatch_all([new(f"change {n}", agent) for n, agent in enumerate(agents)])
    for ticket in tickets:
        project.until(ticket, "landing")
    return project, tickets


def held_batch(make: Callable[..., Project], gate: Gate, agents: Sequence[str]) -> tuple[Project, list[int]]:
    """They waited for landing at the same time, and go on."""
    project, tickets = held(make, gate, agents)
    gate.open()
    return project, tickets


def told(project: Project, kind: str) -> list[HistoryLine]:
    return [line for line in project.squad.client.history(project.cwd).lines if line.kind == kind]


def test_smaller_changes_go_first_conflicting_ones_go_back_and_the_board_says_where_each_stands(
    make: Callable[..., Project], gate: Gate
):
    quarrels = "if grep -q '<<<<<<<' README.txt; then echo both > README.txt; else echo mine > README.txt; fi"
    agents = [*(f"seq {size} > change{size}.txt" for size in (30, 1, 10)), f"{quarrels}; seq 40 > change40.txt"]
    project, (big, small, middle, conflicting) = held(make, gate, agents)
    lines = {line.id: line.doing for line in project.squad.client.status(project.cwd).tickets}
    assert lines.pop(first := min(lines)) == "in test"
    (test,) = project.squad.client.merge_queue(project.cwd).tests
    assert (test.kind, test.tickets, [check.state for check in test.checks]) == ("together", [first], ["runs"])
    assert lines == {
        small: "in the merge queue, place 1 of 4, 1 line",
        middle: "in the merge queue, place 2 of 4, 10 lines",
        big: "in the merge queue, place 3 of 4, 30 lines",
        conflicting: "in the merge queue, place 4 of 4, 42 lines",
    }
    gate.open()
    project.until_settled()
    assert project.landed_titles()[:5] == ["change 3", "change 0", "change 2", "change 1", "hold"]
    batch = told(project, "landing.batch")[0]
    words = f"tries #{small} (1 line), #{middle} (10 lines), #{big} (30 lines), #{conflicting} (42 lines) together"
    assert (batch.words, batch.rule) == (words, "small-first")
    # What it conflicts with landed while it waited: it goes back before those in front of it are tested.
    assert (project.landed("README.txt"), project.ticket(conflicting).ticket.attempt) == ("both\n", 2)
    (back,) = told(project, "landing.sent-back")
    (landed,) = [line for line in told(project, "landing.landed") if line.ticket == small]
    assert back.ticket == conflicting
    assert back.n < landed.n


def test_without_the_culprit_the_whole_batch_lands_at_once_and_the_culprit_goes_on_from_there(
    make: Callable[..., Project], gate: Gate
):
    bad = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > change1.txt; else ls change*.txt > change1.txt; fi'
    agents = [bad if n == 1 else f"echo {n} > change{n}.txt" for n in range(4)]
    project, tickets = held_batch(make, gate, agents)
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    assert project.landed("change1.txt") == "".join(f"change{n}.txt\n" for n in range(4))
    landed = [project.ticket(ticket) for ticket in tickets]
    assert [page.ticket.attempt for page in landed] == [2 if n == 1 else 1 for n in range(4)]
    assert len({landed_with(page) for n, page in enumerate(landed) if n != 1}) == 1
    assert landed[1].base == landed_with(landed[0])


def test_two_culprits_in_one_batch_go_back_and_all_others_land(make: Callable[..., Project], gate: Gate):
    agents = [f"echo {'BROKEN' if n in (1, 2) else n} > change{n}.txt" for n in range(5)]
    project, tickets = held_batch(make, gate, agents)
    project.until_settled()
    assert [project.state(ticket) for ticket in tickets] == ["done", "failed", "failed", "done", "done"]
    assert [project.landed(f"change{n}.txt") for n in range(5)] == ["0\n", None, None, "3\n", "4\n"]
    page = project.squad.client.merge_queue(project.cwd)
    assert {(one.ticket, one.state, *one.checks) for one in page.blamed} == {
        (ticket, "failed", "test") for ticket in tickets[1:3]
    }
    assert (page.tests, page.suspects) == ([], [])
    hows = [line.data["how"] for line in told(project, "landing.test")]
    assert {"together", "part", "alone"} <= set(hows)
    first = told(project, "landing.batch-size")[0]
    # Who came first decides how many were behind the first culprit.
    assert re.fullmatch(
        r"2 batches in a row were red, the last of \d: the next batch holds at most \d+, not 32", first.words
    )
    assert first.rule == "batch-learns"


def test_two_that_only_fail_together_cost_one_of_them_an_attempt(make: Callable[..., Project], gate: Gate):
    """What each of them proves holds alone, but not beside the other."""
    project = make("[landing]\nchecks_at_once = 4\n[agents]\nattempts = 1\n")
    alone = "test $(ls one.txt two.txt 2>/dev/null | wc -l) = 1"
    first, second = project.dispatch_all(
        [new(f"write {name}", f"{gate.pause}; touch {name}.txt", prove=[alone]) for name in ("one", "two")]
    )
    gate.arrived(2)
    gate.open(2)
    project.until_settled()
    assert sorted([project.state(first), project.state(second)]) == ["done", "failed"]


def landed_with(page: TicketPage) -> object:
    """The tip with which it reached the target."""
    return next(event.data["tested"] for event in page.history if event.kind == "landing.landed")


_PACKAGES = """\
[checks.a]
run = "! grep -r BROKEN a"
paths = ["a"]
[checks.b]
run = "! grep -r BROKEN b"
paths = ["b"]
[agents]
attempts = 1
"""


def test_a_change_is_tested_by_the_checks_of_what_it_touches(make: Callable[..., Project]):
    project = make(_PACKAGES, {"a/x.txt": "fine\n", "b/x.txt": "BROKEN\n"})
    only_a = project.dispatch("only a", "echo more > a/y.txt")
    page = project.until(only_a, "done")
    assert {receipt.name for receipt in page.receipts} == {"a"}
    assert page.not_needed == ["b: touches nothing of b"]
    said = project.squad.cli("ticket", str(only_a), cwd=project.repository.root).stdout
    assert "not needed: b: touches nothing of b" in said
    blameless = project.dispatch("b fails anyway", "echo more > b/y.txt")
    assert "the target itself fails" in project.until(blameless, "parked").ticket.reason

    mended = project.dispatch("mend b", "echo fine > b/x.txt")
    assert {receipt.name for receipt in project.until(mended, "done").receipts} == {"b"}
    project.until(blameless, "done")
    shared = project.dispatch("a file of neither", "echo x > lock.txt")
    assert {receipt.name for receipt in project.until(shared, "done").receipts} == {"a", "b"}
    broken = project.dispatch("break both", "echo BROKEN > a/z.txt; echo BROKEN > b/z.txt")
    assert "! grep -r BROKEN a" in project.until(broken, "failed").ticket.reason


_SHARED = """\
[setup]
run = "mkdir -p deps && cat a/requirements.txt > deps/all"
key = ["a/requirements.txt"]
[checks.a]
run = "true"
paths = ["a"]
[checks.b]
run = "! grep -R BROKEN deps/all b/*"
paths = ["b"]
[agents]
attempts = 1
"""


def test_no_check_is_left_out_that_setup_or_a_link_leads_to(make: Callable[..., Project]):
    files = {"a/requirements.txt": "fine\n", "a/lib/x.txt": "fine\n", "b/x.txt": "fine\n", ".gitignore": "deps/\n"}
    project = make(_SHARED, files)
    project.until(project.dispatch("link", "ln -s ../a/lib b/lib"), "done")
    by_link = project.dispatch("break by a link", "echo BROKEN > a/lib/x.txt")
    assert "grep -R BROKEN" in project.until(by_link, "failed").ticket.reason
    by_setup = project.dispatch("break by setup", "echo BROKEN > a/requirements.txt")
    assert "grep -R BROKEN" in project.until(by_setup, "failed").ticket.reason
