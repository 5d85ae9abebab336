"""The next batch is built and tested on top of the one in test: it lands at once behind it, and never by mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.support.gates import Gate
from tests.support.legion import Project


def under_way(
    make: Callable[..., Project], first: Gate, second: Gate, content: str, above: str = "b"
) -> tuple[Project, int, int]:
    """One change stands at the first gate in its check, and another, built on top of it, at the second."""
    check = f"if [ -e b.txt ]; then {second.pause}; elif [ -e a.txt ]; then {first.pause}; fi; sh check.sh"
    project = make(f"[checks.test]\nrun = '''{check}'''\n[agents]\nattempts = 1\n")
    one = project.dispatch("a", f"echo {content} > a.txt")
    first.arrived()
    two = project.dispatch("b", f"echo {above} > b.txt")
    second.arrived()
    assert project.states() == {one: "landing", two: "landing"}
    return project, one, two


def trees(project: Project, verdict: str) -> list[object]:
    lines = project.squad.client.history(project.cwd).lines
    receipts = [line.data for line in lines if line.kind == "check.receipt" and line.data["verdict"] == verdict]
    return [data["commit"] for data in receipts]


def landed(project: Project, ticket: int) -> dict[str, object]:
    return next(event.data for event in project.ticket(ticket).history if event.kind == "landing.landed")


def test_one_that_is_still_in_test_is_waited_for_and_not_tested_twice(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    first, second = gates(), gates()
    project, one, two = under_way(make, first, second, "a")
    first.open()
    project.until(one, "done")
    second.open()
    project.until(two, "done")
    assert len(trees(project, "green")) == 3


def test_what_stands_on_red_is_given_up_and_lands_without_it_before_anyone_is_blamed(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    first, second = gates(), gates()
    project, one, two = under_way(make, first, second, "BROKEN")
    first.open()
    # Nobody let the test on top go on: this is the one without the bad change.
    second.arrived()
    second.open()
    project.until(two, "done")
    assert project.state(one) == "landing"
    first.open()
    project.until_settled()
    assert project.states() == {one: "failed", two: "done"}
    assert (project.landed("a.txt"), project.landed("b.txt")) == (None, "b\n")
    assert trees(project, "green")[1:] == [landed(project, two)["tested"]]
    assert len(trees(project, "red")) == 2
    assert len(set(trees(project, "red"))) == 1
    assert trees(project, "broken") == []


@pytest.mark.parametrize("sooner", [True, False], ids=["before", "after"])
def test_what_was_red_on_top_is_not_tested_again_but_for_the_repetition(
    make: Callable[..., Project], gates: Callable[[], Gate], sooner: bool
):
    """Before or after the batch below has landed."""
    first, second = gates(), gates()
    project, one, two = under_way(make, first, second, "a", above="BROKEN")
    if sooner:
        second.open()
        project.until_true(lambda: len(trees(project, "red")) == 1)
        first.open()
        project.until(one, "done")
    else:
        first.open()
        project.until(one, "done")
        second.open()
    second.arrived()
    second.open()
    project.until_settled()
    assert project.states() == {one: "done", two: "failed"}
    assert len(trees(project, "red")) == 2
    assert len(set(trees(project, "red"))) == 1


def test_several_batches_are_tested_on_top_of_each_other_and_not_again_when_they_land(
    make: Callable[..., Project], gates: Callable[[], Gate]
):
    first, second, third = gates(), gates(), gates()
    pauses = f"if [ -e c.txt ]; then {third.pause}; elif [ -e b.txt ]; then {second.pause}; "
    check = f"{pauses} elif [ -e a.txt ]; then {first.pause}; fi; sh check.sh"
    project = make(f"[checks.test]\nrun = '''{check}'''\n[landing]\nchecks_at_once = 3\n")
    ids = []
    for name, gate in (("a", first), ("b", second), ("c", third)):
        ids.append(project.dispatch(name, f"echo {name} > {name}.txt"))
        gate.arrived()
    for gate in (third, second, first):
        assert project.states() == dict.fromkeys(ids, "landing")
        gate.open()
    project.until_settled()
    assert project.states() == dict.fromkeys(ids, "done")
    # The baseline, and each on top of those below it: what was tested ahead lands without another test.
    greens = trees(project, "green")
    assert len(greens) == len(set(greens)) == 4
    for below, above in itertools.pairwise(landed(project, ticket) for ticket in ids):
        assert above["before"] == below["tested"]
        assert above["tested"] in greens


def test_switched_off_or_with_one_check_at_a_time_nothing_is_built_ahead(make: Callable[..., Project], gate: Gate):
    for more in ("[landing]\nspeculate = false\n", "[landing]\nchecks_at_once = 1\n"):
        check = f"if [ -e a.txt ] && [ ! -e b.txt ]; then {gate.pause}; fi; sh check.sh"
        project = make(f"[checks.test]\nrun = '''{check}'''\n{more}")
        project.dispatch("a", "echo a > a.txt")
        gate.arrived()
        later = project.dispatch("b", "echo b > b.txt")
        project.until(later, "landing")
        gate.open()
        project.until_settled()
        assert len(trees(project, "green")) == 3


def test_a_batch_ends_when_one_of_its_tickets_is_stopped(make: Callable[..., Project], gates: Callable[[], Gate]):
    """In its own test, and in one on top of it; nobody opens the gates at which the tests stand."""
    first, second = gates(), gates()
    project, one, two = under_way(make, first, second, "a")
    project.stop(one)
    # The change on top is tested anew, without the stopped one.
    second.arrived()
    assert project.ticket(two).ticket.doing == "in test"
    second.open()
    project.until(two, "done")
    assert project.state(one) == "stopped"
    assert (project.landed("a.txt"), project.landed("b.txt")) == (None, "b\n")


def test_a_stopped_ticket_on_top_ends_its_test(make: Callable[..., Project], gates: Callable[[], Gate]):
    first, second = gates(), gates()
    project, one, two = under_way(make, first, second, "a")
    project.stop(two)
    three = project.dispatch("c", "echo c > b.txt; touch c.txt")
    second.arrived()
    first.open()
    second.open()
    project.until(three, "done")
    assert project.states() == {one: "done", two: "stopped", three: "done"}
