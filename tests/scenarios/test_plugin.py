"""The plugin in the real Claude Code: commands, tools, news and the status line, with a scripted model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from legion.client.http import DaemonAddress, DaemonConnection
from legion.rehearsal.process import Playing
from legion.wire.errors import NotAllowed
from tests.rehearsal.program import Claude
from tests.scenarios.conftest import Make
from tests.support.legion import SOURCE, Project, Squad
from tests.support.stage import playing

SCRIPT = """
    [[step]]
    expect = "Paint the shed blue"
    say = "I look closer."
    call = {tool = "mcp__plugin_legion_legion__legion-check", input = {}}

    [[step]]
    expect = "Paint the shed blue"
    say = "The shed is blue."

    [[step]]
    expect = "what happened"
    say = "The door has landed."

    [[step]]
    expect = "and nothing new"
    say = "Quiet."
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Playing]:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "cockpit.toml").write_text(dedent(SCRIPT))
    with playing(scripts, tmp_path, default="cockpit") as running:
        yield running


class Cockpit(Claude):
    """The person's own Claude Code in their checkout."""

    def __init__(self, folder: Path, url: str, project: Project) -> None:
        self._checkout = project.repository.root
        super().__init__(folder=folder, url=url)

    def __post_init__(self) -> None:
        self.folder.mkdir()

    @property
    def work(self) -> Path:
        return self._checkout


def example() -> list[list[str]]:
    """The commands of the document, without the program's name."""
    text = (SOURCE.parent / "docs" / "plugin.md").read_text()
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return [line.split()[1:] for line in block[1].splitlines()]


def news(config: Path) -> list[str]:
    """The lines of news in the person's conversations."""
    (transcript,) = config.glob("projects/*/*.jsonl")
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]
    added = [entry["attachment"] for entry in entries if entry["type"] == "attachment"]
    texts = [text for one in added if one.get("type") == "hook_additional_context" for text in one["content"]]
    return [line for text in texts for line in text.splitlines() if line.startswith("- ")]


def test_a_conversation_of_the_person_sees_the_board_uses_the_tools_and_hears_the_news(
    house: Squad, make: Make, stage: Playing, tmp_path: Path
):
    project = make()
    ticket = project.dispatch("Paint the shed blue", "echo blue > shed.txt")
    project.until(ticket, "done")
    claude = Cockpit(tmp_path / "person", stage.url, project)
    config = claude.folder / "config"
    config.mkdir()
    settings = '{\n    "theme": "dark"\n}'
    (config / "settings.json").write_text(settings)
    own = {"CLAUDE_CONFIG_DIR": str(config), "HOME": str(claude.folder)}
    install, show, remove = example()
    installed = house.cli(*install, cwd=project.repository.root, extra=own)
    assert installed.returncode == 0, installed.stderr
    assert house.cli(*show, cwd=project.repository.root, extra=own).stdout == f"user: {config}/skills/legion\n"

    env = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "LEGION_CONFIG": str(house.settings)}
    allowed = ("--allowedTools", "mcp__plugin_legion_legion")
    with claude.talk(*allowed, **env) as talk:
        first = talk.say("/legion:status")
        assert first.result["result"] == "The shed is blue."
        (begun,) = [event for event in first.events if event.get("subtype") == "init"]
        assert {f"legion:{name}" for name in ("plan", "dispatch", "status", "inbox", "diff", "coordinator")} <= set(
            begun["slash_commands"]
        )
        assert "split-tickets" in begun["slash_commands"]
        assert "legion:leader" in begun["agents"]
        (used,) = first.blocks("tool_result")
        assert "Paint the shed blue" in json.dumps(used["content"])

    other = project.dispatch("Hang the door", "echo door > door.txt")
    project.until(other, "done")
    with claude.talk(*allowed, **env) as talk:
        assert talk.say("what happened?").result["result"] == "The door has landed."
        assert talk.say("and nothing new").result["result"] == "Quiet."
    # The scripted model does not read what hooks add; the transcript shows what the conversation holds.
    # Questions of other projects of the same squad are news, too.
    assert [one for one in news(config) if "Ticket" in one] == [f"- Ticket {other} has landed"]

    facts = {"workspace": {"current_dir": project.cwd}, "context_window": {"used_percentage": 42.4}}
    line = house.cli("plugin", "line", cwd=tmp_path, stdin=json.dumps(facts), extra=own)
    assert line.stdout.startswith("legion: 0 working, 0 queued")
    assert line.stdout.endswith(", context 42%\n")

    token = house.data.plugin_token.read_text().strip()
    bearer = DaemonConnection(DaemonAddress(socket=str(house.data.socket), token=token))
    with pytest.raises(NotAllowed, match="opens Legion's tools only"):
        bearer.ask("GET", "/v1/status")
    removed = house.cli(*remove, cwd=project.repository.root, extra=own)
    assert removed.returncode == 0, removed.stderr
    assert (config / "settings.json").read_text() == settings
    assert not (config / "skills").exists()
    assert not (config / "commands").exists()
    with pytest.raises(NotAllowed, match="token is missing or wrong"):
        bearer.ask("POST", "/mcp", body={"jsonrpc": "2.0", "id": 1, "method": "ping"})
