"""A repository as the guessers see it, and what they find out about one part of it. Knows no programming language."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from legion.domain.review.path_patterns import matches


@dataclass(frozen=True, kw_only=True)
class ProjectPart:
    """One kind of project found in a folder. The commands start in that folder."""

    kind: str
    checks: Mapping[str, str]
    """Command by name; empty where nothing looks like a test."""
    setup: str = ""
    key: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the person should know about the guess, each a sentence."""
    paths: tuple[str, ...] = ()
    """What the checks are limited to; empty: they always run."""


@dataclass(frozen=True)
class Folder:
    """The files of one folder of the repository, relative to it."""

    names: tuple[str, ...]
    reader: Callable[[str], str]
    has: Callable[[str], bool] = lambda program: True
    """Is this program installed?"""

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def first(self, *candidates: str) -> str | None:
        """The first of the candidates that exists."""
        return next((name for name in candidates if name in self.names), None)

    def those(self, *candidates: str) -> tuple[str, ...]:
        return tuple(name for name in candidates if name in self.names)

    def like(self, *globs: str) -> tuple[str, ...]:
        return tuple(name for name in self.names if matches(name, globs))

    def read(self, name: str) -> str:
        """The content, or nothing where there is no such file or it is no text."""
        if name not in self.names:
            return ""
        try:
            return self.reader(name)
        except (OSError, UnicodeDecodeError):
            return ""

    def toml(self, name: str) -> Mapping[str, object]:
        """The content as a table; an empty one where it is none."""
        try:
            return tomllib.loads(self.read(name))
        except (ValueError, RecursionError):
            return {}

    def json(self, name: str) -> Mapping[str, object]:
        try:
            content = json.loads(self.read(name))
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def inside(self, folder: str) -> Folder:
        prefix = f"{folder}/"
        names = tuple(name.removeprefix(prefix) for name in self.names if name.startswith(prefix))
        return Folder(names, lambda name: self.reader(prefix + name), self.has)


def keep_out_of_git(files: Folder, folder: str) -> str:
    """The end of a setup that made the folder: where git does not ignore it, it would be in every change."""
    lines = {line.strip().strip("/") for line in files.read(".gitignore").splitlines()}
    ignored = {folder, f"**/{folder}", folder.split("/")[0]} & lines
    return "" if ignored else f" && echo '*' > {folder}/.gitignore"


_CONNECTION = re.compile(
    r"\b(postgres(?:ql)?|mysql|mariadb|redis|mongodb|amqp)(?:\+\w+)?://(?:[^\s\"'@/]*@)?(?:localhost|127\.0\.0\.1)(?::(\d+))?\b"
)
_PUBLISHED = re.compile(
    r"^\s*-\s*[\"']?(?:[\d.]+:)?(\d{2,5}):\d{2,5}(?:/tcp)?[\"']?\s*(?:#.*)?$|^\s*published:\s*[\"']?(\d{2,5})",
    re.MULTILINE,
)
_USUAL = {"my": 3306, "ma": 3306, "re": 6379, "mo": 27017, "am": 5672, "po": 5432}


def local_services(files: Folder) -> tuple[int, ...]:
    """Ports of this machine that the project's tests may need: those of its compose files and connection strings."""
    compose = files.like("**/compose*.y*ml", "**/docker-compose*.y*ml")
    others = files.like(
        "**/.env*", "**/*.env", "**/settings*.py", "**/application*.*", "**/alembic.ini", "**/database.yml"
    )
    found = [one or other for name in compose for one, other in _PUBLISHED.findall(files.read(name))]
    found += [
        port or _USUAL[kind[:2]] for name in (*compose, *others) for kind, port in _CONNECTION.findall(files.read(name))
    ]
    return tuple(sorted({int(port) for port in found if 0 < int(port) < 65536}))


def not_installed(tool: str, instead: str, again: str = "delete legion.toml and run `legion init` again") -> str:
    return f"This is a project of {tool}, which is not installed: {instead}. Install {tool}, {again}."


def table(value: object) -> Mapping[str, object]:
    """A part of an untrusted file as a table, whatever it is."""
    return value if isinstance(value, Mapping) else {}


def text_list(value: object) -> tuple[str, ...]:
    """A part of an untrusted file as a list of plain texts, whatever it is."""
    if not isinstance(value, Iterable):
        return ()
    return tuple(word for word in value if isinstance(word, str) and word.isascii() and word.isprintable())
