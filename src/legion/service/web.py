"""Access to the page: one-time codes, devices, and the addresses under which the page is served."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from legion.domain.devices import Device, is_loopback, port_of
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.events import EventKind
from legion.jobs.board import Board
from legion.store.staff import devices
from legion.store.work import runs
from legion.wire.projects import Done
from legion.wire.web import DeviceLine, DeviceOffer, Devices, OfferDevice, OpenWeb, RevokeDevice, WebAddresses

CODE_SECONDS = 120.0
_MOST_NAME = 60
_SEEN_EVERY = 60.0
"""Seconds: how exactly `seen_at` is kept."""

BAD_CODE = "This link was used already or is older than two minutes; run `legion web` for a new one."
UNKNOWN_DEVICE = "This browser is not let in, or no longer; run `legion web` and open its link here."


class WebServer(Protocol):
    """The part of the daemon that serves the page under more addresses."""

    def addresses(self) -> WebAddresses: ...

    def open(self, wanted: OpenWeb) -> WebAddresses: ...

    def close(self) -> WebAddresses: ...


def offer(context: Board, wanted: OfferDevice) -> DeviceOffer:
    with context.store.write() as tx:
        code = devices.offer(tx, name=_name(wanted.name), read_only=wanted.read_only, seconds=CODE_SECONDS)
        return DeviceOffer(code=code, ends_at=tx.now + CODE_SECONDS)


def accept(context: Board, code: str, *, name: str, host: str) -> tuple[str, Device]:
    """Exchange a code for the secret of a new device. Raises NotAllowed."""
    with context.store.write() as tx:
        accepted = devices.accept(tx, code, name=_name(name), host=host)
        if accepted is not None:
            tx.record(EventKind.DEVICE_ADDED, data={"device": accepted[1].id, "name": accepted[1].name})
    if accepted is None:
        raise NotAllowed(BAD_CODE)
    return accepted


def known(context: Board, secret: str, *, host: str) -> Device:
    """The device with this secret under this host. Raises NotAllowed."""
    with context.store.read() as tx:
        device = devices.of_secret(tx, secret)
    if device is None or device.revoked_at is not None or device.host != host:
        raise NotAllowed(UNKNOWN_DEVICE)
    if device.seen_at is None or context.clock() - device.seen_at > _SEEN_EVERY:
        with context.store.write() as tx:
            devices.note_seen(tx, device.id)
    return device


def listed(context: Board) -> Devices:
    with context.store.read() as tx:
        return Devices(devices=[_line(device) for device in devices.accepted(tx)])


def revoke(context: Board, wanted: RevokeDevice) -> Done:
    with context.store.write() as tx:
        revoked = devices.revoke(tx, wanted.id)
        if revoked:
            tx.record(EventKind.DEVICE_REVOKED, data={"device": wanted.id})
    if wanted.id is not None and not revoked:
        raise NotFound(f"There is no device {wanted.id}; `legion web devices` lists them.")
    return Done(message="No device was let in." if not revoked else f"Revoked {revoked} of the devices.")


def end_elsewhere(context: Board, ports: Collection[int], *, proxy: str, lost_proxy: str) -> int:
    """Shut out browsers whose secrets another program may have read since the last daemon ended.

    Where agents worked without a daemon, these are all browsers on this machine and behind a proxy on it: an agent
    could listen at Legion's ports. Else they are those at a port, or behind a proxy with a port, that Legion has lost.
    """

    def is_lost(host: str) -> bool:
        if host in (proxy.lower(), lost_proxy.lower()):
            return alone or host == lost_proxy.lower()
        return is_loopback(host) and (alone or port_of(host) not in ports)

    with context.store.write() as tx:
        alone = bool(runs.active(tx))
        lost = [one.id for one in devices.accepted(tx) if is_lost(one.host)]
        for id in lost:
            devices.revoke(tx, id)
            tx.record(EventKind.DEVICE_REVOKED, data={"device": id})
    return len(lost)


def server_of(server: WebServer | None) -> WebServer:
    if server is None:
        raise BadInput("This daemon serves no page.")
    return server


def _name(text: str) -> str:
    return " ".join(text.split())[:_MOST_NAME]


def _line(device: Device) -> DeviceLine:
    return DeviceLine(
        id=device.id,
        name=device.name,
        host=device.host,
        read_only=device.read_only,
        made_at=device.made_at,
        seen_at=device.seen_at,
    )
