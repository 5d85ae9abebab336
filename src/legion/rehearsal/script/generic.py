"""The generic script, for tickets without one: makes a small change, shows it and reports that it is done.

The change is a line in each plain file that the briefing names, as a comment where the language has one, or else a file
named after the ticket. It also works in later attempts and after a conflict.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from legion.rehearsal.script.script import Script, ScriptedCall, Step

NAME = "generic"

_FILES = re.compile(r"^## Files it is about\n((?:- .*\n?)+)", re.MULTILINE)
_PLAIN_PATH = re.compile(r"[\w./-]+")
_COMMENTS = {
    "#": (".py", ".sh", ".rb", ".toml", ".yml", ".yaml", ".cfg", ".r", ".pl"),
    "//": (
        ".js",
        ".ts",
        ".jsx",
        ".tsx",
        ".mjs",
        ".go",
        ".rs",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".java",
        ".kt",
        ".swift",
        ".cs",
    ),
    "--": (".sql", ".lua", ".hs"),
    "": (".md", ".txt", ".rst"),
}
_MAX_FILES = 3
_UNMERGE = "s/^(<<<<<<< .*|=======|>>>>>>> .*)$//"
"""A sed program that empties conflict markers. Claude Code asks for permission before it runs a longer one."""


def script(briefing: str, facts: Mapping[str, str]) -> Script:
    """The script for the ticket of this briefing. Without a ticket it ends at once."""
    done = Step(say="Done. These words are scripted: no model has read the ticket.")
    if "ticket" not in facts:
        return Script(name=NAME, steps=(done,), endless=True)
    declared = _declared(briefing)
    steps = tuple(step for file in declared for step in _in_file(file, facts)) if declared else _in_own_file(facts)
    show = Step(
        say="I look at what has changed.",
        calls=(ScriptedCall(tool="Bash", input={"command": "git status --short", "description": "Show the change"}),),
    )
    return Script(name=NAME, steps=(*steps, show, done), endless=True)


def _in_own_file(facts: Mapping[str, str]) -> tuple[Step, ...]:
    path = f"{facts.get('cwd', '.')}/ticket-{facts['ticket']}.md"
    text = f"# Ticket {facts['ticket']}: {facts['title']}\n\nRehearsed in attempt {facts['attempt']}.\n"
    # Claude Code overwrites only files that it has read in this conversation; reading a missing one is harmless.
    read = Step(say="I see what is there.", calls=(ScriptedCall(tool="Read", input={"file_path": path}),))
    write = Step(
        say="I write the change.", calls=(ScriptedCall(tool="Write", input={"file_path": path, "content": text}),)
    )
    return (read, write)


def _in_file(file: str, facts: Mapping[str, str]) -> tuple[Step, ...]:
    name = shlex.quote(file)
    text = f"rehearsed for ticket {facts['ticket']}, attempt {facts['attempt']}"
    line = shlex.quote(f"{_comment(file)} {text}".strip())
    folder = shlex.quote(str(PurePosixPath(file).parent))
    append = Step(
        say=f"I change {file}.", calls=(_bash(f"mkdir -p {folder} && echo {line} >> {name}", f"Add a line to {file}"),)
    )
    if facts["attempt"] == "1":
        return (append,)
    settle = Step(
        say=f"I settle what was left open in {file}.",
        calls=(_bash(f"sed -i -E {shlex.quote(_UNMERGE)} {name}", f"Keep both sides in {file}"),),
    )
    return (settle, append)


def _bash(command: str, description: str) -> ScriptedCall:
    return ScriptedCall(tool="Bash", input={"command": command, "description": description})


def _declared(briefing: str) -> tuple[str, ...]:
    """The plain files that the briefing names: no patterns, and only types in which one more line is harmless."""
    section = _FILES.search(briefing)
    named = [line.removeprefix("- ").strip() for line in section[1].splitlines()] if section is not None else []
    return tuple(name for name in named if _PLAIN_PATH.fullmatch(name) and _comment(name) is not None)[:_MAX_FILES]


def _comment(file: str) -> str | None:
    suffix = PurePosixPath(file).suffix.lower()
    return next((mark for mark, suffixes in _COMMENTS.items() if suffix in suffixes), None)
