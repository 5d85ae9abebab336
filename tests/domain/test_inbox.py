"""What waits for a person comes in one order: what is settled without them soon, what holds up most, the oldest."""

from __future__ import annotations

import itertools
import random

import pytest

from legion.domain.questions import HURRY, OpenTickets, Waiting, WaitingKind, holds_up, in_order

NOW = 100_000.0
# 1 <- 2 <- 3, 1 <- 4; 5 alone; 9 in another project.
LIVE = OpenTickets(projects={1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 9: 2}, after={1: [], 2: [1], 3: [2], 4: [1], 5: [], 9: []})


def question(id: int, ticket: int | None = None, *, left: float = 86_400.0, **more: bool) -> Waiting:
    deadline = NOW + left
    return Waiting(
        kind=WaitingKind.QUESTION, id=id, project=1, ticket=ticket, since=NOW - 60, deadline=deadline, **more
    )


def failed(id: int, since: float = NOW - 60) -> Waiting:
    return Waiting(kind=WaitingKind.FAILED, id=id, project=1, ticket=id, since=since)


PLAN = Waiting(kind=WaitingKind.PLAN, id=3, project=1, brings=7, since=NOW - 5)
COMMITS = Waiting(kind=WaitingKind.COLLECT, id=1, project=1, since=NOW)


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (question(1, 1), 4),
        (question(1, 2), 2),
        (question(1, 5), 1),
        (failed(7), 1),
        (question(1, is_for_all=True), 5),
        (question(1), 0),
        (PLAN, 7),
        (COMMITS, 0),
    ],
)
def test_it_holds_up_its_ticket_and_all_that_come_after_it(one: Waiting, many: int) -> None:
    assert holds_up(one, LIVE) == many


def test_a_question_that_names_no_project_holds_up_all() -> None:
    everywhere = Waiting(kind=WaitingKind.QUESTION, id=1, project=0, is_for_all=True, since=NOW, deadline=NOW + 9_999)
    assert holds_up(everywhere, LIVE) == 6


def test_a_ticket_that_two_others_reach_counts_once_and_a_circle_ends() -> None:
    diamond = OpenTickets(projects=dict.fromkeys(range(1, 5), 1), after={1: [], 2: [1], 3: [1], 4: [2, 3]})
    circle = OpenTickets(projects={1: 1, 2: 1}, after={1: [2], 2: [1]})
    assert holds_up(question(1, 1), diamond) == 4
    assert circle.held_up_by(1) == 2


def test_the_order() -> None:
    urgent = question(1, 5, left=HURRY)
    wanted = [urgent, PLAN, question(2, is_for_all=True), question(3, 1), failed(2), failed(8, NOW - 10), COMMITS]
    for seed in range(50):
        given = random.Random(seed).sample(wanted, len(wanted))
        assert [one for one, _ in in_order(given, LIVE, NOW)] == wanted


def test_equal_ones_keep_an_order_of_their_own() -> None:
    same = [failed(number) for number in (6, 7, 8)]
    orders = {tuple(one.id for one, _ in in_order(given, LIVE, NOW)) for given in itertools.permutations(same)}
    assert orders == {(6, 7, 8)}
