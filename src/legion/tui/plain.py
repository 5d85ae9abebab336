"""The places as plain lines: for screen readers and dull terminals, and for the moment before the screen is drawn.

`legion tui --plain` prints the board and then reads commands, one per line. It prints nothing by itself in between.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from legion.client.legion import Legion
from legion.client.text.terminal import Colour, sanitize, sanitize_lines
from legion.tui.actions import TICKET_ACTIONS
from legion.tui.link.connection import Phase
from legion.tui.views import agents, board, diff, inbox, queue, ticket, usage
from legion.tui.views.rows import Row
from legion.tui.views.status_line import next_step, status_line
from legion.wire.errors import BadInput, LegionError
from legion.wire.mail import NewMessage, ReadMail
from legion.wire.projects import Status
from legion.wire.questions import AnswerQuestion, MessageText
from legion.wire.tickets import Action

WIDTH = 400
"""No line is cut: a screen reader would lose the reason. A terminal wraps what is longer than it is wide."""
_CUTS = ("day", "ticket", "agent", "model", "epic")
_COMMANDS_AS_KEYS = {
    "inbox": "inbox", "retry": "retry N", "drop": "drop N", "undo": "undo N", "message": "tell N TEXT",
    "interrupt": "interrupt N", "stop": "stop N", "new_ticket": "legion dispatch", "collect": "legion collect",
    "pause_project": "legion resume", "yes": "answer N yes:", "no": "answer N no:", "answer": "answer N TEXT:",
    "hire": "legion agents hire", "init": "legion init", "plans": "legion plan list", "review": "review N",
    "land": "land N",
}  # fmt: skip
"""The views name keys; here they name the line to type."""


def first_lines(status: Status, columns: int) -> list[str]:
    """The project, the counts and the tickets, with colours: painted before Textual is there."""
    rows = [status_line(status, None, columns), Row(()), *board.listed(status.tickets, columns)]
    return [painted(row) for row in rows]


def painted(row: Row) -> str:
    return "".join(
        f"\x1b[{cell.colour.value}m{cell.text}\x1b[0m" if cell.colour is not Colour.NONE else cell.text
        for cell in row.cells
    )


def plain_lines(rows: Iterable[Row]) -> list[str]:
    return [row.text for row in rows]


@dataclass(frozen=True)
class PlainCommand:
    usage: str
    help: str
    run: Callable[[Legion, str, list[str]], Iterable[str]]
    """Gets the daemon, the folder, and the words behind the command."""


def run_plain(legion: Legion, cwd: str) -> int:
    """Read commands until the end of the input."""
    interactive = sys.stdin.isatty()
    _print(COMMANDS["board"].run(legion, cwd, []))
    if interactive:
        _print(["", "Type a command; help lists them, quit leaves."])
    while True:
        if interactive:
            sys.stdout.write("> ")
            sys.stdout.flush()
        line = sys.stdin.readline()
        words = line.split()
        if not line or words[:1] in (["quit"], ["q"]):
            return 0
        if words:
            try:
                _print(answer_to(legion, cwd, words))
            except LegionError as error:
                _print([sanitize(error.message)])


def answer_to(legion: Legion, cwd: str, words: list[str]) -> list[str]:
    """The lines that a command prints."""
    command = COMMANDS.get(words[0])
    if command is None:
        raise BadInput(f"There is no command `{sanitize(words[0])[:40]}` here; `help` lists them.")
    return list(command.run(legion, cwd, words[1:]))


def _print(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _help(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    width = max(len(one.usage) for one in COMMANDS.values())
    return [f"{one.usage:<{width}}  {one.help}" for one in COMMANDS.values()] + [f"{'quit':<{width}}  Leave."]


def _board(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    status = legion.status(cwd)
    shown = board.shown(status.tickets, " ".join(words))
    step = next_step(status, Phase.LIVE, "", _COMMANDS_AS_KEYS)
    rows = [status_line(status, None, WIDTH), *([step] if step is not None else []), *board.listed(shown, WIDTH)]
    return plain_lines(rows)


def _tree(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return plain_lines(board.tree(legion.graph(cwd), WIDTH, " ".join(words)))


def _inbox(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return plain_lines(inbox.rows(legion.inbox(), None, WIDTH, time.time(), _COMMANDS_AS_KEYS))


def _ticket(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    page = legion.ticket(_number(words))
    rows = [
        *ticket.head_rows(page.ticket, WIDTH),
        *ticket.next_rows(page, _COMMANDS_AS_KEYS, WIDTH),
        *ticket.about_rows(page, WIDTH),
        *ticket.receipt_rows(page, WIDTH),
        *ticket.review_rows(page, _COMMANDS_AS_KEYS, WIDTH),
    ]
    return plain_lines(rows)


def _log(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    id, lines, offset = _number(words), "", 0
    while (piece := legion.log(id, None, offset)).text:
        lines, offset = (lines + piece.text)[-20_000:], piece.next_offset
    return sanitize_lines(lines)[-40:]


def _diff(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return plain_lines(diff.rows(diff.parse(legion.diff(_number(words)).text), WIDTH, (), {}))


def _history(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return plain_lines(ticket.history_rows(legion.history(cwd, ticket=_number(words), last=40), WIDTH))


def _agents(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    rows = agents.tree_rows(legion.agents(), WIDTH, _COMMANDS_AS_KEYS["hire"])
    return plain_lines([*rows, Row(()), *agents.mail_rows(legion.mail(ReadMail(all=True)), WIDTH)])


def _queue(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return plain_lines(queue.rows(legion.status(cwd), legion.history(cwd, last=100), WIDTH))


def _usage(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    by = words[0] if words else _CUTS[0]
    return plain_lines(usage.rows(legion.usage(cwd, by), legion.providers(), WIDTH, _CUTS))


def _tell(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    """To a ticket's agent by number, to a standing agent by name."""
    to, text = words[0] if words else "", " ".join(words[1:])
    if not text:
        raise BadInput("Write it like: tell 12 Use the local copy.")
    if to.removeprefix("#").isdecimal():
        return [sanitize(legion.tell(_number(words), MessageText(text=text)).message)]
    return [sanitize(legion.tell_agent(NewMessage(to=to, text=text)).message)]


def _answer(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    id = _number(words)
    if len(words) < 2:
        raise BadInput("Write it like: answer 3 yes.")
    question = next((one for one in legion.inbox().questions if one.id == id), None)
    if question is not None and not question.choices:
        given = AnswerQuestion(choice=" ".join(words[1:]))
    else:
        given = AnswerQuestion(choice=words[1], why=" ".join(words[2:]))
    return [sanitize(legion.answer(id, given).message)]


def _retry(legion: Legion, cwd: str, words: list[str]) -> Iterable[str]:
    return [sanitize(legion.retry(_number(words), Action(feedback=" ".join(words[1:]))).message)]


def _number(words: list[str]) -> int:
    digits = words[0].removeprefix("#") if words else ""
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise BadInput("Add the number of a ticket, such as 12.")
    return int(digits)


def _performing(name: str) -> Callable[[Legion, str, list[str]], Iterable[str]]:
    return lambda legion, cwd, words: [sanitize(TICKET_ACTIONS[name].perform(legion, _number(words)))]


COMMANDS = {
    "board": PlainCommand("board [FILTER]", "All tickets, or those with these words.", _board),
    "tree": PlainCommand("tree [FILTER]", "Tickets below those that they wait for.", _tree),
    "inbox": PlainCommand("inbox", "Questions that wait for you.", _inbox),
    "answer": PlainCommand("answer N CHOICE [TEXT]", "Answer a question.", _answer),
    "ticket": PlainCommand("ticket N", "Everything about one ticket.", _ticket),
    "log": PlainCommand("log N", "The last lines of its agent.", _log),
    "diff": PlainCommand("diff N", "Its change.", _diff),
    "history": PlainCommand("history N", "What happened to it.", _history),
    "agents": PlainCommand("agents", "Standing agents, and your mail.", _agents),
    "queue": PlainCommand("queue", "The merge queue.", _queue),
    "usage": PlainCommand("usage [day|ticket|agent|model|epic]", "Spending and limits.", _usage),
    "tell": PlainCommand("tell N|AGENT TEXT", "Send a message.", _tell),
    "retry": PlainCommand("retry N [FEEDBACK]", "Try it again.", _retry),
    **{
        name: PlainCommand(f"{name} N", text, _performing(name))
        for name, text in (
            ("stop", "Stop it; its work is kept."),
            ("pause", "Pause it."),
            ("resume", "Resume it."),
            ("interrupt", "Interrupt its agent and pause it."),
            ("review", "Have its change reviewed."),
            ("land", "Land its change, where it waits for you."),
            ("undo", "Revert it by a new ticket."),
            ("drop", "Remove it from the board."),
        )
    },
    "help": PlainCommand("help", "This list.", _help),
}
