"""`legion conversations ask`: a question to a finished conversation."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.progress import progress
from legion.cli.base.texts import read_text, valid_text
from legion.cli.board.status import dollars
from legion.client.text.terminal import sanitize_lines
from legion.wire.conversations import AskConversation


@command(
    "ask",
    example="legion conversations ask 12 'Why did you rename the table?'\n"
    "legion conversations ask 3f2a90c1 'What is left to do?'",
)
@click.argument("run", metavar="RUN")
@click.argument("question", metavar="QUESTION")
@click.option("--model", metavar="NAME", default="", help="The model that answers; default: as in your settings.")
def ask(call: CommandCall, run: str, question: str, model: str) -> None:
    """Ask a finished conversation; - reads the question from stdin.

    RUN is a ticket's number, or the id of a conversation. A copy of the conversation answers: it can read and change
    nothing, and the conversation stays as it is. The answer costs tokens for all of the conversation.
    """
    wanted = AskConversation(
        id=valid_text(run, "RUN"),
        question=read_text(question, "QUESTION"),
        model=valid_text(model, "--model") if model else "",
    )
    with progress("Asking"):
        answer = call.legion().ask_conversation(wanted)
    call.answer(answer, lambda: sanitize_lines(answer.answer))
    if answer.usd:
        call.say(f"Note: this answer cost {dollars(answer.usd)}.")
