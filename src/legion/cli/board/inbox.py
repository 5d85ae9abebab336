"""`legion inbox` and `legion answer`: questions that only a person can settle."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, count, duration, sanitize
from legion.cli.base.texts import valid_text
from legion.client.discovery import find
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError, NotAllowed
from legion.wire.questions import AnswerQuestion, Inbox, QuestionLine
from legion.wire.text import SHORT_ID


@command("inbox", example="legion inbox")
def inbox(call: CommandCall) -> None:
    """Questions of all projects that wait for you, with the time when each is settled without you."""
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


_BY_LEGION = ("change", "attempts", "review", "gate", "branch", "checks")
"""Kinds of questions that Legion words. An agent's text is put on one line, so that it cannot imitate them."""


def question_lines(question: QuestionLine, screen: Screen) -> Iterator[str]:
    """One question: kind, asker, text, deadline and how to answer."""
    yield screen.line(Cell(f"Question {question.id}  ", Colour.BOLD), Cell(f"{question.kind}, {_asker(question)}"))
    text = question.words if question.kind in _BY_LEGION else sanitize(question.words)
    yield from screen.paragraph(text, most_lines=None)
    for name, fact in question.facts.items():
        if fact not in question.words:
            yield from screen.paragraph(f"{sanitize(name)}: {sanitize(fact)}", most_lines=None)
    asked = duration(time.time() - question.asked_at)
    left = duration(question.deadline - time.time())
    silence = f"without an answer it is {_silence(question)} at {clock(question.deadline)}, in {left}"
    yield from screen.aside(f"asked {asked} ago; {silence}")
    yield from screen.aside("   or   ".join(_ways(question)))


def _asker(question: QuestionLine) -> str:
    where = f" of {sanitize(question.project)}" if question.project else ""
    if question.ticket is None and not question.agent:
        return f"all work{where}"
    if question.ticket is None:
        return f"agent {sanitize(question.name or question.agent[:SHORT_ID])}{where}"
    return f"ticket {question.ticket}{where}, {sanitize(question.title)}"


def _silence(question: QuestionLine) -> str:
    if not question.default:
        return "left to the agent"
    return f"a {question.default}" if question.default == "no" else f"`{sanitize(question.default)}`"


def _ways(question: QuestionLine) -> Iterator[str]:
    for choice in question.choices:
        text = " 'another way ...'" if choice in ("no", "reject", "back") else " BRANCH" if choice == "bind" else ""
        yield f"legion answer {question.id} {shlex.quote(sanitize(choice))}{text}"
    if not question.choices:
        yield f"legion answer {question.id} 'your answer'"


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
    given = AnswerQuestion(choice=valid_text(choice, "CHOICE"), why=valid_text(text, "TEXT"))
    settled = legion.answer(id, given)
    call.report(settled)


def _confirm(call: CommandCall, rule: str) -> None:
    call.say(f"From now on every agent may use this without asking: {sanitize(rule)}")
    if not sys.stdin.isatty():
        raise NotAllowed("Nothing is saved yet; run it again with --yes to save this rule.")
    if not click.confirm("Save it?", err=True):
        raise NotAllowed("Nothing was saved; the question still waits.")
