"""Follows the trial of a project's checks: one line for each step, and what was found at the end."""

from __future__ import annotations

from collections.abc import Iterator

from legion.cli.base.command import CommandCall
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.progress import progress
from legion.wire.projects import TrialPage, TryChecks

_WAIT = 20.0
"""Seconds of one request."""


def follow(call: CommandCall, cwd: str, *, again: bool = False) -> TrialPage | None:
    """Start the trial if it is due and wait for its end. None: the person left it to the background."""
    try:
        found = call.legion().try_checks(TryChecks(cwd=cwd, again=again))
        while found.state in ("due", "running"):
            step = found.steps[-1] if found.steps else "begins"
            with progress(f"Trying the checks: {sanitize(step)}", "Ctrl-C leaves it to the background"):
                while found.state in ("due", "running") and (found.steps[-1] if found.steps else "begins") == step:
                    found = call.legion().trial(cwd, found.number, _WAIT)
    except KeyboardInterrupt:
        call.say("The trial of the checks continues in the background; `legion doctor` shows what it finds.")
        return None
    return found


def lines(found: TrialPage, screen: Screen) -> Iterator[str]:
    """What was found; the last line says whether the checks see the code."""
    for line in found.lines:
        yield from screen.paragraph(sanitize(line), indent=2)
    if found.doubts and not found.trusted:
        yield screen.line(Cell("  No change lands before that is fixed, or you trust the checks: ", Colour.YELLOW))
        yield from screen.paragraph(sanitize(found.remedy), indent=4)
        if found.question is not None:
            yield from screen.paragraph(f"or: legion answer {found.question} trust", indent=4)
