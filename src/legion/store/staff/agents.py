"""Standing and fired agents: the tree, what each may use, and what is left to give."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from types import SimpleNamespace
from typing import Any

from sqlalchemy import func, insert, select, update

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import ROOT, Agent, Allowance, Planning, Rights
from legion.domain.errors import NotAllowed, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.runs import agent_seat
from legion.domain.scheduling.usage import AgentSpending
from legion.domain.text import count
from legion.store.board import projects, questions
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import usage

_TABLE = schema.agents.c
_COLUMNS = [_TABLE[one.name] for kind in (Agent, Rights) for one in fields(kind) if one.name != "rights"]
"""Without what a leader has read, which `leaders` keeps."""
_STANDING = _TABLE.fired_at.is_(None)
_SHORTEST_PREFIX = 4


def hire(
    tx: Transaction,
    *,
    project: int,
    parent: str,
    name: str,
    role: str,
    task: str,
    model: str,
    rights: Rights,
    plan: Planning = Planning.NONE,
    delegates: bool = False,
    driver: str = "",
) -> Agent:
    """A new agent, idle and without mail. The caller has checked its rights."""
    number = tx.next("agent")
    agent = Agent(
        number=number,
        id=str(uuid.uuid4()),
        project=project,
        parent=parent,
        name=name or f"agent-{number}",
        role=role,
        task=task,
        model=model,
        rights=rights,
        hired_at=tx.now,
        plan=plan,
        hirer=parent,
        delegates=delegates,
        driver=driver,
    )
    other = tx.execute(select(_TABLE.project).where(_STANDING, _TABLE.name == agent.name)).first()
    if other is not None:
        # No agent gets to know what other projects there are.
        named = parent == ROOT and other.project != project
        where = f" in project {projects.get(tx, other.project).name}" if named else ""
        raise StateConflict(f"There is an agent called {agent.name} already{where}: choose another name.")
    tx.execute(insert(schema.agents), [_values(agent)])
    data = {"agent": agent.id, "name": agent.name, "parent": parent, "role": role}
    tx.record(EventKind.AGENT_HIRED, project=project, data=data)
    return agent


def fire(tx: Transaction, agent: Agent, by: str) -> Agent:
    """It gets no further turn. The caller takes care of its reports and its mail."""
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(fired_at=tx.now))
    questions.withdraw(tx, agent=agent.id, why="its agent was fired")
    tx.record(EventKind.AGENT_FIRED, project=agent.project, data={"agent": agent.id, "name": agent.name, "by": by})
    return replace(agent, fired_at=tx.now)


def adopt(tx: Transaction, agent: Agent, parent: str) -> Agent:
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(parent=parent))
    tx.record(
        EventKind.AGENT_ADOPTED, project=agent.project, data={"agent": agent.id, "name": agent.name, "parent": parent}
    )
    return rules.adopted(agent, parent)


def hold(tx: Transaction, agent: Agent, *, owes: bool, until: float | None = None, why: str = "") -> None:
    """Must it resume by itself, and not before which time?"""
    values = {"owes": owes, "held_until": until, "held_why": why}
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(values))


def plan(tx: Transaction, agent: Agent, to: Planning) -> None:
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(plan=to))


def delegate(tx: Transaction, agent: Agent, on: bool, by: str) -> None:
    """Set whether it only leads. A turn that runs keeps the tools that it started with."""
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(delegates=on))
    data = {"agent": agent.id, "name": agent.name, "on": on, "by": by}
    tx.record(EventKind.AGENT_DELEGATES, project=agent.project, data=data)


def give(tx: Transaction, agent: Agent, budget: float) -> None:
    """Set the dollars for itself and all agents below it. The caller has checked what its parent can give."""
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(budget=budget))


def ask_to_leave(tx: Transaction, agent: Agent, message: str) -> None:
    """Asked by this message; none: it has answered."""
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(leaving=message))


def let_go_on(tx: Transaction) -> None:
    """A person fixed something: no agent waits longer for a provider than one request takes."""
    held = update(schema.agents).where(_STANDING, _TABLE.held_until.is_not(None)).values(held_until=None)
    if tx.execute(held).rowcount:
        tx.tell()


def plant(tx: Transaction, agent: Agent, base: str) -> Agent:
    """Its worktree starts from this commit."""
    tx.execute(update(schema.agents).where(_TABLE.number == agent.number).values(base=base))
    return replace(agent, base=base)


def get(tx: ReadTransaction, id: str) -> Agent:
    row = tx.execute(select(*_COLUMNS).where(_TABLE.id == id)).one_or_none()
    if row is None:
        raise NotFound(f"Session not found: {id}. `legion agents` lists the agents.")
    return _agent(row)


def numbered(tx: ReadTransaction, number: int) -> Agent:
    row = tx.execute(select(*_COLUMNS).where(_TABLE.number == number)).one_or_none()
    if row is None:
        raise NotFound(f"There is no agent number {number}: see `legion agents`.")
    return _agent(row)


def find(tx: ReadTransaction, word: str, *, by: str) -> Agent:
    """By id, the start of an id, or name; standing ones before fired ones. An agent finds those of its project."""
    visible = select(*_COLUMNS) if by == ROOT else select(*_COLUMNS).where(_TABLE.project == get(tx, by).project)
    exact = visible.where((_TABLE.id == word) | (_TABLE.name == word)).order_by(_TABLE.number.desc())
    found = [_agent(row) for row in tx.execute(exact)]
    if not found and len(word) >= _SHORTEST_PREFIX:
        begins = func.substr(_TABLE.id, 1, len(word)) == word.lower()
        found = [_agent(row) for row in tx.execute(visible.where(begins))]
        if len(found) > 1:
            raise StateConflict(f"{count(len(found), 'agent')} have ids that start with {word}: write more of it.")
    standing = [agent for agent in found if agent.fired_at is None]
    if not found:
        raise NotFound(f"Session not found: {word}. `legion agents` lists the agents.")
    return (standing or found)[0]


def standing(tx: ReadTransaction) -> tuple[Agent, ...]:
    """In the order of their hire."""
    return _ALL_STANDING.all(tx)


def every(tx: ReadTransaction) -> tuple[Agent, ...]:
    """Fired ones included, in the order of their hire."""
    return tuple(_agent(row) for row in tx.execute(select(*_COLUMNS).order_by(_TABLE.number)))


def gone(tx: ReadTransaction, project: int) -> frozenset[str]:
    """The seats of fired agents whose last turn has ended."""
    at_work = select(schema.runs.c.agent).where(schema.runs.c.ended_at.is_(None), schema.runs.c.agent.is_not(None))
    found = select(_TABLE.number).where(~_STANDING, _TABLE.project == project, _TABLE.number.not_in(at_work))
    return frozenset(agent_seat(number) for number in tx.execute(found).scalars())


def parents(tx: ReadTransaction) -> Mapping[str, str]:
    """The parent of every standing agent."""
    return {row.id: row.parent for row in tx.execute(select(_TABLE.id, _TABLE.parent).where(_STANDING))}


def names(tx: ReadTransaction) -> Mapping[str, str]:
    """Of all agents ever hired, by id."""
    return dict(_NAMES.all(tx))


def roles(tx: ReadTransaction) -> Mapping[str, str]:
    """Of all agents ever hired, by id."""
    return {row.id: row.role for row in tx.execute(select(_TABLE.id, _TABLE.role))}


def hirers(tx: ReadTransaction) -> Mapping[str, str]:
    """The hirer of every agent ever hired."""
    found = tx.execute(select(_TABLE.id, _TABLE.parent, _TABLE.hirer))
    return {row.id: row.hirer or row.parent for row in found}


def own_spending(tx: ReadTransaction) -> Mapping[str, float]:
    """What each spent itself, in dollars, fired ones included."""
    return {agent: spent.own for agent, spent in usage.by_agents(tx).items()}


def all_means(tx: ReadTransaction, top: Rights = rules.TOP) -> Mapping[str, Allowance]:
    """What every standing agent can still give, and the person, who has `top`."""
    all_of_them = every(tx)
    reports = rules.tree(all_of_them)
    known, promised = usage.by_agents(tx), usage.reserved(tx)
    spent = {
        agent.id: (known.get(agent.id) or AgentSpending()).total + promised.get(agent.id, 0.0) for agent in all_of_them
    }
    spent[ROOT] = 0.0
    for agent in reversed(_from_the_top(all_of_them)):
        if agent.fired_at is not None:
            spent[agent.parent] += spent[agent.id]
    rights = {agent.id: agent.rights for agent in all_of_them if agent.fired_at is None} | {ROOT: top}
    return {
        id: rules.means(
            mine,
            spent=spent[id],
            reserved=sum(report.rights.budget or 0.0 for report in reports.get(id, ())),
            heads=sum(1 for _ in rules.below(reports, id)),
        )
        for id, mine in rights.items()
    }


def refuse_expense(tx: ReadTransaction, id: str, usd: float) -> None:
    """The budgets of new tickets and plans come out of what their dispatcher has left to give."""
    money = all_means(tx)[id].money
    if money is not None and usd > money:
        raise NotAllowed(f"You cannot give {usd:g} dollars: {money:.2f} are left to give.")


def _from_the_top(all_of_them: Iterable[Agent]) -> list[Agent]:
    """Parents before their reports, fired ones included. An adopted agent may be older than its new parent."""
    reports: dict[str, list[Agent]] = {}
    for agent in all_of_them:
        reports.setdefault(agent.parent, []).append(agent)
    found: list[Agent] = []
    row = reports.get(ROOT, [])
    while row:
        found += row
        row = [report for agent in row for report in reports.get(agent.id, ())]
    return found


def _values(agent: Agent) -> dict[str, Any]:
    facts = asdict(agent)
    rights = facts.pop("rights")
    tools = agent.rights.tools
    return {**facts, **rights, "tools": None if tools is None else sorted(tools)}


def _agent(row: Stored) -> Agent:
    facts = dict(vars(row) if isinstance(row, SimpleNamespace) else row._mapping)
    tools = facts.pop("tools")
    rights = Rights(
        tools=None if tools is None else frozenset(tools),
        **{name: facts.pop(name) for name in ("budget", "headcount", "depth", "tier")},
    )
    return Agent(**facts, rights=rights)


_ALL_STANDING = FixedQuery(select(*_COLUMNS).where(_STANDING).order_by(_TABLE.number), _agent, remember=None)
_NAMES = FixedQuery(select(_TABLE.id, _TABLE.name), lambda row: (str(row.id), str(row.name)), remember=None)
