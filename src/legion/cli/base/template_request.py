"""Builds the request that expands a template, for `legion plan template` and for `legion dispatch --from`."""

from __future__ import annotations

from collections.abc import Iterable

from legion.cli.base.command import CommandCall
from legion.cli.base.texts import named_values, valid_text
from legion.wire.templates import RunTemplate


def template_request(
    call: CommandCall, name: str, values: Iterable[str], *, team: str = "", epic: str = "", dry_run: bool = False
) -> RunTemplate:
    return RunTemplate(
        cwd=call.cwd,
        name=valid_text(name, "the template's name"),
        values=named_values(values),
        team=valid_text(team, "--team"),
        epic=valid_text(epic, "--epic"),
        dry_run=dry_run,
    )
