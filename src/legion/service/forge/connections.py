"""Adds, lists, tests and removes the forge of a project. A token travels towards the daemon only."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import re
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound
from legion.domain.forge.connections import ClaimStage, ForgeConnection, ForgeKind, TokenFrom
from legion.domain.landing.queue import LandingTarget
from legion.forge import Forge, ForgeRepository
from legion.forge.github import PUBLIC
from legion.git.hub import remote
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.forge import clients
from legion.jobs.forge.sync import sync
from legion.jobs.trees import ProjectContext, Trees
from legion.service.forge.actions import ForgeActions
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.store.board import forges, projects
from legion.store.work import idempotency
from legion.system import files
from legion.wire.forge import AddForge, ForgeLine, Forges, ForgeTested, HookAddress
from legion.wire.projects import Done, Where

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_KEY = re.compile(r"[!-~]{1,16384}")
_APP = re.compile(r"[A-Za-z0-9._]{1,40}")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")
HOOK_PATH = "/v1/forge/hook"


def add(context: Trees, wanted: AddForge) -> Done:
    """Try the connection first; nothing is stored where it fails."""
    record = registry.find(context, wanted.cwd)
    kind = _kind(wanted.kind)
    url = _url(kind, wanted)
    repository = _repository(wanted.address) if kind is ForgeKind.GITHUB else ""
    key_from, key_value = _token_place(kind, wanted)
    with context.store.read() as tx:
        before = forges.of_project(tx, record.id)
    one = ForgeConnection(
        project=record.id,
        kind=kind,
        url=url,
        repository=repository,
        branch=wanted.branch,
        key_from=key_from,
        key_value=key_value,
        login="",
        label=wanted.label.strip() if kind is ForgeKind.GITHUB else "",
        milestone=wanted.milestone,
        assignee=wanted.assignee,
        identity=before.identity if before is not None else uuid.uuid4().hex,
    )
    forge = clients.make(one, wanted.key or clients.token_of(context, one))
    found = forge.repository()
    branch = _branch(forge, found, wanted.branch, record.branch)
    _keep(context, one, wanted)
    with context.store.write() as tx:
        forges.save(tx, replace(one, login=found.login, branch=branch))
    message = f"{one.name} is the forge of {record.name}; work lands on its branch {branch}."
    return Done(message=message, notes=_notes(context, one, found))


def _notes(context: Trees, one: ForgeConnection, found: ForgeRepository) -> list[str]:
    target = context.project(one.project).config.landing.target
    notes = [] if found.may_push else ["This token may not push: give it write access to contents."]
    if target is LandingTarget.LOCAL:
        notes.append(
            'Landed work stays here: set `target = "pr"` or `"branch"` in [landing] of legion.toml to send it.'
        )
    if target is LandingTarget.PR and one.kind is ForgeKind.GIT:
        notes.append('A git remote has no pull requests: set `target = "branch"` in [landing] of legion.toml.')
    return notes


def _kind(word: str) -> ForgeKind:
    try:
        return ForgeKind(word)
    except ValueError:
        raise BadInput(f"Legion knows no forge {word[:40]!r}: use `github` or `git`.") from None


def _repository(address: str) -> str:
    name = address.removeprefix(f"{PUBLIC}/").removesuffix(".git").strip("/")
    if not _REPOSITORY.fullmatch(name):
        raise BadInput(f"{address[:80]!r} is no repository: write OWNER/REPO.")
    return name


def _url(kind: ForgeKind, wanted: AddForge) -> str:
    url = (wanted.url or PUBLIC).rstrip("/") if kind is ForgeKind.GITHUB else wanted.address
    if kind is ForgeKind.GITHUB and (urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).hostname):
        raise BadInput(f"{url[:80]!r} is no address: write one like https://github.example.com.")
    if kind is ForgeKind.GIT and (not url or url.startswith("-") or "::" in url):
        raise BadInput("A git remote needs an address: https://..., ssh://..., git@HOST:PATH or a folder.")
    if urlsplit(url).password:
        raise BadInput("Leave the password out of the address: it would be stored in the open.")
    return url


def _branch(forge: Forge, found: ForgeRepository, wanted: str, own: str) -> str:
    if wanted and not _BRANCH.fullmatch(wanted):
        raise BadInput(f"{wanted[:80]!r} is no name of a branch.")
    there = remote.tips(forge.remote.url, forge.remote.settings, "*")
    if wanted and wanted not in there:
        raise NotFound(f"{found.name} has no branch {wanted}: create it there, or choose another with --branch.")
    return wanted or (own if own in there else found.default_branch)


def _token_place(kind: ForgeKind, wanted: AddForge) -> tuple[TokenFrom, str]:
    places = {
        TokenFrom.FILE: str(Path(wanted.key_file).expanduser()) if wanted.key_file else "",
        TokenFrom.ENV: wanted.key_env,
        TokenFrom.COMMAND: wanted.key_command,
        TokenFrom.KEYRING: "yes" if wanted.keyring else "",
        TokenFrom.GH: "yes" if wanted.gh else "",
    }
    named = [(place, value) for place, value in places.items() if value]
    if wanted.app:
        return _app_place(kind, wanted, named)
    if kind is ForgeKind.GIT:
        if named or wanted.key:
            raise BadInput("A plain git remote takes no token here: git's own ssh keys reach it.")
        return TokenFrom.NONE, ""
    if len(named) > 1 or (wanted.key and named and not wanted.keyring):
        raise BadInput("A token comes from one place: give only one of the options about it.")
    if wanted.key and not _KEY.fullmatch(wanted.key):
        raise BadInput("The token must be one word of ASCII letters, digits and signs: copy it again.")
    if named:
        return named[0]
    if not wanted.key:
        raise BadInput("The token is missing: give it, its place, or --gh to take the one of the program gh.")
    return TokenFrom.KEPT, ""


def _app_place(kind: ForgeKind, wanted: AddForge, named: Sequence[tuple[TokenFrom, str]]) -> tuple[TokenFrom, str]:
    if kind is not ForgeKind.GITHUB or not _APP.fullmatch(wanted.app):
        raise BadInput("--app takes the id of a GitHub App, as its settings page shows it.")
    others = [place for place, _ in named if place is not TokenFrom.FILE]
    if others or bool(wanted.key) == bool(wanted.key_file):
        raise BadInput("An app needs its private key: give --key-file, or pipe the key in with --key-stdin.")
    file = str(Path(wanted.key_file).expanduser().absolute()) if wanted.key_file else ""
    return TokenFrom.APP, f"{wanted.app} {file}".strip()


def _keep(context: Board, one: ForgeConnection, wanted: AddForge) -> None:
    if one.key_from is TokenFrom.KEPT or (one.key_from is TokenFrom.APP and wanted.key):
        context.data.keys.mkdir(exist_ok=True, mode=0o700)
        files.write_atomic(clients.kept_token(context, one.project), f"{wanted.key}\n")
    elif one.key_from is TokenFrom.KEYRING and wanted.key:
        try:
            keyring: Any = importlib.import_module("keyring")
            keyring.set_password(clients.SERVICE, clients.keyring_user(one), wanted.key)
        except Exception:  # backends raise errors of any type, and they may contain the token
            raise NotAllowed("The keyring cannot be opened by the daemon: unlock it, or leave out --keyring.") from None


def connection_of(context: Board, cwd: str) -> ForgeConnection:
    record = registry.find(context, cwd)
    with context.store.read() as tx:
        found = forges.of_project(tx, record.id)
    if found is None:
        raise NotFound(f"{record.name} has no forge: add one with `legion forge add github OWNER/REPO`.")
    return found


def remove(context: Board, cwd: str) -> Done:
    one = connection_of(context, cwd)
    with context.store.write() as tx:
        forges.remove(tx, one.project)
    kept = clients.kept_token(context, one.project)
    notes = ["The token that Legion kept is deleted."] if kept.exists() else []
    kept.unlink(missing_ok=True)
    _secret_file(context, one.project).unlink(missing_ok=True)
    return Done(message=f"{one.name} is no longer a forge of Legion; what is there stays as it is.", notes=notes)


def listed(context: Trees) -> Forges:
    with context.store.read() as tx:
        lines = [
            _line(
                one,
                context.project_of(projects.get(tx, one.project)),
                pulls=len(forges.pulls(tx, one.project)),
                issues=len(forges.claims(tx, one.project, [ClaimStage.CLAIMED])),
            )
            for one in forges.all(tx)
        ]
    return Forges(forges=lines)


def _line(one: ForgeConnection, project: ProjectContext, *, pulls: int, issues: int) -> ForgeLine:
    places = {
        TokenFrom.KEPT: "kept by Legion",
        TokenFrom.FILE: f"file {one.key_value}",
        TokenFrom.ENV: f"variable {one.key_value}",
        TokenFrom.COMMAND: f"output of {one.key_value.split()[0] if one.key_value.split() else ''}",
        TokenFrom.KEYRING: "keyring",
        TokenFrom.GH: "of the program gh",
        TokenFrom.NONE: "none needed",
        TokenFrom.APP: f"of app {clients.app_of(one)[0]}",
    }
    return shaped(
        ForgeLine,
        one,
        project=project.record.name,
        target=project.config.landing.target.value,
        key=places[one.key_from],
        pulls=pulls,
        issues=issues,
    )


def try_out(context: Board, where: Where) -> ForgeTested:
    one = connection_of(context, where.cwd)
    try:
        found = clients.open_forge(context, one).repository()
    except LegionError as trouble:
        return ForgeTested(ok=False, message=trouble.message)
    login = f" as {found.login}" if found.login else ""
    notes = [] if found.may_push else ["This token may not push: give it write access to contents."]
    if found.name != one.name and one.repository:
        notes.append(f"The repository is called {found.name} now: run `legion forge add github {found.name}`.")
    return ForgeTested(
        ok=found.may_push,
        message=f"{one.name} answers{login}; its default branch is {found.default_branch}.",
        notes=notes,
    )


def sync_now(context: Trees, where: Where) -> Done:
    one = connection_of(context, where.cwd)
    sync(context, one.project, ForgeActions(context))
    with context.store.read() as tx:
        pulls = len(forges.pulls(tx, one.project))
        issues = len(forges.claims(tx, one.project, [ClaimStage.CLAIMED]))
    return Done(message=f"{one.name}: issues with a ticket: {issues}; open pull requests: {pulls}.")


def _secret_file(context: Board, project: int) -> Path:
    return context.data.keys / f"forge-hook-{project}"


def hook(context: Context, where: Where) -> HookAddress:
    one = connection_of(context, where.cwd)
    file = _secret_file(context, one.project)
    if not file.exists():
        context.data.keys.mkdir(exist_ok=True, mode=0o700)
        files.write_atomic(file, f"{secrets.token_hex(32)}\n")
    path = f"{HOOK_PATH}?project={one.project}"
    message = (
        f"Add a webhook at {one.name} with content type application/json and this secret, to this path below the "
        f"address of a tunnel that leads to {context.url or 'the daemon'}; it reaches nothing but the webhook."
    )
    return HookAddress(path=path, secret=file.read_text().strip(), message=message)


def hook_secret(context: Board, project: int) -> str | None:
    """None where no hook was asked for."""
    file = _secret_file(context, project)
    return file.read_text().strip() if file.exists() else None


# Receives webhooks of a forge: signed, each delivery once. Their content is not read: Legion only looks at once.

_PREFIX = "sha256="
_DELIVERY = re.compile(r"[A-Za-z0-9-]{8,80}")
_REFUSED = "The signature of this webhook is missing or wrong: enter the secret that `legion forge hook` prints."


def receive_hook(context: Board, project: int, *, signature: str, delivery: str, raw: bytes) -> bool:
    """Whether it is new. Raises NotAllowed where the secret of the project did not sign exactly these bytes."""
    secret = hook_secret(context, project)
    expected = signature_of(secret or "", raw)
    if not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")) or not secret:
        raise NotAllowed(_REFUSED)
    if not _DELIVERY.fullmatch(delivery):
        raise BadInput("This webhook has no delivery id, so a repetition would not be noticed: send X-GitHub-Delivery.")
    with context.store.write() as tx:
        new = idempotency.is_new_delivery(tx, f"{project}:{delivery}")
        if new:
            # Before the commit, which wakes the loop.
            clients.hurry(context, project)
    return new


def signature_of(secret: str, raw: bytes) -> str:
    return _PREFIX + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
