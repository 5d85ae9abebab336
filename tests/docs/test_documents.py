"""What the documents say about files, targets and commands is so."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from legion.cli.app import ENTRIES, OLD_NAMES, cli, find_command
from tests.support.codebase import ROOT, SOURCE, place, project_files

DOCUMENTS = [path for path in project_files() if path.suffix == ".md"]
# The changelog also tells of what is gone.
GUIDES = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
# The others name paths of the reader's own projects.
MAPS = [path for path in DOCUMENTS if path.name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "decisions.md")]

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")
TARGET = re.compile(r"(?:`|^\s*(?:\$ )?)make ([a-z]+)", re.MULTILINE)
INLINE_PATH = re.compile(r"`((?:src|tests|tools|bench|docs|\.ci)/[\w./-]*)`")
COMMAND = re.compile(r"(?:`|^[ \t]*(?:\$ )?)legion ([a-z][a-z-]*)\b([^`\n]*)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])")
ASIDE = re.compile(r" {3,}| # | · ")
TOML_BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def named(path: Path) -> str:
    return place(path)


def commands(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The `legion` commands that a text shows, each with its options; what stands aside as a remark is left out."""
    return [
        (whole(command, rest), tuple(OPTION.findall(ASIDE.split(rest, maxsplit=1)[0])))
        for command, rest in COMMAND.findall(text)
    ]


def whole(command: str, rest: str) -> str:
    """With the words behind it that belong to it."""
    for word in re.findall(r" ([a-z-]+)", re.match(r"( [a-z-]+)*", rest)[0]):  # type: ignore[index]
        command = OLD_NAMES.get(command, command)
        found = find_command(command)
        group = getattr(found, "own", found)
        if f"{command} {word}" not in ENTRIES and not (isinstance(group, click.Group) and word in group.commands):
            break
        command = f"{command} {word}"
    return command


@cache
def help_of(command: str) -> str:
    shown = CliRunner().invoke(cli, [*command.split(), "--help"])
    assert shown.exit_code == 0, f"legion {command} --help: {shown.output}"
    return shown.output


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_link_leads_to_a_file(document):
    broken = [link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("document", MAPS, ids=named)
def test_every_path_in_our_code_exists(document):
    gone = [path for path in INLINE_PATH.findall(document.read_text()) if not (ROOT / path).exists()]
    assert gone == []


@pytest.mark.parametrize("document", GUIDES, ids=named)
def test_every_make_target_exists(document):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(TARGET.findall(document.read_text())) <= targets


@pytest.mark.parametrize("document", GUIDES, ids=named)
def test_every_command_and_its_options_exist(document):
    for command, options in commands(document.read_text()):
        for option in options:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(command)), f"legion {command} has no {option}"
        assert help_of(command)


@pytest.mark.parametrize("document", GUIDES, ids=named)
def test_every_toml_example_can_be_read(document):
    for block in TOML_BLOCK.findall(document.read_text()):
        tomllib.loads(block)


def test_the_readme_leads_to_every_page():
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_the_guide_for_contributors_names_every_room():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    table = set(re.findall(r"`src/legion/([a-z]+)/", (ROOT / "CONTRIBUTING.md").read_text()))
    assert table == rooms


def test_the_code_map_has_one_line_for_every_room_and_its_rooms():
    folders = [path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")]
    rooms = sorted(str(folder) for folder in folders if 1 <= len(folder.parts) <= 2 and folder.name != "migrations")
    assert sorted(re.findall(r"^\| `([a-z_/]+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)) == rooms


def test_the_changelog_starts_with_what_is_not_released_yet():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"


def test_commands_are_found_in_blocks_and_in_lines_of_text():
    text = (
        "Run `legion dispatch -t X [--after 1,3]`.\n"
        "\n"
        "    legion up / down      the same, not --this\n"
        "$ legion wait --all # -x\n"
    )
    assert commands(text) == [("dispatch", ("-t", "--after")), ("up", ()), ("wait", ("--all",))]
