"""Browsers that were let in to the page, and how much each may do."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import Enum


class DeviceRights(Enum):
    FULL = "full"
    """All that the person may."""
    LIMITED = "limited"
    """Not what decides which programs run as the person: others on the network may read its secret."""
    READ_ONLY = "read-only"


@dataclass(frozen=True, kw_only=True)
class Device:
    id: int
    name: str
    host: str
    """The name, with port, under which the browser reached the daemon. Its secret is valid there only."""
    read_only: bool
    made_at: float
    seen_at: float | None
    revoked_at: float | None


def rights_of(device: Device, *, encrypted: bool) -> DeviceRights:
    if device.read_only:
        return DeviceRights.READ_ONLY
    return DeviceRights.FULL if encrypted or is_loopback(device.host) else DeviceRights.LIMITED


def is_loopback(host: str) -> bool:
    """Whether a request under this Host, with or without port, came from this machine."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def port_of(host: str) -> int:
    """80 for a Host without one."""
    _, _, port = host.rpartition("]")[2].rpartition(":")
    return int(port) if port.isdecimal() else 80


@dataclass(frozen=True, kw_only=True)
class PushSubscription:
    """Where and how a browser gets notifications while its page is closed; the browser makes it."""

    endpoint: str
    p256dh: str
    auth: str
