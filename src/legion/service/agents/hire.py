"""Agents are hired, interrupted and fired, by a person or by an agent above them."""

from __future__ import annotations

import re

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import ROOT, Agent, HireTerms, Planning, tier_of
from legion.domain.agents.extra_rights import ExtraRight, commands
from legion.domain.agents.mail import Message, MessageKind
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.questions import MORE, Question, QuestionKind
from legion.domain.runs import Run, agent_seat
from legion.domain.tickets.spec import MOST_BUDGET
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import lower
from legion.jobs.agent import extra_rights, model_access, plan_approval
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.context import Context
from legion.jobs.supervise import usage as spending
from legion.jobs.turn import dismissal
from legion.jobs.turn.dismissal import Dismissal, dismiss
from legion.runner import launch
from legion.service.agents import mail as mailing
from legion.service.agents.claim import READS
from legion.service.agents.listing import AgentLines
from legion.service.agents.mail import remembered, repeated
from legion.service.projects import registry as project_cases
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail
from legion.store.work import usage
from legion.wire.agents import FireAgent, Fired, HireAgent, Hired, InterruptAgent
from legion.wire.mail import Sent

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,59}")
_LONGEST_ROLE = 4000
_STOP_GRACE = 5.0


def hire(context: Context, caller: str, wanted: HireAgent) -> Hired:
    """Answers at once; its first turn begins with its task as soon as there is room."""
    _refuse_unfit(wanted)
    task = mailing.checked(wanted.task)
    spending.catch_up(context)
    here = project_cases.find(context, wanted.cwd) if caller == ROOT else _own_project(context, caller, wanted.cwd)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Hired(**first)
        means, parents = agents.all_means(tx, context.user.standing.top), agents.parents(tx)
        if caller not in means:
            raise NotAllowed("You were fired, and hire nobody any more.")
        if caller != ROOT and plan_approval.reader(tx, agents.get(tx, caller)).only_reads:
            raise NotAllowed(READS)
        offer = HireTerms(
            tools=None if wanted.tools is None else frozenset(wanted.tools),
            budget=wanted.budget,
            headcount=wanted.headcount,
            depth=wanted.depth,
            tier=tier_of(wanted.model, means[caller].rights.tier) if wanted.model else None,
        )
        rights = rules.hire(means[caller], [means[one] for one in rules.above(parents, caller)], offer)
        model = wanted.model or ("" if caller == ROOT else agents.get(tx, caller).model)
        new = agents.hire(
            tx,
            project=here.id,
            parent=caller,
            name=wanted.name,
            role=wanted.role,
            task=task,
            model=model,
            rights=rights,
            plan=Planning.WANTED if wanted.plan else Planning.NONE,
            delegates=wanted.delegate,
        )
        mail.send(tx, sender=caller, recipient=new.id, kind=MessageKind.TASK, text=task, project=here.id)
        answer = _hired(new, _notes(context, tx, new))
        remembered(tx, caller, wanted.request, answer)
    narrow_pass(context, caller)
    return answer


def interrupt(context: Context, caller: str, wanted: InterruptAgent) -> Sent:
    """Ctrl-C for the turn that it is in. With words it goes on with them; without it idles."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Sent(**first)
        agent = _below(context, tx, caller, wanted.id, ExtraRight.INTERRUPT)
        staff = AgentLines(context, tx)
        turn = staff.turn(agent)
        if turn is None and not wanted.text.strip():
            raise StateConflict(f"{agent.name} is idle: there is nothing to interrupt.")
        if turn is not None:
            tx.record(EventKind.AGENT_INTERRUPTED, project=agent.project, data={"agent": agent.id, "by": caller})
        if not wanted.text.strip():
            batch: tuple[Message, ...] = ()
            if caller != agent.parent:
                words = f"{agent.name}, who reports to you, was interrupted and idles; tell it how to go on."
                mail.send(tx, sender=agent.id, recipient=agent.parent, kind=MessageKind.NOTICE, text=words)
            sent = Sent(messages=[], to=[agent.id], message=f"{agent.name} is interrupted and idles.")
        else:
            text = mailing.checked(wanted.text)
            message = mail.send(tx, sender=caller, recipient=agent.id, text=text, project=agent.project)
            batch = mail.offer_now(tx, message) if turn is not None else ()
            sent = Sent(messages=[message.id], to=[agent.id], message=mailing.words(agent, staff, now=True))
        remembered(tx, caller, wanted.request, sent)
    if turn is None:
        return sent
    if batch:
        return mailing.say(context, agent, turn, batch, launch.interrupt)
    launch.interrupt(context.data.runs / turn.name)
    return sent


def fire(context: Context, caller: str, wanted: FireAgent) -> Fired:
    """It gets no turn any more. Its work is saved, open mail goes back, its reports go to its parent or with it."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Fired(**first)
        agent = _below(context, tx, caller, wanted.id, ExtraRight.FIRE)
        if wanted.ask:
            return _ask(tx, caller, agent, wanted)
        staff = AgentLines(context, tx)
        in_a_turn = {one.number for one in agents.standing(tx) if staff.turn(one) is not None}
        gone = dismiss(tx, agent, by=caller, subtree=wanted.subtree, in_a_turn=in_a_turn)
        turns = [(one, staff.turn(one)) for one in gone.fired]
        if caller != agent.parent:
            words = f"{agent.name}, who reported to you, was fired."
            mail.send(tx, sender=agent.id, recipient=agent.parent, kind=MessageKind.NOTICE, text=words)
        answer = _fired(agent, gone)
        remembered(tx, caller, wanted.request, answer)
    for one, turn in turns:
        _clear_away(context, one, turn)
    narrow_pass(context, agent.parent)
    return answer


def give_more(context: Context, tx: Transaction, settled: Question) -> None:
    """A person gives a standing agent as much again, out of what its parent has left. Raises Conflict for too much."""
    if settled.kind is not QuestionKind.BUDGET or not settled.agent or settled.choice != MORE:
        return
    agent = agents.get(tx, settled.agent)
    budget, left = agent.rights.budget or 0.0, agents.all_means(tx, context.user.standing.top)[agent.parent].money
    # The request that crossed the line may have cost more than was left.
    raised = max(budget, usage.of_agent(tx, agent.number).usd) + budget
    if left is not None and left < raised - budget:
        raise StateConflict(
            f"{agent.name} would need {raised - budget:.2f} dollars more, and whoever hired it has {left:.2f} left: "
            "give that one more first, or fire some."
        )
    agents.give(tx, agent, raised)
    text = f"You have {budget:.2f} dollars more: go on.\n\n{settled.why}".strip()
    mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, project=agent.project)


def narrow_pass(context: Context, parent: str) -> None:
    """What it has given away, a parent in the middle of its turn cannot spend itself any more."""
    if parent == ROOT:
        return
    with context.store.read() as tx:
        agent = agents.get(tx, parent)
        turn = AgentLines(context, tx).turn(agent)
        money = agents.all_means(tx, context.user.standing.top)[parent].money if agent.fired_at is None else None
        spent = usage.of_agent(tx, agent.number).usd
    if turn is not None and money is not None:
        lower(GatewayFolder(context.data.gateway), turn.name, spent + money)


def _clear_away(context: Context, agent: Agent, turn: Run | None) -> None:
    """The job of a turn that is under way saves and clears away; else the end of the last turn has saved already."""
    if turn is not None:
        launch.stop(context.data.runs / turn.name, grace=_STOP_GRACE)
        return
    context.workshop(agent.project).worktrees.discard(agent_seat(agent.number))


def _below(context: Context, tx: Transaction, caller: str, word: str, right: ExtraRight) -> Agent:
    """Somebody below, or whom the person's settings open to the caller."""
    agent = agents.find(tx, word)
    if agent.fired_at is not None:
        raise NotFound(f"{agent.name} was fired already.")
    if not commands(agents.parents(tx), caller, agent.id, extra_rights.rights(context, tx, caller), right):
        raise NotAllowed(f"You may not {right.value} {agent.name}: only those below you.")
    return agent


def _own_project(context: Context, caller: str, cwd: str) -> Project:
    with context.store.read() as tx:
        own = projects.get(tx, agents.get(tx, caller).project)
    other = project_cases.find_or_none(context, cwd) if cwd else None
    if other is not None and other.id != own.id:
        raise NotAllowed(f"You hire in your own project, {own.name}: leave the folder out.")
    return own


def _refuse_unfit(wanted: HireAgent) -> None:
    if not wanted.task.strip():
        raise BadInput("An agent needs a task: say what it is for, or give - to read it from stdin.")
    if wanted.name and (not _NAME.fullmatch(wanted.name) or wanted.name == ROOT):
        raise BadInput(
            f"{wanted.name[:60]!r} is no name for an agent: a letter, then letters, digits, '.', '_' and '-'."
        )
    if len(wanted.role) > _LONGEST_ROLE:
        raise BadInput(f"A role has at most {_LONGEST_ROLE:,} letters: put the rest into the task.")
    if wanted.tools is not None and not all(tool.strip() for tool in wanted.tools):
        raise BadInput("A tool has no name: give names such as Read,Bash, or leave --tools out.")
    if wanted.budget is not None and not 0 < wanted.budget <= MOST_BUDGET:
        raise BadInput(f"A budget is more than 0 dollars, at most {MOST_BUDGET:,.0f}: choose one, or leave it out.")


def _notes(context: Context, tx: ReadTransaction, new: Agent) -> list[str]:
    """What a person should know who waits for its first turn."""
    notes = []
    if why := AgentLines(context, tx).hindrance(new):
        notes.append(f"{new.name} does not begin yet: {why}.")
    try:
        model_access.choose(context)
    except NoModelAccess as missing:
        notes.append(missing.message)
    return notes


def _hired(new: Agent, notes: list[str]) -> Hired:
    rights = new.rights
    return Hired(
        id=new.id,
        name=new.name,
        parent=new.parent,
        model=new.model,
        tools=None if rights.tools is None else sorted(rights.tools),
        budget=rights.budget,
        headcount=rights.headcount,
        depth=rights.depth,
        message=f"Hired: {new.id}",
        notes=notes,
    )


def _ask(tx: Transaction, caller: str, agent: Agent, wanted: FireAgent) -> Fired:
    if wanted.subtree:
        raise BadInput("One at a time is asked to leave: leave --subtree out, or fire them.")
    asked = mail.send(
        tx, sender=caller, recipient=agent.id, kind=MessageKind.NOTICE, text=dismissal.ASKED, project=agent.project
    )
    agents.ask_to_leave(tx, agent, asked.id)
    message = f"{agent.name} is asked to leave: it ends its turn and goes, or you get a message that says why not."
    answer = Fired(fired=[], adopted=[], returned=0, message=message)
    remembered(tx, caller, wanted.request, answer)
    return answer


def _fired(agent: Agent, gone: Dismissal) -> Fired:
    words = [f"Fired: {agent.id}"]
    if len(gone.fired) > 1:
        words.append(f"and {len(gone.fired) - 1} below")
    if gone.adopted:
        adopted = ", ".join(one.name for one in gone.adopted)
        words.append(f"{adopted} now {'reports' if len(gone.adopted) == 1 else 'report'} to {agent.parent}")
    if gone.returned:
        words.append("1 message went back" if gone.returned == 1 else f"{gone.returned} messages went back")
    return Fired(
        fired=[one.id for one in gone.fired],
        adopted=[one.id for one in gone.adopted],
        returned=gone.returned,
        message="; ".join(words),
    )
