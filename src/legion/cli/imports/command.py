"""`legion import`: brings work, roles and providers of other tools along, and shows settings and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize
from legion.cli.base.parameters import files
from legion.cli.base.texts import valid_text
from legion.cli.imports import sources
from legion.cli.imports.findings import Findings, FoundTicket
from legion.client.legion import Legion
from legion.wire.dispatch import (
    ImportedTicket,
    ImportLine,
    ImportReport,
    ImportSource,
    ImportTicket,
    ImportTickets,
    NewTicket,
)
from legion.wire.errors import LegionError, NotFound
from legion.wire.providers import AddProvider
from legion.wire.teams import SaveDefinition

_EXAMPLE = """\
legion import --dry-run
legion import claude-squad
legion import TODO.md --start
legion import issues.json"""


@command("import", example=_EXAMPLE)
@click.argument("source", required=False, shell_complete=files)
@click.argument("file", metavar="[FILE]", required=False, shell_complete=files)
@click.option("--dry-run", is_flag=True, help="Show what becomes what; change nothing.")
@click.option("--start", is_flag=True, help="Start imported tickets; else each waits for `legion resume N`.")
def import_command(call: CommandCall, source: str | None, file: str | None, dry_run: bool, start: bool) -> int:
    """Bring work of other tools along: tickets, roles, teams, providers.

    SOURCE is a file, a folder, - for stdin, or a tool: legion_cc, claude-coordinator, claude-orchestra, claude-squad,
    beads, agent-teams, claude-agents, auto-claude, with a FILE of it where that is in no usual place. Without it,
    everything that belongs to this project is imported. Markdown lists, CSV files and what
    `gh issue list --json number,title,body,labels,url` prints are read, too.

    The source is only read. What was imported before stays as it is. Ends with 6 if a file could not be read.
    """
    at = sources.surroundings(Path.home(), Path(call.here))
    match source:
        case None:
            search = sources.everything(at)
        case "-" if file is None:
            search = sources.from_stdin(at)
        case _ if file is not None:
            search = sources.named_with_path(valid_text(source, "SOURCE"), valid_text(file, "FILE"), at)
        case _:
            search = sources.named(valid_text(source, "SOURCE"), at)
    legion = call.legion()
    if not search.found and not search.faults:
        raise NotFound("There is nothing to import here. Pass a file or a tool: `legion import --help` names them.")
    report = ImportReport(
        dry_run=dry_run,
        sources=[_brought(legion, call.cwd, one, dry_run=dry_run, start=start) for one in search.found],
        faults=search.faults,
        also_there=search.unnamed,
    )
    call.answer(report, lambda: _lines(report, call.screen))
    if not call.json:
        _say_next(call, report, start=start)
    return 6 if search.faults else 0


def _brought(legion: Legion, cwd: str, found: Findings, *, dry_run: bool, start: bool) -> ImportSource:
    # In this order: a ticket may name a team that comes along with it.
    lines = [
        *_definitions(legion, cwd, found, dry_run=dry_run),
        *_tickets(legion, cwd, found, dry_run=dry_run, start=start),
        *_providers(legion, found, dry_run=dry_run),
    ]
    lines += [ImportLine(what=one.origin, kind="machine", becomes=one.command) for one in found.machines]
    for one in found.settings:
        table = f"[{one.table}] " if one.table else ""
        lines.append(ImportLine(what=one.origin, kind="setting", becomes=f"{one.file}: {table}{one.line}"))
    lines += [ImportLine(what=one.what, kind="left out", becomes="", note=one.why) for one in found.left_out]
    return ImportSource(tool=found.tool, place=found.place, lines=lines)


def _tickets(legion: Legion, cwd: str, found: Findings, *, dry_run: bool, start: bool) -> Iterator[ImportLine]:
    if not found.tickets:
        return
    teams = {one.name for one in legion.teams(cwd).teams}
    if dry_run:
        teams |= {one.name for one in found.definitions if one.kind == "team"}
    wanted = ImportTickets(
        cwd=cwd,
        tool=found.tool,
        source=found.source,
        tickets=[_ticket(one, teams) for one in found.tickets],
        start=start,
        dry_run=dry_run,
    )
    made = {one.origin: one for one in legion.import_tickets(wanted).tickets}
    for one in found.tickets:
        answer = made[one.origin]
        unknown = f"its team {one.team} is unknown here" if one.team and one.team not in teams else ""
        note = "; ".join(part for part in (answer.note or _folder_note(one, answer), unknown) if part)
        yield ImportLine(
            what=f"{one.origin} {one.title}" if one.origin != one.title else one.title,
            kind="ticket",
            becomes=f"ticket {answer.id}" if answer.id is not None else "a ticket",
            new=answer.new,
            note=note if answer.new else "is there already",
        )


def _folder_note(one: FoundTicket, answer: ImportedTicket) -> str:
    place = one.folder or (f"branch {one.branch}, if that exists" if one.branch else "")
    return f"starts from the work in {place}" if place and answer.id is None else ""


def _ticket(one: FoundTicket, teams: set[str]) -> ImportTicket:
    new = NewTicket(
        title=one.title,
        text=one.text,
        context=one.context,
        criteria=one.criteria,
        plan=one.plan,
        epic=one.epic,
        priority=one.priority,
        labels=list(one.labels),
        model=one.model,
        team=one.team if one.team in teams else "",
        checkpoint=one.checkpoint,
    )
    return ImportTicket(origin=one.origin, ticket=new, after=list(one.after), folder=one.folder, branch=one.branch)


def _definitions(legion: Legion, cwd: str, found: Findings, *, dry_run: bool) -> Iterator[ImportLine]:
    if not found.definitions:
        return
    there = {("role", one.name): one for one in legion.roles(cwd).roles}
    also = {("team", one.name): one for one in legion.teams(cwd).teams}
    for one in found.definitions:
        line = ImportLine(what=f"{one.kind} {one.name}", kind=one.kind, becomes=f"your {one.kind} {one.name}", new=True)
        if (one.kind, one.name) in there or (one.kind, one.name) in also:
            yield replace(line, new=False, note="is there already")
            continue
        if not dry_run:
            save = legion.save_role if one.kind == "role" else legion.save_team
            try:
                save(SaveDefinition(cwd=cwd, name=one.name, text=one.text, new=True))
            except LegionError as refused:
                yield replace(line, kind="left out", becomes="", new=False, note=refused.message)
                continue
        yield line


def _providers(legion: Legion, found: Findings, *, dry_run: bool) -> Iterator[ImportLine]:
    if not found.providers:
        return
    there = {one.name for one in legion.providers().providers}
    for one in found.providers:
        line = ImportLine(what=f"provider {one.name}", kind="provider", becomes=f"provider {one.name}", new=True)
        if one.name in there:
            yield replace(line, new=False, note="is there already")
            continue
        if not dry_run:
            wanted = AddProvider(
                name=one.name, url=one.url, kind=one.kind, auth=one.auth, key=one.key, no_key=not one.key
            )
            try:
                legion.add_provider(wanted)
            except LegionError as refused:
                yield replace(line, kind="left out", becomes="", new=False, note=refused.message)
                continue
        yield replace(line, note="with its key, in a file that only you can read" if one.key else "without a key")


_KINDS = {
    "ticket": "Tickets",
    "role": "Roles",
    "team": "Teams",
    "provider": "Providers",
    "machine": "Machines; invite each when you are there",
    "setting": "Settings that do the same; write them yourself",
    "left out": "Left out",
}


def _lines(report: ImportReport, screen: Screen) -> Iterator[str]:
    for source in report.sources:
        yield screen.bold(f"{source.tool}  {sanitize(source.place)}")
        for kind, title in _KINDS.items():
            rows = [_row(one) for one in source.lines if one.kind == kind]
            if rows:
                yield screen.line(Cell(title, Colour.DIM), indent=2)
                yield from screen.table(rows, indent=4, uncut=kind in ("machine", "setting"))
    for fault in report.faults:
        yield screen.line(Cell(sanitize(fault), Colour.RED))


def _row(one: ImportLine) -> list[Cell]:
    becomes = Cell(sanitize(one.becomes), Colour.GREEN if one.new else Colour.NONE)
    cells = [Cell(sanitize(one.what)), *([becomes] if one.becomes else [])]
    return [*cells, Cell(sanitize(one.note), Colour.DIM)]


def _say_next(call: CommandCall, report: ImportReport, *, start: bool) -> None:
    new = [one for source in report.sources for one in source.lines if one.new]
    if report.dry_run:
        call.say("Nothing was changed: this was a dry run.")
    elif not new:
        call.say("Nothing is new, so nothing was changed.")
    elif fresh := [one for one in new if one.kind == "ticket"]:
        start_now, paused = ("it starts", "it is paused") if len(fresh) == 1 else ("they start", "they are paused")
        held = f"{start_now} now" if start else f"{paused}: `legion resume N`, or the same command with --start"
        call.say(f"{count(len(fresh), 'ticket')} imported; {held}.")
    for other in report.also_there:
        call.say(f"Also there, maybe for another project: {sanitize(other)}")
