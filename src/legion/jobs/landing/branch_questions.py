"""Asks the person once when the branch of a session was deleted, renamed or rewritten. Work continues meanwhile."""

from __future__ import annotations

from legion.domain.projects import Project
from legion.domain.questions import BIND, LEAVE, REBASE, REBUILD, RECREATE, Question, QuestionKind, SettledBy
from legion.jobs.board import Board
from legion.store.board import questions
from legion.store.database.transactions import ReadTransaction, Transaction

_ANSWER_WITHIN = 7 * 86_400.0


def ask_gone(context: Board, record: Project) -> None:
    """One question for each commit that the branch was last seen at."""
    words = (
        f"The branch {record.branch} of session {record.session_name} is gone. Landed work is safe in the hub. "
        f"`{RECREATE}` makes the branch again where it was, `{BIND} BRANCH` binds the session to another one, for "
        f"example after a rename; until then nothing can be collected."
    )
    _ask(context, record, f"gone:{record.branch}:{record.person_tip}", words, (RECREATE, BIND, LEAVE))


def ask_rewritten(context: Board, record: Project, before: str) -> None:
    """`before` is the tip that the branch no longer contains."""
    words = (
        f"The branch {record.branch} of session {record.session_name} was rewritten: it no longer contains "
        f"{before[:9]}, which the target has. `{REBASE}` makes the branch as it is the target and lands on it again "
        f"what you have not collected; `{REBUILD}` leaves that out and keeps it in the hub under a name; `{LEAVE}` "
        f"merges your new commits into the target, as usual."
    )
    _ask(context, record, f"rewritten:{before}", words, (REBASE, REBUILD, LEAVE))


def about_rewritten(tx: ReadTransaction, project: int) -> Question | None:
    """The open question about a branch that was rewritten."""
    start = f"{QuestionKind.BRANCH.value}:{project}:rewritten:"
    return next((one for one in questions.open_ones(tx) if one.key.startswith(start)), None)


def settle_open(tx: Transaction, project: int, choice: str) -> None:
    """The person did something about the branch: whatever was asked is answered."""
    for one in questions.open_ones(tx):
        if one.kind is QuestionKind.BRANCH and one.project == project:
            questions.settle(tx, one.id, choice, by=SettledBy.PERSON)


def _ask(context: Board, record: Project, about: str, words: str, choices: tuple[str, ...]) -> None:
    key = f"{QuestionKind.BRANCH.value}:{record.id}:{about}"
    with context.store.read() as tx:
        if questions.by_key(tx, key) is not None:
            return
    with context.store.write() as tx:
        questions.ask(
            tx,
            key=key,
            kind=QuestionKind.BRANCH,
            project=record.id,
            words=words,
            deadline=tx.now + _ANSWER_WITHIN,
            choices=choices,
        )
