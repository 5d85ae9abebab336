"""The legion.toml that `legion init` writes, guessed from the repository's files. A person reads it before it counts.

Knows only names and contents of files; it starts nothing and reads no disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from legion.config.files.project import DEFAULTS
from legion.config.guess.languages import BUILDERS, LANGUAGES
from legion.config.guess.packages import MOST_PACKAGES, dependencies, left_out, package_folders, short_names
from legion.config.guess.python import without_tags
from legion.config.guess.repository import Folder, ProjectPart


@dataclass(frozen=True, kw_only=True)
class Guess:
    kind: str
    """For a person: "Python", "Python and Node", or empty where nothing was recognised."""
    text: str
    """A complete legion.toml."""
    notes: tuple[str, ...] = ()
    """What the person should know about it, each a sentence."""


def guess(
    names: Iterable[str],
    read: Callable[[str], str],
    has: Callable[[str], bool] = lambda program: True,
    *,
    tagged: bool = True,
) -> Guess:
    """`names` are the repository's files as git lists them; `read` returns one's content and may raise OSError; `has`
    tells whether a program is installed: a tool that is missing is not guessed where another can do the job.
    `tagged`: the repository has tags.
    """
    root = Folder(tuple(names), read, has)
    own = _parts(root)
    packages = _packages(root, own)
    tested = any(part.checks for part in own)
    parts = own if tested else [*own, *_limited(root, packages)]
    kinds = list(dict.fromkeys(part.kind for part in parts))
    kind = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))
    checks = [run for part in parts for run in part.checks.values()]
    notes = [note for part in parts for note in part.notes]
    if tested:
        notes += _apart(own, packages)
    notes += _missing_programs(root, parts, notes)
    notes += () if tagged else without_tags(root)
    if checks:
        notes += left_out(root, checks)
    else:
        notes.append("No tests were found: changes land unchecked until legion.toml has a [checks.NAME].")
    return Guess(kind=kind, text=_text(kind, parts), notes=tuple(dict.fromkeys(notes)))


def _parts(files: Folder) -> list[ProjectPart]:
    found = [part for part in (find(files) for find in LANGUAGES) if part]
    if not any(part.checks for part in found):
        found += [part for part in (find(files) for find in BUILDERS) if part]
    return [part for part in found if part.checks or part.setup]


def _packages(root: Folder, own: list[ProjectPart]) -> dict[str, list[ProjectPart]]:
    """The parts in sub-folders that have checks, by folder, none inside another. What the root's setup prepares, a
    workspace for instance, needs no setup of its own."""
    prepared = {part.kind for part in own if part.setup}
    found: dict[str, list[ProjectPart]] = {}
    for folder in package_folders(root):
        if len(found) < MOST_PACKAGES and not any(folder.startswith(f"{above}/") for above in found):
            parts = [part for part in _parts(root.inside(folder)) if part.checks]
            if parts:
                found[folder] = [replace(one, setup="", key=()) if one.kind in prepared else one for one in parts]
    return found


def _limited(root: Folder, packages: dict[str, list[ProjectPart]]) -> list[ProjectPart]:
    """Their commands start at the root, their checks carry the folder's name and run for what can break them."""
    names, needs = short_names(packages), dependencies(root, packages)
    return [
        replace(
            part,
            checks={f"{names[folder]}-{name}"[:40]: f"cd {folder} && {run}" for name, run in part.checks.items()},
            setup=f"cd {folder} && {part.setup}" if part.setup else "",
            key=tuple(f"{folder}/{name}" for name in part.key),
            paths=needs[folder] if len(packages) > 1 else (),
        )
        for folder, parts in packages.items()
        for part in parts
    ]


def _apart(own: list[ProjectPart], packages: dict[str, list[ProjectPart]]) -> list[str]:
    """Parts in another language than the root's checks, which therefore do not run their tests."""
    kinds = {part.kind for part in own if part.checks}
    other = [
        f"`cd {folder} && {run}`"
        for folder, parts in packages.items()
        for part in parts
        if part.kind not in kinds and kinds != {"Make"}
        for run in list(part.checks.values())[:1]
    ]
    return [f"Not among the checks, though it has tests of its own: {', '.join(other[:3])}."] if other else []


_FIRST_WORD = re.compile(r"(?:cd \S+ && )?(?:\w+=(?:\"[^\"]*\"|\S*) )*([\w.-]+) ")


def _missing_programs(root: Folder, parts: list[ProjectPart], notes: list[str]) -> list[str]:
    """Where a command's program is not installed and no note has said so yet."""
    commands = [run for part in parts for run in (part.setup, *part.checks.values()) if run]
    programs = {found[1]: run for run in reversed(commands) if (found := _FIRST_WORD.match(f"{run} "))}
    missing = [name for name in programs if not root.has(name) and not any(f" {name}," in note for note in notes)]
    return [f"{name} is not installed: `{programs[name]}` fails until it is." for name in missing]


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
        limit = f"paths = [{', '.join(map(_quoted, part.paths))}]\n" if part.paths else ""
        for name, run in part.checks.items():
            key = f"{part.kind.lower().strip('.')}-{name}" if _clash(parts, name) else name
            named[key] = f"run = {_quoted(run)}\ntimeout = 600\n{limit}"
    if not named:
        return (
            "# Without a check, changes land untested and their tickets show `unchecked`. To have one, name it:\n"
            '# [checks.test]\n# run = "make test"\n'
        )
    rule = "# Every check must end with exit code 0 before a change lands; `timeout` is in seconds.\n"
    if any(part.paths for part in parts):
        rule += "# One with `paths` is left out where all files of a change belong to the `paths` of others.\n"
    return rule + "\n".join(f"[checks.{name}]\n{lines}" for name, lines in named.items())


def _clash(parts: list[ProjectPart], name: str) -> bool:
    """Do two kinds of project use the same name for their check?"""
    return sum(name in part.checks for part in parts) > 1


def _quoted(text: str) -> str:
    """As a TOML string: JSON's escapes are a subset of TOML's for plain ASCII."""
    return json.dumps(text)
