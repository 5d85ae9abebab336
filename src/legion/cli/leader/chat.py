"""`legion tell chat`: talk to the leader of this project. What it does is printed while it works."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.live import with_retry
from legion.cli.base.output import Colour, clock, sanitize, sanitize_lines, thousands
from legion.cli.base.parameters import Seconds
from legion.cli.base.texts import read_text
from legion.wire.agents import AgentLine, ChatReply, Conversation, ReadConversation
from legion.wire.errors import BadInput, LegionError, NotFound, Retryable, StateConflict
from legion.wire.history import FollowOutput, LiveOutput
from legion.wire.mail import MessageLine, NewMessage

_EXAMPLE = """\
legion tell chat
legion tell chat leader -m 'What is open?'
legion tell chat --json --last 5"""
_HISTORY = 20
_WAIT = 15.0
"""Seconds of one long poll for output."""
_LEAVE = ("/quit", "/exit")
_PERSON = "root"
_DIM = ("> ", "  ")
"""How the lines of calls start."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@command("chat", example=_EXAMPLE)
@click.argument("name", metavar="[NAME]", default="")
@click.option("-m", "--message", metavar="TEXT", help="Send one message, print the answer and end; - reads stdin.")
@click.option("--last", metavar="N", type=click.IntRange(1, 500), default=_HISTORY, help="Messages shown at the start.")
@click.option("--timeout", type=Seconds(min=0), metavar="S", help="With -m: give up after S seconds.")
def chat(call: CommandCall, name: str, message: str | None, last: int, timeout: float | None) -> int | None:
    """Talk to the leader, or to another standing agent by its NAME. Earlier messages are shown first.

    Type a line and press Enter; Ctrl-D ends the chat, and Ctrl-C only stops watching: the leader continues. With --json
    and no message the conversation is printed.
    """
    wanted = ReadConversation(cwd=call.cwd, name=name, last=last)
    before = call.legion().conversation(wanted)
    if before.leader is None:
        raise NotFound(f"{sanitize(before.hint)}")
    if message is None and not call.json and not sys.stdin.isatty():
        message = "-"
    talk = _Talk(call=call, wanted=wanted, leader=before.leader)
    if message is not None:
        return _once(talk, read_text(message, "-m"), timeout)
    if call.json:
        call.answer(before, list)
        return 0
    return _dialog(talk, before)


@dataclass(kw_only=True)
class _Talk:
    """The connection to one leader: sends a message, and follows the turn that reads it."""

    call: CommandCall
    wanted: ReadConversation
    leader: AgentLine
    seen: dict[str, int] = field(default_factory=dict)
    """How far the output of each run at work was read."""

    def send(self, text: str) -> str:
        """The id of the message. A leader at work receives it in this turn.

        Raises Retryable where it waits for a command of the person: no answer comes before that.
        """
        # What was printed before is not an answer to this.
        self._read(self._output(0.0), lambda _: None)
        at_work = any(one.agent == self.leader.id for one in self._output(0.0).running)
        letter = NewMessage(to=self.leader.id, text=text, now=at_work, request=os.urandom(16).hex())
        sent = with_retry(self.call, lambda legion: legion.tell_agent(letter))
        _, waits, why = sent.message.partition(": it waits for ")
        if waits and "`legion" in why:
            raise Retryable(f"{self.leader.name} gets the message later: it waits for {why}.")
        if waits:
            self.call.say(f"Note: {sanitize(self.leader.name)} waits for {sanitize(why)}.")
        return sent.messages[0]

    def follow(self, message: str, show: Callable[[str], None], timeout: float | None = None) -> list[MessageLine]:
        """Show the output until the turn that read the message has ended; then its answers."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WAIT if deadline is None else min(_WAIT, deadline - time.monotonic())
            if left <= 0:
                raise Retryable(f"{self.leader.name} is still working; `legion tell chat` shows its answer.")
            if not self._read(self._output(left), show) and (answers := self._answers(message)) is not None:
                return answers

    def history(self) -> Conversation:
        return with_retry(self.call, lambda legion: legion.conversation(self.wanted))

    def _output(self, timeout: float) -> LiveOutput:
        wanted = FollowOutput(cwd=self.wanted.cwd, seen=dict(self.seen))
        return with_retry(self.call, lambda legion: legion.output(wanted, timeout=timeout))

    def _read(self, live: LiveOutput, show: Callable[[str], None]) -> bool:
        """Whether the leader is at work."""
        own = {one.run for one in live.running if one.agent == self.leader.id}
        for piece in live.pieces:
            self.seen[str(piece.run)] = piece.next_offset
            if piece.run in own and piece.text:
                show(piece.text)
        running = {str(one.run) for one in live.running}
        self.seen = {run: offset for run, offset in self.seen.items() if run in running}
        return bool(own)

    def _answers(self, message: str) -> list[MessageLine] | None:
        """None while the message waits, or the turn that reads it has not ended."""
        now = self.history()
        if now.leader is None or now.leader.fired_at is not None:
            raise StateConflict(f"{self.leader.name} was fired.")
        place = next((n for n, one in enumerate(now.messages) if one.id == message), None)
        if place is None or now.leader.working or now.messages[place].delivery in ("waiting", "offered"):
            return None
        return [one for one in now.messages[place + 1 :] if one.sender == self.leader.id]


def _once(talk: _Talk, text: str, timeout: float | None) -> int:
    if not text.strip():
        raise BadInput("The message is empty: legion tell chat -m TEXT")
    message = talk.send(text)
    answers = talk.follow(message, lambda _: None, timeout)
    reply = ChatReply(leader=talk.leader.name, message=message, replies=answers)
    talk.call.answer(reply, lambda: [line for one in answers for line in sanitize_lines(one.text)])
    if not answers:
        talk.call.say(f"{talk.leader.name} read it and has nothing to say.")
    return 0


def _dialog(talk: _Talk, before: Conversation) -> int:
    call, name = talk.call, sanitize(talk.leader.name)
    for one in before.messages:
        _show_message(call, one)
    size = f" Its conversation has {thousands(before.tokens)} of {thousands(before.handover_tokens)} tokens."
    call.say(
        f"You talk to {name}. Ctrl-D ends the chat; the leader continues without it.{size if before.tokens else ''}"
    )
    prompt = _Prompt(talk, known={one.id for one in before.messages})
    prompt.listen()
    while (text := prompt.read()) is not None:
        if text in _LEAVE:
            break
        if not text:
            continue
        printer = _LinePrinter(call)
        try:
            answers = _follow(talk, text, printer)
        except KeyboardInterrupt:
            call.say(f"{name} continues; its answer comes here when it is ready.")
            continue
        except LegionError as refused:
            call.say(sanitize(refused.message))
            continue
        prompt.known |= {one.id for one in answers}
        shown = printer.text
        for one in answers:
            # The turn's output ends with its final message; a message of a tool is not part of it.
            if " ".join(one.text.split()) not in shown:
                _show_message(call, one)
        if not answers and not shown:
            call.say(f"{name} read it and has nothing to say.")
    return 0


def _follow(talk: _Talk, text: str, printer: _LinePrinter) -> list[MessageLine]:
    try:
        return talk.follow(talk.send(text), printer.add)
    finally:
        printer.finish()


class _Prompt:
    """Reads lines from the person, and prints messages of the leader that come meanwhile."""

    def __init__(self, talk: _Talk, known: set[str]) -> None:
        self._talk = talk
        self.known = known
        self._waits = threading.Event()

    def listen(self) -> None:
        after = self._talk.call.legion().status(None).last_event
        threading.Thread(target=self._follow, args=(after,), daemon=True, name="chat").start()

    def read(self) -> str | None:
        """None at the end of the input."""
        # With the module loaded, the line can be edited.
        import readline  # noqa: F401

        self._waits.set()
        try:
            return input("> ").strip()
        except EOFError:
            return None
        except KeyboardInterrupt:
            self._talk.call.say("")
            return ""
        finally:
            self._waits.clear()

    def _follow(self, after: int) -> None:
        call, leader = self._talk.call, self._talk.leader.id
        try:
            for event in call.legion().events(after):
                if event is None or event.kind != "mail.sent":
                    continue
                if (event.data.get("from"), event.data.get("to")) == (leader, _PERSON) and self._waits.is_set():
                    self._show_new()
        except LegionError:
            # The daemon went away: the next message says so.
            return

    def _show_new(self) -> None:
        for one in self._talk.history().messages:
            if one.sender == self._talk.leader.id and one.id not in self.known:
                self.known.add(one.id)
                sys.stdout.write("\n")
                _show_message(self._talk.call, one)
        sys.stdout.write("> ")
        sys.stdout.flush()


class _LinePrinter:
    """Prints output as it comes. From a control character on, a line waits until it is complete.

    So no escape sequence is split between two pieces.
    """

    def __init__(self, call: CommandCall) -> None:
        self._call = call
        self._rest = ""
        self._printed = ""
        """What is on the screen of the line that is not complete."""
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._lines).split())

    def add(self, text: str) -> None:
        complete, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._print(complete)
        (start,) = sanitize_lines(_CONTROL.split(self._rest, maxsplit=1)[0])
        # Its first two characters decide about the colour.
        if len(start) >= len(_DIM[0]):
            self._print_rest(start)
            self._printed = start

    def finish(self) -> None:
        if self._rest:
            self._print(self._rest)
            self._rest = ""

    def _print(self, text: str) -> None:
        for line in sanitize_lines(text):
            self._lines.append(line)
            self._print_rest(line)
            self._printed = ""
            self._call.out("")

    def _print_rest(self, line: str) -> None:
        new = line[len(self._printed) :]
        self._call.out_piece(self._call.screen.paint(new, Colour.DIM) if line.startswith(_DIM) else new)


def _show_message(call: CommandCall, one: MessageLine) -> None:
    mine = one.sender == _PERSON
    head = f"{'you' if mine else sanitize(one.sender_name)}, {clock(one.sent_at)}"
    call.out(call.screen.paint(head, Colour.GREEN if mine else Colour.CYAN))
    for line in sanitize_lines(one.text):
        call.out(f"  {line}")
