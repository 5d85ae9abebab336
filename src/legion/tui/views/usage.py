"""Spending as rows: a bar chart by day, ticket, agent, model or epic; limits with their reset times; waste."""

from __future__ import annotations

from collections.abc import Sequence

from legion.client.text.terminal import Cell, Colour, count, duration, thousands
from legion.client.text.tickets import dollars
from legion.tui.views.rows import BLANK, Row, clean, head, note, row, table
from legion.tui.views.status_line import describe_limit
from legion.wire.providers import Providers
from legion.wire.usage import UsageReport, UsageShare

_NAMELESS = {"model": "no model", "epic": "no epic", "ticket": "no ticket", "agent": "no agent", "day": "no day"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR = 24


def rows(report: UsageReport | None, providers: Providers | None, width: int, cuts: Sequence[str]) -> list[Row]:
    if report is None:
        return [note("Reading the usage.")]
    tabs = [Cell(f" {cut} ", Colour.BOLD if cut == report.by else Colour.DIM) for cut in cuts]
    made = [row(Cell("by"), *tabs), BLANK]
    if not report.shares:
        made.append(note("No agent has worked yet, so nothing was spent."))
    else:
        made += _chart(report, width)
        made += [BLANK, *_sums(report.total)]
    return [*made, BLANK, *_limits(providers)]


def _chart(report: UsageReport, width: int) -> list[Row]:
    priced = any(share.usage.usd for share in report.shares)
    most = max((_weight(share, priced) for share in report.shares), default=0.0)
    room = max(8, min(_BAR, width // 4))
    shares = (
        sorted(report.shares, key=lambda one: one.key, reverse=True)
        if report.by == "day"
        else sorted(report.shares, key=lambda one: -_weight(one, priced))
    )
    lines = [("", _cells(share, report.by, bar(_weight(share, priced), most, room))) for share in shares]
    heads = [Cell(word, Colour.DIM) for word in (report.by, "", "spent", "in", "out", "time", "landed", "wasted")]
    return table([("", heads), *lines], width)


def _weight(share: UsageShare, priced: bool) -> float:
    """Money where there is any; else time."""
    return share.usage.usd if priced else share.seconds


def bar(value: float, most: float, room: int) -> str:
    eighths = round(value / most * room * 8) if most > 0 else 0
    full, part = divmod(max(0, eighths), 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(room)[:room]


def _cells(share: UsageShare, by: str, drawn: str) -> list[Cell]:
    spent = share.usage
    name = clean(share.key) or _NAMELESS.get(by, "")
    if by == "ticket" and share.key:
        name = f"#{name} {clean(share.title)}"
    return [
        Cell(name[:40]),
        Cell(drawn, Colour.BLUE),
        Cell(dollars(spent.usd)),
        Cell(thousands(spent.input + spent.cache_read + spent.cache_write)),
        Cell(thousands(spent.output)),
        Cell(duration(share.seconds)),
        Cell(str(share.landed or "")),
        Cell(dollars(share.wasted.usd) if share.wasted_runs else "", Colour.YELLOW),
    ]


def _sums(total: UsageShare) -> list[Row]:
    each = f", {dollars(total.usd_per_landed)} for each landed ticket" if total.usd_per_landed is not None else ""
    made = [
        row(Cell(f"{dollars(total.usage.usd)} in all{each}; {duration(total.seconds)} of agents' time.", Colour.BOLD))
    ]
    if total.wasted_runs:
        wasted = f"{dollars(total.wasted.usd)} and {duration(total.wasted_seconds)}"
        made.append(
            row(Cell(f"{wasted} went into {count(total.wasted_runs, 'run')} that did not land.", Colour.YELLOW))
        )
    if total.usage.unpriced:
        made.append(note(f"{count(total.usage.unpriced, 'request')} without a known price, not in the sum."))
    return made


def _limits(providers: Providers | None) -> list[Row]:
    made = [head("Limits")]
    known = providers.providers if providers is not None else []
    for one in known:
        if one.limit is None:
            made.append(row(Cell(f"  {clean(one.name)}  ", Colour.BOLD), Cell("no limit reported", Colour.DIM)))
        else:
            used = one.limit.utilization or 0.0
            colour = Colour.RED if used >= 0.8 else Colour.GREEN
            made.append(
                row(
                    Cell(f"  {clean(one.name)}  ", Colour.BOLD),
                    Cell(bar(used, 1.0, _BAR), colour),
                    Cell(f"  {describe_limit(one.limit)}"),
                )
            )
    return made if known else [*made, note("  No provider is set up: `legion provider add anthropic`.")]
