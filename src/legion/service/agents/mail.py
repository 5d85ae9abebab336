"""Messages: to one, to many, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from legion.domain.agents import agent as rules
from legion.domain.agents import mail as rules_of_mail
from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.extra_rights import tells
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.questions import Question, QuestionKind
from legion.domain.runs import Run
from legion.jobs.agent import extra_rights, mail_prompt
from legion.jobs.context import Context
from legion.runner import launch
from legion.service.agents import tell as telling
from legion.service.agents.listing import AgentLines, message_lines
from legion.store.board import questions
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail
from legion.store.work import idempotency
from legion.wire.mail import Broadcast, Mail, NewMessage, ReadMail, Sent

LONGEST = 1_000_000
_SHOWN = 200
GO_ON, _STOP = "go on", "stop"


def tell(context: Context, caller: str, letter: NewMessage) -> Sent:
    """It waits in the mailbox, or is said in the turn that the agent is in. Written down before anybody is told."""
    text, batch = checked(letter.text), tuple[Message, ...]()
    _refuse_quarrel(context, caller, letter.to)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, letter.request)) is not None:
            return Sent(**first)
        if letter.to == ROOT:
            sent = _to_person(tx, caller, text)
            turn = None
        else:
            agent = addressee(context, tx, caller, letter.to)
            staff = AgentLines(context, tx)
            turn = staff.turn(agent)
            message = mail.send(tx, sender=caller, recipient=agent.id, text=text, project=agent.project)
            batch = mail.offer_now(tx, message) if letter.now and turn is not None else ()
            sent = Sent(messages=[message.id], to=[agent.id], message=words(agent, staff, now=letter.now))
        remembered(tx, caller, letter.request, sent)
    if turn is None or not batch:
        return sent
    return say(context, agent, turn, batch, launch.tell)


def say(
    context: Context, agent: Agent, turn: Run, batch: tuple[Message, ...], way: Callable[[Path, str, str], bool]
) -> Sent:
    """The last of these in the turn that the agent is in, with what had to be said before it.

    Waits a while for the agent to hear it. Unheard, it waits for the next turn.
    """
    folder = context.data.runs / turn.name
    whole = mail_prompt.long_ones(context.workshop(agent.project), turn.seat)
    with context.store.read() as tx:
        names = agents.names(tx)
    name = batch[-1].id
    reached = way(folder, name, "\n\n".join(mail_prompt.framed(agent, names, one, whole) for one in batch))
    heard = telling.heard(folder, name, telling.PATIENCE) if reached else False
    if not reached:
        with context.store.write() as tx:
            for one in mail.of_batch(tx, agent.id, name):
                if one.delivery is Delivery.OFFERED:
                    mail.move(tx, one, Delivery.WAITING)
    said = {
        True: f"{agent.name} has heard it.",
        False: f"{agent.name} did not hear it in this turn: it begins the next one.",
        None: f"{agent.name} hears it after what it is doing now.",
    }
    return Sent(messages=[name], to=[agent.id], heard=heard, message=said[heard])


def broadcast(context: Context, caller: str, wanted: Broadcast) -> Sent:
    """To everybody below the caller, or below one of those (and to that one)."""
    text = checked(wanted.text)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Sent(**first)
        reports = rules.tree(agents.standing(tx))
        if wanted.subtree:
            top = addressee(context, tx, caller, wanted.subtree)
            if not rules.may_command(agents.parents(tx), caller, top.id):
                raise NotAllowed(f"{top.name} is not below you: broadcast to those whom you hired.")
            listeners = [top, *rules.below(reports, top.id)]
        else:
            listeners = list(rules.below(reports, caller))
        if not listeners:
            raise StateConflict("Nobody stands below you: hire somebody with `legion hire`.")
        sent = [mail.send(tx, sender=caller, recipient=one.id, text=text, project=one.project) for one in listeners]
        count = "1 agent" if len(sent) == 1 else f"{len(sent)} agents"
        answer = Sent(
            messages=[one.id for one in sent],
            to=[one.id for one in listeners],
            message=f"Message sent to {count}: {', '.join(one.name for one in listeners)}",
        )
        remembered(tx, caller, wanted.request, answer)
    return answer


def read(context: Context, caller: str, wanted: ReadMail) -> Mail:
    """The caller's own mail, or that of somebody below. What the person reads here is read."""
    with context.store.write() as tx:
        parents = agents.parents(tx)
        if wanted.dead:
            senders = (
                None if caller == ROOT else {caller, *(id for id in parents if rules.may_see(parents, caller, id))}
            )
            return Mail(messages=message_lines(tx, mail.dead(tx, senders, limit=_SHOWN)))
        whose = caller
        if wanted.agent and wanted.agent != ROOT:
            whose = agents.find(tx, wanted.agent).id
        elif wanted.agent == ROOT:
            whose = ROOT
        if whose != caller and caller != ROOT and not rules.may_see(parents, caller, whose):
            raise NotAllowed("You read your own mail and that of those below you.")
        found = mail.about(tx, [whose], limit=_SHOWN) if wanted.all else mail.waiting(tx, whose)
        if not wanted.all:
            found = (*mail.offered(tx, whose), *found)
        lines = message_lines(tx, found, hide=caller)
        if whose == caller == ROOT:
            mail.read(tx, mail.waiting(tx, ROOT))
    return Mail(messages=lines)


def _refuse_quarrel(context: Context, caller: str, to: str) -> None:
    """Two agents that do nothing but answer each other go on only when the person says so, who is asked once."""
    if ROOT in (caller, to):
        return
    with context.store.write() as tx:
        agent = addressee(context, tx, caller, to)
        talk = mail.between(tx, caller, agent.id, limit=rules_of_mail.TALK)
        if not rules_of_mail.quarrels(talk, tx.now):
            return
        pair = "-".join(sorted((caller, agent.id)))
        asked = [questions.by_key(tx, f"quarrel-{pair}-{message.number}") for message in talk]
        allowed = [place for place, one in enumerate(asked, start=1) if one is not None and one.choice == GO_ON]
        talk = talk[allowed[-1] :] if allowed else talk
        if not rules_of_mail.quarrels(talk, tx.now):
            return
        mine = agents.get(tx, caller)
        question = questions.ask(
            tx,
            key=f"quarrel-{pair}-{talk[-1].number}",
            kind=QuestionKind.CONFLICT,
            project=agent.project,
            agent=caller,
            words=f"{mine.name} and {agent.name} only answer each other. Shall they go on?",
            facts={"messages": str(len(talk)), "the last one": talk[-1].text[:_SHOWN]},
            choices=(GO_ON, _STOP),
            fallback=_STOP,
            deadline=tx.now + context.user.claude.answer_within,
        )
    what = f"You and {agent.name} have only answered each other for {len(talk)} messages"
    if question.settled_at is not None:
        raise StateConflict(f"{what}, and nobody said that this should go on: end your turn, and report instead.")
    raise StateConflict(f"{what}: the person is asked whether that goes on (question {question.id}). End your turn.")


def let_go_on(tx: Transaction, settled: Question) -> None:
    """Whoever was stopped in a quarrel hears that the person lets it go on: what it wanted to say was not sent."""
    if settled.kind is QuestionKind.CONFLICT and settled.agent and settled.choice == GO_ON:
        text = f"You may go on with each other: say again what you wanted to say.\n\n{settled.why}".strip()
        mail.send(tx, sender=ROOT, recipient=settled.agent, kind=MessageKind.NOTICE, text=text, project=settled.project)


def addressee(context: Context, tx: Transaction, caller: str, word: str) -> Agent:
    """Somebody who stands and whom the caller may tell something. Raises NotFound or NotAllowed."""
    agent = agents.find(tx, word)
    if agent.fired_at is not None:
        raise NotFound(f"{agent.name} was fired: see `legion agents` for those who stand.")
    if agent.id == caller:
        raise BadInput("That is you yourself: name somebody else.")
    if not tells(agents.parents(tx), caller, agent.id, extra_rights.rights(context, tx, caller)):
        raise NotAllowed(f"You may not write to {agent.name}: write to those above and below you, and to your peers.")
    return agent


def checked(text: str) -> str:
    if not text.strip():
        raise BadInput("There is nothing to tell: give a message, or - to read it from stdin.")
    if len(text) > LONGEST:
        raise BadInput(f"A message has at most {LONGEST:,} letters: put long material into the repository.")
    return text


def repeated(tx: Transaction, caller: str, request: str) -> dict[str, Any] | None:
    """The first answer, where this very request was answered before."""
    return idempotency.recall_call(tx, caller, request) if request else None


def remembered(tx: Transaction, caller: str, request: str, answer: object) -> None:
    if request:
        idempotency.remember_call(tx, caller, request, asdict(answer))  # type: ignore[call-overload]


def _to_person(tx: Transaction, caller: str, text: str) -> Sent:
    if caller == ROOT:
        raise BadInput("That is you yourself: name an agent.")
    message = mail.send(tx, sender=caller, recipient=ROOT, text=text, project=agents.get(tx, caller).project)
    return Sent(messages=[message.id], to=[ROOT], message="The message is in the person's mailbox.")


def words(agent: Agent, staff: AgentLines, *, now: bool) -> str:
    if staff.turn(agent) is not None:
        hint = "" if now else "; --now reaches it in this one"
        return f"Message queued for {agent.id}: it is working, and hears it in its next turn{hint}"
    why = staff.hindrance(agent)
    return f"Message queued for {agent.id}: {why}" if why else f"Message delivered to {agent.id} (now working)"
