"""Looks up the providers' keys. They stay in this process: never in a file of Legion's, a log or an error."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import re
import stat
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import LegionError
from legion.gateway.access.provider import KeyFrom, KeySource, Provider
from legion.gateway.json_text import UnreadableMessage, loads
from legion.system import files, process

_KEPT = 300.0
_FAILURE_KEPT = 5.0
"""Seconds, for slow sources. Without it thirty agents would each wait for a command that hangs."""
_SLOW = (KeyFrom.COMMAND, KeyFrom.KEYRING)
_COMMAND_PATIENCE = 10.0
_LONGEST = 16384
_RENEWAL = "https://platform.claude.com/v1/oauth/token"
_CLIENT = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
"""Where and as which client Claude Code renews a login."""
_RENEWAL_PATIENCE = 30.0
_EARLY = 600.0
"""Seconds before its end from which a login is renewed."""
_VISIBLE = re.compile(r"[!-~]+")


class NoKey(LegionError):
    """The message names the place of the key, never its content."""

    code = "no_key"


@dataclass(frozen=True)
class _Known:
    key: str | None
    complaint: str
    until: float


class Keys:
    """Caches keys by provider for some minutes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, KeySource], _Known] = {}
        self._asking: dict[tuple[str, KeySource], asyncio.Lock] = {}

    async def of(self, provider: Provider) -> str | None:
        """The key, or None for a provider without one. Raises NoKey."""
        if provider.key.origin is KeyFrom.NONE:
            return None
        place = (provider.name, provider.key)
        known = self._fresh(place)
        if known is None:
            # Requests that come meanwhile wait for the same lookup.
            async with self._asking.setdefault(place, asyncio.Lock()):
                known = self._fresh(place) or await self._ask(provider, place)
        if known.key is None:
            raise NoKey(known.complaint)
        return known.key

    def drop(self, provider: Provider, key: str) -> None:
        """The provider refused this key: look it up again next time."""
        known = self._known.get((provider.name, provider.key))
        if known is not None and known.key == key:
            del self._known[provider.name, provider.key]

    def _fresh(self, place: tuple[str, KeySource]) -> _Known | None:
        known = self._known.get(place)
        return known if known is not None and known.until > time.monotonic() else None

    async def _ask(self, provider: Provider, place: tuple[str, KeySource]) -> _Known:
        try:
            key, lasts = await _look_up(provider)
            known = _Known(key, "", time.monotonic() + min(lasts, _KEPT))
        except NoKey as missing:
            # A file or variable is read again at once, so that a fix works at once.
            kept = _FAILURE_KEPT if provider.key.origin in _SLOW else 0.0
            known = _Known(None, missing.message, time.monotonic() + kept)
        self._known[place] = known
        return known


async def _look_up(provider: Provider) -> tuple[str, float]:
    """The key, and for how many seconds it is good."""
    source, lasts = provider.key, _KEPT
    match source.origin:
        case KeyFrom.FILE:
            text = _from_file(source.where)
            if text.lstrip().startswith("{"):
                text, lasts = await asyncio.to_thread(_from_login, provider, text)
        case KeyFrom.ENV:
            text = os.environ.get(source.where, "")
        case KeyFrom.COMMAND:
            text = await asyncio.to_thread(_from_command, source.argv)
        case _:
            text = await asyncio.to_thread(_from_keyring, provider.name)
    key = text.strip()
    if not key:
        raise NoKey(f"{_place(provider)} is empty; put the key there.")
    if not _VISIBLE.fullmatch(key):
        raise NoKey(f"{_place(provider)} holds more than the key; leave nothing but the key there.")
    return key, lasts


def _place(provider: Provider) -> str:
    """The place of the key, for messages. Of a command only the program: its arguments may be private."""
    source = provider.key
    match source.origin:
        case KeyFrom.FILE:
            return f"the file {source.where}"
        case KeyFrom.ENV:
            return f"the variable {source.where} in the gateway's environment"
        case KeyFrom.COMMAND:
            return f"the output of {source.argv[0]}"
        case _:
            return f"the keyring (service legion, user {provider.name})"


def _from_file(where: str) -> str:
    path = os.path.expanduser(where)  # noqa: PTH111 - os.open takes it as it is
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as fault:
        raise NoKey(f"the file {where} cannot be read ({fault.strerror}); write the key there.") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise NoKey(f"the file {where} must be yours and closed to others; run `chmod 600` on it.")
        return os.read(handle, _LONGEST).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _from_login(provider: Provider, text: str) -> tuple[str, float]:
    """The token of a login of Claude Code, renewed shortly before it ends, and for how many seconds it is good."""
    place = _place(provider)
    try:
        facts = loads(text.encode())
        login = facts["claudeAiOauth"]
        token, ends, renewal = str(login["accessToken"]), float(login["expiresAt"]) / 1000, str(login["refreshToken"])
    except (UnreadableMessage, KeyError, TypeError, ValueError):
        raise NoKey(f"{place} holds neither a key nor a login of Claude Code; run `claude` and log in.") from None
    if (left := ends - time.time() - _EARLY) > 0:
        return token, left
    scopes = " ".join(map(str, login.get("scopes") or ()))
    wanted = {"grant_type": "refresh_token", "refresh_token": renewal, "client_id": _CLIENT, "scope": scopes}
    asked = urllib.request.Request(
        provider.token_url or _RENEWAL, json.dumps(wanted).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=_RENEWAL_PATIENCE) as answer:
            given = loads(answer.read(_LONGEST))
        token, lasts = str(given["access_token"]), float(given["expires_in"])
        renewed = {"accessToken": token, "refreshToken": given.get("refresh_token", renewal)}
    except urllib.error.HTTPError as refused:
        refused.close()
        raise NoKey(f"the login in {place} was refused ({refused.code}); run `claude` and log in again.") from None
    except (OSError, UnreadableMessage, KeyError, TypeError, ValueError):
        raise NoKey(f"the login in {place} could not be renewed; check the network.") from None
    login |= {**renewed, "expiresAt": int((time.time() + lasts) * 1000)}
    # The old one is used up: without this the person would have to log in again.
    files.write_atomic(Path(provider.key.where).expanduser().resolve(), json.dumps(facts, indent=2))
    return token, max(lasts - _EARLY, 1.0)


def _from_command(argv: tuple[str, ...]) -> str:
    """What the command prints. Its error output is not used: it may hold the key."""
    try:
        ended = process.run(argv, timeout=_COMMAND_PATIENCE)
    except process.ProgramMissing:
        raise NoKey(f"the program {argv[0]} is not installed; install it or name its full path.") from None
    except OSError as fault:
        raise NoKey(f"the program {argv[0]} cannot be run ({fault.strerror}); try it in a terminal.") from None
    if ended.timed_out:
        raise NoKey(f"{argv[0]} took longer than {_COMMAND_PATIENCE:g} s; try the command in a terminal.")
    if ended.code != 0:
        raise NoKey(f"{argv[0]} ended with exit code {ended.code}; try the command in a terminal.")
    return ended.stdout[:_LONGEST].decode("utf-8", "replace")


def _from_keyring(name: str) -> str:
    try:
        # An optional extra, slow to import, and needed by few.
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise NoKey(
            'the keyring needs a library that is not installed; run `pip install "legionary[keyring]"`.'
        ) from None
    with contextlib.suppress(Exception):  # backends raise anything, and the text may hold the key
        return keyring.get_password("legion", name) or ""
    raise NoKey("the keyring cannot be opened from the gateway; unlock it or keep the key in a file.")
