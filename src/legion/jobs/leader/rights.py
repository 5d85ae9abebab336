"""Reads from the settings of the person what a leader may decide: plans of goals, and questions of agents."""

from __future__ import annotations

from collections.abc import Iterable

from legion.config.sections.claude import Answers
from legion.domain.agents.agent import Agent, below, tree
from legion.domain.agents.extra_rights import ExtraRight
from legion.domain.agents.leaders import is_leader
from legion.domain.leader.briefing import LeaderRights
from legion.domain.questions import Question, QuestionKind
from legion.jobs.agent import extra_rights
from legion.jobs.board import Board
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents


def rights(context: Board, tx: ReadTransaction, agent: Agent) -> LeaderRights:
    return LeaderRights(
        approves=ExtraRight.APPROVE in extra_rights.rights(context, tx, agent.id),
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
