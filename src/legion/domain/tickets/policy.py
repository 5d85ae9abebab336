"""Limits and choices of a ticket that requests and settings name too. Commands import this instead of the ticket."""

from __future__ import annotations

from enum import Enum

MOST_BUDGET = 100_000
"""Dollars; a larger figure is a typing error."""


class LandingGate(Enum):
    """Whether a change that passed everything lands by itself."""

    AUTO = "auto"
    PERSON = "person"
    """It waits for `legion land N`."""


class ReviewPolicy(Enum):
    """When an independent reviewer reads a change, in addition to the readers of the ticket's team."""

    OFF = "off"
    RISKY = "risky"
    """Only a risky change."""
    ALWAYS = "always"
