"""The document about commands matches the code; the help of every command has an example.

`python -m tests.cli.test_docs` writes docs/commands.md again.
"""

from __future__ import annotations

import inspect
import re
import shlex

import click
import pytest
from click.testing import CliRunner

from legion.cli.app import ENTRIES, OLD_NAMES, SECTIONS, UNLISTED, cli, find_command, help_of_all
from legion.cli.base.command import COMMON
from legion.cli.tickets.plan_file import read_plan
from legion.domain.agents.agent import WORDS_OF_COMMANDS
from tests.support.codebase import ROOT
from tests.support.documents import table

MORE = "<!-- more -->\n"
CONTEXT = click.Context(cli, info_name="legion")


def command(name: str) -> click.Command:
    """By the words that it is typed with."""
    own = name if name in ENTRIES else name.rpartition(" ")[0]
    found = find_command(own)
    found = getattr(found, "own", found)
    if own != name:
        assert isinstance(found, click.Group)
        found = found.get_command(CONTEXT, name.rpartition(" ")[2])
    assert found is not None
    return found


GROUPS = {name: group for name in ENTRIES if isinstance(group := command(name), click.Group)}
COMMANDS = [name for name in ENTRIES if name not in GROUPS]
COMMANDS += [f"{name} {below}" for name, group in GROUPS.items() for below in group.commands]


def _below(entry: str) -> list[str]:
    return [f"{entry} {below}" for below in GROUPS[entry].commands] if entry in GROUPS else []


def options(name: str) -> list[click.Option]:
    return [one for one in command(name).params if isinstance(one, click.Option) and one.name not in COMMON]


def sections(document: str) -> dict[str, str]:
    """The text below each `## head`."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / document).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def commands_page() -> str:
    """The page about commands, written from their help; what stands below `<!-- more -->` is written by hand."""
    head = (ROOT / "docs/commands.md").read_text().partition("\n## ")[0]
    by_hand = {name: text.partition(MORE)[2] for name, text in sections("commands.md").items()}
    names = [name for entry in ENTRIES for name in (entry, *_below(entry))]
    written = [command_section(name, by_hand.get(f"legion {name}", "")) for name in names]
    return "\n".join([f"{head.rstrip()}\n", *written])


def command_section(name: str, by_hand: str) -> str:
    explained = inspect.cleandoc(command(name).help or "").split("\n\n")
    taken = [] if name in GROUPS else options(name)
    rows_of = [[", ".join(f"`{word}`" for word in one.opts), str(one.help)] for one in taken]
    parts = [
        f"## legion {name}\n",
        *(" ".join(paragraph.split()) + "\n" for paragraph in explained),
        *([table(["option", "meaning"], rows_of)] if rows_of else []),
        "```sh\n" + "".join(f"{line}\n" for line in examples(name)) + "```\n",
    ]
    return "\n".join(parts) + (f"\n{MORE}{by_hand.rstrip()}\n" if by_hand.strip() else "")


def test_the_page_about_commands_says_what_their_help_says():
    assert (ROOT / "docs/commands.md").read_text() == commands_page()


def examples(name: str) -> list[str]:
    epilog = command(name).epilog or ""
    assert "Example:" in epilog
    return [line.strip() for line in epilog.partition("Example:\n")[2].splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example_that_can_be_typed(name):
    context = click.Context(command(name), info_name=name, parent=CONTEXT)
    shown = command(name).get_help(context)
    assert "Example:" in shown
    assert all(isinstance(one.help, str) and one.help.endswith(".") for one in options(name))
    assert {"--json", "--data-dir", "--no-color"} <= {word for one in command(name).params for word in one.opts}
    for line in examples(name):
        words = shlex.split(re.split(r" [|>] ", line)[0])
        own = ["legion", *name.split()]
        assert words[: len(own)] == own
        command(name).make_context(name, words[len(own) :], parent=CONTEXT)


def test_the_first_help_is_one_screen_of_what_the_first_week_needs():
    shown = cli.get_help(CONTEXT).splitlines()
    first = [name for section in SECTIONS.values() for name, entry in section.items() if entry.first]
    assert len(shown) <= 40
    assert len(first) == 24
    assert [line.split()[0] for line in shown if line.startswith("  ")][2:] == first


def test_the_whole_help_names_every_command_once_and_every_old_name():
    listed = [name for section in SECTIONS.values() for name in section if " " not in name]
    assert len(listed) == 45
    shown = " ".join(help_of_all(CONTEXT).split())
    assert all(f" {name} {entry.help}" in shown for name, entry in ENTRIES.items() if " " not in name)
    assert all(f"{old} = {now}" in shown for old, now in OLD_NAMES.items())
    assert not set(OLD_NAMES) & {*listed, *UNLISTED}


def test_old_names_are_the_new_commands_and_their_help_says_so():
    for old, now in OLD_NAMES.items():
        ended = CliRunner().invoke(cli, [old, "--help"], prog_name="legion")
        words = " ".join(word for word in now.split() if not word.startswith("-"))
        assert ended.exit_code == 0
        assert ended.output.startswith(f"`legion {old}` is now `legion {now}`; both work.\n\nUsage: legion {words} ")


def test_no_agent_is_called_as_a_part_of_a_command_that_takes_its_name():
    parts = {words.split()[1] for words in ENTRIES if words.split()[0] in ("tell", "attach", "status") and " " in words}
    assert parts == WORDS_OF_COMMANDS


def test_the_plan_in_the_document_is_one_and_the_page_with_its_fields_is_named():
    section = sections("commands.md")["legion dispatch"]
    (plan,) = re.findall(r"^```toml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert [ticket.key for ticket in read_plan(plan, "the document")] == ["schema", "login"]
    assert "[the fields of a ticket](tickets.md)" in section


if __name__ == "__main__":
    (ROOT / "docs/commands.md").write_text(commands_page())
