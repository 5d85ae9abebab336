"""Lines of `legion usage --lessons`: attempts of tickets with a lesson and without it."""

from __future__ import annotations

from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.wire.lessons import Lessons


def effect_lines(found: Lessons, screen: Screen) -> list[str]:
    accepted = [one for one in found.lessons if not one.proposed]
    if not accepted:
        return ["No lesson is accepted: legion note lessons"]
    head = [Cell(word, Colour.DIM) for word in ("lesson", "with it", "without it", "")]
    rows = [
        [
            Cell(str(one.id), Colour.BOLD),
            Cell(_average(one.attempts, one.carried)),
            Cell(_average(one.attempts_without, one.without)),
            Cell(sanitize(one.text)),
        ]
        for one in accepted
    ]
    return screen.table([head, *rows], indent=0)


def _average(attempts: float | None, tickets: int) -> str:
    return "no ticket yet" if attempts is None else f"{attempts:.1f} attempts in {count(tickets, 'ticket')}"
