"""One pass over a project's forge: the values that all its parts share."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.forge.connections import ForgeConnection
from legion.forge import Forge, GitRemote
from legion.jobs.context import Context, ProjectContext
from legion.jobs.forge.actions import BoardActions


@dataclass(frozen=True, kw_only=True)
class Visit:
    context: Context
    project: ProjectContext
    connection: ForgeConnection
    forge: Forge
    actions: BoardActions
    base: str | None
    """The commit of the forge's branch."""

    @property
    def remote(self) -> GitRemote:
        return self.forge.remote

    @property
    def us(self) -> str:
        return self.connection.login
