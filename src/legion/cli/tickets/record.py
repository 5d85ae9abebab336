"""`legion plan record`: records the model's answers in runs and writes a cassette that can be replayed for free."""

from __future__ import annotations

from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.wire.errors import BadInput, NotAllowed
from legion.wire.ticket_pages import Cassette
from legion.wire.tickets import SetRecording

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
