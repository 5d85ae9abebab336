"""Tickets that change the same code: what another one brought needs no attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.scenarios.conftest import shared_project
from tests.support.gates import Gate
from tests.support.legion import Project, Squad, new

PARSER = "class Parser:\n    def __init__(self, text):\n        self.text = text\n\n    def end(self):\n        pass\n"


@pytest.fixture(scope="module")
def project(house: Squad, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    yield from shared_project(house, tmp_path_factory.mktemp("coupled"), {"menu.txt": "soup\n", "parser.py": PARSER})


def both_at_work(
    project: Project, gates: Callable[[], Gate], first: str, second: str, proof: str, **fields: object
) -> tuple[int, int]:
    """Both start from the same target, and the first lands before the second proposes anything."""
    gate = gates()
    other, mine = project.dispatch_all(
        [
            new("tea and coffee", first, **fields),
            new("coffee", f"[ $LEGION_ATTEMPT != 1 ] || {gate.pause}; {second}", prove=[proof]),
        ]
    )
    gate.arrived()
    project.until(other, "done")
    gate.open()
    project.until_settled(other, mine)
    return other, mine


def test_a_ticket_whose_conflicting_work_has_landed_with_another_is_done_by_it(
    project: Project, gates: Callable[[], Gate]
):
    write = "printf 'soup\\ntea\\ncoffee\\n' > menu.txt"
    other, mine = both_at_work(project, gates, write, "echo coffee >> menu.txt", "grep -q coffee menu.txt")
    page = project.ticket(mine)
    assert (page.ticket.state, len(page.runs)) == ("done", 1)
    assert f"ticket {other} brought it" in page.ticket.reason
    assert "grep -q coffee menu.txt" in {one.command for one in page.receipts if one.verdict == "green"}
    assert project.landed("menu.txt") == "soup\ntea\ncoffee\n"


def test_a_ticket_that_finds_its_work_landed_and_changes_nothing_is_done_by_the_other(
    project: Project, gates: Callable[[], Gate]
):
    prove = "grep -q wine wine.txt"
    other, mine = both_at_work(project, gates, "echo wine > wine.txt", "true", prove)
    page = project.ticket(mine)
    assert (page.ticket.state, len(page.runs)) == ("done", 1)
    assert f"ticket {other} brought it" in page.ticket.reason


@pytest.mark.parametrize("prove", ["true", "grep -q juice juice.txt"], ids=["green before", "red after"])
def test_proofs_that_show_nothing_make_no_empty_change_done(project: Project, gates: Callable[[], Gate], prove: str):
    name = prove.partition(" ")[0]
    _, mine = both_at_work(project, gates, f"echo {name} > {name}.txt", "true", prove)
    page = project.ticket(mine)
    assert page.ticket.state in ("failed", "parked")
    assert "changed nothing" in page.ticket.reason


def test_the_feedback_about_a_conflict_knows_the_other_side(project: Project, gates: Callable[[], Gate]):
    second = """
    if grep -q '<<<<<<<' parser.py; then
        cp "$LEGION_BRIEFING" seen.txt
        sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>\\|self, text, milk/d' parser.py
    else
        sed -i 's/self, text)/self, text, lemon)/' parser.py
    fi
    """
    other, mine = both_at_work(
        project,
        gates,
        "sed -i 's/self, text)/self, text, milk)/' parser.py",
        second,
        "grep -q lemon parser.py",
        text="Milk first.",
        criteria="milk is poured",
        prove=["milk is poured :: test -f parser.py"],
    )
    assert project.state(mine) == "done"
    seen = project.landed("seen.txt") or ""
    assert f"Ticket {other} has landed: tea and coffee" in seen
    assert "Milk first." in seen
    assert "milk is poured" in seen
    assert "test -f parser.py" in seen
    assert "parser.py: both changed Parser.__init__" in seen
    assert "Parser.end" not in seen
    for version in ("self, text):", "self, text, milk):", "self, text, lemon):"):
        assert version in seen


def test_the_board_names_the_definition_that_two_tickets_change(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project, gate = make("[checks.test]\nrun = 'true'\n[conflicts]\nlook_every = 0.2\n"), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    agent = f'sed -i "s/self, text)/self, text, n$LEGION_TICKET)/" parser.py; {gate.pause}'
    one, two = project.dispatch_all([new("one", agent, max_attempts=1), new("two", agent, max_attempts=1)])
    gate.arrived(2)
    project.until_true(lambda: bool(project.ticket(one).clashes))
    assert {line.definition for line in project.ticket(two).clashes} == {"Parser.__init__"}
    assert (
        f"will conflict with #{two} in Parser.__init__"
        in project.squad.cli("status", cwd=project.repository.root).stdout
    )
    gate.open(2)
    project.until_settled()


def test_a_red_check_says_whose_proof_the_change_breaks(make: Callable[..., Project], gates: Callable[[], Gate]):
    gate = gates()
    held = f"if [ -e hold.txt ] && ! ls sugar.txt salt.txt; then {gate.pause}; fi"
    project = make(f"[checks.test]\nrun = '''{held}'''\n[landing]\nspeculate = false\n[reversal]\nproofs = 0\n")
    project.dispatch("hold", "touch hold.txt")
    gate.arrived()
    salts = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then echo much > salt.txt; exit; fi
    cp "$LEGION_BRIEFING" seen.txt; echo little > salt.txt
    """
    sweet = "test -f sugar.txt && ! grep -q much salt.txt"
    other, mine = project.dispatch_all(
        [new("sweet", "touch sugar.txt", priority=5, prove=[sweet]), new("salt", salts, prove=["test -f salt.txt"])]
    )
    for ticket in (other, mine):
        project.until(ticket, "landing")
    gate.open(20)
    project.until_settled(other, mine, patience=60)
    assert (project.state(other), project.state(mine), len(project.ticket(mine).runs)) == ("done", "done", 2)
    assert f"This is a proof of ticket {other} (sweet), which your change breaks" in (project.landed("seen.txt") or "")


def test_an_agent_that_changed_nothing_sees_which_proof_is_red(project: Project):
    agent = 'cp "$LEGION_BRIEFING" seen-bread.txt; [ $LEGION_ATTEMPT = 2 ] && touch bread.txt || rm seen-bread.txt'
    bread = project.dispatch("bread", agent, prove=["echo only crumbs; test -f bread.txt"], max_attempts=3)
    page = project.until(bread, "done")
    seen = project.landed("seen-bread.txt") or ""
    assert len(page.runs) == 2
    assert "These commands failed on the code as you left it" in seen
    assert "only crumbs" in seen


TAX = "`Parser.__init__` takes one more parameter."


def parameter(name: str) -> str:
    return f"sed -i 's/self, text/self, text, {name}/' parser.py"


def test_tickets_that_name_one_definition_do_not_both_start_cold(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project, gate = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n"), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    first, second, other = project.dispatch_all(
        [
            new("milk", f"{parameter('milk')}; {gate.pause}", text=TAX, prove=["grep -q milk parser.py"]),
            new("lemon", parameter("lemon"), text=TAX, prove=["grep -q lemon parser.py"]),
            new("else", "touch else.txt", text="`Parser.end` is not touched."),
        ]
    )
    gate.arrived()
    project.until(other, "done")
    line = project.ticket(second).ticket
    assert line.state == "queued"
    assert f"waits for #{first}, which changes Parser.__init__, too" in line.doing
    assert f"#{first}, which changes" in project.squad.cli("status", cwd=project.repository.root).stdout
    gate.open()
    project.until_settled()
    assert [len(project.ticket(one).runs) for one in (first, second)] == [1, 1]
    assert "self, text, lemon, milk" in (project.landed("parser.py") or "")


BOTH = "sed -i 's/self, text)/self, text, milk, lemon)/' parser.py"


@pytest.mark.parametrize(
    ("prove", "runs"), [("grep -q lemon parser.py", 0), ("test -f parser.py", 1), ("grep -q sugar parser.py", 1)]
)
def test_a_ticket_that_waited_for_the_one_that_brought_its_work_is_done_without_a_turn(
    make: Callable[..., Project], gates: Callable[[], Gate], prove: str, runs: int
):
    project, gate = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n"), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    first, second = project.dispatch_all(
        [new("milk", f"{gate.pause}; {BOTH}", text=TAX), new("lemon", parameter("sugar"), text=TAX, prove=[prove])]
    )
    gate.arrived()
    gate.open()
    project.until_settled()
    page = project.ticket(second)
    assert (project.state(first), page.ticket.state, len(page.runs)) == ("done", "done", runs)
    assert ("sugar" in (project.landed("parser.py") or "")) == bool(runs)
    if not runs:
        assert f"ticket {first} brought it" in page.ticket.reason
        assert prove in {one.command for one in page.receipts if one.verdict == "green"}


def test_proofs_that_run_before_a_start_outlive_the_daemon_and_end_with_the_ticket(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project, gate, held = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n"), gates(), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    prove = f"{held.pause}; grep -q lemon parser.py"
    first, second, third = project.dispatch_all(
        [
            new("milk", f"{gate.pause}; {BOTH}", text=TAX, priority=3),
            new("lemon", parameter("sugar"), text=TAX, prove=[prove], priority=2),
            new("salt", parameter("salt"), text=TAX, prove=["grep -q salt parser.py"]),
        ]
    )
    gate.arrived()
    gate.open()
    project.until(first, "done")
    held.arrived()
    project.until_true(lambda: "its proofs run first" in project.ticket(second).ticket.doing)
    assert (project.state(second), project.state(third)) == ("queued", "queued")
    project.squad.kill()
    held.open(20)
    project.squad.start()
    project.until_settled()
    assert (project.state(second), len(project.ticket(second).runs)) == ("done", 0)
    assert (project.state(third), len(project.ticket(third).runs)) == ("done", 1)


def test_an_agent_waits_for_its_proofs_no_longer_than_the_budget_of_kept_ones(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    project, gate, held = make("[checks.test]\nrun = 'true'\n[conflicts]\nkeep_proofs = 1\n"), gates(), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    prove = f"grep -q sugar parser.py || {{ {held.pause}; false; }}"
    _, second = project.dispatch_all(
        [new("milk", f"{gate.pause}; {BOTH}", text=TAX), new("sugar", parameter("sugar"), text=TAX, prove=[prove])]
    )
    gate.arrived()
    gate.open()
    page = project.until(second, "done")
    assert len(page.runs) == 1
    held.open(20)


def test_a_person_may_start_it_alone(make: Callable[..., Project], gates: Callable[[], Gate]):
    project, gate = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n"), gates()
    project.repository.commit("parser", {"parser.py": PARSER})
    first, second, third = project.dispatch_all(
        [
            new("milk", f"{parameter('milk')}; {gate.pause}", text=TAX),
            new("lemon", f"touch lemon.txt; {gate.pause}", text=TAX),
            new("sugar", f"touch sugar.txt; {gate.pause}", text=TAX, alone=True),
        ]
    )
    gate.arrived(2)
    assert [project.state(one) for one in (first, second, third)] == ["working", "queued", "working"]
    project.squad.cli("edit", str(second), "--alone", cwd=project.repository.root)
    gate.arrived()
    gate.open(3)
    project.until_settled()


def test_a_ticket_starts_on_the_proven_change_of_the_one_it_waits_for_and_lands_after_it(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'true'\n[landing]\nmode = 'squash'\n[agents]\nparallel = 4\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    first, second = project.dispatch_all(
        [
            new("milk", parameter("milk"), text=TAX, gate="person", prove=["grep -q milk parser.py"]),
            new("lemon", parameter("lemon"), text=TAX, prove=["grep -q 'lemon, milk' parser.py"]),
        ]
    )
    project.until(first, "parked")
    project.until(second, "checking")
    assert f"waits for #{first}, on whose change it is built" in project.ticket(second).ticket.doing
    project.squad.kill()
    project.squad.start()
    assert project.state(second) == "checking"
    assert "milk" not in (project.landed("parser.py") or "")
    project.squad.cli("land", str(first), cwd=project.repository.root)
    project.until_settled()
    assert [len(project.ticket(one).runs) for one in (first, second)] == [1, 1]
    assert "self, text, lemon, milk" in (project.landed("parser.py") or "")


def test_what_stands_on_a_change_that_never_lands_lands_without_it(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    first, second = project.dispatch_all(
        [
            new("milk", f"{parameter('milk')}; touch milk.txt", text=TAX, gate="person"),
            new("lemon", "sed -i 's/pass/return 1/' parser.py", text=TAX, prove=["grep -q 'return 1' parser.py"]),
        ]
    )
    project.until(second, "checking")
    project.squad.cli("stop", str(first), cwd=project.repository.root)
    project.until_settled()
    assert project.state(second) == "done"
    assert "milk" not in (project.landed("parser.py") or "")
    assert project.landed("milk.txt") is None


def test_the_order_after_a_lost_conflict_outlives_the_daemon(make: Callable[..., Project], gates: Callable[[], Gate]):
    project, ahead, gate, held = (
        make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n"),
        gates(),
        gates(),
        gates(),
    )
    project.repository.commit("parser", {"parser.py": PARSER})
    resolve = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>\\|self, text, milk/d' parser.py"
    mine = 'sed -i "s/self, text/self, text, n$LEGION_TICKET/" parser.py'
    agent = f"if [ $LEGION_ATTEMPT = 1 ]; then {mine}; {gate.pause}; else {resolve}; {held.pause}; fi"
    first, *others = project.dispatch_all(
        [new("milk", f"{ahead.pause}; {parameter('milk')}"), new("lemon", agent), new("sugar", agent)]
    )
    ahead.arrived()
    gate.arrived(2)
    ahead.open()
    project.until(first, "done")
    gate.open(2)
    held.arrived()

    def waits() -> bool:
        return any("which changes Parser.__init__, too" in project.ticket(one).ticket.doing for one in others)

    project.until_true(waits)
    project.squad.kill()
    project.squad.start()
    project.until_true(waits)
    assert sorted(project.state(one) for one in others) == ["queued", "working"]
    held.open(2)
    project.until_settled()


def test_proofs_of_landed_tickets_stay_until_somebody_retires_them(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    milk = project.dispatch("milk", parameter("milk"), prove=["grep -q milk parser.py"])
    project.until(milk, "done")
    breaks = """
    if [ $LEGION_ATTEMPT = 1 ]; then sed -i 's/, milk/, lemon/' parser.py; exit; fi
    cp "$LEGION_BRIEFING" seen.txt; sed -i 's/lemon/lemon, milk/' parser.py
    """
    lemon = project.dispatch("lemon", breaks, prove=["grep -q lemon parser.py"])
    project.until(lemon, "done")
    assert len(project.ticket(lemon).runs) == 2
    assert f"This is a proof of ticket {milk} (milk), which your change breaks" in (project.landed("seen.txt") or "")
    assert f"it breaks what ticket {milk} (milk) proved" in str(project.ticket(lemon).history)
    # A ticket that says so, and a person, end them.
    gone = project.dispatch("no milk", "sed -i 's/, milk//' parser.py", retires=[milk], prove=["test -f parser.py"])
    project.until(gone, "done")
    assert len(project.ticket(gone).runs) == 1
    said = project.squad.cli("edit", str(lemon), "--retire", "lemon is out", cwd=project.repository.root)
    assert "run for later changes no more" in said.stdout
    last = project.dispatch("no lemon", "sed -i 's/, lemon//' parser.py")
    project.until(last, "done")
    assert len(project.ticket(last).runs) == 1
    assert project.ticket(milk).retired == f"ticket {gone}: no milk"
    assert project.ticket(lemon).retired == "lemon is out"


def test_a_proof_that_the_target_itself_fails_blames_no_change(make: Callable[..., Project]):
    project = make("[checks.test]\nrun = 'true'\n")
    project.repository.commit("parser", {"parser.py": PARSER})
    milk = project.dispatch("milk", parameter("milk"), prove=["grep -q milk parser.py && test ! -e gone.txt"])
    project.until(milk, "done")
    project.squad.cli("collect", cwd=project.repository.root)
    project.repository.commit("mine", {"gone.txt": "by the person"})
    lemon = project.dispatch("lemon", parameter("lemon"), prove=["grep -q lemon parser.py"])
    project.until(lemon, "done")
    assert len(project.ticket(lemon).runs) == 1
    assert "fails on the target itself" in project.ticket(milk).retired
