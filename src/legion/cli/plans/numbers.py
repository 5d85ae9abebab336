"""The name of a plan as a parameter: P3, with shell completion."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from legion.cli.base.output import sanitize
from legion.client.discovery import find
from legion.system.paths import default_data_dir
from legion.wire.errors import BadInput, LegionError
from legion.wire.text import plan_number


def number_of(word: str) -> int:
    """Raises BadInput for a word that names no plan."""
    found = plan_number(word)
    if found is None:
        raise BadInput(f"`{sanitize(word)[:40]}` is no plan; write P and its number, as `legion plan list` shows them.")
    return found


def complete_plans(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Open plans. Completion never starts the daemon."""
    try:
        found = find(ctx.params.get("data_dir") or default_data_dir()).plans(str(Path.cwd())).plans
    except (LegionError, OSError):
        return []
    named = [one for one in found if one.id.startswith(incomplete.upper())]
    return [CompletionItem(one.id, help=sanitize(one.goal)[:60]) for one in named]
