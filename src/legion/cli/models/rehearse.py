"""`legion plan rehearse`: runs a plan or a cassette with scripted replies."""

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
from legion.wire.errors import BadInput
from legion.wire.plans import ApprovePlan
from legion.wire.text import plan_number

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
