"""`legion rehearse`."""

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
from legion.wire.errors import BadInput
from legion.wire.tickets import NewTicket

MOST_AGENTS = 64


@dataclass(frozen=True, kw_only=True)
class Played:
    """What a cassette asks for."""

    tickets: list[NewTicket]
    base: str


def read_cassette(text: str, file: Path) -> Played | None:
    """None for a plan; what is wrong with one is said by whoever reads plans."""
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


@command("rehearse", example="legion rehearse plan.toml\nlegion rehearse plan.toml --agents 2 --chaos --seed 7")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--chaos", is_flag=True, help="Kill processes, meet limits and break connections on the way.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    help="Which chaos; the one that an earlier rehearsal named makes the same draws again.",
)
@click.option(
    "--agents",
    type=click.IntRange(1, MOST_AGENTS),
    metavar="N",
    help="At most so many agents at once, within the project's own limit.",
)
@click.option("--keep", is_flag=True, help="Leave the copy and all that happened there for a look.")
def rehearse(call: CommandCall, plan: Path, chaos: bool, seed: int | None, agents: int | None, keep: bool) -> int:
    """Play a plan through with scripted replies, on a copy of your repository: nothing is spent.

    PLAN is a file as for `legion dispatch --from`. Each ticket is worked on by the real Claude Code, whose model only
    plays along: it makes a small change of no meaning. Or it is a cassette of `legion record`, whose ticket is then
    worked on again as it was, from the same commit. Your [setup] and your checks run for real, so `legion trust` comes
    first. Your repository and your board stay as they are. Ends with 0 if every ticket ended well.
    """
    if seed is not None and not chaos:
        raise BadInput("--seed says which chaos, so it needs --chaos.")
    try:
        text = plan.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"{plan} cannot be read ({error.strerror}): name a plan file.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{plan} is not UTF-8 text: save it as such.") from None
    played = read_cassette(text, plan)
    tickets = read_plan(text, str(plan)) if played is None else played.tickets
    # By name: the command line itself depends on nothing that a rehearsal needs.
    room = importlib.import_module("legion.demo.rehearse")
    source = importlib.import_module("legion.demo.clone").source(call.legion(), call.cwd)
    drawn = seed if seed is not None else random.randrange(10_000)
    wanted = room.RehearsalRequest(
        tickets=tickets, source=source, agents=agents, seed=drawn if chaos else None, keep=keep
    )
    if played is not None:
        wanted = replace(wanted, cassette=plan.absolute(), base=played.base)
    code = room.main(wanted, as_json=call.json, screen=call.screen)
    return code if isinstance(code, int) else 0
