"""Receives webhooks of a forge: signed, each delivery once. Their content is not read: Legion only looks at once."""

from __future__ import annotations

import hashlib
import hmac
import re

from legion.domain.errors import BadInput, NotAllowed
from legion.jobs.board import Board
from legion.jobs.forge import clients
from legion.service.forge.connections import hook_secret
from legion.store.work import idempotency

_PREFIX = "sha256="
_DELIVERY = re.compile(r"[A-Za-z0-9-]{8,80}")
_REFUSED = "The signature of this webhook is missing or wrong: enter the secret that `legion forge hook` prints."


def receive(context: Board, project: int, *, signature: str, delivery: str, raw: bytes) -> bool:
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
