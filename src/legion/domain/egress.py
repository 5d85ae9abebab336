"""Which addresses a sandboxed program may reach: by name, and by what the name resolves to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_MOST_NAME = 253
_CARRIERS = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
"""Addresses that carry one of the older kind: a gateway could turn them into any."""
_OF_THE_HOST = ipaddress.ip_address("168.63.129.16")
"""Looks public, and is how a machine of Azure reaches the host that it runs on."""
FINAL = OTHER_NAME, NEAR = "was asked for", "leads to"
"""How the reasons of refusals begin that no leave of a person would change."""
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class EgressMode(Enum):
    """What a program may reach beyond its own loopback. Later ones are narrower."""

    PUBLIC = "public"
    """Every public address, by name."""
    LIST = "list"
    """Only the names of a list."""
    NONE = "none"
    """Nothing."""


@dataclass(frozen=True)
class NetworkPlace:
    """An entry of a list: a name, `*.` and a name for all below it, or an address; maybe with a port."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    def covers(self, host: str, port: int) -> bool:
        if self.port not in (None, port):
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


@dataclass(frozen=True, kw_only=True)
class EgressPolicy:
    mode: EgressMode
    allow: tuple[NetworkPlace, ...] = ()
    """In the mode `list` all there is."""
    private: tuple[NetworkPlace, ...] = ()
    """What the person named: an address, or a name that may be one of their own network."""

    def with_places(self, places: tuple[NetworkPlace, ...]) -> EgressPolicy:
        """And these, which a person allowed."""
        return replace(self, allow=(*self.allow, *places), private=(*self.private, *places)) if places else self

    def fault(self, host: str, port: int) -> str:
        """Why a program may not connect to this host, as a person reads it; empty where it may."""
        if not 0 < port < 65536:
            return "has no such port"
        if self.mode is EgressMode.NONE:
            return "is not reachable: this program has no network"
        if _is_this_machine(host):
            return "is this machine, whose ports `sandbox.local` lists"
        if self.mode is EgressMode.LIST and not any(place.covers(host, port) for place in self.allow):
            return "is not in the list of `sandbox.allow`"
        named = any(place.covers(host, port) for place in self.private)
        return "" if named or is_name(host) else "is an address and no name"

    def resolved_fault(self, host: str, port: int, found: IPAddress) -> str:
        """Why an address may not be used for an allowed host; empty where it may."""
        named = any(place.covers(host, port) and not place.host.startswith("*.") for place in self.private)
        if is_public(found) or (named and not _is_near(found)):
            return ""
        near = f"{NEAR} {found}, which is this machine or its link"
        return near if _is_near(found) else f"resolves to {found}, which is no public address"

    def to_json(self) -> dict[str, Any]:
        lists = {"allow": self.allow, "private": self.private}
        return {"mode": self.mode.value, **{name: [[one.host, one.port] for one in of] for name, of in lists.items()}}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> EgressPolicy:
        lists = {name: tuple(NetworkPlace(host, port) for host, port in facts[name]) for name in ("allow", "private")}
        return EgressPolicy(mode=EgressMode(facts["mode"]), **lists)


def narrowed(person: EgressPolicy, repository: EgressPolicy | None) -> EgressPolicy:
    """What both allow: a repository's file may narrow what the person allows, and never widen it."""
    if repository is None:
        return person
    mode = max(person.mode, repository.mode, key=list(EgressMode).index)
    allow = repository.allow if person.mode is EgressMode.PUBLIC else person.allow
    if person.mode is repository.mode is EgressMode.LIST:
        pairs = [(one, other) for one in repository.allow for other in person.allow]
        allow = tuple(
            [one for one, other in pairs if _within(one, other)]
            + [other for one, other in pairs if _within(other, one)]
        )
    return EgressPolicy(mode=mode, allow=tuple(dict.fromkeys(allow)), private=person.private)


def _within(inner: NetworkPlace, outer: NetworkPlace) -> bool:
    if outer.port not in (None, inner.port):
        return False
    if outer.host.startswith("*."):
        return inner.host.endswith(outer.host[1:])
    return inner.host == outer.host


def is_public(found: IPAddress) -> bool:
    """Is it an address of the internet, and of no network of this machine or its neighbours?"""
    inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    if inner is not None:
        return is_public(inner)
    if any(found.version == net.version and found in net for net in _CARRIERS):
        return False
    return found != _OF_THE_HOST and found.is_global and not found.is_multicast and not found.is_reserved


def _is_this_machine(host: str) -> bool:
    """Names that mean the machine which resolves them, also where no resolver is asked."""
    return host == "localhost" or host.endswith(".localhost")


def _is_near(found: IPAddress) -> bool:
    """Is it this machine, or reachable by it alone?"""
    inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    one = inner or found
    return one.is_loopback or one.is_link_local or one.is_unspecified or one.is_multicast


def address(host: str) -> IPAddress | None:
    """The address that a host is written as, in any form that a resolver takes for one; None for a name."""
    bare = host.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return _old_address(bare)


def _old_address(host: str) -> IPAddress | None:
    """`127.1`, `0x7f000001` and `2130706433` are addresses to most resolvers."""
    parts = host.split(".")
    try:
        numbers = [
            int(part, 16 if part[:2] == "0x" else 8 if part[:1] == "0" and part != "0" else 10) for part in parts
        ]
    except ValueError:
        return None
    *first, last = numbers
    if len(parts) > 4 or any(not 0 <= one < 256 for one in first) or not 0 <= last < 256 ** (5 - len(parts)):
        return None
    return ipaddress.IPv4Address(sum(one << (24 - 8 * place) for place, one in enumerate(first)) + last)


def is_name(host: str) -> bool:
    return address(host) is None


def host_of(text: str) -> str:
    """A host as lists compare it: small letters, no final dot, no brackets. Raises ValueError for what is none."""
    host = text.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")
    found = address(host)
    if found is not None:
        return str(found)
    host = host if host.isascii() else host.encode("idna").decode()
    if len(host) > _MOST_NAME or not _NAME.fullmatch(host):
        raise ValueError(f"{text[:80]!r} is no name of a host")
    return host


def parse_place(text: str) -> NetworkPlace:
    """`example.org`, `*.example.org`, `example.org:8443`, `10.0.0.5:5432`, `[::1]:80`. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = text, ""
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"{text[:80]!r} names no port from 1 to 65535")
    if host.startswith("*.") and "." not in host[2:]:
        raise ValueError(f"{text[:80]!r} covers too much: write at least *.example.org")
    return NetworkPlace(host_of(host), int(port) if port else None)


def place_fault(text: str) -> str | None:
    """What is wrong with an entry of a list, after "which"."""
    try:
        found = parse_place(text)
    except ValueError:
        return "names no host"
    near = address(found.host)
    if _is_this_machine(found.host) or (near is not None and _is_near(near)):
        return "is this machine, whose ports `sandbox.local` lists"
    return None


def parse_places(texts: Iterable[str]) -> tuple[NetworkPlace, ...]:
    return tuple(map(parse_place, texts))


def server_name(hello: bytes) -> str | None:
    """The name in the first message of a TLS client; "" where it names none, None where this is no such message."""
    try:
        if hello[0] != 22 or hello[5] != 1:
            return None
        at = 9 + 2 + 32
        at += 1 + hello[at]
        at += 2 + int.from_bytes(hello[at : at + 2])
        at += 1 + hello[at]
        end = at + 2 + int.from_bytes(hello[at : at + 2])
        at += 2
        while at + 4 <= end:
            kind, size = int.from_bytes(hello[at : at + 2]), int.from_bytes(hello[at + 2 : at + 4])
            if kind == 0:
                name = hello[at + 9 : at + 4 + size]
                return name.decode("ascii").lower() if len(name) == size - 5 else None
            at += 4 + size
    except (IndexError, UnicodeDecodeError):
        return None
    return ""
