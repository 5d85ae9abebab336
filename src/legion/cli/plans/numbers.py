"""The name of a plan as a parameter: P3, with shell completion."""

from __future__ import annotations

from pathlib import Path

from legion.cli.base.output import sanitize
from legion.cli.base.parameters import completes
from legion.wire.errors import BadInput
from legion.wire.text import plan_number

complete_plans = completes(lambda legion: ((one.id, one.goal) for one in legion.plans(str(Path.cwd())).plans))


def number_of(word: str) -> int:
    """Raises BadInput for a word that names no plan."""
    found = plan_number(word)
    if found is None:
        raise BadInput(f"`{sanitize(word)[:40]}` is no plan; write P and its number, as `legion plan list` shows them.")
    return found
