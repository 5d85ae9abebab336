"""GitHub's device flow for `legion provider login copilot`: the person confirms a code in a browser.

GitHub does not offer this officially, so it needs the person's consent first.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from dataclasses import dataclass
from typing import Any

from legion.config.files.providers import COPILOT_CLIENT, COPILOT_TOKEN
from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.service.providers import catalog
from legion.wire.providers import AddProvider, BeginLogin, FinishLogin, LoginBegun, LoginState

NAME = "copilot"
WARNING = (
    "GitHub offers Copilot only to its own editors: this login is unofficial, may stop working any day, and "
    "accounts were suspended for it. Add --unofficial to use it all the same."
)
_GITHUB = "https://github.com"
_PATIENCE = 30.0
_LONGEST_WAIT = 10.0
"""Seconds that one call waits for the person."""
_SLOWER = 5.0
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_ONE_AT_A_TIME = threading.Lock()


@dataclass
class _Pending:
    """A login that the person has yet to confirm."""

    device_code: str
    github: str
    token_url: str
    url: str
    model: str
    until: float
    interval: float
    next_poll: float


_pending: dict[str, _Pending] = {}
"""In memory only: a login that a restart interrupts has to be started again."""


def begin(context: Board, wanted: BeginLogin) -> LoginBegun:
    if wanted.name != NAME:
        raise BadInput(f"There is no login for {wanted.name}: `legion provider add {wanted.name}` asks for a key.")
    if not wanted.unofficial:
        raise NotAllowed(WARNING)
    github = _address(wanted.github or _GITHUB)
    answer = _post(f"{github}/login/device/code", {"client_id": COPILOT_CLIENT, "scope": "read:user"})
    try:
        code, shown, where = str(answer["device_code"]), str(answer["user_code"]), str(answer["verification_uri"])
        lasts, interval = float(answer["expires_in"]), float(answer.get("interval", _SLOWER))
    except (KeyError, TypeError, ValueError):
        raise LegionError(f"{github} does not offer this login: check the address.") from None
    now = time.monotonic()
    id = str(uuid.uuid4())
    with _ONE_AT_A_TIME:
        for old in [key for key, one in _pending.items() if one.until < now]:
            del _pending[old]
        _pending[id] = _Pending(
            device_code=code,
            github=github,
            token_url=_address(wanted.token_url) if wanted.token_url else COPILOT_TOKEN,
            url=wanted.url,
            model=wanted.model,
            until=now + lasts,
            interval=interval,
            next_poll=now + interval,
        )
    return LoginBegun(id=id, code=shown, url=where, seconds=lasts)


def finish(context: Trees, wanted: FinishLogin) -> LoginState:
    """Wait a while for the person; the client asks again until it is done. Raises if it can no longer succeed."""
    pending = _pending.get(wanted.id)
    if pending is None:
        raise NotFound("This login has ended: start it again.")
    deadline = time.monotonic() + _LONGEST_WAIT
    while (now := time.monotonic()) < deadline:
        if now > pending.until:
            raise _over(wanted.id, "The code was not confirmed in time: start the login again.")
        time.sleep(max(0.0, min(pending.next_poll, deadline) - now))
        if time.monotonic() < pending.next_poll:
            break
        token = _poll(wanted.id, pending)
        if token:
            _pending.pop(wanted.id, None)
            return _add_provider(context, pending, token)
    return LoginState(done=False, message="", notes=[])


def _poll(id: str, pending: _Pending) -> str:
    """The long-lived token; empty as long as the person has not confirmed."""
    form = {"client_id": COPILOT_CLIENT, "device_code": pending.device_code, "grant_type": _GRANT}
    answer = _post(f"{pending.github}/login/oauth/access_token", form)
    pending.next_poll = time.monotonic() + pending.interval
    token = answer.get("access_token")
    if isinstance(token, str) and token:
        return token
    match answer.get("error"):
        case "authorization_pending":
            return ""
        case "slow_down":
            pending.interval += _SLOWER
            pending.next_poll += _SLOWER
            return ""
        case "access_denied":
            raise _over(id, "The login was declined in the browser: nothing was changed.")
        case _:
            raise _over(id, "The code has expired: start the login again.")


def _add_provider(context: Trees, pending: _Pending, token: str) -> LoginState:
    done = catalog.add(
        context,
        AddProvider(name=NAME, url=pending.url, model=pending.model or None, key=token, token_url=pending.token_url),
    )
    return LoginState(done=True, message=done.message, notes=done.notes)


def _over(id: str, sentence: str) -> LegionError:
    _pending.pop(id, None)
    return LegionError(sentence)


def _address(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise BadInput(f"{url!r} is not an address: write one like https://github.com.")
    return url.rstrip("/")


def _post(url: str, form: dict[str, str]) -> dict[str, Any]:
    headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
    request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)
    host = urllib.parse.urlsplit(url).hostname
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            found = json.loads(answer.read(1 << 16))
    except urllib.error.HTTPError as refused:
        raise LegionError(f"{host} refuses the login ({refused.code}): try again later.") from None
    except (OSError, ValueError):
        raise LegionError(f"{host} cannot be reached: check your network.") from None
    return found if isinstance(found, dict) else {}
