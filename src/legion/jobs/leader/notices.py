"""Sends a leader a notice when the board needs it: tickets failed, a plan is ready, a question is its to answer."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT, Agent, is_leader
from legion.domain.agents.mail import MessageKind
from legion.domain.events import EventKind
from legion.domain.leader.briefing import notice
from legion.domain.questions import Question
from legion.jobs.board import Board
from legion.jobs.leader import facts
from legion.store import events
from legion.store.board import questions
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, leaders, mail
from legion.store.work import runs

_ENDED = ("done", "failed", "stopped")
_MOST = 5000
"""Events that are read at once."""


class LeaderNotices:
    def __init__(self, context: Board) -> None:
        self._context = context
        self._read: dict[int, int] = {}
        """By leader: the last event that was read and needed no notice."""

    def look(self) -> None:
        """One look at every leader without a turn. Costs one query where there is none; writes only notices.

        A leader that is at work, or has mail, reads the digest anyway: its notice comes after the turn, for what is
        new.
        """
        with self._context.store.read() as tx:
            last = events.last(tx)
            due = [agent for agent in _idle(tx) if self._text(tx, agent, last)]
        if due:
            with self._context.store.write() as tx:
                for agent in _idle(tx):
                    self._send(tx, agent)

    def _text(self, tx: ReadTransaction, agent: Agent, last: int) -> str:
        state = leaders.get(tx, agent.number)
        # What its last digest covered needs no notice; a new leader starts with the board as it is.
        since = max(state.noticed, state.seen, self._read.get(agent.number, 0))
        if not state.seen or since >= last:
            return ""
        text = _notice(self._context, tx, agent, since)
        if not text:
            self._read[agent.number] = last
        return text

    def _send(self, tx: Transaction, agent: Agent) -> None:
        if text := self._text(tx, agent, events.last(tx)):
            mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, project=agent.project)
            leaders.change(tx, agent.number, noticed=events.last(tx))


def _idle(tx: ReadTransaction) -> list[Agent]:
    found = [agent for agent in agents.standing(tx) if is_leader(agent)]
    if not found:
        return []
    in_a_turn = {run.agent for run in runs.active(tx)}
    waiting = mail.have_mail(tx)
    return [agent for agent in found if agent.number not in in_a_turn and agent.id not in waiting and not agent.owes]


def _notice(context: Board, tx: ReadTransaction, agent: Agent, since: int) -> str:
    new = events.after(tx, since, project=agent.project, limit=_MOST)
    ended = {
        event.ticket
        for event in new
        if event.kind is EventKind.TICKET_MOVED and event.data.get("to") in _ENDED and event.ticket is not None
    }
    asked = {event.data.get("question") for event in new if event.kind is EventKind.QUESTION_ASKED}
    own: tuple[Question, ...] = facts.answerable(context, tx, agent, questions.open_ones(tx)) if asked else ()
    return notice(
        new,
        questions=[one.id for one in own if one.id in asked],
        completed=facts.completed_epics(tx, agent.project, ended),
    )
