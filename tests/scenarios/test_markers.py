"""Conflict markers that an agent leaves behind never land."""

from __future__ import annotations

from tests.support.legion import Project


def test_an_agent_that_leaves_conflict_markers_is_sent_back_until_its_attempts_are_used_up(project: Project):
    agent = """
    test "$LEGION_ATTEMPT" = 1 && echo "$LEGION_TICKET was here" > README.txt
    echo "$LEGION_ATTEMPT" > "$LEGION_TICKET.txt"
    """
    one, two = project.dispatch("one", agent), project.dispatch("two", agent)
    project.until_settled()
    states = project.states()
    assert sorted(states.values()) == ["done", "failed"]
    (lost,) = (ticket for ticket in (one, two) if states[ticket] == "failed")
    assert "left conflict markers" in project.ticket(lost).ticket.reason
    feedback = project.ticket(lost).feedback
    assert feedback.endswith("remove the markers:\n\n- README.txt"), "and not the other file that it changed"
    assert "<<<<<<<" not in (project.landed("README.txt") or "")


def test_an_unfinished_merge_of_the_agents_own_goes_back_until_it_is_finished(project: Project):
    agent = """
    if test "$LEGION_ATTEMPT" = 1; then
        git checkout -q -b side; echo theirs > README.txt; git commit -qam theirs; git checkout -q -
        echo ours > README.txt; git commit -qam ours; git merge -q side; exit 0
    fi
    grep -q 'merge --continue' "$LEGION_BRIEFING" && echo both > README.txt && git commit -qam both
    """
    ticket = project.dispatch("merges", agent)
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert project.landed("README.txt") == "both\n"
    back = next(event for event in page.history if event.data.get("to") == "queued" and event.data.get("cause"))
    assert back.data["reason"] == "it left a merge unfinished"
