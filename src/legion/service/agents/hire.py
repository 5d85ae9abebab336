"""Hire, interrupt and fire standing agents, for a person or for an agent above them."""

from __future__ import annotations

import re

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import (
    LEADER,
    ROOT,
    WORDS_OF_COMMANDS,
    Agent,
    ExtraRight,
    HireTerms,
    Planning,
    Rights,
    commands,
    may,
    plain,
    tier_of,
)
from legion.domain.agents.mail import Message, MessageKind
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.questions import MORE, Question, QuestionKind
from legion.domain.runs import Run, agent_seat
from legion.domain.text import count
from legion.domain.tickets.spec import MOST_BUDGET
from legion.drivers import registry as drivers
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import set_budget
from legion.jobs.agent import model_access, model_run, plan_approval, preparation, tool_access
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.board import Board
from legion.jobs.supervise.usage import catch_up
from legion.jobs.trees import Trees
from legion.jobs.turn import claimed_tickets
from legion.jobs.turn.claimed_tickets import Dismissal, dismiss
from legion.runner import launch
from legion.service.agents.claim import READ_ONLY
from legion.service.agents.listing import AgentLines
from legion.service.agents.mail import checked, deliver_now, delivery_message
from legion.service.projects import registry, sessions
from legion.service.shared.fragments import shaped
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail
from legion.store.work import usage
from legion.wire.agents import FireAgent, Fired, HireAgent, Hired, InterruptAgent
from legion.wire.mail import Sent
from legion.wire.text import plan_number

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,59}")
_LONGEST_ROLE = 4000
_STOP_GRACE = 5.0


def hire(context: Trees, caller: str, wanted: HireAgent) -> Hired:
    """Return at once; the first turn starts with the task as soon as there is a free slot."""
    _refuse_unfit(wanted)
    task = checked(wanted.task)
    catch_up(context)
    said: list[str] = []
    if caller == ROOT:
        here, said = sessions.find_or_scratch(context, wanted.cwd)
    else:
        here = _own_project(context, caller, wanted.cwd)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Hired)) is not None:
            return Hired(**first)
        means, parents = agents.all_means(tx, context.user.standing.top), agents.parents(tx)
        if caller not in means:
            raise NotAllowed("You were fired: you can no longer hire.")
        if caller != ROOT and plan_approval.reader(tx, agents.get(tx, caller)).only_reads:
            raise NotAllowed(READ_ONLY)
        offer = HireTerms(
            tools=None if wanted.tools is None else frozenset(wanted.tools),
            budget=wanted.budget,
            headcount=wanted.headcount,
            depth=wanted.depth,
            tier=tier_of(wanted.model, means[caller].rights.tier) if wanted.model else None,
        )
        rights = rules.hire(means[caller], [means[one] for one in rules.above(parents, caller)], offer)
        driver, model = of_hire(context, tx, caller, wanted, rights)
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
            driver=driver,
        )
        mail.send(tx, sender=caller, recipient=new.id, kind=MessageKind.TASK, text=task, project=here.id)
        answer = shaped(Hired, new, new.rights, message=f"Hired: {new.id}", notes=[*said, *_notes(context, tx, new)])
        remembered(tx, caller, wanted.request, answer)
    narrow_pass(context, caller)
    return answer


def interrupt(context: Trees, caller: str, wanted: InterruptAgent) -> Sent:
    """Interrupt the current turn. With a text the agent continues with it; without one it idles."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Sent)) is not None:
            return Sent(**first)
        agent = _below(context, tx, caller, wanted.id, ExtraRight.INTERRUPT)
        staff = AgentLines(context, tx)
        turn = staff.turn(agent)
        if not wanted.text.strip() and not may("interrupt_agent", agent, staff.facts(agent)):
            raise StateConflict(f"{agent.name} is idle: there is nothing to interrupt.")
        if turn is not None:
            tx.record(EventKind.AGENT_INTERRUPTED, project=agent.project, data={"agent": agent.id, "by": caller})
        if not wanted.text.strip():
            batch: tuple[Message, ...] = ()
            if caller != agent.parent:
                notice = (
                    f"{agent.name}, which reports to you, was interrupted and idles: send it a message to continue."
                )
                mail.send(tx, sender=agent.id, recipient=agent.parent, kind=MessageKind.NOTICE, text=notice)
            sent = Sent(messages=[], to=[agent.id], message=f"{agent.name} is interrupted and idles.")
        else:
            text = checked(wanted.text)
            message = mail.send(tx, sender=caller, recipient=agent.id, text=text, project=agent.project)
            batch = mail.offer_now(tx, message) if turn is not None else ()
            sent = Sent(messages=[message.id], to=[agent.id], message=delivery_message(agent, staff, now=True))
        remembered(tx, caller, wanted.request, sent)
    if turn is None:
        return sent
    if batch:
        return deliver_now(context, agent, turn, batch, launch.interrupt)
    launch.interrupt(context.data.runs / turn.name)
    return sent


def fire(context: Trees, caller: str, wanted: FireAgent) -> Fired:
    """Fire an agent. Its work is saved, open mail returns to the senders, its reports go to its parent or with it."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Fired)) is not None:
            return Fired(**first)
        agent = _below(context, tx, caller, wanted.id, ExtraRight.FIRE)
        if wanted.ask:
            return _ask(tx, caller, agent, wanted)
        staff = AgentLines(context, tx)
        in_a_turn = {one.number for one in agents.standing(tx) if staff.turn(one) is not None}
        gone = dismiss(tx, agent, by=caller, subtree=wanted.subtree, in_a_turn=in_a_turn)
        turns = [(one, staff.turn(one)) for one in gone.fired]
        if caller != agent.parent:
            notice = f"{agent.name}, which reported to you, was fired."
            mail.send(tx, sender=agent.id, recipient=agent.parent, kind=MessageKind.NOTICE, text=notice)
        answer = _fired(agent, gone)
        remembered(tx, caller, wanted.request, answer)
    for one, turn in turns:
        _discard_tree(context, one, turn)
    narrow_pass(context, agent.parent)
    return answer


def give_more(context: Board, tx: Transaction, settled: Question) -> None:
    """Give an agent its budget again, out of what its parent has left. Raises StateConflict if that is too little."""
    if settled.kind is not QuestionKind.BUDGET or not settled.agent or settled.choice != MORE:
        return
    agent = agents.get(tx, settled.agent)
    budget, left = agent.rights.budget or 0.0, agents.all_means(tx, context.user.standing.top)[agent.parent].money
    # The request that exceeded the budget may have cost more than was left.
    raised = max(budget, usage.of_agent(tx, agent.number).usd) + budget
    if left is not None and left < raised - budget:
        raise StateConflict(
            f"{agent.name} would need {raised - budget:.2f} dollars more, and its parent has {left:.2f} left: "
            "give the parent more first, or fire some of its reports."
        )
    agents.give(tx, agent, raised)
    text = f"You have {budget:.2f} dollars more: continue.\n\n{settled.why}".strip()
    mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, project=agent.project)


def narrow_pass(context: Board, parent: str) -> None:
    """Lower the running turn's budget of a parent by what it has given away."""
    if parent == ROOT:
        return
    with context.store.read() as tx:
        agent = agents.get(tx, parent)
        turn = AgentLines(context, tx).turn(agent)
        money = agents.all_means(tx, context.user.standing.top)[parent].money if agent.fired_at is None else None
        spent = usage.of_agent(tx, agent.number).usd
    if turn is not None and money is not None:
        set_budget(GatewayFolder(context.data.gateway), turn.name, spent + money)


def _discard_tree(context: Trees, agent: Agent, turn: Run | None) -> None:
    """Stop a running turn, whose job then saves and discards the tree; without one, discard it here: it is saved."""
    if turn is not None:
        launch.stop(context.data.runs / turn.name, grace=_STOP_GRACE)
        return
    context.project(agent.project).worktrees.discard(agent_seat(agent.number))


def _below(context: Board, tx: Transaction, caller: str, word: str, right: ExtraRight) -> Agent:
    """The agent, if it is below the caller or if the person's settings open this right to the caller."""
    agent = agents.find(tx, word, by=caller)
    if agent.fired_at is not None:
        raise NotFound(f"{agent.name} was fired already.")
    if not commands(agents.parents(tx), caller, agent.id, tool_access.rights(context, tx, caller), right):
        raise NotAllowed(f"You may not {right.value} {agent.name}: only agents below you.")
    return agent


def _own_project(context: Board, caller: str, cwd: str) -> Project:
    with context.store.read() as tx:
        own = projects.get(tx, agents.get(tx, caller).project)
    other = registry.find_or_none(context, cwd) if cwd else None
    if other is not None and other.id != own.id:
        raise NotAllowed(f"You hire in your own project, {own.name}: leave out the folder.")
    return own


def _refuse_unfit(wanted: HireAgent) -> None:
    if not wanted.task.strip():
        raise BadInput("An agent needs a task: describe it, or give - to read it from stdin.")
    if wanted.name in WORDS_OF_COMMANDS:
        raise BadInput(f"{wanted.name!r} is a word of `legion tell`, `attach` or `status`: choose another name.")
    if wanted.name and (not _NAME.fullmatch(wanted.name) or wanted.name == ROOT):
        raise BadInput(
            f"{wanted.name[:60]!r} is not a name for an agent: use a letter, then letters, digits, '.', '_' and '-'."
        )
    if plan_number(wanted.name) is not None:
        raise BadInput(f"{wanted.name!r} is the name of a plan: choose another for the agent.")
    if len(wanted.role) > _LONGEST_ROLE:
        raise BadInput(f"A role has at most {_LONGEST_ROLE:,} letters: put the rest into the task.")
    if wanted.tools is not None and not all(tool.strip() for tool in wanted.tools):
        raise BadInput("A tool has no name: give names such as Read,Bash, or leave out --tools.")
    if wanted.budget is not None and not 0 < wanted.budget <= MOST_BUDGET:
        raise BadInput(f"A budget is more than 0 dollars, at most {MOST_BUDGET:,.0f}: choose one, or leave it out.")


def _notes(context: Trees, tx: ReadTransaction, new: Agent) -> list[str]:
    """Reasons why the first turn may not start yet."""
    notes = []
    if why := AgentLines(context, tx).why_waiting(new):
        notes.append(f"{new.name} does not start yet: {why}.")
    try:
        access = model_access.choose(context)
        model_run.refuse_login(access, preparation.profile(new))
    except NoModelAccess as missing:
        notes.append(missing.message)
    return notes


def _ask(tx: Transaction, caller: str, agent: Agent, wanted: FireAgent) -> Fired:
    if wanted.subtree:
        raise BadInput("--ask is for one agent: leave out --subtree, or leave out --ask.")
    asked = mail.send(
        tx,
        sender=caller,
        recipient=agent.id,
        kind=MessageKind.NOTICE,
        text=claimed_tickets.ASKED,
        project=agent.project,
    )
    agents.ask_to_leave(tx, agent, asked.id)
    message = (
        f"{agent.name} is asked to leave: it ends its turn and leaves, or sends you a message with its reason to stay."
    )
    answer = Fired(fired=[], adopted=[], returned=0, message=message)
    remembered(tx, caller, wanted.request, answer)
    return answer


def _fired(agent: Agent, gone: Dismissal) -> Fired:
    parts = [f"Fired: {agent.id}"]
    if len(gone.fired) > 1:
        parts.append(f"and {len(gone.fired) - 1} below")
    if gone.adopted:
        adopted = ", ".join(one.name for one in gone.adopted)
        parts.append(f"{adopted} now {'reports' if len(gone.adopted) == 1 else 'report'} to {agent.parent}")
    if gone.returned:
        parts.append(f"{count(gone.returned, 'message')} returned")
    return Fired(
        fired=[one.id for one in gone.fired],
        adopted=[one.id for one in gone.adopted],
        returned=gone.returned,
        message="; ".join(parts),
    )


# Checks the program that an agent is hired with: a driver that keeps a conversation, and keeps to what was agreed.

_CLAUDE = f"use --driver {drivers.DEFAULT}, or leave it out"


def of_hire(context: Board, tx: ReadTransaction, caller: str, wanted: HireAgent, rights: Rights) -> tuple[str, str]:
    """Driver and model as the agent's row holds them; an empty driver is the default one.

    An agent gives its own program on. Raises BadInput, NotAllowed, NoModelAccess.
    """
    name, model = wanted.driver.strip() or drivers.DEFAULT, wanted.model
    if caller != ROOT:
        hirer = agents.get(tx, caller)
        own, _ = hirer.program("", "", default=drivers.DEFAULT)
        name, model = hirer.program(wanted.driver.strip(), wanted.model, default=drivers.DEFAULT)
        if name != own and ExtraRight.DRIVER not in tool_access.rights(context, tx, caller):
            raise NotAllowed("Only the person chooses another program for an agent: leave out --driver.")
    return ("" if name == drivers.DEFAULT else _checked(context, caller, name, wanted, rights)), model


def _checked(context: Board, caller: str, name: str, wanted: HireAgent, rights: Rights) -> str:
    known = drivers.PROFILES[drivers.COMMAND] if name in context.user.drivers else drivers.find(name)
    if known is None:
        raise BadInput(f"There is no driver {name[:60]!r}: `legion driver list` names them.")
    if missing := preparation.missing_ability(known.capabilities):
        raise BadInput(f"{known.title} cannot be a standing agent, since {missing}: {_CLAUDE}.")
    if plain(wanted.role) == LEADER and caller == ROOT:
        raise BadInput(f"A leader needs the driver {drivers.DEFAULT}: leave out --driver.")
    if (rights.tools is not None or wanted.plan or wanted.delegate) and not known.capabilities.reads_only:
        limits = "--tools, --plan and --delegate"
        raise BadInput(f"{known.title} cannot be limited to some of its tools, as {limits} demand: {_CLAUDE}.")
    model_run.find_program(context, known)
    return name
