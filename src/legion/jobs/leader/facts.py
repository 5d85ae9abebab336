"""Reads what a leader's digest and briefing are made of."""

from __future__ import annotations

from collections.abc import Iterable

from legion.config.sections.claude import Answers
from legion.domain.agents.agent import ROOT, Agent, ExtraRight, below, is_leader, tree
from legion.domain.agents.mail import MessageKind
from legion.domain.leader.briefing import EpicFact, LeaderFacts, LeaderRights, SpokenLine
from legion.domain.leader.digest import BoardFacts, PlanFact, QuestionFact, TicketFact
from legion.domain.questions import Question, QuestionKind
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.agent import tool_access
from legion.jobs.board import Board
from legion.store import events
from legion.store.board import goals, notes, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, mail

_ENDED = (State.DONE, State.STOPPED, State.FAILED)
_MOST_FAILED = 20
_SPOKEN = 6
_SHOWN_KINDS = (MessageKind.TELL, MessageKind.RESULT)


def board(context: Board, tx: ReadTransaction, agent: Agent, *, since: int, fresh: bool) -> BoardFacts:
    """The board since an event. `fresh`: the leader knows nothing yet, so earlier failures are included."""
    project = projects.get(tx, agent.project)
    live = tickets.live(tx, project=agent.project)
    moved, created = events.tickets_since(tx, agent.project, since)
    ended = {id: state for id, state in tickets.states_of(tx, moved).items() if state in _ENDED}
    failed = [id for id, state in ended.items() if state is State.FAILED]
    if fresh:
        failed += [one.id for one in tickets.recent(tx, agent.project, _MOST_FAILED, state=State.FAILED)]
    over = [TicketFact(id=id, title="", state=state, changed=True) for id, state in ended.items() if id not in failed]
    shown = [_fact(one, moved=True) for one in tickets.get_many(tx, sorted(set(failed)))]
    asked = [one for one in questions.open_ones(tx) if one.project == agent.project]
    mine = {one.id for one in answerable(context, tx, agent, asked)}
    return BoardFacts(
        tickets=[*over, *shown, *(_fact(one, moved=one.id in moved, created=one.id in created) for one in live)],
        questions=[
            QuestionFact(
                id=one.id,
                source=f"ticket {one.ticket}" if one.ticket is not None else one.agent[:8] or "a plan",
                mine=one.id in mine,
            )
            for one in asked
        ],
        plans=[
            PlanFact(name=one.name, state=one.state.value, goal=one.goal)
            for one in goals.of_project(tx, agent.project)
            if one.open
        ],
        lessons=[one.id for one in notes.lessons(tx, agent.project) if one.proposed],
        target_red=project.baseline_red,
        paused=project.paused,
        left=agents.all_means(tx, context.user.standing.top)[agent.id].money,
    )


def known(tx: ReadTransaction, agent: Agent, *, earlier: bool) -> LeaderFacts:
    """What a fresh conversation starts with. `earlier`: there was one before."""
    live = tickets.live(tx, project=agent.project)
    spoken = [one for one in mail.between(tx, ROOT, agent.id, limit=_SPOKEN) if one.kind in _SHOWN_KINDS]
    return LeaderFacts(
        task=agent.task,
        notes=notes.for_leaders(tx, agent.project),
        epics=open_epics(tx, agent.project, live),
        # What waits is part of the prompt anyway.
        spoken=[SpokenLine(mine=one.sender == agent.id, text=one.text) for one in spoken if not one.is_open],
        earlier=earlier,
    )


def completed_epics(tx: ReadTransaction, project: int, ended: Iterable[int]) -> set[str]:
    """The epics of these tickets that have no live ticket left."""
    names = {one.spec.epic for one in tickets.get_many(tx, ended) if one.spec.epic}
    return names - {one.spec.epic for one in tickets.live(tx, project=project)}


def open_epics(tx: ReadTransaction, project: int, live: Iterable[Ticket]) -> list[EpicFact]:
    goals_of = {one.epic or one.name: one.goal for one in goals.of_project(tx, project)}
    found = []
    for name in sorted({one.spec.epic for one in live if one.spec.epic}):
        mine = tickets.of_epic(tx, project, name)
        found.append(
            EpicFact(
                name=name,
                goal=goals_of.get(name, ""),
                done=sum(one.state is State.DONE for one in mine),
                total=len(mine),
                open=[one.id for one in mine if one.state not in _ENDED],
                failed=[one.id for one in mine if one.state is State.FAILED],
            )
        )
    return found


def _fact(ticket: Ticket, *, moved: bool, created: bool = False) -> TicketFact:
    return TicketFact(
        id=ticket.id,
        title=ticket.spec.title,
        state=ticket.state,
        reason=ticket.reason if ticket.state in (State.FAILED, State.PARKED) else "",
        attempt=ticket.attempt,
        changed=moved,
        created=created,
    )


# Reads from the settings of the person what a leader may decide: plans of goals, and questions of agents.


def rights(context: Board, tx: ReadTransaction, agent: Agent) -> LeaderRights:
    return LeaderRights(
        approves=ExtraRight.APPROVE in tool_access.rights(context, tx, agent.id),
        answers=context.user.claude.answers is Answers.LEADERS,
    )


def answerable(context: Board, tx: ReadTransaction, agent: Agent, asked: Iterable[Question]) -> tuple[Question, ...]:
    """Those that the agent may answer: of agents below it; a leader's also of tickets of its project.

    Never its own questions, and never a permission or a budget: those are the person's.
    """
    if context.user.claude.answers is not Answers.LEADERS:
        return ()
    under = {one.id for one in below(tree(agents.standing(tx)), agent.id)}

    def may(question: Question) -> bool:
        of_project = is_leader(agent) and question.project == agent.project and question.agent == ""
        return question.kind is QuestionKind.ASK and (question.agent in under or of_project)

    return tuple(question for question in asked if may(question))
