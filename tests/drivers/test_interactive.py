"""The interactive forms of programs: command lines, the conversation that they open, and Legion's tools in them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from legion.drivers import Program, registry
from legion.drivers.profile import (
    GatewayEndpoint,
    ModelSetup,
    PreparedRun,
    ProgramFile,
    ProgramSettings,
    ProgramUnusable,
    RunInput,
    RunRequest,
    ToolLink,
    ToolText,
)
from legion.drivers.terminal.driver import served, with_tools
from legion.drivers.terminal_options import TerminalOptions
from legion.drivers.turns import conversations

LINK = ToolLink(
    record="/nowhere", token="secret", server="legion", tools=(ToolText(name="x", description="y", schema={}),)
)


def opened(name: str, folder: Path, *, link: ToolLink | None = LINK) -> PreparedRun:
    driver = registry.find(name)
    assert driver is not None
    for part in ("state", "given", "tree"):
        (folder / part).mkdir(exist_ok=True)
    return driver.interactive(
        RunRequest(
            input=RunInput(prompt="the briefing", resume_prompt="again", tool_link=link),
            tree=folder / "tree",
            state=folder / "state",
            given=folder / "given",
            env={"PATH": "/usr/bin"},
            sandboxed=True,
            model=ModelSetup(
                program=ProgramFile(path=Path("/bin/sh"), version="1", bundled=False),
                access=GatewayEndpoint(url="http://gateway", token="pass", oauth=False),
                settings=ProgramSettings(),
                conversation="ours",
                budget_usd=None,
            ),
        )
    )


@pytest.mark.parametrize("name", ["opencode", "qwen", "copilot", "pi"])
def test_a_program_opens_its_own_conversation(name: str, tmp_path: Path):
    fresh = opened(name, tmp_path)
    assert (fresh.program.argv[0], fresh.program.terminal) == ("/bin/sh", True)
    assert TerminalOptions.from_json(fresh.options).prompt == "the briefing", "before its first message"
    conversations.remember(tmp_path / "state" / name, "ours", "theirs-1")
    again = opened(name, tmp_path)
    assert "theirs-1" in again.program.argv
    assert TerminalOptions.from_json(again.options).prompt == ""


def test_legions_tools_are_named_where_the_run_has_them(tmp_path: Path):
    for name in ("opencode", "qwen", "copilot", "claude"):
        made, plain = opened(name, tmp_path), opened(name, tmp_path, link=None)
        assert TerminalOptions.from_json(made.options).link == LINK
        assert TerminalOptions.from_json(plain.options).link is None
        assert (made.program.argv, made.program.env) != (plain.program.argv, plain.program.env)
    assert TerminalOptions.from_json(opened("pi", tmp_path).options).link is None, "it takes none"


def test_a_program_without_an_interactive_form_is_refused(tmp_path: Path):
    for name, title in (("cline", "Cline"), ("codex", "Codex"), ("gemini", "Gemini CLI")):
        with pytest.raises(ProgramUnusable, match=f"{title} has no interactive form"):
            opened(name, tmp_path)


def test_the_address_of_the_tools_is_filled_in_and_only_their_token_opens_them():
    config = json.dumps({"url": "{tools_url}", "headers": {"Authorization": "Bearer {tools_token}"}, "other": "{x}"})
    with served(LINK) as server:
        made = with_tools(Program(argv=("p", config), cwd=Path("/"), env={"A": "{tools_url}"}), server)
        facts = json.loads(made.argv[1])
        assert (facts["url"], made.env["A"], made.env["LEGION_TOOLS_URL"]) == (server.url,) * 3
        assert facts["other"] == "{x}"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        with urllib.request.urlopen(urllib.request.Request(server.url, body, facts["headers"])) as answer:
            assert [one["name"] for one in json.load(answer)["result"]["tools"]] == ["x"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(urllib.request.Request(server.url, body))
