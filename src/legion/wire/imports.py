"""Shapes of requests and answers about work that is imported from other tools."""

from __future__ import annotations

from dataclasses import field

from legion.wire.dispatch import NewTicket
from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class ImportTicket:
    origin: str
    """Its name in the source, which stays the same: a second import finds the ticket by it."""
    ticket: NewTicket
    after: list[str] = field(default_factory=list)
    """Origins of tickets of the same tool."""
    folder: str = ""
    """A checkout of the project's repository whose files, also uncommitted ones, it starts from."""
    branch: str = ""
    """A branch of the project's repository that it starts from."""


@dataclass(kw_only=True)
class ImportTickets:
    """Work of another tool. What was imported before stays as it is."""

    cwd: str
    tool: str
    source: str = ""
    """Which source of the tool it is, where the origins of two of them may be the same."""
    tickets: list[ImportTicket]
    start: bool = False
    """Start it at once; else each ticket is paused until `legion resume N`."""
    dry_run: bool = False


@dataclass(kw_only=True)
class ImportedTicket:
    origin: str
    id: int | None
    """Null in a dry run, for one that is new."""
    new: bool
    note: str = ""


@dataclass(kw_only=True)
class Imported:
    schema: str = "legion.imported/1"
    tickets: list[ImportedTicket]
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class ImportLine:
    """One thing of a source, and what became of it."""

    what: str
    kind: str
    """`ticket`, `role`, `team`, `provider`, `machine`, `setting` or `left out`."""
    becomes: str
    new: bool = False
    note: str = ""


@dataclass(kw_only=True)
class ImportSource:
    tool: str
    place: str
    lines: list[ImportLine]


@dataclass(kw_only=True)
class ImportReport:
    """`legion import --json`."""

    schema: str = "legion.import/1"
    dry_run: bool
    sources: list[ImportSource]
    faults: list[str] = field(default_factory=list)
    """Files that could not be read, one sentence each."""
    also_there: list[str] = field(default_factory=list)
    """Commands for sources that may belong to another project."""
