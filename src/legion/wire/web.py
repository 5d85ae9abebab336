"""Shapes of requests and answers about the page: one-time codes, devices, addresses."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class OfferDevice:
    """`legion web`: let one browser in."""

    name: str = ""
    """How the device is listed; empty: as the browser names itself."""
    read_only: bool = False


@dataclass(kw_only=True)
class DeviceOffer:
    schema: str = "legion.offer/1"
    code: str
    """Valid once. It goes into the fragment of the link: `/#code=...`."""
    ends_at: float


@dataclass(kw_only=True)
class WebLink:
    """`legion web`: a link that lets one browser in."""

    schema: str = "legion.web/1"
    url: str
    ends_at: float


@dataclass(kw_only=True)
class DeviceLine:
    id: int
    name: str
    host: str
    read_only: bool
    made_at: float
    seen_at: float | None


@dataclass(kw_only=True)
class Devices:
    schema: str = "legion.devices/1"
    devices: list[DeviceLine] = field(default_factory=list)


@dataclass(kw_only=True)
class RevokeDevice:
    id: int | None = None
    """Null: all of them."""


@dataclass(kw_only=True)
class OpenWeb:
    """Serve the page under one more address."""

    host: str
    port: int = 0
    """0: as the settings say, or the next free one."""
    tls: bool = False
    behind: str = ""
    """The name under which a proxy with TLS on this machine serves it."""


@dataclass(kw_only=True)
class WebAddresses:
    """Where the page is served."""

    schema: str = "legion.addresses/1"
    local: str
    more: list[str] = field(default_factory=list)
    proxied: str = ""
    """Where a proxy forwards to."""
    fingerprint: str = ""
    """Of the certificate, where one is used."""


@dataclass(kw_only=True)
class WebLogin:
    """Sent by the page, with the code of its link."""

    code: str
    name: str = ""


@dataclass(kw_only=True)
class WebSession:
    """What the page needs to know about itself."""

    schema: str = "legion.session/1"
    version: str
    device: int
    name: str
    read_only: bool
    rights: str
    """full, limited (a plain address off this machine) or read-only."""
    secret: str = ""
    """Only in the answer to a login: what this browser sends with every request from now on."""
