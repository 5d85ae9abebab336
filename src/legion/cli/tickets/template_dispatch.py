"""`legion dispatch --from NAME`: expands a template and approves its plan at once."""

from __future__ import annotations

import os
import re
from pathlib import Path

from legion.cli.base.command import CommandCall
from legion.cli.base.output import sanitize
from legion.cli.base.template_request import template_request
from legion.wire.dispatch import Dispatched
from legion.wire.errors import NotFound
from legion.wire.plans import ApprovePlan
from legion.wire.templates import ExpandedTemplate
from legion.wire.text import plan_number

_NAME = re.compile(r"[A-Za-z0-9_-]+")


def names_template(name: str, values: tuple[str, ...]) -> bool:
    """Whether --from means a template: it has variables, or no file has that name."""
    return bool(values) or (name != "-" and bool(_NAME.fullmatch(name)) and not Path(name).exists())


def dispatch_template(
    call: CommandCall, name: str, values: tuple[str, ...], *, team: str, epic: str, dry_run: bool
) -> None:
    wanted = template_request(call, name, values, team=team, epic=epic, dry_run=dry_run)
    if not values and name not in [one.name for one in call.legion().templates(call.cwd).templates]:
        raise NotFound(f"There is neither a file nor a template {name}: see `legion plan template list`.")
    expanded = call.legion().run_template(wanted)
    if expanded.plan is None:
        tried = Dispatched(ids=[], planned=_planned(expanded))
        call.answer(tried, lambda: [*map(sanitize, tried.planned), "Nothing was created."])
        call.notes(f"{one.ticket or name}: {one.text}." for one in expanded.findings)
        return
    number = plan_number(expanded.plan.plan.id)
    assert number is not None, "the daemon names its own plans"
    made = call.legion().approve_plan(number, ApprovePlan(request=os.urandom(16).hex()))
    done = Dispatched(ids=list(made.tickets.values()), keys=made.tickets, notes=made.notes)
    call.answer(done, lambda: [f"Ticket ID: {id}" for id in done.ids])
    call.notes([*done.notes, f"`legion status epic {epic or expanded.plan.plan.id}` follows them."])


def _planned(expanded: ExpandedTemplate) -> list[str]:
    return [f"{one.key}: {one.title}" for one in expanded.tickets]
