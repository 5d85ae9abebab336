"""Standing agents: the tree of reports, and what each may use, spend and hire. Rights only narrow downward.

Rights are computed at the hire and stored flat, so nothing has to walk up the tree to know them. Whether an agent works
or idles is not stored: it works while one of its runs is alive.

The names of the offers are those of the operations: the service obeys them, and the keys of all clients.

A role is a word chosen by the hiring agent. So an agent has a right only if its hirer has it too, up to the person: no
agent can hire one that may do more than itself, and adoption widens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from legion.domain.errors import NotAllowed

ROOT = "root"
"""The person's seat at the top of the tree. It reports to no one and is never fired."""

WORDS_OF_COMMANDS = frozenset(
    [
        "all",
        "interrupt",
        "chat",
        "shell",
        "new",
        "own",
        "adopt",
        "projects",
        "epic",
        "queue",
        "pr",
        "graph",
        "events",
        "done",
        "worktrees",
    ]
)
"""Parts of the commands that take an agent's name: no agent is called so."""


class Tier(Enum):
    """Models by capability, most expensive last. A hire gets none above its parent's."""

    HAIKU = "haiku"
    SONNET = "sonnet"
    OPUS = "opus"


TIERS = tuple(Tier)


class Planning(Enum):
    """Must an agent above approve a plan before this agent may do more than read?"""

    NONE = "none"
    WANTED = "wanted"
    """It may only read."""
    PROPOSED = "proposed"
    """It may only read, and waits for a decision about its plan."""
    APPROVED = "approved"


READING = frozenset({"Read", "Grep", "Glob"})
"""The program's tools that an agent has until its plan is approved."""
STANDING = "standing"
"""The driver of tickets that wait on the board until a standing agent claims them."""


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What an agent may use. None means no limit of its own; below the root there is one where the parent has one."""

    tools: frozenset[str] | None = None
    budget: float | None = None
    """Dollars for itself and all agents below it."""
    headcount: int | None = None
    """How many agents may be below it at once, at any depth."""
    depth: int | None = None
    """How many levels may be below it."""
    tier: Tier = Tier.OPUS


MOST, LEVELS = 100, 6
TOP = Rights(headcount=MOST, depth=LEVELS)
"""The person's own limits unless their settings differ: the number of agents at once, and the depth of the tree."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    number: int
    id: str
    """Also its conversation's id: made and stored before its program starts."""
    project: int
    parent: str
    name: str
    role: str
    task: str
    model: str
    rights: Rights
    hired_at: float
    fired_at: float | None = None
    base: str | None = None
    """The commit that its worktree started from."""
    owes: bool = False
    """Its last turn was cut off after its mail was delivered: it must resume without new mail."""
    held_until: float | None = None
    """No turn starts before this time, since its provider does not serve for now."""
    held_why: str = ""
    plan: Planning = Planning.NONE
    leaving: str = ""
    """The message that asks it to leave, until it has answered."""
    hirer: str = ""
    """Its first parent, also after another adopted it; empty: its parent."""
    delegates: bool = False
    """It only leads: it has Legion's tools alone, whatever it may give to others."""
    driver: str = ""
    """The driver of its program; empty: the default one."""

    @property
    def only_reads(self) -> bool:
        return self.plan in (Planning.WANTED, Planning.PROPOSED)

    def program(self, driver: str, model: str, *, default: str) -> tuple[str, str]:
        """Driver and model of what this agent dispatches or hires. A model is inherited only with its driver."""
        own = self.driver or default
        return driver or own, model or (self.model if driver in ("", own) else "")


@dataclass(frozen=True, kw_only=True)
class HireTerms:
    """The terms a parent asks for in a hire; None: as much as can be given."""

    tools: frozenset[str] | None = None
    budget: float | None = None
    headcount: int | None = None
    depth: int | None = None
    tier: Tier | None = None


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What a parent can still give: its rights less what it and those below it have taken."""

    rights: Rights
    money: float | None
    """Dollars neither spent nor reserved; None: no limit."""
    heads: int | None
    """Places still free below it; None: no limit."""


def tree(agents: Iterable[Agent]) -> Mapping[str, tuple[Agent, ...]]:
    """The reports of each agent, in the order of their hire."""
    reports: dict[str, list[Agent]] = {}
    for agent in sorted(agents, key=lambda agent: agent.number):
        if agent.fired_at is None:
            reports.setdefault(agent.parent, []).append(agent)
    return {parent: tuple(children) for parent, children in reports.items()}


def below(reports: Mapping[str, tuple[Agent, ...]], parent: str) -> Iterator[Agent]:
    """All agents below one, nearest first."""
    row = list(reports.get(parent, ()))
    while row:
        yield from row
        row = [child for agent in row for child in reports.get(agent.id, ())]


def means(rights: Rights, *, spent: float, reserved: float, heads: int) -> Allowance:
    """`spent` by itself and by those it has fired; `reserved` for its reports; `heads` below it now."""
    return Allowance(
        rights=rights,
        money=None if rights.budget is None else max(0.0, rights.budget - spent - reserved),
        heads=None if rights.headcount is None else max(0, rights.headcount - heads),
    )


def hire(parent: Allowance, above: Iterable[Allowance], offer: HireTerms) -> Rights:
    """The rights of a new report. Raises NotAllowed that names what could be given.

    `above` are the allowances of all agents above the parent: a new report takes a place of each of them.
    """
    places = [parent, *above]
    _refuse_crowd(places)
    _refuse_depth(places)
    return Rights(
        tools=_tools(parent.rights.tools, offer.tools),
        budget=_money(parent.money, offer.budget),
        headcount=_count("headcount", None if parent.heads is None else parent.heads - 1, offer.headcount),
        depth=_count("depth", None if parent.rights.depth is None else parent.rights.depth - 1, offer.depth),
        tier=_tier(parent.rights.tier, offer.tier),
    )


def adopted(child: Agent, parent: str) -> Agent:
    """An agent whose parent was fired goes to the one above and keeps its rights: they were narrower already."""
    return replace(child, parent=parent)


def above(parents: Mapping[str, str], agent: str) -> tuple[str, ...]:
    """All agents above one, nearest first, the person last. `parents` maps every standing agent to its parent."""
    found: list[str] = []
    while agent in parents:
        agent = parents[agent]
        found.append(agent)
    return tuple(found)


def may_tell(parents: Mapping[str, str], caller: str, target: str) -> bool:
    """Agents above and below it, and its peers: the other reports of its parent."""
    if caller == target:
        return False
    related = target in above(parents, caller) or caller in above(parents, target)
    return related or (caller in parents and parents[caller] == parents.get(target))


def may_command(parents: Mapping[str, str], caller: str, target: str) -> bool:
    """Interrupt and fire: only agents below."""
    return caller in above(parents, target)


def may_see(parents: Mapping[str, str], caller: str, target: str) -> bool:
    """Mail and page: its own, and of agents below."""
    return caller == target or may_command(parents, caller, target)


def _refuse_crowd(places: Iterable[Allowance]) -> None:
    for means_above in places:
        if means_above.heads is not None and means_above.heads < 1:
            allowed = means_above.rights.headcount
            raise NotAllowed(
                f"No more agents may be hired here: {allowed} at once are allowed, and all are hired already."
            )


def _refuse_depth(places: Iterable[Allowance]) -> None:
    """Every agent above the new one is checked: the person may have allowed fewer levels since they were hired."""
    for levels, means_above in enumerate(places, start=1):
        if means_above.rights.depth is not None and means_above.rights.depth < levels:
            raise NotAllowed("No agent may be hired here: the tree is as deep as allowed.")


def _tools(allowed: frozenset[str] | None, wished: frozenset[str] | None) -> frozenset[str] | None:
    if wished is None:
        return allowed
    if allowed is not None and not wished <= allowed:
        extra = ", ".join(sorted(wished - allowed))
        raise NotAllowed(f"You cannot give {extra}, which you do not have: choose from {', '.join(sorted(allowed))}.")
    return wished


def _money(left: float | None, wished: float | None) -> float | None:
    if left is not None and left <= 0:
        raise NotAllowed("You have no money left to give: fire an agent, or ask for more.")
    if wished is None:
        # Not all of it: the next hire and the parent itself need some too.
        return None if left is None else left / 2
    if wished <= 0:
        raise NotAllowed("A budget is more than 0 dollars: choose one, or leave it out.")
    if left is not None and wished > left:
        raise NotAllowed(f"You cannot give {wished:g} dollars: {left:.2f} are left to give.")
    return wished


def _count(what: str, left: int | None, wished: int | None) -> int | None:
    if wished is None:
        return left
    if wished < 0:
        raise NotAllowed(f"A {what} is 0 or more: choose one, or leave it out.")
    if left is not None and wished > left:
        raise NotAllowed(f"You cannot give a {what} of {wished}: at most {left} is left to give.")
    return wished


def _tier(allowed: Tier, wished: Tier | None) -> Tier:
    if wished is None:
        return allowed
    if TIERS.index(wished) > TIERS.index(allowed):
        names = ", ".join(tier.value for tier in TIERS[: TIERS.index(allowed) + 1])
        raise NotAllowed(f"You cannot give a model like {wished.value}: choose from {names}.")
    return wished


def tier_of(model: str, otherwise: Tier) -> Tier:
    """The tier of a model by its name; an unknown name counts as the highest that is allowed."""
    return next((tier for tier in reversed(TIERS) if tier.value in model.lower()), otherwise)


@dataclass(frozen=True, kw_only=True)
class ClaimedTicket:
    """A ticket that a standing agent has claimed from the board, until it lands or is released."""

    ticket: int
    number: int
    """Counts all claims: the start tree made for this one carries the number."""
    agent: str
    planted: bool
    """The agent's worktree has the ticket's start tree."""
    submitted: bool
    """The agent reports that it is finished: the end of its turn judges the tree."""
    since: float


LEADER = "leader"
"""The role. Only the person can give it: one that another agent hired under this name is an agent like others."""


def is_leader(agent: Agent) -> bool:
    return plain(agent.role) == LEADER and (agent.hirer or agent.parent) == ROOT


def own_tools(tools: frozenset[str] | None) -> frozenset[str]:
    """A leader reads and delegates: of the program's tools it uses only those that read, whatever it may give."""
    return READING if tools is None else READING & tools


@dataclass(frozen=True, kw_only=True)
class AgentFacts:
    """What the rules need besides the agent."""

    in_turn: bool = False
    only_reads: bool = False
    """Until a plan is approved: its own, or that of the ticket which it holds."""
    opens: bool = False
    """Its program has a form for a terminal."""
    limits_tools: bool = False
    """Its program keeps to the tools that it is given."""


OFFERS: dict[str, Callable[[Agent, AgentFacts], bool]] = {
    "tell_agent": lambda agent, facts: True,
    "interrupt_agent": lambda agent, facts: facts.in_turn,
    "attach_agent": lambda agent, facts: facts.opens,
    "decide_plan": lambda agent, facts: facts.only_reads,
    "delegate": lambda agent, facts: agent.delegates or facts.limits_tools,
    "fire": lambda agent, facts: True,
}
"""For an agent that was not fired. `interrupt_agent` without words, `delegate` to the other of its two values."""


def may(name: str, agent: Agent, facts: AgentFacts) -> bool:
    return agent.fired_at is None and OFFERS[name](agent, facts)


def offered(agent: Agent, facts: AgentFacts) -> list[str]:
    return [name for name in OFFERS if may(name, agent, facts)]


ALL_ROLES = "*"
"""In place of a role: all of them."""


class ExtraRight(Enum):
    TELL = "tell"
    """Write to every standing agent."""
    INTERRUPT = "interrupt"
    """Every agent except those above."""
    FIRE = "fire"
    """Every agent except those above."""
    DRIVER = "driver"
    """Choose the driver of the tickets that it dispatches."""
    APPROVE = "approve"
    """As a leader: approve plans of goals."""


@dataclass(frozen=True, kw_only=True)
class ExtraRights:
    """The roles to which each right is granted."""

    roles: Mapping[ExtraRight, frozenset[str]] = field(default_factory=dict)

    def to(self, right: ExtraRight, role: str) -> bool:
        named = self.roles.get(right, frozenset())
        return ALL_ROLES in named or plain(role) in named


def plain(role: str) -> str:
    """Roles are the same however they are spaced and capitalised."""
    return " ".join(role.lower().split())


def opened(roles: Mapping[ExtraRight, Iterable[str]]) -> ExtraRights:
    return ExtraRights(roles={right: frozenset(map(plain, named)) for right, named in roles.items()})


def rights_of(
    opened: ExtraRights, hirers: Mapping[str, str], roles: Mapping[str, str], agent: str
) -> frozenset[ExtraRight]:
    """`hirers` and `roles` cover all agents that were ever hired."""
    line = [one for one in (agent, *above(hirers, agent)) if one != ROOT]
    return frozenset(right for right in ExtraRight if line and all(opened.to(right, roles[one]) for one in line))


def tells(parents: Mapping[str, str], caller: str, target: str, rights: frozenset[ExtraRight]) -> bool:
    return may_tell(parents, caller, target) or (ExtraRight.TELL in rights and caller != target)


def commands(
    parents: Mapping[str, str], caller: str, target: str, rights: frozenset[ExtraRight], right: ExtraRight
) -> bool:
    """Interrupt and fire: agents below; with the right, all except itself and those above."""
    if may_command(parents, caller, target):
        return True
    return right in rights and target != caller and target not in above(parents, caller)
