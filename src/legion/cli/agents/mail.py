"""`legion inbox mail`: read, answer, find and put away messages between agents and you."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.texts import read_text
from legion.client.text.agents import correspondence_rows
from legion.wire.errors import BadInput
from legion.wire.mail import ArchiveMail, FindMail, NewMessage, ReadMail

_EXAMPLE = """\
legion inbox mail
legion inbox mail reply 14 'Yes, both.'
legion inbox mail thread 14
legion inbox mail search login
legion inbox mail archive 14"""


@command("mail", example=_EXAMPLE)
@click.argument("words", nargs=-1, metavar="[ID | reply N TEXT | thread N | search TEXT | archive [N ...]]")
@click.option("--dead", is_flag=True, help="Messages that came back because their recipient was fired.")
@click.option("--all", "everything", is_flag=True, help="Also messages that were read or sent before.")
def mail(call: CommandCall, words: tuple[str, ...], dead: bool, everything: bool) -> None:
    """Show your mail, or the mail of an agent. This marks your own as read.

    `reply` answers message N, `thread` shows its conversation, `search` finds messages of all agents,
    `archive` puts read messages to you away, all of them without N. Nothing is deleted. - reads TEXT from stdin.
    """
    verbs: dict[str, Callable[[CommandCall, tuple[str, ...]], None]] = {
        "reply": _reply,
        "thread": _thread,
        "search": _search,
        "archive": _archive,
    }
    if words and words[0] in verbs:
        verbs[words[0]](call, words[1:])
        return
    if len(words) > 1:
        raise BadInput(
            "`legion inbox mail` takes one agent, or reply, thread, search or archive: see `legion inbox mail --help`."
        )
    found = call.legion().mail(ReadMail(agent=words[0] if words else "", dead=dead, all=everything))
    nothing = "No message came back." if dead else "No message waits."
    call.show(found, lambda found, width: correspondence_rows(found, width, nothing=nothing))


def _reply(call: CommandCall, words: tuple[str, ...]) -> None:
    if len(words) != 2:
        raise BadInput("A reply needs the number of a message and a text: `legion inbox mail reply 14 'Yes, both.'`")
    text = read_text(words[1], "TEXT")
    letter = NewMessage(to="", text=text, reply_to=_number(words[0]), request=os.urandom(16).hex())
    call.report(call.legion().tell_agent(letter))


def _thread(call: CommandCall, words: tuple[str, ...]) -> None:
    if len(words) != 1:
        raise BadInput("A conversation is named by the number of one message: `legion inbox mail thread 14`.")
    found = call.legion().find_mail(FindMail(thread=_number(words[0])))
    call.show(found, lambda found, width: correspondence_rows(found, width, nothing="No message."))


def _search(call: CommandCall, words: tuple[str, ...]) -> None:
    if not words:
        raise BadInput("Name what to find: `legion inbox mail search login`.")
    found = call.legion().find_mail(FindMail(text=" ".join(words)))
    call.show(found, lambda found, width: correspondence_rows(found, width, nothing="No message has this text."))


def _archive(call: CommandCall, words: tuple[str, ...]) -> None:
    call.report(call.legion().archive_mail(ArchiveMail(numbers=[_number(word) for word in words])))


def _number(word: str) -> int:
    digits = word.removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and 0 < len(digits) < 10 and int(digits)):
        raise BadInput(f"{word[:40]!r} is no number of a message: `legion inbox mail --all` shows them.")
    return int(digits)
