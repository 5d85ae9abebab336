"""The merge queue's order and the size of its batches: nobody waits for ever, and batches fit what changes are like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product

import pytest

from legion.domain.landing.queue import (
    PATIENCE,
    LandingIntent,
    QueueEntry,
    QueueGoal,
    moved,
    newest_landed,
    ordered,
    overtaken,
    room_after,
)


def waiting(
    ticket: int, *, lines: int = 1, priority: int = 0, since: float | None = None, overtaken: int = 0, lost: int = 0
) -> QueueEntry:
    came = float(ticket) if since is None else since
    return QueueEntry(ticket=ticket, priority=priority, since=came, lines=lines, overtaken=overtaken, lost=lost)


def numbers(queue: Sequence[QueueEntry]) -> list[int]:
    return [one.ticket for one in queue]


def test_priority_comes_first_then_who_was_overtaken_then_size_then_age_then_number():
    queue = [
        waiting(1, lines=5),
        waiting(2, lines=2, since=9.0),
        waiting(3, lines=2, since=4.0),
        waiting(4, lines=2, since=4.0),
        waiting(5, lines=900, overtaken=PATIENCE),
        waiting(6, lines=900, priority=1),
        waiting(7, priority=-1, overtaken=PATIENCE),
        waiting(8, lines=900, overtaken=PATIENCE - 1),
    ]
    assert numbers(ordered(queue)) == [6, 5, 3, 4, 2, 1, 8, 7]
    assert ordered([]) == ()


def test_who_lost_a_conflict_goes_first_and_who_lost_most_often_before_the_others():
    queue = [
        waiting(1),
        waiting(2, lines=900, lost=1),
        waiting(3, lines=900, lost=3),
        waiting(4, lines=900, overtaken=PATIENCE),
        waiting(5, lines=900, priority=1),
    ]
    assert numbers(ordered(queue)) == [5, 3, 2, 4, 1]


ALL_KINDS = [
    waiting(0, priority=priority, lines=lines, since=since, overtaken=passed)
    for priority, lines, since, passed in product((-1, 0, 3), (0, 1, 50), (1.0, 2.0), (0, PATIENCE - 1, PATIENCE, 9))
]


def comes_first(one: QueueEntry, other: QueueEntry) -> bool:
    """The rule in words, for two that differ."""
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.overdue != other.overdue:
        return one.overdue
    if one.lines != other.lines and not one.overdue:
        return one.lines < other.lines
    return one.since < other.since


def test_of_any_two_kinds_the_rule_says_who_comes_first():
    for one, other in product(ALL_KINDS, ALL_KINDS):
        if one == other:
            continue
        before = ordered([one, other])[0] == one
        if comes_first(one, other) != comes_first(other, one):
            assert before == comes_first(one, other), (one, other)


def test_the_order_does_not_hang_on_how_they_are_listed():
    some = [waiting(n, lines=n % 2, priority=n % 3, overtaken=PATIENCE * (n % 2)) for n in range(5)]
    assert len({ordered(listed) for listed in permutations(some)}) == 1


def landing(*came: float, landed: bool | None = True) -> LandingIntent:
    tickets = {n: "c" for n, _ in enumerate(came)}
    return LandingIntent(
        id=1,
        project=1,
        base="b",
        commit="c",
        tree="t",
        tickets=tickets,
        opened_at=99.0,
        landed=landed,
        since=dict(enumerate(came)),
    )


def test_only_a_landing_that_brought_a_newcomer_passes_somebody_by():
    newcomer, older, both, nobody = landing(6.0), landing(4.0, 5.0), landing(4.0, 6.0), landing()
    assert overtaken(5.0, newest_landed([newcomer, older, both, nobody])) == 2
    assert overtaken(5.0, newest_landed([landing(6.0, landed=False), landing(6.0, landed=None)])) == 0
    assert overtaken(5.0, newest_landed([landing(5.0)])) == 0, "who came at the same moment is no newcomer"
    assert overtaken(5.0, newest_landed([])) == 0


def play(big: Sequence[int], arrivals: Sequence[int], room: int) -> dict[int, int]:
    """Big changes wait from the start; in each round so many small ones arrive, and a batch lands. When each landed."""
    queue = {n: waiting(n, lines=size) for n, size in enumerate(big)}
    landings: list[LandingIntent] = []
    when: dict[int, int] = {}
    number = len(big)
    for round_, many in enumerate(arrivals, 1):
        for _ in range(many):
            queue[number] = waiting(number)
            number += 1
        newest = newest_landed(landings)
        standing = [
            waiting(one.ticket, lines=one.lines, overtaken=overtaken(one.since, newest)) for one in queue.values()
        ]
        batch = ordered(standing)[:room]
        if batch:
            landings.append(landing(*(one.since for one in batch)))
        for one in batch:
            when[one.ticket] = round_
            del queue[one.ticket]
    return when


@pytest.mark.parametrize("room", [1, 2, 3])
def test_however_small_ones_arrive_a_big_one_lands_after_so_many_rounds(room):
    """All ways in which up to three arrive in each of five rounds."""
    for arrivals in product(range(4), repeat=PATIENCE + 2):
        assert play([900], arrivals, room)[0] <= PATIENCE + 1, arrivals


def test_a_big_one_lets_small_ones_go_before_it():
    assert play([900], [1] * 7, room=1)[0] == PATIENCE + 1
    assert play([900], [0, 1, 1], room=1)[0] == 1


@pytest.mark.parametrize("big", list(permutations([100, 200, 300])), ids=str)
def test_several_big_ones_all_land_however_many_small_ones_come(big):
    when = play(big, [3] * 9, room=1)
    assert [when[n] for n in range(3)] == [PATIENCE + 1, PATIENCE + 2, PATIENCE + 3], "by age"


def test_room_stays_within_its_bounds_and_only_green_makes_it_grow():
    for most in range(1, 41):
        for room in range(1, most + 1):
            for tried in range(1, room + 1):
                green, once, red = (room_after(reds=reds, tried=tried, room=room, most=most) for reds in range(3))
                assert room <= green <= min(most, max(room, 2 * tried))
                assert once == room, "one bad change among many is no reason for smaller batches"
                assert 1 <= red <= max(1, room // 2)
                assert red == room_after(reds=9, tried=tried, room=room, most=most)
                assert tried == 1 or red <= max(1, tried // 2)


def test_room_follows_a_setting_that_became_smaller():
    assert room_after(reds=0, tried=1, room=9, most=4) == 4
    assert room_after(reds=1, tried=32, room=32, most=4) == 4
    assert room_after(reds=2, tried=32, room=32, most=4) == 4


def test_a_row_of_red_batches_leads_to_one_and_a_row_of_green_ones_back():
    down, room = [], 32
    for _ in range(6):
        room = room_after(reds=2, tried=room, room=room, most=32)
        down.append(room)
    assert down == [16, 8, 4, 2, 1, 1]
    up = []
    for _ in range(6):
        room = room_after(reds=0, tried=room, room=room, most=32)
        up.append(room)
    assert up == [2, 4, 8, 16, 32, 32]


def test_few_green_changes_do_not_prove_that_many_go_well_together():
    assert room_after(reds=0, tried=1, room=4, most=32) == 4
    assert room_after(reds=0, tried=3, room=4, most=32) == 6


def test_one_that_is_red_by_itself_halves_the_room_and_no_more():
    assert room_after(reds=2, tried=1, room=32, most=32) == 16
    assert room_after(reds=2, tried=2, room=32, most=32) == 1


def placed(queue: Sequence[QueueEntry], places: dict[int, int]) -> Sequence[QueueEntry]:
    return ordered(replace(one, place=places.get(one.ticket, one.place)) for one in queue)


def test_a_person_moves_any_change_anywhere_whatever_was_moved_before():
    start = ordered([waiting(1, lines=9), waiting(2, lines=5), waiting(3, priority=2), waiting(4, lines=1)])
    for first, second in product(permutations((1, 2, 3, 4), 2), repeat=2):
        once = placed(start, moved(start, first[0], first[1]))
        twice = placed(once, moved(once, second[0], second[1]))
        others = [number for number in numbers(once) if number != second[0]]
        at = others.index(second[1])
        assert numbers(twice) == [*others[:at], second[0], *others[at:]]
        for goal, place in ((QueueGoal.FIRST, 0), (QueueGoal.LAST, 3)):
            again = placed(twice, moved(twice, second[0], goal))
            assert numbers(again)[place] == second[0]
            assert [one for one in numbers(again) if one != second[0]] == others


def test_a_later_change_lines_up_behind_those_that_a_person_put_in_front():
    queue = [waiting(1, lines=9), waiting(2)]
    front = placed(queue, moved(ordered(queue), 1, QueueGoal.FIRST))
    assert numbers(ordered([*front, waiting(3)])) == [1, 2, 3]
