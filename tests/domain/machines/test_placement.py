"""The rule of placement, tried on every combination of what it depends on."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from legion.domain.machines.placement import (
    Lack,
    Nowhere,
    Placed,
    PlacementRound,
    PlaceState,
    RunPlace,
    Wanted,
    cost,
    place,
)

HEAD = RunPlace(name="head", head=True, slots=4)
GPU = RunPlace(name="gpu1", slots=4, labels=frozenset({"gpu"}), mirrors=frozenset({1}))
PLAIN = RunPlace(name="plain", slots=4, mirrors=frozenset({1}))

ONE_PLACE = [
    RunPlace(
        name="m",
        slots=2,
        head=head,
        labels=labels,
        state=state,
        mirrors=mirrors,
        toolchain=toolchain,
        builders=builders,
        readers=readers,
    )
    for head, labels, state, mirrors, toolchain, builders, readers in product(
        (False, True),
        (frozenset[str](), frozenset({"gpu"}), frozenset({"gpu", "macos"})),
        PlaceState,
        (frozenset[int](), frozenset({1})),
        ("", "t1"),
        (0, 1, 2),
        (0, 1),
    )
]
WISHES = [
    Wanted(project=1, labels=labels, reads=reads, stays=stays, toolchain=toolchain)
    for labels, reads, stays, toolchain in product(
        (frozenset[str](), frozenset({"gpu"}), frozenset({"macos"}), frozenset({"gpu", "macos"}), frozenset({"m"})),
        (False, True),
        (False, True),
        (None, "t1"),
    )
]


def _fits(wanted: Wanted, one: RunPlace) -> bool:
    """The rule, said another way."""
    known = one.labels | {one.name}
    return (
        wanted.labels <= known
        and (one.head or not wanted.stays)
        and (wanted.toolchain is None or wanted.toolchain == one.toolchain)
    )


def test_one_place_is_taken_exactly_if_it_fits_is_open_and_has_a_free_slot():
    for wanted, one in product(WISHES, ONE_PLACE):
        found = place(wanted, [one])
        room = one.builders + one.readers < one.slots
        if _fits(wanted, one) and one.state is PlaceState.OPEN and room:
            assert isinstance(found, Placed), (wanted, one)
            assert found.machine == "m"
        elif not _fits(wanted, one) or one.state not in (PlaceState.OPEN, PlaceState.QUIET):
            assert isinstance(found, Nowhere), (wanted, one)
            assert found.lack is Lack.MACHINE
        else:
            assert isinstance(found, Nowhere), (wanted, one)
            assert found.lack is (Lack.SLOT if one.state is PlaceState.OPEN else Lack.HOURS)


def test_of_two_places_the_cheaper_one_is_taken_whatever_their_order():
    places = [one for one in ONE_PLACE if one.toolchain == "t1"][::3]
    for wanted, (first, second) in product(WISHES[::2], zip(places, places[7:], strict=False)):
        two = (first, replace(second, name="n"))
        found = place(wanted, two)
        assert found == place(wanted, reversed(two))
        free = [one for one in two if isinstance(place(wanted, [one]), Placed)]
        if free:
            assert isinstance(found, Placed)
            assert found.machine == min(free, key=lambda one: (cost(wanted, one), not one.head, one.name)).name
        else:
            assert isinstance(found, Nowhere)


def test_every_taken_slot_makes_a_place_more_expensive():
    for wanted, one in product(WISHES, ONE_PLACE):
        more = (replace(one, builders=one.builders + 1), replace(one, readers=one.readers + 1))
        assert all(cost(wanted, other) > cost(wanted, one) for other in more)


@pytest.mark.parametrize(
    ("wanted", "places", "machine"),
    [
        pytest.param(Wanted(project=1), [HEAD, PLAIN], "head", id="the head comes first among equals"),
        pytest.param(Wanted(project=1), [replace(HEAD, builders=1), PLAIN], "plain", id="less load"),
        pytest.param(Wanted(project=2), [replace(HEAD, builders=1), PLAIN], "head", id="warm code"),
        pytest.param(Wanted(project=2), [replace(HEAD, builders=3), PLAIN], "plain", id="cold before crowded"),
        pytest.param(Wanted(project=1), [GPU, replace(PLAIN, builders=1)], "plain", id="spares the GPU"),
        pytest.param(Wanted(project=1), [GPU, replace(PLAIN, builders=3)], "gpu1", id="but not at any price"),
        pytest.param(Wanted(project=1, labels=frozenset({"gpu"})), [HEAD, GPU, PLAIN], "gpu1", id="the label decides"),
        pytest.param(Wanted(project=1, labels=frozenset({"plain"})), [HEAD, GPU, PLAIN], "plain", id="by its name"),
        pytest.param(
            Wanted(project=1, reads=True),
            [replace(PLAIN, name="a", builders=2), replace(PLAIN, name="b", readers=2)],
            "b",
            id="readers go to readers",
        ),
        pytest.param(
            Wanted(project=1),
            [replace(PLAIN, name="b", builders=2), replace(PLAIN, name="a", readers=2)],
            "b",
            id="builders go to builders",
        ),
    ],
)
def test_the_choice(wanted: Wanted, places: list[RunPlace], machine: str):
    found = place(wanted, places)
    assert isinstance(found, Placed)
    assert found.machine == machine


def test_a_round_fills_all_places_and_then_says_what_is_missing():
    round_ = PlacementRound([HEAD, GPU, PLAIN])
    found = [round_.place(Wanted(project=1)) for _ in range(13)]
    machines = [one.machine for one in found if isinstance(one, Placed)]
    assert machines[:4] == ["head", "plain", "head", "plain"]
    assert sorted(machines) == ["gpu1"] * 4 + ["head"] * 4 + ["plain"] * 4
    assert found[-1] == Nowhere(Lack.SLOT, "waits for a free slot on gpu1 or head or plain")
    assert round_.place(Wanted(project=1, labels=frozenset({"gpu"}))) == Nowhere(
        Lack.SLOT, "waits for a free slot on gpu1"
    )


def test_a_round_agrees_with_single_placements():
    """The heap gives the answer that computing every cost again would give."""
    wishes = [*WISHES, Wanted(project=2), Wanted(project=2, reads=True)] * 2
    state = {one.name: one for one in (HEAD, GPU, PLAIN)}
    round_ = PlacementRound(state.values())
    for wanted in wishes:
        found = place(wanted, state.values())
        assert round_.place(wanted) == found
        if isinstance(found, Placed):
            one = state[found.machine]
            counted = "readers" if wanted.reads else "builders"
            state[one.name] = RunPlace(**{**vars(one), counted: getattr(one, counted) + 1})


@pytest.mark.parametrize(
    ("wanted", "places", "why"),
    [
        pytest.param(
            Wanted(project=1, labels=frozenset({"macos", "gpu"})),
            [HEAD, GPU],
            "no machine has gpu and macos: `legion machine invite NAME --labels gpu,macos`",
            id="no label",
        ),
        pytest.param(
            Wanted(project=1, labels=frozenset({"gpu"})),
            [HEAD, replace(GPU, state=PlaceState.PAUSED)],
            "no machine takes it: gpu1 is paused, `legion machine resume gpu1`",
            id="paused",
        ),
        pytest.param(
            Wanted(project=1, labels=frozenset({"gpu"})),
            [HEAD, replace(GPU, state=PlaceState.SILENT)],
            "no machine takes it: gpu1 is not reachable",
            id="silent",
        ),
        pytest.param(
            Wanted(project=1, labels=frozenset({"gpu"}), toolchain="t9"),
            [HEAD, replace(GPU, toolchain="t2"), replace(GPU, name="gpu2", toolchain="")],
            "it needs the toolchain t9, but gpu1 has t2; gpu2 has an unknown one: install the same programs there",
            id="toolchain",
        ),
    ],
)
def test_why_nowhere(wanted: Wanted, places: list[RunPlace], why: str):
    found = place(wanted, places)
    assert found == Nowhere(Lack.MACHINE, why)


def test_quiet_hours_of_the_only_fitting_machine_say_when_they_end():
    quiet = [
        replace(GPU, name=name, state=PlaceState.QUIET, quiet_until=until)
        for name, until in (("g1", 500.0), ("g2", 300.0))
    ]
    assert place(Wanted(project=1, labels=frozenset({"gpu"})), [HEAD, *quiet]) == Nowhere(
        Lack.HOURS, "waits for the end of the quiet hours of g1 or g2", 300.0
    )


def test_why_there():
    assert place(Wanted(project=1, labels=frozenset({"gpu"})), [HEAD, GPU]) == Placed(
        "gpu1", "has gpu, 4 of 4 slots were free, has the code"
    )
    assert place(Wanted(project=2), [PLAIN]) == Placed("plain", "4 of 4 slots were free, gets the code first")


def test_a_head_that_is_kept_free_takes_only_what_can_run_nowhere_else():
    kept = replace(HEAD, only_stays=True)
    build, turn = Wanted(project=1), Wanted(project=1, stays=True)
    assert place(turn, [kept, PLAIN]) == Placed("head", "4 of 4 slots were free")
    assert place(build, [kept, PLAIN]) == Placed("plain", "4 of 4 slots were free, has the code")
    alone = place(build, [kept])
    assert isinstance(alone, Nowhere)
    assert alone.lack is Lack.MACHINE
    assert "daemon.slots = 0" in alone.why
