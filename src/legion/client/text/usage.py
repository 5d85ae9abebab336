"""Spending as rows: shares with their bars by day, ticket, agent, model or epic, their sum; and limits."""

from __future__ import annotations

from collections.abc import Sequence

from legion.client.text.providers import limit_text
from legion.client.text.rows import BLANK, Column, Columns, Row, head, listing, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, count, duration, sanitize, thousands
from legion.client.text.tickets import cost, dollars
from legion.wire.history import UsageReport, UsageShare
from legion.wire.providers import Providers

_NAMELESS = {"driver": "not known"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR, _NAME = 24, 48


def rows(report: UsageReport, width: int) -> list[Row]:
    if not report.shares:
        return [row(f"No agent has worked since {report.since}." if report.since else "No agent has worked yet.")]
    priced = any(share.usage.usd for share in report.shares)
    most = max(_weight(share, priced) for share in report.shares)
    room = max(8, min(_BAR, width // 10))
    by_day, by_ticket = report.by == "day", report.by == "ticket"
    shares = sorted(report.shares, key=lambda one: one.key if by_day else _weight(one, priced), reverse=True)

    def name(share: UsageShare) -> str:
        if share is report.total:
            return "all"
        text = share.key or _NAMELESS.get(report.by, f"no {report.by}")
        return share.title[:_NAME] if by_ticket and share.key else text

    def number(share: UsageShare) -> str:
        return f"#{int(share.key)}  " if by_ticket and share.key.isdecimal() else ""

    def drawn(share: UsageShare) -> str:
        return "" if share is report.total else bar(_weight(share, priced), most, room).rstrip()

    columns: Columns[UsageShare] = (
        Column(report.by, name, branches=number),
        Column("", drawn, Colour.BLUE, least=60),
        Column("spent", lambda one: cost(one.usage)),
        Column("in", lambda one: thousands(one.usage.input + one.usage.cache_read + one.usage.cache_write)),
        Column("out", lambda one: thousands(one.usage.output)),
        Column("time", lambda one: duration(one.seconds)),
        Column("runs", lambda one: str(one.runs), least=100),
        Column("landed", lambda one: str(one.landed)),
        Column("each", lambda one: "" if one.usd_per_landed is None else dollars(one.usd_per_landed), least=100),
        Column("wasted", _waste, Colour.YELLOW),
    )
    return [*listing(columns, shares, width, heads=True, total=report.total), BLANK, *_sums(report.total, width)]


def _weight(share: UsageShare, priced: bool) -> float:
    """Money where there is any; else time."""
    return share.usage.usd if priced else share.seconds


def bar(value: float, most: float, room: int) -> str:
    eighths = round(value / most * room * 8) if most > 0 else 0
    full, part = divmod(max(0, eighths), 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(room)[:room]


def _waste(share: UsageShare) -> str:
    return f"{cost(share.wasted)} in {count(share.wasted_runs, 'run')}" if share.wasted_runs else ""


def _sums(total: UsageShare, width: int) -> list[Row]:
    each = f", {dollars(total.usd_per_landed)} for each landed ticket" if total.usd_per_landed is not None else ""
    made = paragraph(
        f"{cost(total.usage)} in all{each}; {duration(total.seconds)} of agents' time.", width, colour=Colour.BOLD
    )
    if total.wasted_runs:
        wasted = f"{cost(total.wasted)} and {duration(total.wasted_seconds)}"
        text = f"{wasted} went into {count(total.wasted_runs, 'run')} that did not land."
        made += paragraph(text, width, colour=Colour.YELLOW)
    if total.usage.unpriced:
        unpriced = count(total.usage.unpriced, "request went", "requests went")
        text = f"{unpriced} to models without a known price and are not in the sum"
        made += paragraph(text, width, indent=2, colour=Colour.DIM)
    return made


def cut_rows(report: UsageReport | None, providers: Providers | None, width: int, cuts: Sequence[str]) -> list[Row]:
    """With the choice of groupings above, and the limits below."""
    if report is None:
        return [note("Reading the usage.")]
    tabs = [Cell(f" {cut} ", Colour.BOLD if cut == report.by else Colour.DIM) for cut in cuts]
    return [row(Cell("by"), *tabs), BLANK, *rows(report, width), BLANK, *_limits(providers)]


def _limits(providers: Providers | None) -> list[Row]:
    made = [head("Limits")]
    known = providers.providers if providers is not None else []
    for one in known:
        used = (one.limit.utilization or 0.0) if one.limit is not None else 0.0
        drawn = [Cell(f"{bar(used, 1.0, _BAR)}  ", Colour.RED if used >= 0.8 else Colour.GREEN)] if one.limit else []
        text = limit_text(one.limit) if one.limit is not None else "no limit reported"
        made.append(row(Cell(f"  {sanitize(one.name)}  ", Colour.BOLD), *drawn, Cell(text, Colour.DIM)))
    return made if known else [*made, note("  No provider is set up: `legion provider add anthropic`.")]
