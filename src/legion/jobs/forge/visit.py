"""One pass over a project's forge: the values that all its parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from legion.domain.errors import LegionError
from legion.domain.forge.connections import ForgeConnection
from legion.forge import Forge, GitRemote
from legion.forge.errors import ForgeLimited
from legion.jobs.board import Board
from legion.jobs.forge.clients import BoardActions
from legion.jobs.trees import ProjectContext


@dataclass(frozen=True, kw_only=True)
class Visit:
    context: Board
    project: ProjectContext
    connection: ForgeConnection
    forge: Forge
    actions: BoardActions
    base: str | None
    """The commit of the forge's branch."""

    @property
    def remote(self) -> GitRemote:
        return self.forge.remote


def each(steps: Iterable[Callable[[], object]]) -> None:
    """Each on its own: what cannot be done with one issue or pull request holds up no other. Then the first trouble is
    raised.
    """
    troubles: list[LegionError] = []
    for step in steps:
        try:
            step()
        except ForgeLimited:
            raise
        except LegionError as trouble:
            troubles.append(trouble)
    if troubles:
        raise troubles[0]
