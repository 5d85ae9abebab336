"""legion(1), made from the commands themselves: their help, options and examples."""

from __future__ import annotations

import sys

import click

from legion import __version__
from legion.cli.app import ENTRIES, OLD_NAMES, SECTIONS, cli, find_command


def main() -> None:
    lines = [
        f'.TH LEGION 1 "" "legion {__version__}" "Legion"',
        ".SH NAME",
        "legion \\- a squad of coding agents whose work is verified before it lands",
        ".SH SYNOPSIS",
        ".B legion",
        "[\\fIOPTIONS\\fR] [\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]]",
        ".PP",
        "\\fBlegion\\fR alone opens the terminal UI.",
        ".SH OPTIONS",
        *_options(cli),
    ]
    for title, entries in SECTIONS.items():
        lines.append(f".SH {title.upper()}")
        for name in entries:
            lines += _command(name)
    lines += [".SH OTHER NAMES", *_paragraph(", ".join(f"{old} = {now}" for old, now in OLD_NAMES.items()))]
    sys.stdout.write("\n".join(lines) + "\n")


def _command(name: str) -> list[str]:
    found = find_command(name)
    assert found is not None, name
    own = getattr(found, "own", found)
    usage = " ".join(own.collect_usage_pieces(click.Context(own)))
    paragraphs = (own.help or ENTRIES[name].help).replace("\b", "").split("\n\n")
    text = [line for paragraph in paragraphs for line in (*_paragraph(paragraph), ".sp")][:-1]
    return [f".SS legion {_plain(name)} {_plain(usage)}", *text, *_options(own)]


def _options(command: click.Command) -> list[str]:
    lines: list[str] = []
    context = click.Context(command)
    for option in command.params:
        record = option.get_help_record(context)
        if record is not None and not (command is not cli and option.name in _EVERYWHERE):
            lines += [".TP", f"\\fB{_plain(record[0])}\\fR", *_paragraph(record[1] or "")]
    return lines


_EVERYWHERE = {one.name for one in cli.params}


def _paragraph(text: str) -> list[str]:
    return [_plain(line.strip()) for line in text.splitlines() if line.strip()]


def _plain(text: str) -> str:
    """Text that troff takes as text."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    main()
