"""Lists and pages of standing agents: position in the tree, activity, waiting mail. Read only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import ROOT, Agent, AgentFacts, Allowance, ExtraRight, offered
from legion.domain.agents.mail import Message
from legion.domain.errors import NotAllowed
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.runs import Run, agent_seat
from legion.domain.scheduling.decide import TAKES_A_SLOT, JobKind
from legion.jobs.agent import plan_approval, preparation, tool_access
from legion.jobs.agent.mail_prompt import name_of
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.background.watchdog import describe_run
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.runner.journal import read_tail
from legion.service.shared.fragments import lasting, moment, run_line, shaped, silence, usage_line
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents as store
from legion.store.staff import mail
from legion.store.work import claims, runs, usage, watchdog
from legion.wire.agents import AgentLine, AgentList, AgentPage, Seat
from legion.wire.mail import MessageLine

_TAIL = 16_000
"""Bytes at the end of a journal that are searched for the last call."""
_LONGEST_DOING = 80
_ABOUT_ALL = (ExtraRight.TELL, ExtraRight.INTERRUPT, ExtraRight.FIRE)
"""An agent with one of these rights sees all agents."""


class AgentLines:
    """Formats agents as lines, and loads what several lines need only once."""

    def __init__(self, context: Board, tx: ReadTransaction) -> None:
        self._context = context
        self._tx = tx
        self._now = context.clock()
        self._turns = {run.agent: run for run in runs.active(tx) if run.agent is not None}

    @cached_property
    def _means(self) -> Mapping[str, Allowance]:
        """Loaded only for lines: sending a message does not need it."""
        return store.all_means(self._tx, self._context.user.standing.top)

    @cached_property
    def _projects(self) -> Mapping[int, Project]:
        return {project.id: project for project in projects.all(self._tx)}

    @cached_property
    def _full(self) -> bool:
        taken = sum(1 for claim in claims.active(self._tx) if claim.kind in TAKES_A_SLOT)
        return taken >= self._context.user.daemon.room

    @cached_property
    def _waiting(self) -> Mapping[str, int]:
        return mail.have_mail(self._tx)

    @cached_property
    def _spent(self) -> Mapping[str, float]:
        return store.own_spending(self._tx)

    def line(self, agent: Agent) -> AgentLine:
        project = self._projects.get(agent.project)
        means = self._means.get(agent.id)
        return shaped(
            AgentLine,
            agent,
            agent.rights,
            project=project.name if project else "",
            working=agent.number in self._turns,
            doing=self._doing(agent),
            waiting=self._waiting.get(agent.id, 0),
            left=means.money if means else None,
            spent=self._spent.get(agent.id, 0.0),
            delegate=agent.delegates,
            offers=offered(agent, self.facts(agent)),
        )

    def facts(self, agent: Agent) -> AgentFacts:
        """For the rules of what may be done with it."""
        try:
            opens = preparation.profile(agent).capabilities.interactive
        except NoModelAccess:
            opens = False
        return AgentFacts(
            in_turn=agent.number in self._turns,
            only_reads=plan_approval.reader(self._tx, agent).only_reads,
            opens=opens,
            limits_tools=preparation.can_limit_tools(agent),
        )

    def turn(self, agent: Agent) -> Run | None:
        """The running turn."""
        return self._turns.get(agent.number)

    def why_waiting(self, agent: Agent) -> str:
        """The reason why its next turn does not start at once; empty if it does."""
        project = self._projects.get(agent.project)
        if project is None:
            return "its project is gone"
        if not projects.is_trusted(self._tx, project.id, project.config_hash):
            return "it waits for `legion trust`"
        if project.paused:
            return "it waits for `legion resume`"
        if agent.held_until is not None and agent.held_until > self._now:
            return f"it waits for the provider, {moment(agent.held_until, self._now)}"
        if (hold := self._context.live.scheduler.holds.get(agent_seat(agent.number))) is not None:
            return hold.why if hold.rule is Rule.BUDGET else f"it {hold.why}"
        return "it waits for a free slot" if self._full else ""

    def _doing(self, agent: Agent) -> str:
        if agent.fired_at is not None:
            return "fired"
        backoff = self._context.live.scheduler.backoffs.get((JobKind.SERVE, agent.number))
        if backoff is not None and backoff.until > self._now:
            return f"tried again in {lasting(backoff.until - self._now)}: {backoff.why}"
        turn = self._turns.get(agent.number)
        if turn is not None:
            return self._working(turn)
        if agent.owes or agent.id in self._waiting:
            return self.why_waiting(agent) or "its turn starts"
        return "idle"

    def _working(self, turn: Run) -> str:
        folder = self._context.data.runs / turn.name
        helps = watchdog.interventions(self._tx, [turn.id]).get(turn.id, ())
        working = f"at work for {lasting(self._now - turn.started_at)}"
        text = describe_run(self._context, turn, helps, self._now, working=working)
        if quiet := silence(folder):
            return quiet
        calls = [event.facts for event in read_tail(folder, _TAIL) if event.kind == "called"]
        if not calls:
            return text
        last = " ".join(f"{calls[-1].get('tool')}: {calls[-1].get('input')}".split())
        return f"{text}, {last[:_LONGEST_DOING]}"


def agents(context: Board, caller: str, fired: bool = False) -> AgentList:
    """All agents; for an agent itself and those of its project that it may write to. `fired`: also fired ones."""
    with context.store.read() as tx:
        staff, parents = AgentLines(context, tx), store.parents(tx)
        own = None if caller == ROOT else store.get(tx, caller).project
        everywhere = not tool_access.rights(context, tx, caller).isdisjoint(_ABOUT_ALL)
        seen = [
            agent
            for agent in (store.every(tx) if fired else store.standing(tx))
            if own in (None, agent.project)
            if everywhere or caller in (ROOT, agent.id) or rules.may_tell(parents, caller, agent.id)
        ]
        return AgentList(you=caller, agents=[staff.line(agent) for agent in seen])


def agent(context: Trees, caller: str, word: str) -> AgentPage:
    with context.store.read() as tx:
        found = store.find(tx, word, by=caller)
        parents = store.parents(tx)
        if caller != ROOT and not rules.may_see(parents, caller, found.id):
            raise NotAllowed(f"{found.name} is not below you: you see only agents below you.")
        staff = AgentLines(context, tx)
        line = staff.line(found)
        reports = [staff.line(report) for report in rules.tree(store.standing(tx)).get(found.id, ())]
        turns = runs.of_agent(tx, found.number, limit=20)
        spent = usage.of_runs(tx, [run.id for run in turns])
        spent_in_all = usage.of_agent(tx, found.number)
        waiting = message_lines(tx, (*mail.offered(tx, found.id), *mail.waiting(tx, found.id)))
        record = projects.get(tx, found.project)
    project = context.project_of(record)
    tree = project.worktrees.path(agent_seat(found.number))
    return AgentPage(
        agent=line,
        task=found.task,
        worktree=str(tree) if tree.exists() else None,
        reports=reports,
        turns=[run_line(run, spent.get(run.id)) for run in turns],
        mail=waiting,
        usage=usage_line(spent_in_all),
    )


def seat(context: Board, caller: str) -> Seat:
    """The top of `status`: the caller, its waiting mail, its reports."""
    with context.store.read() as tx:
        staff = AgentLines(context, tx)
        reports = rules.tree(store.standing(tx)).get(caller, ())
        return Seat(
            you=caller,
            name=name_of(caller, store.names(tx)) if caller != ROOT else ROOT,
            working=caller != ROOT and staff.turn(store.get(tx, caller)) is not None,
            mail=message_lines(tx, mail.waiting(tx, caller), hide=caller),
            reports=[staff.line(report) for report in reports],
        )


def message_lines(tx: ReadTransaction, messages: Iterable[Message], *, hide: str = ROOT) -> list[MessageLine]:
    """Messages that still wait for the agent `hide` are shown without their text: its next turn delivers them, once."""
    names = store.names(tx)
    return [
        shaped(
            MessageLine,
            one,
            sender_name=ROOT if one.sender == ROOT else names.get(one.sender, one.sender),
            recipient_name=ROOT if one.recipient == ROOT else names.get(one.recipient, one.recipient),
            text="(arrives with your next turn)" if _is_undelivered(one, hide) else one.text,
        )
        for one in messages
    ]


def _is_undelivered(message: Message, reader: str) -> bool:
    return reader != ROOT and message.recipient == reader and message.is_open
