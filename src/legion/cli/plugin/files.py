"""The files of the plugin, filled in for this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from legion import __version__

SPLIT = "split-tickets.md"
"""Also a command of its own, without the name of the plugin: people of legion_cc type /split-tickets."""

_SHOWN = {"commands": "/legion:{}", "agents": "agent legion:{}"}
_ABOUT = re.compile(r"^description: (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class LegionProgram:
    """How the plugin starts Legion."""

    argv: tuple[str, ...]

    @property
    def shell(self) -> str:
        return shlex.join(self.argv)


def program_of_person(data_dir: Path, default: Path) -> LegionProgram:
    """By its full path, since the PATH of a program with windows may lack it; its environment may lack our variable."""
    found = shutil.which("legion")
    argv = (found,) if found else (sys.executable, "-m", "legion")
    usual = data_dir == default and not os.environ.get("LEGION_DATA_DIR")
    more = () if usual else ("--data-dir", str(data_dir))
    return LegionProgram(argv=(*argv, *more))


PLAIN = LegionProgram(argv=("legion",))
"""For files that others may read on other machines."""


def plugin_files(program: LegionProgram) -> dict[str, str]:
    """Texts by path below the plugin's folder."""
    return {path: _filled(text, program) for path, text in _shipped(files("legion") / "plugin", "").items()}


def commands(program: LegionProgram) -> dict[str, str]:
    """What a person can type or choose in Claude Code, with one line about each."""
    found = {}
    for path, text in plugin_files(program).items():
        folder, _, file = path.rpartition("/")
        about = _ABOUT.search(text)
        if folder in _SHOWN and about:
            found[_SHOWN[folder].format(file.removesuffix(".md"))] = about[1]
    return found


def split_command(program: LegionProgram) -> str:
    return plugin_files(program)[f"commands/{SPLIT}"]


def _shipped(folder: Traversable, above: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{above}{one.name}"
        if one.is_dir():
            found |= _shipped(one, f"{path}/")
        else:
            found[path] = one.read_text(encoding="utf-8")
    return found


def _filled(text: str, program: LegionProgram) -> str:
    values = {
        "version": __version__,
        "legion": program.shell,
        "program": json.dumps(program.argv[0]),
        "mcp_arguments": json.dumps([*program.argv[1:], "mcp", "--stdio"]),
        "news_command": json.dumps(f"{program.shell} plugin news"),
    }
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text
