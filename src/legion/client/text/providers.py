"""Providers, their logins, routes and models, and agent programs as rows."""

from __future__ import annotations

import time

from legion.client.text.rows import Column, Columns, Row, facts, head, listing, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, clock, duration, sanitize
from legion.wire.providers import (
    DriverLine,
    DriverPage,
    Drivers,
    LimitLine,
    Models,
    ProviderLine,
    Providers,
    RouteLine,
    Routes,
)

NO_PROVIDER = "No provider yet; `legion provider add anthropic` adds one, or log in with `claude`."
_FULL = 0.97


def limit_text(limit: LimitLine) -> str:
    """How much of which limit is used, and when it resets; or how long ago it was reported."""
    used = "" if limit.utilization is None else f"{limit.utilization:.0%} of {sanitize(limit.window) or 'its limit'}"
    refused = "" if limit.status == 200 else f"refused with {limit.status}"
    left = None if limit.resets_at is None else limit.resets_at - time.time()
    if left is not None and limit.resets_at is not None and left > 0:
        end = f"resets {clock(limit.resets_at)} (in {duration(left)})"
    else:
        end = f"{duration(time.time() - limit.at)} ago"
    return ", ".join(part for part in (used and f"{used} used", refused, end) if part)


_KEYS = {True: ("there", Colour.GREEN), False: ("not there", Colour.RED), None: ("not checked", Colour.NONE)}
_PROVIDER: Columns[ProviderLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("default", lambda one: "default" if one.default else "", Colour.GREEN, keeps=True),
    Column("address", lambda one: one.url),
    Column("speaks", lambda one: f"{one.kind} {one.model}", Colour.DIM),
    Column("auth", lambda one: one.auth, Colour.DIM, least=100),
    Column("key", lambda one: f"key: {one.key}"),
    Column(
        "found", lambda one: "" if one.key == "none needed" else _KEYS[one.found][0], lambda one: _KEYS[one.found][1]
    ),
)


def provider_rows(found: Providers, width: int) -> list[Row]:
    def limit(one: ProviderLine) -> list[Row]:
        return paragraph(limit_text(one.limit), width, indent=2, colour=Colour.DIM, key=one.name) if one.limit else []

    if not found.providers:
        return paragraph(NO_PROVIDER, width)
    made = listing(_PROVIDER, found.providers, width, key=lambda one: one.name, below=limit)
    return [*made, *paragraph(f"in {found.file}", width, colour=Colour.DIM)]


def _is_full(one: ProviderLine) -> bool:
    limit = one.limit
    if limit is None or (limit.resets_at is not None and limit.resets_at <= time.time()):
        return False
    return limit.status == 429 or (limit.utilization or 0.0) >= _FULL


def _login(asked: ProviderLine | None) -> Columns[ProviderLine]:
    """`asked`: the one that is asked first."""
    return (
        Column("name", lambda one: one.name, keeps=True),
        Column(
            "state",
            lambda one: "asked first" if one is asked else "limit reached" if _is_full(one) else "",
            Colour.GREEN,
        ),
        Column("limit", lambda one: limit_text(one.limit) if one.limit else "no limit reported", Colour.DIM),
    )


def account_rows(found: Providers, width: int) -> list[Row]:
    """Logins by provider, in the order in which they are asked."""
    logins: dict[str, list[ProviderLine]] = {}
    for one in found.providers:
        logins.setdefault(one.account_of or one.name, []).append(one)
    made: list[Row] = [] if logins else paragraph(NO_PROVIDER, width)
    for name, group in logins.items():
        asked = next((one for one in group if not _is_full(one)), None)
        made += [head(sanitize(name)), *listing(_login(asked), group, width, indent=2)]
    return made


def only_for(one: RouteLine) -> str:
    """The runs that a route is for, and its highest price."""
    values = {"provider": one.provider, "agent": one.agent, "role": one.role, "team": one.team}
    shown = [f"{name} {value}" for name, value in values.items() if value]
    return ", ".join([*shown, *([] if one.most_usd is None else [f"up to ${one.most_usd:g}"])])


ROUTE: Columns[RouteLine] = (
    Column("model", lambda one: one.model, Colour.BOLD, keeps=True),
    Column("to", lambda one: ", then ".join(one.to)),
    Column("only for", only_for, Colour.DIM),
)


def route_rows(found: Routes, width: int) -> list[Row]:
    if not found.routes:
        return [row("No routes: every request goes to the provider of the run.")]
    return [*listing(ROUTE, found.routes, width), *paragraph(f"in {found.file}", width, colour=Colour.DIM)]


def model_rows(found: Models, width: int) -> list[Row]:
    made: list[Row] = [] if found.providers else paragraph(NO_PROVIDER, width)
    for one in found.providers:
        made.append(head(sanitize(one.provider)))
        if one.trouble or not one.models:
            made += paragraph(one.trouble or "It lists none.", width, indent=2, colour=Colour.RED)
        made += [row(f"  {sanitize(name)}") for name in one.models]
    return made


_DRIVER: Columns[DriverLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("program", lambda one: one.title),
    Column("kind", lambda one: one.kind, Colour.DIM),
    Column(
        "state",
        lambda one: "broken" if one.fault else "installed" if one.found else "not installed",
        lambda one: Colour.RED if one.fault else Colour.GREEN if one.found else Colour.DIM,
    ),
    Column("tried", lambda one: "" if one.tried or one.origin == "settings" else "not tried", Colour.YELLOW),
    Column("origin", lambda one: one.origin, Colour.DIM),
)


def driver_rows(found: Drivers, width: int) -> list[Row]:
    def fault(one: DriverLine) -> list[Row]:
        return paragraph(one.fault, width, indent=2, colour=Colour.DIM)

    return [*listing(_DRIVER, found.drivers, width, below=fault), note(f"your own: {sanitize(found.folder)}")]


def driver_page_rows(page: DriverPage, width: int) -> list[Row]:
    line = page.driver
    known = [
        ("driven by", line.kind),
        ("program", page.path or ("" if line.origin == "settings" else "not found")),
        ("version", page.version + (f" (at least {page.least})" if page.least else "")),
        ("command line", " ".join(page.run)),
        ("install", page.install if not page.path else ""),
        ("model", page.model),
        ("can", ", ".join(line.can) or "read its briefing, work and exit"),
        ("tried", "yes" if line.tried else "no"),
        ("instructions", ", ".join(page.instructions)),
        ("conversations", ", ".join(page.conversations)),
        ("your file", page.file),
        ("note", line.note),
        ("fault", line.fault),
    ]
    title = row(Cell(sanitize(line.name), Colour.BOLD), Cell(f"  {sanitize(line.title)}"))
    return [title, *facts(known, width, indent=2)]
