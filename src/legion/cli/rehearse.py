"""`legion rehearse`."""

from __future__ import annotations

import importlib
import random
from pathlib import Path

import click

from legion.cli.command import Call, command
from legion.cli.plan import read_plan
from legion.wire.errors import BadInput

MOST_AGENTS = 64


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
def rehearse(call: Call, plan: Path, chaos: bool, seed: int | None, agents: int | None, keep: bool) -> int:
    """Play a plan through with scripted replies, on a copy of your repository: nothing is spent.

    PLAN is a file as for `legion dispatch --from`. Each ticket is worked on by the real Claude Code, whose model only
    plays along: it makes a small change of no meaning. Your [setup] and your checks run for real, so `legion trust`
    comes first. Your repository and your board stay as they are. Ends with 0 if every ticket ended well.
    """
    if seed is not None and not chaos:
        raise BadInput("--seed says which chaos, so it needs --chaos.")
    try:
        text = plan.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"{plan} cannot be read ({error.strerror}): name a plan file.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{plan} is not UTF-8 text: save it as such.") from None
    tickets = read_plan(text, str(plan))
    # By name: the command line itself depends on nothing that a rehearsal needs.
    room = importlib.import_module("legion.demo.rehearse")
    source = importlib.import_module("legion.demo.clone").source(call.legion(), call.cwd)
    drawn = seed if seed is not None else random.randrange(10_000)
    wanted = room.Wanted(tickets=tickets, source=source, agents=agents, seed=drawn if chaos else None, keep=keep)
    code = room.main(wanted, as_json=call.json, screen=call.screen)
    return code if isinstance(code, int) else 0
