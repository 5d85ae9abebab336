"""Changes reach the target: together, tested, in order; what does not fit goes back to its agent."""

from __future__ import annotations

from tests.support.legion import Project, new


def test_a_ticket_goes_from_words_to_landed_code(project: Project):
    ticket = project.dispatch("write a", "echo a > a.txt")
    project.until_settled()
    page = project.ticket(ticket)
    assert page.ticket.state == "done"
    assert project.landed("a.txt") == "a\n"
    assert [(receipt.command, receipt.verdict) for receipt in page.receipts] == [("sh check.sh", "green")]


def test_a_dependant_starts_from_the_landed_code(project: Project):
    first, second = project.dispatch_all(
        [new("first", "echo one > a.txt", key="one"), new("second", "cat a.txt a.txt > b.txt", after_keys=["one"])]
    )
    project.until_settled()
    assert project.landed("b.txt") == "one\none\n"
    assert project.states() == {first: "done", second: "done"}


def test_a_red_check_goes_back_with_its_output_and_the_next_attempt_mends_it(project: Project):
    agent = """
    if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > a.txt; exit; fi
    grep -q a.txt "$LEGION_BRIEFING" && echo fine > a.txt
    """
    ticket = project.dispatch("mend", agent)
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert project.landed("a.txt") == "fine\n"


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
    assert project.states() == {one: "done", two: "done"}
    text = project.landed("README.txt") or ""
    assert f"{one} was here" in text
    assert f"{two} was here" in text


def test_an_empty_change_is_never_done(project: Project):
    ticket = project.dispatch("nothing", "true", max_attempts=2)
    project.until_settled()
    page = project.ticket(ticket)
    assert page.ticket.state == "failed"
    assert "changed nothing" in page.ticket.reason


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
