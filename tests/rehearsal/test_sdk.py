"""The real Claude Code as the SDK drives it: one process, many messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
)

from tests.rehearsal.program import MODEL, environment


def options(folder: Path, url: str) -> ClaudeAgentOptions:
    folder.mkdir(parents=True)
    return ClaudeAgentOptions(
        cwd=folder,
        env=environment(folder, url),
        model=MODEL,
        permission_mode="acceptEdits",
        system_prompt={"type": "preset", "preset": "claude_code", "append": "rehearsal: sdk"},
        setting_sources=[],
    )


async def talk(outcome: ClaudeAgentOptions, *prompts: str) -> tuple[list[str], list[ResultMessage]]:
    """What came, in one word each, and the results."""
    seen, results = [], []
    async with ClaudeSDKClient(outcome) as client:
        for prompt in prompts:
            await client.query(prompt)
            async for message in client.receive_response():
                match message:
                    case SystemMessage(subtype="api_retry"):
                        seen.append("retry")
                    case AssistantMessage(content=[TextBlock(text=text)]):
                        seen.append(text)
                    case AssistantMessage(content=[ToolUseBlock(name=name)]):
                        seen.append(name)
                    case ResultMessage():
                        results.append(message)
    return seen, results


def test_a_client_of_the_sdk_plays_a_script_over_several_messages(stage, write, tmp_path):
    write(
        "sdk",
        """
        [[step]]
        call = {tool = "Write", input = {file_path = "{cwd}/a.txt", content = "a"}}
        [[step]]
        say = "Written."
        usage = {input = 10, output = 20}
        [[step]]
        status = 529
        times = 1
        expect = "once more"
        say = "Again."
        """,
    )
    outcome = options(tmp_path / "agent", stage.url)
    seen, results = asyncio.run(talk(outcome, "please", "once more"))
    assert seen == ["Write", "Written.", "retry", "Again."]
    assert [result.is_error for result in results] == [False, False]
    assert (tmp_path / "agent" / "a.txt").read_text() == "a"
    assert [line.step for line in stage.lines()] == [1, 2, 3, 3]


def test_a_client_of_the_sdk_is_told_why_a_request_was_refused(stage, write, tmp_path):
    write("sdk", '[[step]]\nexpect = "a word that nobody says"\nsay = "x"')
    _, (result,) = asyncio.run(talk(options(tmp_path / "agent", stage.url), "please"))
    assert (result.is_error, result.api_error_status) == (True, 400)
    assert "step 1 expects 'a word that nobody says'" in (result.result or "")
