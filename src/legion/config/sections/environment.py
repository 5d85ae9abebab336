"""[environment] in both files: what a run gets of its own, and which of the person's files are copied into its
worktree.

Data only. `jobs/workspace/environment.py` creates the things themselves.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legion.config.base import settings
from legion.config.base.settings import DAY, Unfit, choice, setting, text, texts, whole
from legion.config.base.source import SettingsText
from legion.domain.egress import EgressMode, NetworkPlace, parse_place, place_fault
from legion.domain.review.path_patterns import glob_fault

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"(?<!\$)\{(?P<name>port|tmp|ticket|attempt|worktree)(?:(?<=port)\+(?P<above>\d{1,3}))?\}")
_LOOKS_LIKE_ONE = re.compile(r"(?<!\$)\{[a-z]+(?:\+\d+)?\}")


class PortOutside(Exception):
    """A placeholder names a port that the block does not have."""


def fill_in(text: str, ports: Sequence[int], words: Mapping[str, str]) -> str:
    """The text with a value for each placeholder; all other braces, and those after a dollar sign, stay."""

    def value(found: re.Match[str]) -> str:
        if found["name"] != "port":
            return words[found["name"]]
        above = int(found["above"] or 0)
        if above >= len(ports):
            raise PortOutside(found[0])
        return str(ports[above])

    return _PLACEHOLDER.sub(value, text)


def file_fault(path: str) -> str | None:
    """What is wrong with the name of one file inside a repository, after "which"."""
    if any(part.lower() == ".git" for part in path.split("/")):
        return "is in git's own folder, so choose another place"
    if "*" in path or "?" in path:
        return "has a wildcard in it, so name the file itself"
    return "is a folder, so name the file itself" if path.endswith("/") else glob_fault(path)


def _file(help: str) -> Any:
    def read(value: object) -> str:
        path = settings.plain_text(value)
        why = file_fault(path) if path else None
        if why:
            raise Unfit(value, why)
        return path

    return setting("", allowed="a file name from the root of the repository, or empty", help=help, read=read)


def _variables(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise Unfit(value)
    for name, content in value.items():
        if not _VARIABLE.fullmatch(name):
            raise Unfit(name, "is no name of an environment variable")
        if "\n" in settings.plain_text(content):
            raise Unfit(content, "has more than one line")
        unknown = _LOOKS_LIKE_ONE.search(_PLACEHOLDER.sub("", content))
        if unknown:
            raise Unfit(
                unknown[0], "is no placeholder; known are {port}, {port+1}, {tmp}, {ticket}, {attempt}, {worktree}"
            )
    return tuple(value.items())


@dataclass(frozen=True, kw_only=True)
class EnvironmentSettings:
    """The project's part."""

    ports: int = whole(10, 0, 100, help="How many consecutive ports each run has for itself.")
    env_file: str = _file("A file that is written into each worktree before its agent starts. Git must ignore it.")
    template: str = _file("A checked-in file that `env_file` is made from; its placeholders are filled in.")
    vars: tuple[tuple[str, str], ...] = setting(
        (),
        allowed="a table of names and texts of one line",
        help="Lines of `env_file`, after those of the template; the same placeholders.",
        read=_variables,
        show=dict,
    )
    up: str = text(
        "",
        allowed="a command, or empty for none",
        help="A shell command that runs in the worktree before the agent of every run.",
    )
    down: str = text(
        "",
        allowed="a command, or empty for none",
        help="A shell command that runs in the worktree after every run, however it ended.",
    )
    timeout: float = settings.number(300.0, 1, DAY, unit="seconds", help="How long `up` and `down` may take, each.")
    network: EgressMode = choice(
        EgressMode.PUBLIC,
        help='What programs of this project reach at most, whatever the person allows: "public" addresses, those of '
        '`allow`, or "none".',
    )
    allow: tuple[NetworkPlace, ...] = texts(
        allowed='a list of hosts such as ["*.example.org"]',
        fault=place_fault,
        make=parse_place,
        help='What `network = "list"` allows, as far as the person allows it, too.',
    )

    def lines(self, ports: Sequence[int], words: Mapping[str, str]) -> str:
        """The lines of the variables, as a shell reads them."""
        return "".join(f"{name}={shlex.quote(fill_in(content, ports, words))}\n" for name, content in self.vars)


def read_environment(source: SettingsText) -> EnvironmentSettings:
    """The project's section. Raises BadInput where its settings contradict each other."""
    found = settings.read_section(EnvironmentSettings, source, ["environment"])
    for name in ("template", "vars"):
        if getattr(found, name) and not found.env_file:
            raise source.fault(["environment", name], "needs `env_file`, the file that is written")
    nothing = dict.fromkeys(("tmp", "ticket", "attempt", "worktree"), "")
    try:
        found.lines(range(found.ports), nothing)
    except PortOutside as outside:
        raise source.fault(
            ["environment", "vars"], f"uses {outside}, but `environment.ports` gives a run only {found.ports}"
        ) from None
    return found


@dataclass(frozen=True)
class Copy:
    """A file of the person's checkout that git ignores and that worktrees of the project get."""

    project: str
    path: str

    def __str__(self) -> str:
        return f"{self.project}: {self.path}"


@dataclass(frozen=True)
class Cache:
    """A folder that all runs share, and the variable that names it to programs."""

    variable: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.variable}={self.folder}"


def _copy(written: str) -> Copy:
    project, _, path = written.partition(": ")
    return Copy(project.strip(), path.strip())


def _copy_fault(written: str) -> str | None:
    copy = _copy(written)
    if not copy.project or not copy.path:
        return "must be written as `project: path`"
    return file_fault(copy.path)


def _cache(written: str) -> Cache:
    variable, _, folder = written.partition("=")
    return Cache(variable, Path(folder).expanduser())


def _cache_fault(written: str) -> str | None:
    variable, equals, folder = written.partition("=")
    if not equals or not _VARIABLE.fullmatch(variable) or not folder.startswith(("/", "~/")):
        return "must be written as `VARIABLE=/folder` or `VARIABLE=~/folder`"
    return "is too much to open to agents" if folder.strip("/") in ("", "~") else None


@dataclass(frozen=True, kw_only=True)
class PersonalEnvironment:
    """The person's part."""

    port_base: int = whole(20000, 1024, 65000, help="The first port that runs may get; blocks are taken upwards.")
    disk_mb: int = whole(
        20480,
        0,
        100_000_000,
        help="Megabytes that a worktree and its run's temp folder may hold together. 0: no limit.",
    )
    free_mb: int = whole(
        200,
        0,
        100_000_000,
        help="Megabytes of this host's disk that stay free: with less, no run starts here, and with less than half of "
        "it, the run that holds the most is stopped. 0: no such limit.",
    )
    copy: tuple[Copy, ...] = texts(
        allowed="a list of texts like `project: path`",
        fault=_copy_fault,
        make=_copy,
        help="Files of your checkout that git ignores and that agents get a copy of, and can read.",
    )
    worktreeinclude: tuple[str, ...] = texts(
        allowed="a list of names of projects",
        fault=lambda name: None if name.strip() else "is empty",
        help="Projects where agents also get the ignored files that `.worktreeinclude` of your checkout names.",
    )
    caches: tuple[Cache, ...] = texts(
        allowed="a list of texts like `VARIABLE=~/folder`",
        fault=_cache_fault,
        make=_cache,
        help="Folders that all runs share and may write, each with the variable that names it to programs.",
    )

    def copies(self, project: str) -> tuple[str, ...]:
        return tuple(copy.path for copy in self.copy if copy.project == project)
