"""`legion attach shell N`: a shell in a ticket's worktree."""

from __future__ import annotations

import os

from legion.cli.attach.relay import LOST, refuse_elsewhere
from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import ticket_argument
from legion.client.terminal import How, relay, window_size
from legion.wire.terminal import OpenShell


@command("shell", example="legion attach shell 12")
@ticket_argument
def shell(call: CommandCall, id: int) -> int:
    """A shell in a ticket's worktree, inside its sandbox.

    It sees what the ticket's agent sees. Ends with the exit code of the shell. A ticket whose worktree is gone is
    refused.
    """
    refuse_elsewhere()
    size = window_size(1)
    wanted = OpenShell(columns=size.columns, rows=size.rows, term=os.environ.get("TERM", ""))
    opened = call.legion().shell(id, wanted)
    # Ctrl-Q is the shell's own key here: there is nothing to return to.
    left = relay(opened.socket, message=opened.message, leaves=False)
    if left.how is How.ENDED and left.end is not None:
        return left.end.exit_code if left.end.exit_code is not None else LOST
    call.say("The shell is gone: its runner was killed.")
    return LOST
