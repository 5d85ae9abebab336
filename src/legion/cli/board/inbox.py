"""`legion inbox` and `legion answer`: questions that only a person can settle."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.row_command import row_command
from legion.client.discovery import find
from legion.client.text.inbox import waiting_rows
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError, NotAllowed
from legion.wire.mail import AnswerQuestion, MailRows

inbox = row_command("inbox", MailRows.inbox, "legion inbox", shows=waiting_rows)


class QuestionNumber(click.ParamType[int]):
    """3 or #3."""

    name = "ID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        digits = str(value).removeprefix("#")
        if not (digits.isascii() and digits.isdigit() and int(digits[:18]) > 0 and len(digits) <= 18):
            shown = sanitize(str(value))[:40]
            self.fail(f"`{shown}` is no number of a question; `legion inbox` shows the numbers", param, ctx)
        return int(digits)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            waiting = find(ctx.params.get("data_dir") or default_data_dir()).inbox().questions
        except LegionError:
            return []
        found = [one for one in waiting if str(one.id).startswith(incomplete.removeprefix("#"))]
        return [CompletionItem(str(one.id), help=sanitize(one.words)[:60]) for one in found]


@command(
    "answer",
    example="legion answer 3 yes\nlegion answer 3 no 'Use the local copy instead.'\nlegion answer 3 always --yes",
)
@click.argument("id", metavar="ID", type=QuestionNumber())
@click.argument("choice", metavar="CHOICE")
@click.argument("text", metavar="[TEXT]", default="")
@click.option("--yes", "sure", is_flag=True, help="Save the rule of `always` without asking again.")
def answer(call: CommandCall, id: int, choice: str, text: str, sure: bool) -> None:
    """Answer a question with one of the choices that `legion inbox` shows, or with a text where it shows none.

    TEXT goes with the choice: a no sends it to the agent, a yes takes none. `always` is a yes that becomes a rule in
    your settings; the rule is shown before it is saved.
    """
    legion = call.legion()
    if choice.lower() == "always" and not sure:
        waiting = next((one for one in legion.inbox().questions if one.id == id), None)
        if waiting is not None and "rule" in waiting.facts:
            _confirm(call, waiting.facts["rule"])
    given = AnswerQuestion(choice=choice, why=text)
    settled = legion.answer(id, given)
    call.report(settled)


def _confirm(call: CommandCall, rule: str) -> None:
    call.say(f"From now on every agent may use this without asking: {sanitize(rule)}")
    if not sys.stdin.isatty():
        raise NotAllowed("Nothing is saved yet; run it again with --yes to save this rule.")
    if not click.confirm("Save it?", err=True):
        raise NotAllowed("Nothing was saved; the question still waits.")
