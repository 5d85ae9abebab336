"""The board against slow definitions: every answer is compared with one that anybody can read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.errors import BadInput
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State

Edges = dict[int, tuple[int, ...]]

any_graphs = st.dictionaries(
    st.integers(1, 7), st.lists(st.integers(1, 8), max_size=3, unique=True).map(tuple), max_size=7
)


@st.composite
def boards(draw) -> Edges:
    """Edges without a circle, in an order that gives nothing away; some lead off the board."""
    names = draw(st.permutations(range(1, 9)))
    edges: Edges = {}
    for place, ticket in enumerate(names[:7]):
        before = st.sampled_from([*names[:place], names[7]])
        edges[ticket] = tuple(draw(st.lists(before, max_size=3, unique=True)))
    return edges


states = st.dictionaries(st.integers(1, 8), st.sampled_from(State))


def has_circle(edges: Edges) -> bool:
    """By following every edge as often as there are tickets."""
    reach = {(ticket, other) for ticket, before in edges.items() for other in before}
    for _ in range(10):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    return any(a == b for a, b in reach)


@given(any_graphs)
def test_a_circle_is_refused_and_shown_and_nothing_else_is(edges):
    if not has_circle(edges):
        board.refuse_cycles(edges)
        return
    with pytest.raises(BadInput) as caught:
        board.refuse_cycles(edges)
    shown = caught.value.message.partition("(")[2].partition(")")[0]
    circle = [int(word) for word in shown.split(" after ")]
    assert circle[0] == circle[-1]
    assert len(circle) >= 2
    for ticket, other in pairwise(circle):
        assert other in edges[ticket]


def test_a_ticket_after_itself_is_a_circle():
    with pytest.raises(BadInput, match=r"\(3 after 3\)"):
        board.refuse_cycles({3: (3,)})


def test_a_circle_is_shown_by_name_where_there_are_names():
    with pytest.raises(BadInput, match=r"\(api after ui after api\)"):
        board.refuse_cycles({1: (2,), 2: (1,)}, {1: "api", 2: "ui"})


def test_a_long_chain_is_no_circle_and_no_recursion():
    chain = {n: (n - 1,) for n in range(2, 50_000)}
    board.refuse_cycles(chain)
    assert len(board.waves(chain)) == len(chain)
    assert board.critical_path(chain, {}) == sorted(chain)


def test_unknown_tickets_are_named():
    board.refuse_unknown((1, 2), {1, 2, 3})
    board.refuse_unknown((), ())
    with pytest.raises(BadInput, match=r"There is no ticket 4, 9 to come after"):
        board.refuse_unknown((9, 1, 4), {1, 2, 3})


@pytest.mark.parametrize("state", State)
def test_only_a_landed_ticket_lets_the_next_one_begin(state):
    assert board.ready((1,), {1: state}) == (state is State.DONE)
    assert board.ready((1, 2), {1: State.DONE, 2: state}) == (state is State.DONE)
    assert board.held_up_by((1, 2), {1: State.DONE, 2: state}) == ((2,) if state.value in ("failed", "stopped") else ())


def test_nobody_waits_for_what_is_gone_from_the_board():
    assert board.ready((1,), {})
    assert board.ready((), {})
    assert board.held_up_by((1,), {}) == ()


def is_hopeless(ticket: int, edges: Edges, states: dict[int, State]) -> bool:
    lost = (State.FAILED, State.STOPPED)
    if ticket not in edges or states.get(ticket) in (*lost, State.DONE):
        return False
    return any(states.get(other) in lost or is_hopeless(other, edges, states) for other in edges[ticket])


@given(boards(), states)
def test_hopeless_are_those_behind_a_lost_ticket_at_any_distance(edges, states):
    assert board.hopeless(edges, states) == {ticket for ticket in edges if is_hopeless(ticket, edges, states)}


def depth_of(ticket: int, edges: Edges) -> int:
    return 1 + max((depth_of(other, edges) for other in edges[ticket] if other in edges), default=-1)


@given(boards())
def test_a_wave_comes_after_all_that_its_tickets_wait_for(edges):
    waves = board.waves(edges)
    assert {ticket: n for n, wave in enumerate(waves) for ticket in wave} == {
        ticket: depth_of(ticket, edges) for ticket in edges
    }
    assert sum(len(wave) for wave in waves) == len(edges)
    assert all(wave == sorted(wave) and wave for wave in waves)


@given(boards())
def test_the_order_puts_every_ticket_after_all_it_waits_for(edges):
    order = board.topological(edges)
    assert sorted(order) == sorted(edges)
    for ticket, before in edges.items():
        for other in before:
            assert other not in edges or order.index(other) < order.index(ticket)


def chains_to(ticket: int, edges: Edges) -> list[list[int]]:
    """Every way to come to this ticket."""
    before = [other for other in edges[ticket] if other in edges]
    return [[ticket], *([*chain, ticket] for other in before for chain in chains_to(other, edges))]


@given(boards(), st.dictionaries(st.integers(1, 8), st.integers(0, 5).map(float)))
def test_the_critical_path_is_the_longest_of_all_chains(edges, cost):
    found = board.critical_path(edges, cost)
    chains = [chain for ticket in edges for chain in chains_to(ticket, edges)]

    def length(chain: list[int]) -> float:
        return float(sum(cost.get(ticket, 1.0) for ticket in chain))

    assert found in chains
    assert length(found) == max(length(chain) for chain in chains)


def test_an_empty_board_has_no_waves_and_no_path():
    assert board.waves({}) == []
    assert board.critical_path({}, {}) == []
    assert board.hopeless({}, {}) == frozenset()


def test_of_equal_chains_the_one_with_the_lowest_ids_is_shown():
    assert board.critical_path({1: (), 2: (), 3: (1, 2), 4: (1, 2)}, {}) == [1, 3]
