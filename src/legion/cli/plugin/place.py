"""Installs the plugin's files, filled in for this machine, into a folder of Claude Code, and removes them again."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from legion import __version__
from legion.wire.errors import BadInput

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


KEY = "statusLine"


def with_line(text: str | None, command: str) -> tuple[str | None, str]:
    """The settings with our status line, or None and the reason why they stay as they are. None: there is no file."""
    settings = _settings(text)
    if settings is None:
        return None, "it is no JSON object"
    if KEY in settings:
        ours = is_ours(text, command)
        return None, "" if ours else "you have a status line of your own, which stays"
    settings[KEY] = {"type": "command", "command": command}
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n", ""


def without_line(text: str, command: str) -> str | None:
    """The settings without our status line; None where it is not in them."""
    settings = _settings(text)
    if settings is None or not is_ours(text, command):
        return None
    del settings[KEY]
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def is_ours(text: str | None, command: str) -> bool:
    line = (_settings(text) or {}).get(KEY)
    return isinstance(line, dict) and line.get("command") == command


def _settings(text: str | None) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text is not None and text.strip() else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


_RECORD = "installed.json"
"""In the plugin's folder: what was there before."""


@dataclass(frozen=True, kw_only=True)
class PluginPlace:
    """A folder of Claude Code: the person's own, or `.claude` of a repository."""

    name: str
    folder: Path
    settings: Path
    program: LegionProgram

    @property
    def plugin(self) -> Path:
        """Claude Code loads what is here as a plugin, without an entry in any settings file."""
        return self.folder / "skills" / "legion"

    @property
    def split(self) -> Path:
        return self.folder / "commands" / SPLIT

    @property
    def line_command(self) -> str:
        return f"{self.program.shell} plugin line"

    @property
    def installed(self) -> bool:
        return (self.plugin / _RECORD).exists()


def of_person(program: LegionProgram) -> PluginPlace:
    folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    return PluginPlace(name="user", folder=folder, settings=folder / "settings.json", program=program)


def of_project(program: LegionProgram, cwd: Path) -> PluginPlace:
    """Settings that git usually ignores: the status line is the person's, not the repository's."""
    root = _root(cwd)
    folder = root / ".claude"
    return PluginPlace(name="project", folder=folder, settings=folder / "settings.local.json", program=program)


def _root(cwd: Path) -> Path:
    found = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"], cwd=cwd, capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        raise BadInput(f"{cwd} is in no git repository: run it in one, or use --user.")
    return Path(found.stdout.rstrip("\n"))


def install(place: PluginPlace) -> list[str]:
    """Write the plugin; returns notes. Files of the person that are in the way stay as they are."""
    _refuse_foreign(place)
    notes: list[str] = []
    before = _settings_before(place)
    _write_all(place)
    notes += _add_split(place)
    text = _read(place.settings)
    changed, why = with_line(text, place.line_command)
    if why:
        notes.append(
            f"{place.settings} is not changed: {why}. For a status line, set its command to `{place.line_command}`."
        )
    written = changed if changed is not None else before.get("written")
    if changed is not None:
        before = {"settings": text, "written": changed}
        _write(place.settings, changed)
    record = {"settings": before.get("settings"), "written": written, "line": place.line_command}
    _write(place.plugin / _RECORD, json.dumps(record, indent=2))
    return notes


def would_write(place: PluginPlace) -> list[Path]:
    """The files that `install` would write now."""
    _refuse_foreign(place)
    changed, _ = with_line(_read(place.settings), place.line_command)
    found = [place.plugin / path for path in (*plugin_files(place.program), _RECORD)]
    found += [] if _split_of_person(place) else [place.split]
    return [*found, *([place.settings] if changed is not None else [])]


def _refuse_foreign(place: PluginPlace) -> None:
    if place.plugin.exists() and not place.installed:
        raise BadInput(f"{place.plugin} is there and not ours: move it away first.")


def remove(place: PluginPlace) -> list[str]:
    """Take everything back. Settings that did not change since become what they were, to the byte."""
    if not place.installed:
        raise BadInput(f"The plugin is not installed in {place.folder}: `legion plugin show` lists where it is.")
    record = json.loads((place.plugin / _RECORD).read_text())
    notes = _restore_settings(place, record)
    if _read(place.split) == split_command(place.program):
        place.split.unlink()
        _remove_if_empty(place.split.parent)
    elif place.split.exists():
        notes.append(f"{place.split} was changed, so it stays.")
    shutil.rmtree(place.plugin)
    _remove_if_empty(place.plugin.parent)
    return notes


def _restore_settings(place: PluginPlace, record: dict[str, str | None]) -> list[str]:
    now = _read(place.settings)
    if now is None or record["written"] is None:
        return []
    if now == record["written"]:
        if record["settings"] is None:
            place.settings.unlink()
        else:
            _write(place.settings, record["settings"])
        return []
    less = without_line(now, record["line"] or "")
    if less is not None:
        _write(place.settings, less)
        return [f"{place.settings} was changed since; only the status line was removed from it."]
    return []


def _settings_before(place: PluginPlace) -> dict[str, str | None]:
    """Of an installation that is renewed: what the first one found."""
    if not place.installed:
        return {}
    record: dict[str, str | None] = json.loads((place.plugin / _RECORD).read_text())
    return record


def _write_all(place: PluginPlace) -> None:
    for path, text in plugin_files(place.program).items():
        _write(place.plugin / path, text)


def _add_split(place: PluginPlace) -> list[str]:
    if _split_of_person(place):
        return [f"{place.split} is yours and stays; /legion:split-tickets is ours."]
    _write(place.split, split_command(place.program))
    return []


def _split_of_person(place: PluginPlace) -> bool:
    there = _read(place.split)
    return there is not None and there != split_command(place.program) and not place.installed


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not in UTF-8: fix it first.") from None


def _write(path: Path, text: str) -> None:
    """By a rename, so that Claude Code never reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link of the person's stays a link.
    real = path.resolve() if path.is_symlink() else path
    half = real.with_name(f"{real.name}.legion-new")
    half.write_bytes(text.encode())
    if real.exists():
        half.chmod(real.stat().st_mode & 0o777)
    half.replace(real)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
