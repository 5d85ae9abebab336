"""Exchanges the long-lived token of a login for the short-lived one that the provider accepts, again before it expires.

Like keys, these tokens stay in this process.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass

import aiohttp
from yarl import URL

from legion.gateway.access.keys import NoKey
from legion.gateway.access.provider import Provider
from legion.gateway.json_text import UnreadableMessage, loads

_EARLY = 60.0
"""Seconds before its expiry from which a token is no longer used."""
_LEAST = 5.0
_MOST = 3600.0
_FAILURE_KEPT = 5.0
_PATIENCE = aiohttp.ClientTimeout(total=30)
_LONGEST = 1 << 16
_VISIBLE = re.compile(r"[!-~]+")
EDITOR = {"Editor-Version": "vscode/1.104.0", "Copilot-Integration-Id": "vscode-chat"}
"""Headers that the provider requires together with such a token."""


@dataclass(frozen=True)
class _Held:
    token: str | None
    complaint: str
    until: float


class Exchange:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._held: dict[tuple[str, str, str], _Held] = {}
        self._asking: dict[tuple[str, str, str], asyncio.Lock] = {}

    async def token(self, provider: Provider, lasting: str) -> str:
        """The short-lived token. Requests that come during an exchange wait for the same one. Raises NoKey."""
        place = (provider.name, provider.token_url, lasting)
        held = self._fresh(place)
        if held is None:
            async with self._asking.setdefault(place, asyncio.Lock()):
                held = self._fresh(place) or await self._ask(provider, place)
        if held.token is None:
            raise NoKey(held.complaint)
        return held.token

    def drop(self, token: str) -> None:
        """The provider refused this token: exchange again next time."""
        self._held = {place: held for place, held in self._held.items() if held.token != token}

    def _fresh(self, place: tuple[str, str, str]) -> _Held | None:
        held = self._held.get(place)
        return held if held is not None and held.until > time.monotonic() else None

    async def _ask(self, provider: Provider, place: tuple[str, str, str]) -> _Held:
        try:
            held = await self._exchanged(provider, place[2])
        except NoKey as missing:
            held = _Held(None, missing.message, time.monotonic() + _FAILURE_KEPT)
        self._held[place] = held
        return held

    async def _exchanged(self, provider: Provider, lasting: str) -> _Held:
        headers = {"Authorization": f"token {lasting}", "Accept": "application/json", **EDITOR}
        try:
            asked = self._session.get(
                URL(provider.token_url), headers=headers, timeout=_PATIENCE, allow_redirects=False
            )
            async with asked as answer:
                body = await answer.content.read(_LONGEST)
                status = answer.status
        except (aiohttp.ClientError, OSError):
            raise NoKey(f"{URL(provider.token_url).host} cannot be reached for a token; check the network.") from None
        if status in (401, 403, 404):
            raise NoKey(f"the login was refused ({status}); run `legion provider login {provider.name}` again.")
        if status != 200:
            raise NoKey(f"{URL(provider.token_url).host} returned no token ({status}); try again later.")
        return _read(body, provider)


def _read(body: bytes, provider: Provider) -> _Held:
    try:
        facts = loads(body)
        token, ends = facts["token"], float(facts["expires_at"])
    except (UnreadableMessage, KeyError, TypeError, ValueError):
        token, ends = "", 0.0
    if not isinstance(token, str) or not _VISIBLE.fullmatch(token) or not math.isfinite(ends):
        raise NoKey(f"{URL(provider.token_url).host} returned something else than a token; update Legion.")
    left = min(max(ends - time.time() - _EARLY, _LEAST), _MOST)
    return _Held(token, "", time.monotonic() + left)
