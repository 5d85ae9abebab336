"""A plain git remote as a forge: branches are pushed and fetched, and there is nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from legion.forge import ForgeRepository, GitRemote
from legion.forge.errors import NoPulls

_SSH = "ssh -o BatchMode=yes"


class PlainRemote:
    has_pulls = False

    def __init__(
        self,
        url: str,
        *,
        default_branch: Callable[[GitRemote], str],
        branch_tip: Callable[[GitRemote, str], str | None],
    ) -> None:
        """Both functions ask the remote itself, since only git knows how."""
        self._url = url
        self._default_branch = default_branch
        self._branch_tip = branch_tip

    @property
    def remote(self) -> GitRemote:
        allowed = {f"protocol.{name}.allow": "always" for name in ("https", "http", "ssh", "git")}
        return GitRemote(url=self._url, settings={**allowed, "core.sshCommand": _SSH})

    def repository(self) -> ForgeRepository:
        branch = self._default_branch(self.remote)
        return ForgeRepository(name=self._url, default_branch=branch, may_push=True, login="")

    def branch_tip(self, branch: str) -> str | None:
        return self._branch_tip(self.remote, branch)

    def may_write(self, login: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - every other method of the interface
        def refuse(*_: object, **__: object) -> NoReturn:
            raise NoPulls

        return refuse
