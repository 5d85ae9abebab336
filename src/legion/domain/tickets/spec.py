"""The specification of a ticket, as it is stored at dispatch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from legion.domain.agents.agent import Planning
from legion.domain.tickets.evidence import Bound, unproven


@dataclass(frozen=True, kw_only=True)
class TicketSpec:
    """The wanted change. It is fixed at dispatch, except that a person may edit it and that a failed checkpoint is put
    after its fix.

    Fields are named like the columns of the database; those that are named like a field of a dispatch request take its
    value.
    """

    title: str
    text: str
    context: str = ""
    criteria: str = ""
    plan: str = ""
    after: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    """Patterns of the files that it will change; protected ones among them then need no approval."""
    proofs: tuple[str, ...] = ()
    """Commands that prove this ticket; each needs a green receipt."""
    bound: tuple[Bound, ...] = ()
    """The command that proves each criterion."""
    acceptance: tuple[str, ...] = ()
    """Names of the person's held-out acceptance that it must pass; its agent does not know them."""
    checkpoint: bool = False
    epic: str = ""
    priority: int = 0
    """Higher starts first."""
    driver: str = ""
    """Empty: the project's default."""
    command: str = ""
    model: str = ""
    max_attempts: int = 5
    climbs: bool = False
    """Whether the ladder continues after the last attempt: not for a plain program or a given number of attempts."""
    asks: bool = False
    """Whether its agent may ask a person for a permission that it lacks; else the permission is denied."""
    budget: float | None = None
    """Dollars that all its runs may cost together; None: the limit of the person's settings."""
    dispatcher: str = ""
    """The agent that dispatched it; empty for a person. The ticket gets no more rights than that agent has."""
    tools: tuple[str, ...] | None = None
    """The only tools that its agent has; None: those of the person's settings."""
    review: ReviewPolicy | None = None
    """Whether an independent reviewer reads its change; None: the project's policy."""
    gate: LandingGate | None = None
    """Whether its change waits for a person before it lands; None: as its epic or the project says."""
    retires: tuple[int, ...] = ()
    """Landed tickets whose proofs it makes untrue: they end when it lands."""
    undoes: int | None = None
    """The landed ticket that it reverts. It needs no agent: Legion makes the change itself."""
    team: str = ""
    """The name of the team that works on it; empty without an agent."""
    crew: str = ""
    """The digest of the stored team as it was at dispatch; empty: one plain agent."""
    labels: tuple[str, ...] = ()
    alone: bool = False
    """It starts while others change the same definition."""
    on: tuple[str, ...] = ()
    """Labels that the machine of its agents must have."""

    @property
    def provable(self) -> bool:
        """Whether commands alone can show that its work is there: each criterion has one."""
        return bool(self.proofs) and not unproven(self.criteria, self.bound) and self.undoes is None


@dataclass(frozen=True, kw_only=True)
class StartPoint:
    """Where the next attempt starts: the files of `tree` on top of `base`."""

    base: str
    tree: str
    lost: tuple[str, ...] = ()
    """The definitions, or files, about which it lost a conflict with `base`."""


@dataclass(frozen=True, kw_only=True)
class TicketPlan:
    """A ticket's plan: its agent may only read until a plan is approved.

        wanted -> proposed -> approved
           ^          |
           +----------+        rejected, with a reason

    The right to approve is checked elsewhere.
    """

    ticket: int
    stage: Planning
    text: str
    """The text as last proposed."""
    decided_by: str = ""
    """The author of the last decision about it; empty before the first."""
    decided_at: float | None = None
    why: str = ""

    @property
    def only_reads(self) -> bool:
        return self.stage is not Planning.APPROVED


# Lines by which an agent reports on its way: `STATUS: did -> next -> [confidence]`, and a block of smoke tests.
#
# They are claims, shown to people and used for nothing else.

_STATUS = re.compile(r"^[ \t>*_`-]*STATUS:[*_`]*[ \t]*(\S.*?)[ \t*_`]*$", re.MULTILINE)
_SMOKE_TESTS = re.compile(
    r"^[ \t>*_`-]*SMOKE_TESTS:?[*_`]*[ \t]*\n(.*?)^[ \t>*_`-]*END_SMOKE_TESTS\b", re.MULTILINE | re.DOTALL
)
_LONGEST_STATUS, _LONGEST_TESTS = 200, 4000


@dataclass(frozen=True, kw_only=True)
class Statements:
    status: str = ""
    """The last one, on one line."""
    smoke_tests: str = ""
    """The last complete block, one test per line."""


def statements_in(text: str) -> Statements:
    """What an agent's output says about its progress."""
    said, blocks = _STATUS.findall(text), _SMOKE_TESTS.findall(text)
    tests = "\n".join(line.rstrip() for line in blocks[-1].strip("\n").splitlines()) if blocks else ""
    return Statements(
        status=" ".join(said[-1].split())[:_LONGEST_STATUS] if said else "", smoke_tests=tests[:_LONGEST_TESTS]
    )


# Limits and choices of a ticket that requests and settings name too. Commands import this instead of the ticket.

MOST_BUDGET = 100_000
"""Dollars; a larger figure is a typing error."""


class LandingGate(Enum):
    """Whether a change that passed everything lands by itself."""

    AUTO = "auto"
    PERSON = "person"
    """It waits for `legion land N`."""
    RISK = "risk"
    """It waits, unless its risk is low."""


class ReviewPolicy(Enum):
    """When an independent reviewer reads a change, in addition to the readers of the ticket's team."""

    OFF = "off"
    RISKY = "risky"
    """Only a risky change."""
    ALWAYS = "always"
