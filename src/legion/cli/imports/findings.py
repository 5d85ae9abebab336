"""Reads another tool's files, and collects the findings in Legion's terms: what they hold, and what is left out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LONGEST_TITLE = 200
LONGEST_TEXT = 20_000
MOST_LABELS = 20
_LABEL = re.compile(r"[^A-Za-z0-9._-]+")
_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, kw_only=True)
class FoundTicket:
    """A piece of open work. `origin` names it in its source for good: with it a second import finds the ticket."""

    origin: str
    title: str
    text: str = ""
    context: str = ""
    criteria: str = ""
    plan: str = ""
    after: tuple[str, ...] = ()
    """Origins."""
    epic: str = ""
    priority: int = 0
    labels: tuple[str, ...] = ()
    model: str = ""
    team: str = ""
    checkpoint: bool = False
    folder: str = ""
    """A checkout whose files, also uncommitted ones, the ticket starts from."""
    branch: str = ""
    """A branch that the ticket starts from, where there is no checkout."""


@dataclass(frozen=True, kw_only=True)
class FoundDefinition:
    """A role or a team, as the text of its file."""

    kind: str
    """`role` or `team`."""
    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class FoundProvider:
    name: str
    url: str
    kind: str
    """Which API it speaks, in Legion's name."""
    auth: str = ""
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class FoundMachine:
    """Another host. It is shown as the invitation to make: an invitation works for minutes, and on that host alone."""

    origin: str
    name: str
    labels: tuple[str, ...] = ()
    slots: int | None = None
    quiet_hours: str = ""

    @property
    def command(self) -> str:
        options = [
            *(["--labels", ",".join(self.labels)] if self.labels else []),
            *(["--slots", str(self.slots)] if self.slots is not None else []),
            *(["--quiet-hours", self.quiet_hours] if self.quiet_hours else []),
        ]
        return shlex.join(["legion", "machine", "invite", self.name, *options])


@dataclass(frozen=True, kw_only=True)
class FoundSetting:
    """A setting of Legion that does the same. It is shown, not written: both files are the person's."""

    origin: str
    """Its name and value there."""
    file: str
    """`legion.toml` or `config.toml`."""
    table: str
    """The table in it; empty: above all tables."""
    line: str


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    tool: str
    """Part of the key under which Legion remembers what came from where: never rename one."""
    place: str
    source: str = ""
    """Part of that key, too, where the origins of two sources of the tool may be the same."""
    tickets: tuple[FoundTicket, ...] = ()
    definitions: tuple[FoundDefinition, ...] = ()
    providers: tuple[FoundProvider, ...] = ()
    machines: tuple[FoundMachine, ...] = ()
    settings: tuple[FoundSetting, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def empty(self) -> bool:
        return not (
            self.tickets or self.definitions or self.providers or self.machines or self.settings or self.left_out
        )


class UnreadableSource(Exception):
    """A source that is not what its name says. The message is one sentence that names the file."""


def ticket(*, origin: str, title: str, text: str = "", labels: Iterable[str] = ()) -> FoundTicket:
    """A ticket within Legion's limits; `with_texts` adds the rest."""
    line = " ".join(title.split()) or " ".join(text.split()) or origin
    short = line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 3]}..."
    return FoundTicket(origin=origin, title=short, text=_text(text), labels=label_names(labels))


def with_texts(one: FoundTicket, *, context: str = "", criteria: str = "", plan: str = "") -> FoundTicket:
    return replace(one, context=_text(context), criteria=_text(criteria), plan=_text(plan))


def _text(text: str) -> str:
    clean = text.replace("\0", "").replace("\r\n", "\n").strip()
    return clean if len(clean) <= LONGEST_TEXT else f"{clean[: LONGEST_TEXT - 20]}\n[cut by the import]"


def label_names(given: Iterable[str]) -> tuple[str, ...]:
    """Labels in the letters that Legion allows: `status: ready` becomes `status-ready`."""
    names = (_LABEL.sub("-", one).strip("-._")[:40].rstrip("-._") for one in given)
    return tuple(dict.fromkeys(name for name in names if name))[:MOST_LABELS]


def name_of(given: str) -> str:
    """A name for a role, team, provider or driver: small letters, digits and `_`."""
    return _NAME.sub("_", given.lower()).strip("_")[:40].rstrip("_") or "unnamed"


def machine_word(given: str) -> str:
    """A name or a label of a machine: small letters, digits and `-`."""
    return _NAME.sub("-", given.lower()).strip("-")[:40].rstrip("-")


def open_edges(tickets: Iterable[FoundTicket]) -> tuple[FoundTicket, ...]:
    """The tickets without edges to work that is not brought along: it is done, or left out."""
    found = tuple(tickets)
    known = {one.origin for one in found}
    return tuple(
        replace(one, after=tuple(dict.fromkeys(other for other in one.after if other in known and other != one.origin)))
        for one in found
    )


def without_cycles(tickets: Iterable[FoundTicket]) -> tuple[tuple[FoundTicket, ...], tuple[LeftOut, ...]]:
    """The tickets in an order in which each comes after its `after`, and the edges that closed a cycle."""
    found = {one.origin: one for one in open_edges(tickets)}
    done: dict[str, FoundTicket] = {}
    cut: list[LeftOut] = []
    waiting = list(found)
    while waiting:
        ready = [origin for origin in waiting if all(other in done for other in found[origin].after)]
        if not ready:
            first = found[waiting[0]]
            closing = [other for other in first.after if other not in done]
            cut.append(LeftOut(what=f"{first.origin} after {', '.join(closing)}", why="these wait for each other"))
            found[first.origin] = replace(first, after=tuple(other for other in first.after if other in done))
            continue
        for origin in ready:
            done[origin] = found[origin]
        waiting = [origin for origin in waiting if origin not in done]
    return tuple(done.values()), tuple(cut)


def toml_text(value: str) -> str:
    """A string as TOML writes it; JSON's escapes are TOML's, but for the one letter that JSON leaves alone."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_LARGEST = 20 * 2**20


def text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableSource(f"{path} is larger than {_LARGEST // 2**20} MB and was not read.")
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as trouble:
        raise UnreadableSource(f"{path} cannot be read ({trouble.strerror}).") from None


def json_of(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(text_of(path))
    except (json.JSONDecodeError, RecursionError) as wrong:
        raise UnreadableSource(f"{path} is not valid JSON: {_first_line(wrong)}.") from None


def yaml_of(text: str, name: str) -> Any:  # noqa: ANN401 - whatever the text holds
    # Imported here: no other command needs it.
    import yaml  # type: ignore[import-untyped]  # it ships no types

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as wrong:
        raise UnreadableSource(f"{name} is not valid YAML: {_first_line(wrong)}.") from None


def _first_line(wrong: Exception) -> str:
    return " ".join(str(wrong).split())[:200] or type(wrong).__name__


def table(value: object) -> Mapping[str, Any]:
    """The value if it is a table, else an empty one: a wrong part of a file must not hide the rest."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A text or a number as text; lists as lines; everything else is empty."""
    if isinstance(value, list):
        return "\n".join(one for one in map(text, value) if one)
    return str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def texts(value: object) -> list[str]:
    return [one for one in map(text, items(value)) if one]


def is_inside(folder: str, root: Path) -> bool:
    """Whether a folder that a source names is `root` or below it."""
    try:
        return Path(folder).expanduser().resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def same_folder(folder: str, root: Path) -> bool:
    try:
        return Path(folder).expanduser().resolve() == root.resolve()
    except (OSError, RuntimeError, ValueError):
        return False
