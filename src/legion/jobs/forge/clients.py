"""Opens the forge of a project: reads its token, and keeps one client per account, which holds ETags and limits."""

from __future__ import annotations

import hashlib
import importlib
import os
import shlex
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from legion.domain.errors import LegionError, NotAllowed
from legion.domain.forge.connections import ForgeConnection, ForgeKind, TokenFrom
from legion.domain.forge.issues import CommentAnswer, ForgeIssue
from legion.forge import Forge, GitRemote, github
from legion.forge.errors import ForgeLimited
from legion.forge.github import GitHub
from legion.forge.plain import PlainRemote
from legion.git.hub import remote
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store.database.transactions import Transaction
from legion.system import process
from legion.system.process import ProgramMissing

SERVICE = "legion"
"""The service under which the keyring has tokens."""
_PATIENCE = 20.0
_AGAIN = "run `legion forge add` again"


class _Clients:
    """Clients and locks by what identifies them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forges: dict[tuple[str, ...], tuple[str, Forge]] = {}
        """By connection: the digest of the token, and the client. A token may rotate."""
        self._passes: dict[tuple[str, int], threading.Lock] = {}
        self._hurried: set[tuple[str, int]] = set()

    def forge(self, one: ForgeConnection, token: str) -> Forge:
        digest = hashlib.sha256(token.encode()).hexdigest()
        key = (one.identity, one.kind.value, one.url, one.repository)
        with self._lock:
            known = self._forges.get(key)
            if known is None or known[0] != digest:
                known = self._forges[key] = digest, make(one, token)
            return known[1]

    def lock(self, context: Board, project: int) -> threading.Lock:
        with self._lock:
            return self._passes.setdefault((str(context.data.root), project), threading.Lock())

    def hurry(self, context: Board, project: int) -> None:
        with self._lock:
            self._hurried.add((str(context.data.root), project))

    def hurried(self, context: Board) -> frozenset[int]:
        with self._lock:
            found = {one for one in self._hurried if one[0] == str(context.data.root)}
            self._hurried -= found
            return frozenset(project for _, project in found)


_CLIENTS = _Clients()


def open_forge(context: Board, one: ForgeConnection) -> Forge:
    """Raises NotAllowed where the token is not there."""
    return _CLIENTS.forge(one, token_of(context, one))


def pass_lock(context: Board, project: int) -> threading.Lock:
    """Held by whatever looks at the project's forge: one at a time."""
    return _CLIENTS.lock(context, project)


def hurry(context: Board, project: int) -> None:
    """A webhook came: the loop looks at the forge with the next commit."""
    _CLIENTS.hurry(context, project)


def hurried(context: Board) -> frozenset[int]:
    """The projects for which webhooks came since the last call."""
    return _CLIENTS.hurried(context)


def make(one: ForgeConnection, token: str) -> Forge:
    """A new client, for a connection that is not stored yet."""
    if one.key_from is TokenFrom.APP:
        # Its cryptography is slow to import and rarely needed.
        from legion.forge.app_tokens import AppTokens  # noqa: PLC0415

        source = AppTokens(github.api_of(one.url), one.repository, app_of(one)[0], token, accept=github.ACCEPT)
        return GitHub(one.repository, source, url=one.url)
    if one.kind is ForgeKind.GITHUB:
        return GitHub(one.repository, token, url=one.url)
    return PlainRemote(one.url, default_branch=_default_branch, branch_tip=_branch_tip)


def _default_branch(found: GitRemote) -> str:
    return remote.default_branch(found.url, found.settings)


def _branch_tip(found: GitRemote, branch: str) -> str | None:
    return remote.tips(found.url, found.settings, branch).get(branch)


def kept_token(context: Board, project: int) -> Path:
    return context.data.keys / f"forge-{project}"


def keyring_user(one: ForgeConnection) -> str:
    return f"forge {one.name}"


def app_of(one: ForgeConnection) -> tuple[str, str]:
    """The id of the app, and the file of its private key; empty where Legion keeps the key."""
    app, _, file = one.key_value.partition(" ")
    return app, file


def token_of(context: Board, one: ForgeConnection) -> str:
    match one.key_from:
        case TokenFrom.NONE:
            return ""
        case TokenFrom.APP:
            file = app_of(one)[1]
            return _from_file(Path(file) if file else kept_token(context, one.project))
        case TokenFrom.KEPT:
            return _from_file(kept_token(context, one.project))
        case TokenFrom.FILE:
            return _from_file(Path(one.key_value))
        case TokenFrom.ENV:
            found = os.environ.get(one.key_value, "")
            missing = f"the variable {one.key_value} is not in the daemon's environment"
        case TokenFrom.KEYRING:
            found, missing = _from_keyring(keyring_user(one)), "the keyring has no token"
        case TokenFrom.GH:
            host = urlsplit(one.url).hostname or ""
            found, missing = _printed(("gh", "auth", "token", "--hostname", host)), f"`gh` has no login for {host}"
        case TokenFrom.COMMAND:
            found, missing = _printed(tuple(shlex.split(one.key_value))), "the command printed no token"
    if not found:
        raise NotAllowed(f"There is no token for {one.name}: {missing}; {_AGAIN}.")
    return found


def _from_file(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise NotAllowed(f"The token file {path} cannot be read; {_AGAIN}.") from None


def _from_keyring(user: str) -> str:
    try:
        # An optional extra that is slow to import and rarely needed.
        return str(importlib.import_module("keyring").get_password(SERVICE, user) or "")
    except Exception:  # backends raise errors of any type, and they may contain the token
        raise NotAllowed(f"The keyring cannot be opened by the daemon: unlock it, or {_AGAIN}.") from None


def _printed(argv: tuple[str, ...]) -> str:
    try:
        done = process.run(argv, env=dict(os.environ), timeout=_PATIENCE)
    except (ProgramMissing, OSError):
        return ""
    return done.text.strip() if done.code == 0 and not done.timed_out else ""


# The actions on the board that a forge may cause, as an interface: the daemon passes in the use cases.


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


# One pass over a project's forge: the values that all its parts share.


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
