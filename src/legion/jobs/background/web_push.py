"""Web push: which browsers want notifications, and sending one to each.

A subscription belongs to a device, is renewed by its page at every start, and is kept in a file of the data directory.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from legion.domain.devices import PushSubscription
from legion.domain.errors import BadInput
from legion.system import files
from legion.system.paths import DataDir

log = logging.getLogger(__name__)

_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_PATIENCE = 10.0
_KEPT_SECONDS = 12 * 3600
"""How long a push service keeps a message for a browser that is off."""
_LONGEST = 1000
_CONTACT = "mailto:legion@localhost"
"""Push services want an address of the sender; this one belongs to no one."""


_LOCK = threading.Lock()
"""The file has one writer at a time."""


class WebPush:
    def __init__(self, data: DataDir) -> None:
        self._file = data.root / "web" / "push.json"
        self._key_file = data.root / "web" / "push.pem"

    def public_key(self) -> str:
        # The library takes a while to import, and most daemons never need it.
        from legion.system.push_encryption import SenderKey  # noqa: PLC0415

        return SenderKey(self._key_file).public

    def subscribe(self, device: int, wanted: PushSubscription | None) -> None:
        """Replace the device's subscription; None ends it."""
        if wanted is not None:
            _check(wanted)
        with _LOCK:
            known = self._read()
            known.pop(device, None)
            if wanted is not None:
                known[device] = wanted
            self._write(known)

    def devices(self) -> frozenset[int]:
        return frozenset(self._read())

    def send(self, device: int, message: dict[str, object]) -> None:
        """Deliver it to the push service of the device's browser. A subscription that has ended is removed."""
        subscription = self._read().get(device)
        if subscription is None:
            return
        from legion.system.push_encryption import SenderKey, encrypt  # noqa: PLC0415

        body = encrypt(json.dumps(message).encode(), browser=subscription.p256dh, secret=subscription.auth)
        signed = SenderKey(self._key_file).authorization(subscription.endpoint, now=time.time(), contact=_CONTACT)
        headers = {"Authorization": signed, "Content-Encoding": "aes128gcm", "TTL": str(_KEPT_SECONDS)}
        request = urllib.request.Request(subscription.endpoint, data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE):
                pass
        except urllib.error.HTTPError as refused:
            if refused.code in _GONE:
                self.subscribe(device, None)
                return
            log.warning("web push to device %d was refused with %d", device, refused.code)
        except (urllib.error.URLError, OSError) as trouble:
            log.warning("web push to device %d failed: %s", device, getattr(trouble, "reason", type(trouble).__name__))

    def _read(self) -> dict[int, PushSubscription]:
        try:
            known = json.loads(self._file.read_bytes())
            return {int(device): PushSubscription(**one) for device, one in known.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError) as damaged:
            log.warning("%s is not readable, so web push is off until a page subscribes again: %s", self._file, damaged)
            return {}

    def _write(self, known: dict[int, PushSubscription]) -> None:
        Path(self._file.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write_atomic(self._file, json.dumps({device: asdict(one) for device, one in known.items()}))


def _check(wanted: PushSubscription) -> None:
    place = urlsplit(wanted.endpoint)
    here = place.scheme == "http" and place.hostname in ("127.0.0.1", "::1")
    if not (place.scheme == "https" or here) or not place.hostname or len(wanted.endpoint) > _LONGEST:
        raise BadInput("A push subscription needs an https:// endpoint.")
    if not all(0 < len(part) < _LONGEST for part in (wanted.p256dh, wanted.auth)):
        raise BadInput("A push subscription needs the keys p256dh and auth of the browser.")
