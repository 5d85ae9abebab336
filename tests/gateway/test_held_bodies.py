"""Large requests together: no run fills the gateway's memory, and the others go on."""

from __future__ import annotations

import pytest

from legion.gateway.access.admission import Refused
from legion.gateway.http.server import HeldBodies
from tests.support.attacks import Attacker, Door, attack


@attack(Attacker.AGENT, Door.BOUNDS)
def test_the_bodies_of_one_run_and_of_all_are_bounded_together():
    bodies = HeldBodies(most=100, of_run=60)
    bodies.hold("1", "a", 30)
    bodies.hold("1", "a", 40)
    with pytest.raises(Refused, match="too large together"):
        bodies.hold("2", "a", 21)
    bodies.hold("3", "b", 60)
    with pytest.raises(Refused, match="too large together"):
        bodies.hold("4", "c", 1)
    bodies.release("1")
    bodies.release("1")
    bodies.hold("2", "a", 21)
    bodies.hold("4", "c", 19)
