"""`legion spawn`, `cleanup` and `sessions`: the commands of claude-orchestra."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.texts import short_title
from legion.cli.conversations.listing import conversation_rows, hours_of, mention_index
from legion.wire.conversations import ConversationLine
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import SetNumbers, Where

_WAIT = 2.0


@command("spawn", example="legion spawn 'Add a login form' 'Fix the typo in the README' -p 2")
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@click.option("-p", "--parallel", type=click.IntRange(1, 1024), help="So many agents may work at once in this project.")
def spawn(call: CommandCall, tasks: tuple[str, ...], parallel: int | None) -> None:
    """Create a ticket for each task; those that find no free place wait in the queue.

    -p sets the number of workers of the project, as `legion config workers N` does.
    """
    new = [NewTicket(title=short_title(task), text=task) for task in tasks]
    if parallel is not None:
        call.legion().set_numbers(SetNumbers(cwd=call.cwd, workers=parallel))
    made = call.legion().dispatch(Dispatch(cwd=call.cwd, tickets=new))
    call.answer(
        made, lambda: [f"Ticket ID: {id}  {sanitize(one.title)}" for id, one in zip(made.ids, new, strict=True)]
    )
    call.notes(made.notes)


@command("cleanup", example="legion cleanup\nlegion cleanup --all")
@click.option("--all", "everything", is_flag=True, help="Stop the open tickets first.")
def cleanup(call: CommandCall, everything: bool) -> None:
    """Remove ended tickets from the board; their worktrees go to the trash, and what landed stays landed.

    No branch and no work is deleted. With --all, a ticket whose agent is still stopping stays for the next cleanup.
    """
    if everything:
        call.say(sanitize(call.legion().stop_all(Where(cwd=call.cwd)).message))
    call.report(call.legion().drop_ended(Where(cwd=call.cwd)))


@command("sessions", example="legion sessions\nlegion sessions --hours 24 --json")
@click.option("--hours", type=hours_of, default=4.0, show_default=True, help="Only those of so many hours.")
def sessions(call: CommandCall, hours: float) -> None:
    """Another name for `legion conversations`; --json prints a list as claude-orchestra does.

    Runs of Legion's own are left out of that list.
    """
    found = call.legion().conversations(hours, _WAIT)
    call.answer(
        [_session(line) for line in found.conversations if line.program != "legion"],
        lambda: call.screen.rows(conversation_rows(found, call.screen.columns)),
    )
    mention_index(call, found.index)


def _session(line: ConversationLine) -> dict[str, object]:
    return {
        "session_id": line.id,
        "project_path": line.project,
        "modified_at": datetime.fromtimestamp(line.modified_at, UTC).isoformat(),
        "message_count": line.messages,
        "last_prompt": line.last_prompt,
    }
