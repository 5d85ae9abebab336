"""Lists, shows, adds and removes drivers and the agent programs behind them."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import fields
from pathlib import Path

from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.drivers import registry
from legion.drivers.profile import Capabilities, DriverProfile, ProgramUnusable
from legion.drivers.programs import catalog
from legion.drivers.programs.description import ProgramDescription, described, merged, parse
from legion.jobs.board import Board
from legion.store.board import tickets
from legion.system import files
from legion.wire.projects import Done
from legion.wire.providers import AddDriver, DriverLine, DriverPage, Drivers, TrialCalls

_CLAUDE_TRIAL = TrialCalls(
    command_tool="Bash",
    command_input='{"command": "{command}"}',
    edit_tool="Write",
    edit_input='{"file_path": "{path}", "content": "{content}"}',
)


def listed(context: Board) -> Drivers:
    """Claude Code, the described programs, and the command lines of the person's settings."""
    there = catalog.programs()
    lines = [_own_code(registry.default())]
    lines += [_line(there, program) for program in there.found.values()]
    lines += [_broken(name, fault) for name, fault in there.faults.items()]
    lines += [
        DriverLine(
            name=one.name,
            title=" ".join(one.argv),
            kind=one.driver,
            origin="settings",
            tried=False,
            found=shutil.which(one.argv[0]) is not None,
            can=[],
        )
        for one in context.user.drivers.values()
    ]
    return Drivers(drivers=lines, folder=str(catalog.own_folder()))


def shown(context: Board, name: str) -> DriverPage:
    """Raises NotFound for an unknown name."""
    line = next((one for one in listed(context).drivers if one.name == name), None)
    if line is None:
        known = ", ".join(one.name for one in listed(context).drivers)
        raise NotFound(f"There is no driver {name}: known are {known}. `legion driver add {name}` adds one.")
    there = catalog.programs()
    profile, program = registry.find(name), there.found.get(name)
    page = DriverPage(driver=line, trial=_CLAUDE_TRIAL, permissions=profile is registry.default())
    if program is not None and line.origin != "settings":
        page = _described(page, program, there.own.get(name))
    if profile is None or line.origin == "settings":
        return page
    try:
        found = profile.find_program(context.user.claude.program if profile is registry.default() else "")
    except ProgramUnusable as unusable:
        line.fault, line.found = str(unusable), False
        return page
    page.path, page.version, line.found = str(found.path), found.version, True
    return page


def add(context: Board, wanted: AddDriver) -> Done:
    """Write the person's own description of a program, once it was read without a fault."""
    name = wanted.name
    if not catalog.NAME.fullmatch(name):
        raise BadInput("A driver is named with small letters, digits and dashes: choose another name.")
    if name in registry.PROFILES or name in context.user.drivers:
        raise BadInput(f"The name {name} is taken by a driver that no file describes: choose another name.")
    table = parse(wanted.text, name, f"{name}.toml")
    program = described(name, merged(catalog.shipped().get(name, {}), table), f"{name}.toml")
    folder = catalog.own_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{name}.toml"
    files.write_atomic(path, wanted.text)
    missing = shutil.which(str(Path(program.program.run[0]).expanduser())) is None
    notes = [f"{program.program.run[0]} is not on the daemon's PATH yet: install {program.title}."] if missing else []
    notes += [
        f"Agents do not see {word}: add its folder to `read` in [sandbox] of your settings, or install it below /usr."
        for word in program.program.run[1:]
        if _is_hidden_file(context, word)
    ]
    return Done(message=f"The driver {name} is described in {path}.", notes=notes)


def remove(context: Board, name: str) -> Done:
    """Rename the person's own description, so that it has no effect."""
    there = catalog.programs()
    path, is_shipped = there.own.get(name), name in catalog.shipped()
    if path is None:
        line = shown(context, name).driver
        if line.origin == "settings":
            raise BadInput(f"{name} is in your settings: remove [drivers.{name}] from {context.user.origin}.")
        raise BadInput(f"{name} comes with Legion: only a description of your own can be removed.")
    setting = next((key for key, named in context.user.named_drivers() if named == name), "")
    if setting and not is_shipped and name not in context.user.drivers:
        raise StateConflict(f"`{setting}` of your settings names {name}: change that first.")
    with context.store.read() as tx:
        waiting = [one.id for one in tickets.live(tx) if one.spec.driver == name and not is_shipped]
    kept = path.with_name(f"{path.name}.removed")
    path.replace(kept)
    result = f"{name} is as Legion ships it again" if is_shipped else f"The driver {name} is removed"
    return Done(
        message=f"{result}; `legion driver add {name} --file {shlex.quote(str(kept))}` brings it back.",
        notes=[f"Ticket {one} names it, and waits until there is a driver of that name again." for one in waiting],
    )


def _is_hidden_file(context: Board, word: str) -> bool:
    """Whether a word of the command line is a file that the sandbox does not show."""
    place = Path(word).expanduser()
    shown = (Path("/usr"), Path("/bin"), *context.user.sandbox.read, *context.user.sandbox.write)
    return place.is_absolute() and place.is_file() and not any(place.is_relative_to(one) for one in shown)


def _own_code(profile: DriverProfile) -> DriverLine:
    return DriverLine(
        name=profile.name,
        title=profile.title,
        kind=profile.name,
        origin="built in",
        tried=True,
        found=True,
        can=_abilities(profile.capabilities),
    )


def _line(there: catalog.Programs, program: ProgramDescription) -> DriverLine:
    profile = registry.find(program.name)
    assert profile is not None, "the catalog has it"
    return DriverLine(
        name=program.name,
        title=program.title,
        kind=program.driver.value,
        origin="yours" if program.name in there.own else "shipped",
        tried=program.tried,
        found=shutil.which(str(Path(program.program.run[0]).expanduser())) is not None,
        can=_abilities(profile.capabilities),
        note=program.note,
    )


def _broken(name: str, fault: str) -> DriverLine:
    return DriverLine(name=name, title=name, kind="", origin="yours", tried=False, found=False, can=[], fault=fault)


def _described(page: DriverPage, program: ProgramDescription, own: Path | None) -> DriverPage:
    page.run = list(program.program.run)
    page.least, page.install = program.program.least, program.program.install
    page.model, page.api = program.model.default, program.model.api
    page.conversations, page.instructions = list(program.conversations), list(program.instructions)
    page.file = "" if own is None else str(own)
    page.permissions = program.can.permissions
    trial = program.trial
    page.trial = TrialCalls(
        command_tool=trial.command_tool,
        command_input=trial.command_input,
        edit_tool=trial.edit_tool,
        edit_input=trial.edit_input,
        end_tool=trial.end_tool,
        end_input=trial.end_input,
    )
    return page


def _abilities(can: Capabilities) -> list[str]:
    return [one.name for one in fields(can) if getattr(can, one.name)]
