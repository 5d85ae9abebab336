"""`legion plan rehearse` and `plan record`: scripted replies for a plan or a cassette, and cassettes of real runs."""

from __future__ import annotations

import importlib
import random
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.tickets.plan_file import read_plan, tickets_of
from legion.wire.dispatch import NewTicket
from legion.wire.errors import BadInput, NotAllowed
from legion.wire.plans import ApprovePlan
from legion.wire.text import plan_number
from legion.wire.ticket_pages import Cassette
from legion.wire.tickets import SetRecording

MOST_AGENTS = 64


@dataclass(frozen=True, kw_only=True)
class Played:
    """The ticket of a cassette and the commit it starts from."""

    tickets: list[NewTicket]
    base: str


def read_cassette(text: str, file: Path) -> Played | None:
    """None for a plan or for invalid TOML, which `read_plan` reports."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    table = document.get("ticket")
    if "step" not in document or not isinstance(table, dict):
        return None
    base = table.pop("base", "")
    if not isinstance(base, str) or not re.fullmatch(r"([0-9a-f]{40,64})?", base):
        raise BadInput(f"{file}: `base` must be a commit.")
    return Played(tickets=tickets_of([table], str(file)), base=base)


@command("rehearse", example="legion plan rehearse P3\nlegion plan rehearse plan.toml --agents 2 --chaos --seed 7")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--chaos", is_flag=True, help="Kill processes, hit limits and break connections at random.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    help="The seed of --chaos; the one that an earlier rehearsal printed repeats its faults.",
)
@click.option(
    "--agents",
    type=click.IntRange(1, MOST_AGENTS),
    metavar="N",
    help="At most N agents at once, within the project's own limit.",
)
@click.option("--keep", is_flag=True, help="Keep the copy and all its data for inspection.")
def rehearse(call: CommandCall, plan: Path, chaos: bool, seed: int | None, agents: int | None, keep: bool) -> int:
    """Run a plan with scripted replies, on a copy of your repository: nothing is spent.

    PLAN is a plan like P3, or a file as for `legion dispatch --from`: the real Claude Code works on each ticket, with
    a scripted model that makes a small change without meaning. Or it is a cassette of `legion plan record`: its ticket
    is then repeated from the same commit. Your [setup] and your checks really run, so run `legion trust` first. Your
    repository and your board stay as they are. Ends with 0 if every ticket succeeded.
    """
    if seed is not None and not chaos:
        raise BadInput("--seed needs --chaos; add it, or remove --seed.")
    number = plan_number(str(plan))
    if number is not None:
        return _play(call, _planned(call, number), agents=agents, seed=seed, chaos=chaos, keep=keep)
    try:
        text = plan.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"{plan} cannot be read ({error.strerror}); pass a plan file.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{plan} is not UTF-8 text; convert it first.") from None
    played = read_cassette(text, plan)
    tickets = read_plan(text, str(plan)) if played is None else played.tickets
    cassette = None if played is None else (plan.absolute(), played.base)
    return _play(call, tickets, agents=agents, seed=seed, chaos=chaos, keep=keep, cassette=cassette)


def _planned(call: CommandCall, number: int) -> list[NewTicket]:
    """The tickets of a plan that are not approved yet, without those of the board that they come after."""
    made = call.legion().approve_plan(number, ApprovePlan(anyway=True, dry_run=True))
    return [replace(one, after=[]) for one in made.proposed]


def _play(
    call: CommandCall,
    tickets: list[NewTicket],
    *,
    agents: int | None,
    seed: int | None,
    chaos: bool,
    keep: bool,
    cassette: tuple[Path, str] | None = None,
) -> int:
    # By name: the command line itself depends on nothing that a rehearsal needs.
    room = importlib.import_module("legion.demo.rehearse")
    source = room.source(call.legion(), call.cwd)
    drawn = seed if seed is not None else random.randrange(10_000)
    wanted = room.RehearsalRequest(
        tickets=tickets, source=source, agents=agents, seed=drawn if chaos else None, keep=keep
    )
    if cassette is not None:
        wanted = replace(wanted, cassette=cassette[0], base=cassette[1])
    code = room.main(wanted, as_json=call.json, screen=call.screen)
    return code if isinstance(code, int) else 0


_EXAMPLE = """\
legion plan record on
legion plan record 7
legion plan record 7 -o tests/rehearsals/login.toml"""


@command("record", example=_EXAMPLE)
@click.argument("what", metavar="on|off|TICKET")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to write it.")
def record(call: CommandCall, what: str, output: Path | None) -> None:
    """Record runs, or write the cassette of one.

    `on` records the models' answers in runs that start from then on, `off` ends that. With the number of a ticket, the
    recording of its runs is written to FILE (default: ticket-N.toml here): a script that `legion plan rehearse` replays
    with the real agent, free and every time the same. It contains no key, no token and no path of your home.
    """
    if what in ("on", "off"):
        if output is not None:
            raise BadInput("-o needs a ticket, as in `legion plan record 7 -o FILE`.")
        done = call.legion().switch_recording(SetRecording(on=what == "on"))
        call.report(done)
        return
    if not what.isdigit():
        raise BadInput(f"{what!r} is neither on, off nor a ticket's number; see `legion plan record --help`.")
    file = output or Path(f"ticket-{what}.toml")
    if file.suffix != ".toml":
        raise BadInput(f"{file} must end with .toml; choose another name with -o.")
    found = call.legion().cassette(int(what), file.stem)
    _write(found, file.parent)
    call.answer(found, lambda: [f"Written: {file.parent / one.name}" for one in found.files])


def _write(found: Cassette, folder: Path) -> None:
    for one in found.files:
        try:
            with (folder / one.name).open("x", encoding="utf-8") as file:
                file.write(one.text)
        except FileExistsError:
            raise BadInput(f"{folder / one.name} exists already; choose another name with -o.") from None
        except OSError as fault:
            raise NotAllowed(
                f"{folder / one.name} cannot be written ({fault.strerror}); choose another file with -o."
            ) from None
