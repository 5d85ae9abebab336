"""The page: one-time codes, devices, addresses."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


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


class WebRows(Table):
    @operation("POST", "/v1/web/offers", created=True)
    def offer_device(self, wanted: OfferDevice, /) -> DeviceOffer:
        """A code that lets one browser in, once and within two minutes"""

    @operation("GET", "/v1/web/devices", open_to=OpenTo.LOOKS)
    def devices(self) -> Devices:
        """The browsers that are let in"""

    @operation("POST", "/v1/web/devices/revoke", open_to=OpenTo.BROWSER, asks="Shut {what} out?")
    def revoke_device(self, wanted: RevokeDevice, /) -> wire.projects.Done:
        """Shut one browser out, or all"""

    @operation("GET", "/v1/web/addresses", open_to=OpenTo.LOOKS)
    def web_addresses(self) -> WebAddresses:
        """The addresses of the page"""

    @operation("POST", "/v1/web/addresses", waits=True)
    def open_web(self, wanted: OpenWeb, /) -> WebAddresses:
        """Serve the page under one more address, until it is closed"""

    @operation("POST", "/v1/web/addresses/close", waits=True)
    def close_web(self) -> WebAddresses:
        """Serve the page on this machine only"""
