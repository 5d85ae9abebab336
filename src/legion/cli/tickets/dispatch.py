"""`legion dispatch`: tickets from words or from a plan file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import harmless
from legion.cli.base.parameters import TICKETS, drivers, files, teams
from legion.cli.base.texts import checked, decoded, given_text, read_stdin, short_title
from legion.cli.tickets.plan_file import MOST_ATTEMPTS, read_plan
from legion.wire.errors import BadInput, NotFound
from legion.wire.tickets import Dispatch, Dispatched, NewTicket

_EXAMPLE = """\
legion dispatch -t 'Add /login' -c 'Sessions live in app/auth.py' -k 'make test passes' 'A page to log in.'
legion dispatch --from plan.toml"""


@command("dispatch", example=_EXAMPLE)
@click.argument("text", required=False)
@click.option("-t", "--title", help="One line; the first 40 letters of TEXT if left out.")
@click.option("-c", "--context", default="", help="What the agent should know: where to look, what was decided.")
@click.option(
    "-k", "--criteria", default="", help="When it is done, in words that can be checked; one criterion per line."
)
@click.option("-p", "--plan", default="", help="How to go about it, if you know.")
@click.option(
    "--after", multiple=True, metavar="N,N", type=TICKETS, help="Tickets that must have landed before it starts."
)
@click.option("--files", multiple=True, metavar="GLOB", help="Protected files it may touch; may be given again.")
@click.option(
    "--prove",
    multiple=True,
    metavar="COMMAND",
    help="A command that must pass on its change; may be given again. 'CRITERION :: COMMAND' binds it to a line of -k.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="NAME",
    help="Held-out acceptance of your config that it has to pass; may be given again.",
)
@click.option("--checkpoint", is_flag=True, help="No agent: only run the checks on what its --after landed.")
@click.option("--epic", default="", metavar="NAME", help="Follow it together with others of this name.")
@click.option(
    "--priority", type=click.IntRange(-1000, 1000), default=0, metavar="N", help="Higher starts first; 0 if left out."
)
@click.option(
    "--driver",
    default="",
    metavar="NAME",
    shell_complete=drivers,
    help="Which kind of agent program, as named in your config.",
)
@click.option(
    "--team", default="", metavar="NAME", shell_complete=teams, help="Who works on it: see `legion team list`."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="A label, which may have a ladder of models in your config; may be given again.",
)
@click.option("--command", default="", metavar="CMD", help="Any program as the agent, for this ticket.")
@click.option("--model", default="", metavar="M", help="The model the agent should use.")
@click.option(
    "--max-attempts", type=click.IntRange(1, MOST_ATTEMPTS), metavar="N", help="How often it may be tried in all."
)
@click.option("--ask", is_flag=True, help="Its agent may ask you for what it is not allowed to do: `legion inbox`.")
@click.option("--plan-first", is_flag=True, help="Its agent only reads until you approve its plan: `legion approve`.")
@click.option("--budget", type=float, metavar="USD", help="Dollars that all its runs may cost together.")
@click.option(
    "--review",
    type=click.Choice(["off", "risky", "always"]),
    help="Whether an independent reviewer reads its change; as the project says if left out.",
)
@click.option(
    "--from",
    "plan_file",
    metavar="FILE",
    shell_complete=files,
    help="A TOML file with many tickets, all or none; - is stdin.",
)
def dispatch(
    call: CommandCall, plan_file: str | None, text: str | None, after: tuple[list[int], ...], **told: object
) -> None:
    """Create a ticket, or many from a plan file.

    TEXT says what you want; - reads it from stdin. Prints one line `Ticket ID: N` per ticket.
    A text that starts with a dash goes behind --.
    """
    if plan_file is not None:
        if text is not None or after or any(told.values()):
            raise BadInput("--from takes everything from the plan file; leave TEXT and the other options out.")
        tickets = read_plan(_plan_text(plan_file), "The plan" if plan_file == "-" else plan_file)
    else:
        tickets = [one_ticket(text, after, told)]
    wanted = Dispatch(cwd=call.cwd, tickets=tickets, request=os.urandom(16).hex())
    made = call.legion().dispatch(wanted)
    tell(call, made, tip=plan_file is None and not (told["context"] or told["criteria"]))


def tell(call: CommandCall, made: Dispatched, *, tip: bool) -> None:
    """What a person should know of the new tickets; a tip is for those who sit at a terminal."""
    call.answer(made, lambda: [f"Ticket ID: {id}" for id in made.ids])
    for note in made.notes:
        call.say(f"Note: {harmless(note)}")
    if tip and call.screen.tty and not call.json:
        call.say("Tip: -c says what the agent should know, -k when it is done; both make a good change likelier.")


def one_ticket(text: str | None, after: tuple[list[int], ...], told: dict[str, object]) -> NewTicket:
    title = told.pop("title")
    told["review"] = told["review"] or ""
    if text is None and not title:
        raise BadInput("Say what you want: legion dispatch -t TITLE TEXT, or --from FILE for many tickets.")
    body = given_text(text, "TEXT") if text is not None else ""
    for name, value in told.items():
        for word in value if isinstance(value, tuple) else [value]:
            if isinstance(word, str):
                checked(word, f"--{name}")
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
    return NewTicket(
        title=checked(str(title), "--title") if title else short_title(body),
        text=body,
        after=list(dict.fromkeys(id for ids in after for id in ids)),
        **fields,  # type: ignore[arg-type]  # click has already made each what its option says
    )


def _plan_text(name: str) -> str:
    if name == "-":
        return checked(read_stdin("The plan"), "The plan")
    try:
        return checked(decoded(Path(name).read_bytes(), name), name)
    except FileNotFoundError:
        raise NotFound(f"There is no file {name}; name the plan file that you mean.") from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a folder; name a plan file inside it.") from None
