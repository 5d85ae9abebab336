"""The legion.toml that `legion init` writes, guessed from the repository's files. A person reads it before it counts.

Knows only names and contents of files; it starts nothing and reads no disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from legion.config.base.settings import NAME
from legion.config.files.project import DEFAULTS
from legion.config.guess.languages import BUILDERS, LANGUAGES
from legion.config.guess.repository import Folder, ProjectPart

MOST_FOLDERS = 6
"""How many sub-folders are searched where the root itself is no project."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    kind: str
    """For a person: "Python", "Python and Node", or empty where nothing was recognised."""
    text: str
    """A complete legion.toml."""
    notes: tuple[str, ...] = ()
    """What the person should know about it, each a sentence."""


def guess(names: Iterable[str], read: Callable[[str], str], has: Callable[[str], bool] = lambda program: True) -> Guess:
    """`names` are the repository's files as git lists them; `read` returns one's content and may raise OSError; `has`
    tells whether a program is installed: a tool that is missing is not guessed where another can do the job.
    """
    root = Folder(tuple(names), read, has)
    parts = _parts(root) or _parts_below(root)
    kinds = list(dict.fromkeys(part.kind for part in parts))
    kind = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))
    notes = [note for part in parts for note in part.notes]
    if not any(part.checks for part in parts):
        notes.append("No tests were found: changes land unchecked until legion.toml has a [checks.NAME].")
    return Guess(kind=kind, text=_text(kind, parts), notes=tuple(dict.fromkeys(notes)))


def _parts(files: Folder) -> list[ProjectPart]:
    found = [part for part in (find(files) for find in LANGUAGES) if part]
    if not any(part.checks for part in found):
        found += [part for part in (find(files) for find in BUILDERS) if part]
    return [part for part in found if part.checks or part.setup]


def _parts_below(root: Folder) -> list[ProjectPart]:
    """The parts in sub-folders, with commands that start at the root and checks that carry the folder's name."""
    markers = sorted({name.split("/")[0] for name in root.names if name.count("/") == 1})
    folders = [name for name in markers if NAME.fullmatch(name)]
    found = [(name, part) for name in folders for part in _parts(root.inside(name))]
    return [
        replace(
            part,
            checks={f"{folder}-{name}"[:40]: f"cd {folder} && {run}" for name, run in part.checks.items()},
            setup=f"cd {folder} && {part.setup}" if part.setup else "",
            key=tuple(f"{folder}/{name}" for name in part.key),
        )
        for folder, part in found[:MOST_FOLDERS]
    ]


def _text(kind: str, parts: list[ProjectPart]) -> str:
    return "\n".join(filter(None, [_opening(kind), _setup(parts), _checks(parts), _DEFAULTS]))


_DEFAULTS = f"""\
[agents]
parallel = {DEFAULTS.agents.parallel}      # how many work at once
attempts = {DEFAULTS.agents.attempts}      # how often a ticket is tried before it fails

[landing]
mode = "{DEFAULTS.landing.mode.value}"    # or "squash": one commit per ticket; or "rebase": no merge commits

# [review]
# policy = "risky"   # an independent agent reads what looks risky before it lands; or "always"
"""


def _opening(kind: str) -> str:
    seen = f"Guessed from what is here ({kind}), so please read it." if kind else "Nothing here tells how to test it."
    return (
        "# How Legion prepares, checks and lands changes in this repository.\n"
        f"# {seen}\n"
        "# After a change to this file: `legion trust`. All settings: `legion config --explain`.\n"
    )


def _setup(parts: list[ProjectPart]) -> str:
    with_setup = [part for part in parts if part.setup]
    if not with_setup:
        return ""
    commands = [part.setup for part in with_setup]
    run = commands[0] if len(commands) == 1 else " && ".join(f"({command})" for command in commands)
    key = list(dict.fromkeys(name for part in with_setup for name in part.key))
    return (
        "# Prepares dependencies in a worktree; again only when the content of a key file has changed.\n"
        f"[setup]\nrun = {_quoted(run)}\nkey = [{', '.join(_quoted(name) for name in key)}]\n"
    )


def _checks(parts: list[ProjectPart]) -> str:
    named: dict[str, str] = {}
    for part in parts:
        for name, run in part.checks.items():
            named[f"{part.kind.lower().strip('.')}-{name}" if _clash(parts, name) else name] = run
    if not named:
        return (
            "# Without a check, changes land untested and their tickets show `unchecked`. To have one, name it:\n"
            '# [checks.test]\n# run = "make test"\n'
        )
    rule = "# Every check must end with exit code 0 before a change lands; `timeout` is in seconds.\n"
    return rule + "\n".join(f"[checks.{name}]\nrun = {_quoted(run)}\ntimeout = 600\n" for name, run in named.items())


def _clash(parts: list[ProjectPart], name: str) -> bool:
    """Do two kinds of project use the same name for their check?"""
    return sum(name in part.checks for part in parts) > 1


def _quoted(text: str) -> str:
    """As a TOML string: JSON's escapes are a subset of TOML's for plain ASCII."""
    return json.dumps(text)
