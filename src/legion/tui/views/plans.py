"""Plans as rows: the list, and one plan with its tickets, findings and estimate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from legion.client.text.terminal import Cell, Colour, count, duration
from legion.client.text.tickets import dollars
from legion.tui.views.rows import BLANK, Row, clean, definitions, head, note, paragraph, row
from legion.wire.plans import PlanLine, PlanList, PlanPage, PlanTicketLine

KEY = "plan "
"""Of the row of a plan, before its number."""
APPROVABLE = ("ready", "faulty", "partly")
_COLOURS = {
    "planning": Colour.CYAN, "asking": Colour.YELLOW, "ready": Colour.GREEN, "faulty": Colour.RED,
    "partly": Colour.GREEN, "failed": Colour.RED,
}  # fmt: skip


def number_of(plan: PlanLine) -> int:
    """3 of P3."""
    return int(plan.id.removeprefix("P"))


def key_of(plan: PlanLine) -> str:
    return f"{KEY}{number_of(plan)}"


def waiting(plans: PlanList | None) -> list[PlanLine]:
    """Those that the person decides about, oldest first."""
    found = [one for one in plans.plans if one.state in (*APPROVABLE, "failed")] if plans is not None else []
    return sorted(found, key=lambda one: one.created_at)


def why(plan: PlanLine) -> str:
    """What a plan waits for, in short."""
    left = count(plan.tickets - plan.approved, "ticket")
    match plan.state:
        case "ready" | "partly":
            return f"{left} to approve"
        case "faulty":
            return f"{left}, {count(plan.findings, 'finding')}"
        case _:
            return f"{plan.state}: {clean(plan.reason)}" if plan.reason else plan.state


def plan_row(plan: PlanLine, width: int) -> list[Row]:
    cells = [Cell(plan.id, Colour.BOLD), Cell(why(plan), _COLOURS.get(plan.state, Colour.DIM)), Cell(clean(plan.goal))]
    return definitions([(key_of(plan), cells)], width)[:2]


def list_rows(plans: PlanList | None, width: int, keys: Mapping[str, str]) -> list[Row]:
    if plans is None:
        return [note("Reading the plans.")]
    if not plans.plans:
        text = f"No plan. {keys['new_plan']} has a planner propose tickets for a goal."
        return paragraph(text, width, colour=Colour.DIM)
    first = waiting(plans)
    rest = [one for one in plans.plans if one not in first]
    return [made for one in [*first, *rest] for made in plan_row(one, width)]


def page_rows(page: PlanPage | None, chosen: Collection[str], width: int) -> list[Row]:
    """Tickets have their key; those that are chosen are marked."""
    if page is None:
        return []
    plan = page.plan
    rows = [row(Cell(f"{plan.id}  ", Colour.BOLD), Cell(why(plan), _COLOURS.get(plan.state, Colour.DIM)))]
    rows += paragraph(plan.goal, width, most=6)
    rows += [made for text in page.notes for made in paragraph(text, width, colour=Colour.YELLOW)]
    if page.summary and page.summary != plan.goal:
        rows += [BLANK, *paragraph(page.summary, width)]
    if page.findings:
        rows += [BLANK, head(count(len(page.findings), "finding"))]
        for one in page.findings:
            rows += paragraph(
                f"{one.ticket}: {one.text}" if one.ticket else one.text, width, indent=2, colour=Colour.RED
            )
    rows += [BLANK, *_facts(page, width)]
    for ticket in page.tickets:
        rows += [BLANK, *_ticket(ticket, ticket.key in chosen, width)]
    return rows


def _facts(page: PlanPage, width: int) -> list[Row]:
    estimate = page.estimate
    known = (
        ("expected cost", "unknown" if estimate.usd is None else dollars(estimate.usd)),
        ("expected time", "unknown" if estimate.seconds is None else duration(estimate.seconds)),
        ("planner spent", dollars(page.usage.usd) if page.usage else ""),
        ("longest chain", " → ".join(page.chain)),
        ("risks", page.risks),
        ("replaces", ", ".join(f"#{id}" for id in page.drops)),
    )
    return definitions([("", [Cell(name, Colour.DIM), Cell(clean(text))]) for name, text in known if text], width)


def _ticket(ticket: PlanTicketLine, chosen: bool, width: int) -> Iterator[Row]:
    mark = "[x]" if chosen else "[ ]" if ticket.ticket is None else f"#{ticket.ticket}"
    yield row(
        Cell(f"{mark} ", Colour.GREEN if chosen or ticket.ticket else Colour.DIM),
        Cell(f"{clean(ticket.key)}  ", Colour.BOLD),
        Cell(clean(ticket.title)),
        key=ticket.key,
    )
    yield from paragraph(ticket.text, width, indent=4, key=ticket.key, most=6)
    facts = [
        ("after", ", ".join(ticket.after)),
        ("files", ", ".join([*ticket.files, *ticket.new_files])),
        ("asks you for", ", ".join(ticket.asks_for)),
        *(("done when", f"{one.text}  ({one.proof or 'no proof'})") for one in ticket.criteria),
    ]
    lines = [(ticket.key, [Cell(name, Colour.DIM), Cell(clean(text))]) for name, text in facts if text]
    yield from definitions(lines, width, indent=4)
