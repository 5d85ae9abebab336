"""The actions on the board that a forge may cause, as an interface: the daemon passes in the use cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from legion.domain.forge.issues import CommentAnswer, ForgeIssue
from legion.store.database.transactions import Transaction


class BoardActions(Protocol):
    def dispatch(
        self,
        project: int,
        issue: ForgeIssue,
        text: str,
        options: Mapping[str, object],
        *,
        request: str,
        also: Callable[[Transaction, int], None],
    ) -> int:
        """Make a ticket of an issue, once for each `request`. `also` is called in the same transaction."""
        ...

    def stop(self, ticket: int, why: str) -> None: ...

    def retry(self, ticket: int, text: str) -> None: ...

    def split(self, ticket: int) -> None: ...

    def answer(self, ticket: int, given: CommentAnswer) -> None:
        """Settle a question of the ticket that a comment may answer. Raises NotFound where none is open."""
        ...

    def land_epics(self, project: int) -> None:
        """Land each epic whose branch is complete, where an epic is one pull request."""
        ...

    def plan(self, project: int, goal: str, *, request: str) -> None: ...
