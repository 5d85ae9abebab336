"""Send messages to standing agents and to the person, and read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from legion.domain.agents import agent as rules
from legion.domain.agents import mail as mail_rules
from legion.domain.agents.agent import ROOT, Agent, tells
from legion.domain.agents.mail import Delivery, Message, MessageKind
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.questions import Question, QuestionKind
from legion.domain.runs import Run
from legion.domain.text import count
from legion.jobs.agent import mail_prompt, tool_access
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.service.agents.listing import AgentLines, message_lines
from legion.service.agents.tell import PATIENCE, wait_for_delivery
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import questions
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail
from legion.wire.mail import ArchiveMail, Broadcast, FindMail, Mail, NewMessage, ReadMail, Sent
from legion.wire.projects import Done

LONGEST = 1_000_000
_SHOWN = 200
GO_ON, _STOP = "go on", "stop"


def tell(context: Trees, caller: str, letter: NewMessage) -> Sent:
    """Store the message first; then it waits in the mailbox, or is delivered in the running turn."""
    text, batch = checked(letter.text), tuple[Message, ...]()
    letter = _addressed(context, caller, letter)
    _refuse_ping_pong(context, caller, letter)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, letter.request, Sent)) is not None:
            return Sent(**first)
        if letter.to == ROOT:
            sent = _to_person(tx, caller, text)
            turn = None
        else:
            agent = addressee(context, tx, caller, letter.to)
            _refuse_flood(tx, caller, agent.id, agent.name)
            staff = AgentLines(context, tx)
            turn = staff.turn(agent)
            message = mail.send(
                tx,
                sender=caller,
                recipient=agent.id,
                text=text,
                project=agent.project,
                reply_to=letter.reply_to or None,
            )
            batch = mail.offer_now(tx, message) if letter.now and turn is not None else ()
            sent = Sent(messages=[message.id], to=[agent.id], message=delivery_message(agent, staff, now=letter.now))
        remembered(tx, caller, letter.request, sent)
    if turn is None or not batch:
        return sent
    return deliver_now(context, agent, turn, batch, launch.tell)


def _addressed(context: Board, caller: str, letter: NewMessage) -> NewMessage:
    """A reply goes to the sender of the message that it answers, which the caller must have received or sent."""
    if not letter.reply_to:
        return letter
    with context.store.read() as tx:
        answered = mail.numbered(tx, letter.reply_to)
    if caller not in (answered.sender, answered.recipient):
        raise NotAllowed(f"Message {letter.reply_to} is not yours to answer.")
    other = answered.recipient if answered.sender == caller else answered.sender
    return replace(letter, to=letter.to or other)


def find(context: Board, wanted: FindMail) -> Mail:
    """For the person, who can see all mail."""
    with context.store.read() as tx:
        if wanted.thread:
            one = mail.numbered(tx, wanted.thread)
            found = mail.between(tx, one.sender, one.recipient, limit=_SHOWN)
        elif wanted.text.strip():
            found = mail.with_text(tx, wanted.text.strip(), limit=_SHOWN)
        else:
            raise BadInput("Say what to look for: `legion inbox mail search TEXT`.")
        return Mail(messages=message_lines(tx, found))


def archive(context: Board, wanted: ArchiveMail) -> Done:
    """Only mail to the person that was read. Nothing is deleted."""
    with context.store.write() as tx:
        for number in wanted.numbers:
            if mail.numbered(tx, number).recipient != ROOT:
                raise BadInput(f"Message {number} is not addressed to you.")
        archived = mail.archive(tx, ROOT, wanted.numbers)
    return Done(message=f"{count(archived, 'message is', 'messages are')} archived.")


def deliver_now(
    context: Trees, agent: Agent, turn: Run, batch: tuple[Message, ...], way: Callable[[Path, str, str], bool]
) -> Sent:
    """Deliver the last message of the batch in the running turn, after those that were sent before it.

    Waits a while for the delivery. A message that was not delivered waits for the next turn.
    """
    folder = context.data.runs / turn.name
    long_ones = mail_prompt.long_mail_folder(context.project(agent.project), turn.seat)
    with context.store.read() as tx:
        names = agents.names(tx)
    name = batch[-1].id
    reached = way(folder, name, "\n\n".join(mail_prompt.format_message(agent, names, one, long_ones) for one in batch))
    delivered = wait_for_delivery(folder, name, PATIENCE) if reached else False
    if not reached:
        with context.store.write() as tx:
            for one in mail.of_batch(tx, agent.id, name):
                if one.delivery is Delivery.OFFERED:
                    mail.move(tx, one, Delivery.WAITING)
    texts = {
        True: f"{agent.name} has received it.",
        False: f"{agent.name} did not receive it in this turn: it arrives with the next one.",
        None: f"{agent.name} receives it after its present step.",
    }
    return Sent(messages=[name], to=[agent.id], heard=delivered, message=texts[delivered])


def broadcast(context: Board, caller: str, wanted: Broadcast) -> Sent:
    """Send to all agents below the caller, or to one of them and all below it."""
    text = checked(wanted.text)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Sent)) is not None:
            return Sent(**first)
        reports = rules.tree(agents.standing(tx))
        if wanted.subtree:
            top = addressee(context, tx, caller, wanted.subtree)
            if not rules.may_command(agents.parents(tx), caller, top.id):
                raise NotAllowed(f"{top.name} is not below you: broadcast only to agents below you.")
            recipients = [top, *rules.below(reports, top.id)]
        else:
            recipients = list(rules.below(reports, caller))
        if not recipients:
            raise StateConflict("You have no agents below you: hire one with `legion agents hire`.")
        sent = [mail.send(tx, sender=caller, recipient=one.id, text=text, project=one.project) for one in recipients]
        answer = Sent(
            messages=[one.id for one in sent],
            to=[one.id for one in recipients],
            message=f"Message sent to {count(len(sent), 'agent')}: {', '.join(one.name for one in recipients)}",
        )
        remembered(tx, caller, wanted.request, answer)
    return answer


def read(context: Board, caller: str, wanted: ReadMail) -> Mail:
    """The caller's own mail, or that of an agent below it. What the person is shown here counts as read."""
    with context.store.write() as tx:
        parents = agents.parents(tx)
        if wanted.dead:
            senders = (
                None if caller == ROOT else {caller, *(id for id in parents if rules.may_see(parents, caller, id))}
            )
            return Mail(messages=message_lines(tx, mail.dead(tx, senders, limit=_SHOWN)))
        whose = caller
        if wanted.agent and wanted.agent != ROOT:
            whose = agents.find(tx, wanted.agent, by=caller).id
        elif wanted.agent == ROOT:
            whose = ROOT
        if whose != caller and caller != ROOT and not rules.may_see(parents, caller, whose):
            raise NotAllowed("You may read only your own mail and that of agents below you.")
        found = mail.about(tx, [whose], limit=_SHOWN) if wanted.all else mail.waiting(tx, whose)
        if not wanted.all:
            found = (*mail.offered(tx, whose), *found)
        lines = message_lines(tx, found, hide=caller)
        if whose == caller == ROOT:
            mail.read(tx, [one for one in found if one.recipient == ROOT])
    return Mail(messages=lines)


def _refuse_ping_pong(context: Board, caller: str, letter: NewMessage) -> None:
    """Two agents that only answer each other may continue only if the person allows it, who is asked once."""
    if ROOT in (caller, letter.to):
        return
    with context.store.write() as tx:
        if repeated(tx, caller, letter.request, Sent) is not None:
            return
        agent = addressee(context, tx, caller, letter.to)
        talk = mail.between(tx, caller, agent.id, limit=mail_rules.TALK)
        if not mail_rules.quarrels(talk, tx.now):
            return
        pair = "-".join(sorted((caller, agent.id)))
        asked = [questions.by_key(tx, f"quarrel-{pair}-{message.number}") for message in talk]
        allowed = [place for place, one in enumerate(asked, start=1) if one is not None and one.choice == GO_ON]
        talk = talk[allowed[-1] :] if allowed else talk
        if not mail_rules.quarrels(talk, tx.now):
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
    what = f"You and {agent.name} have only answered each other for {count(len(talk), 'message')}"
    if question.settled_at is not None:
        raise StateConflict(f"{what}, and the person did not allow it to continue: end your turn, and report instead.")
    raise StateConflict(
        f"{what}: the person is asked whether that may continue (question {question.id}). End your turn."
    )


def allow_conversation(tx: Transaction, settled: Question) -> None:
    """Notify the agent that was stopped that the two may continue: its last message was not sent."""
    if settled.kind is QuestionKind.CONFLICT and settled.agent and settled.choice == GO_ON:
        text = f"You may continue with each other: send your last message again.\n\n{settled.why}".strip()
        mail.send(tx, sender=ROOT, recipient=settled.agent, kind=MessageKind.NOTICE, text=text, project=settled.project)


def addressee(context: Board, tx: Transaction, caller: str, word: str) -> Agent:
    """The agent, if the caller may write to it. Raises NotFound or NotAllowed."""
    agent = agents.find(tx, word, by=caller)
    if agent.fired_at is not None:
        raise NotFound(f"{agent.name} was fired: `legion agents` lists the others.")
    if agent.id == caller:
        raise BadInput("That is you yourself: name another agent.")
    if not tells(agents.parents(tx), caller, agent.id, tool_access.rights(context, tx, caller)):
        raise NotAllowed(f"You may not write to {agent.name}: write to agents above and below you, and to your peers.")
    return agent


def _refuse_flood(tx: Transaction, caller: str, recipient: str, name: str) -> None:
    """Of the person's own messages any number may wait."""
    unread = sum(one.sender == caller for one in mail.waiting(tx, recipient))
    if caller != ROOT and unread >= mail_rules.MOST_UNREAD:
        raise StateConflict(f"{name} has {unread} unread messages of yours: say the rest when they were read.")


def checked(text: str) -> str:
    if not text.strip():
        raise BadInput("The message is empty: give a text, or - to read it from stdin.")
    if len(text) > LONGEST:
        raise BadInput(f"A message has at most {LONGEST:,} characters: put long material into the repository.")
    return text


def _to_person(tx: Transaction, caller: str, text: str) -> Sent:
    if caller == ROOT:
        raise BadInput("That is you yourself: name an agent.")
    _refuse_flood(tx, caller, ROOT, "The person")
    message = mail.send(tx, sender=caller, recipient=ROOT, text=text, project=agents.get(tx, caller).project)
    return Sent(messages=[message.id], to=[ROOT], message="The message is in the person's mailbox.")


def delivery_message(agent: Agent, staff: AgentLines, *, now: bool) -> str:
    if staff.turn(agent) is not None:
        hint = "" if now else "; --now delivers it in this one"
        return f"Message queued for {agent.id}: it is working, and receives it with its next turn{hint}"
    why = staff.why_waiting(agent)
    return f"Message queued for {agent.id}: {why}" if why else f"Message delivered to {agent.id} (now working)"
