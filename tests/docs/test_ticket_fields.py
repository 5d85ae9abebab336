"""Files derived from the fields of a ticket are up to date. `python -m tests.docs.test_ticket_fields` writes them."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from legion.domain.agents.tools import DESCRIPTIONS, Tool
from legion.domain.tickets.spec import TicketSpec
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.ticket_fields import AgentNeed, FieldKind, TicketField
from tests.support.codebase import ROOT
from tests.support.documents import with_table

WORDS = ROOT / "tests/docs/json_words.toml"
PAGE = ROOT / "docs/tickets.md"
OPTIONS = ROOT / "src/legion/cli/base/dispatch_options.py"
HEAD = '''\
"""The options of `legion dispatch` for the quick parser, which cannot afford to import the fields of a ticket.

Written by `python -m tests.docs.test_ticket_fields`; do not edit. Each option: field, kind, choices or limits.
"""

OPTIONS: dict[str, tuple[str, str, tuple[str | int, ...]]] = {
'''


NEEDS = {
    AgentNeed.NONE: "",
    AgentNeed.AGENT: " Not for a checkpoint.",
    AgentNeed.BUDGETS: " Needs a driver that keeps budgets, such as Claude Code's.",
    AgentNeed.MODELS: " Needs a driver that takes a model, such as Claude Code's.",
    AgentNeed.ASKS: " Needs a driver that can ask, such as Claude Code's.",
    AgentNeed.READS_ONLY: " Needs a driver that can be limited to reading, such as Claude Code's.",
}


def page() -> str:
    rows = [[field.name, entered(field), explained(field)] for field in TICKET_FIELDS.values()]
    return with_table(PAGE.read_text(), "fields", ["field", "option of `dispatch`", "is"], rows)


def entered(field: TicketField) -> str:
    names = field.options or (field.rule.argument,)
    return ", ".join(f"`{name}`" for name in names if name) or "in plan files"


def explained(field: TicketField) -> str:
    see = field.rule.see
    link = f" See [{see.partition('.')[0].removeprefix('#')}]({see})." if see else ""
    return field.rule.help + NEEDS[field.rule.needs] + link


def quick_options() -> str:
    lines = [
        f'    "{option}": ("{field.name}", "{field.kind.value}", {limits(field)}),\n'
        for field in TICKET_FIELDS.values()
        for option in field.options
    ]
    return HEAD + "".join(lines) + "}\n"


def limits(field: TicketField) -> str:
    rule = field.rule
    if field.kind in (FieldKind.WHOLE, FieldKind.AMOUNT):
        return f"({rule.above if rule.least is None else rule.least}, {rule.most})"
    return "({})".format(", ".join(f'"{choice}"' for choice in rule.choices))


WRITTEN = {PAGE: page, OPTIONS: quick_options}


STORED_ELSEWHERE = {
    "ask": "asks",
    "prove": "proofs",
    "accept": "acceptance",
    "branch": None,
    "key": None,
    "plan_first": None,
    "worker_id": None,
}
"""Fields that a stored ticket has under another name, or not at all."""


def test_files_mean_the_same_for_a_person_and_for_an_agent():
    words = DESCRIPTIONS[Tool.DISPATCH].takes["files"].words
    assert TICKET_FIELDS["files"].rule.help == f"{words[0].upper()}{words[1:]}; may be given again."
    assert tomllib.loads(WORDS.read_text())["shapes"]["legion.ticket/1"]["files"] == words


def test_every_other_field_of_a_ticket_is_stored_under_its_own_name():
    stored = {field.name for field in fields(TicketSpec)}
    assert set(TICKET_FIELDS) - stored == set(STORED_ELSEWHERE)
    assert {name for name in STORED_ELSEWHERE.values() if name} <= stored


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.name)
def test_what_follows_from_the_fields_of_a_ticket_is_up_to_date(file: Path):
    assert file.read_text() == WRITTEN[file]()


if __name__ == "__main__":
    for file, written in WRITTEN.items():
        file.write_text(written())
