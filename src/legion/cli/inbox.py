"""`legion inbox` and `legion answer`: what only a person can settle."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from legion.cli.command import Call, command
from legion.cli.output import Cell, Colour, Screen, clock, count, duration, harmless
from legion.cli.texts import checked
from legion.client.discovery import find
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError
from legion.wire.questions import Answer, Inbox, QuestionLine


@command("inbox", example="legion inbox")
def inbox(call: Call) -> None:
    """Questions that wait for you, of all projects, with the time when each counts as a no."""
    found = call.legion().inbox()
    call.answer(found, lambda: _questions(found, call.screen))


def _questions(found: Inbox, screen: Screen) -> Iterator[str]:
    if not found.questions:
        yield "No question waits for you."
        return
    yield f"{count(len(found.questions), 'question waits', 'questions wait')} for you."
    for question in found.questions:
        yield ""
        yield from question_lines(question, screen)


def question_lines(question: QuestionLine, screen: Screen) -> Iterator[str]:
    """One question: who asks, what, until when, and how to answer."""
    who = f"ticket {question.ticket} of {harmless(question.project)}, {harmless(question.title)}"
    yield screen.line(Cell(f"Question {question.id}  ", Colour.BOLD), Cell(who))
    yield from screen.paragraph(question.words, most_lines=None)
    asked = duration(time.time() - question.asked_at)
    left = duration(question.deadline - time.time())
    yield screen.aside(f"asked {asked} ago; without an answer it is a no at {clock(question.deadline)}, in {left}")
    yield screen.aside(f"legion answer {question.id} yes   or   legion answer {question.id} no 'another way ...'")


class QuestionNumber(click.ParamType[int]):
    """3 or #3."""

    name = "ID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        digits = str(value).removeprefix("#")
        if not (digits.isascii() and digits.isdigit() and int(digits[:18]) > 0 and len(digits) <= 18):
            shown = harmless(str(value))[:40]
            self.fail(f"`{shown}` is no question's number: write the one that `legion inbox` shows", param, ctx)
        return int(digits)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            waiting = find(ctx.params.get("data_dir") or default_data_dir()).inbox().questions
        except LegionError:
            return []
        found = [one for one in waiting if str(one.id).startswith(incomplete.removeprefix("#"))]
        return [CompletionItem(str(one.id), help=harmless(one.words)[:60]) for one in found]


@command("answer", example="legion answer 3 yes\nlegion answer 3 no 'Use the local copy instead.'")
@click.argument("id", metavar="ID", type=QuestionNumber())
@click.argument("said", metavar="yes|no", type=click.Choice(("yes", "no")))
@click.argument("why", metavar="[WHY]", default="")
def answer(call: Call, id: int, said: str, why: str) -> None:
    """Answer a question of an agent. With a no it hears your WHY; a yes takes none."""
    settled = call.legion().answer(id, Answer(allowed=said == "yes", why=checked(why, "WHY")))
    call.answer(settled, lambda: [harmless(settled.message)])
