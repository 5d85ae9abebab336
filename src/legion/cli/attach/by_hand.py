"""`legion attach new`, `checkout` and `push`: work with an agent by hand, and take its work into your repository."""

from __future__ import annotations

import os

import click

from legion.cli.attach.relay import AttachTarget, opened, refuse_elsewhere, sit_down
from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import ticket_argument
from legion.cli.base.texts import read_text
from legion.wire.terminal import NewByHand, OfferWork


@command(
    "new",
    example="legion attach new 'Tidy the parser'\nlegion attach new try-it --program 'aider --model sonnet' --detach",
)
@click.argument("name", metavar="NAME")
@click.option("--prompt", default="", metavar="TEXT", help="The first message to the agent; - reads it from stdin.")
@click.option("--branch", default="", metavar="B", help="Start with the files of this branch of yours.")
@click.option("--profile", default="", metavar="P", help="One of your [drivers.NAME]; Claude Code if left out.")
@click.option("--program", default="", metavar="CMD", help="Any interactive program instead.")
@click.option("--model", default="", metavar="M", help="The model the agent should use.")
@click.option("-y", "accepts", is_flag=True, help="Accept what the program's description names; each is recorded.")
@click.option("--detach", is_flag=True, help="Do not attach to it now.")
def new(call: CommandCall, name: str, prompt: str, accepts: bool, detach: bool, **chosen: str) -> int:
    """Open an agent in a worktree of its own, and work with it in your terminal; Ctrl-Q leaves it running.

    Nothing is checked until `legion agents submit N`. `legion pause N` saves its tree and ends the program, and
    `legion resume N` continues the conversation.
    """
    if not detach:
        refuse_elsewhere()
    wanted = NewByHand(
        cwd=call.cwd,
        name=name,
        prompt=read_text(prompt, "--prompt"),
        accepts=accepts,
        **chosen,
        request=os.urandom(16).hex(),
    )
    made = call.legion().new_by_hand(wanted)
    (ticket,) = made.ids
    if detach:
        call.answer(made, lambda: [f"Ticket {ticket} opens: `legion attach {ticket}`."])
        call.notes(made.notes)
        return 0
    call.notes(made.notes)
    return sit_down(call, ticket, opened(call, AttachTarget.of_ticket(ticket), only_looks=False), only_looks=False)


@command("checkout", example="legion checkout 12\nlegion checkout 12 --branch try-it")
@ticket_argument
@click.option("--branch", default="", metavar="B", help="The name of the new branch.")
def checkout(call: CommandCall, id: int, branch: str) -> None:
    """A ticket's work as a new branch in your repository. Your own branches and files stay as they are."""
    call.report(call.legion().checkout(id, OfferWork(branch=branch)))


@command("push", example="legion checkout push 12\nlegion checkout push 12 --remote fork")
@ticket_argument
@click.option("--remote", default="", metavar="R", help="One of your remotes; origin if left out.")
@click.option("--branch", default="", metavar="B", help="The name of the new branch.")
def push(call: CommandCall, id: int, remote: str, branch: str) -> None:
    """Push a ticket's work to your remote, as a new branch and without force."""
    call.report(call.legion().push(id, OfferWork(remote=remote, branch=branch)))
