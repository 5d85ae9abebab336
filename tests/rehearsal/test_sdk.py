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


def test_a_client_of_the_sdk_plays_a_script_over_several_messages_and_reads_why_one_was_refused(stage, write, tmp_path):
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
        [[step]]
        expect = "a word that nobody says"
        say = "x"
        """,
    )
    outcome = options(tmp_path / "agent", stage.url)
    seen, results = asyncio.run(talk(outcome, "please", "once more", "and more"))
    assert seen[:4] == ["Write", "Written.", "retry", "Again."]
    assert [(result.is_error, result.api_error_status) for result in results] == [
        (False, None), (False, None), (True, 400),
    ]  # fmt: skip
    assert "step 4 expects 'a word that nobody says'" in (results[-1].result or "")
    assert (tmp_path / "agent" / "a.txt").read_text() == "a"
    assert [line.step for line in stage.lines()][:4] == [1, 2, 3, 3]
