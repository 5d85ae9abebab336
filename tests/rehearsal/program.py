"""The real Claude Code, started as `claude -p` against a rehearsal, and a plain caller of the same API."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import claude_agent_sdk

PROGRAM = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
MODEL = "claude-sonnet-4-5"
PATIENCE = 100.0

Json = dict[str, Any]


def environment(folder: Path, url: str, **more: str) -> dict[str, str]:
    """A home of its own, no talk with anybody but the rehearsal, few retries."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": "not-a-key",
        **more,
    }


@dataclass(frozen=True, kw_only=True)
class ClaudeOutput:
    """What the program printed, line by line."""

    code: int | None
    """None while it goes on."""
    events: tuple[Json, ...]

    @property
    def result(self) -> Json:
        return next(event for event in reversed(self.events) if event["type"] == "result")

    @property
    def retries(self) -> list[Json]:
        return [event for event in self.events if event.get("subtype") == "api_retry"]

    def blocks(self, kind: str) -> list[Json]:
        """All content blocks of a kind that the model sent or got back."""
        talk = [event["message"]["content"] for event in self.events if event["type"] in ("assistant", "user")]
        return [block for content in talk if not isinstance(content, str) for block in content if block["type"] == kind]

    @property
    def texts(self) -> list[str]:
        return [block["text"] for block in self.blocks("text")]


@dataclass(kw_only=True)
class Claude:
    """One agent: a folder to work in, and a conversation that goes on from run to run."""

    folder: Path
    url: str
    conversation: str = field(default_factory=lambda: str(uuid.uuid4()))
    begun: bool = False

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def start(self, prompt: str, *options: str, **more: str) -> subprocess.Popen[str]:
        return self._start(["-p", prompt, *options], subprocess.DEVNULL, more)

    @contextlib.contextmanager
    def talk(self, *options: str, **more: str) -> Iterator[Talk]:
        """One process that hears several messages, one after the other."""
        one = Talk(self._start(["-p", "--input-format", "stream-json", *options], subprocess.PIPE, more))
        try:
            yield one
        finally:
            one.end()

    def _start(self, words: list[str], stdin: int, more: Mapping[str, str]) -> subprocess.Popen[str]:
        which = "--resume" if self.begun else "--session-id"
        self.begun = True
        argv = [str(PROGRAM), *words, which, self.conversation, "--output-format", "stream-json", "--verbose"]
        return subprocess.Popen(
            [*argv, "--permission-mode", "acceptEdits", "--model", MODEL],
            cwd=self.work,
            env=environment(self.folder, self.url, **more),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def wait_until_written(self, text: str) -> None:
        """Claude Code writes its transcript a moment after it acts, and nothing tells when."""
        deadline = time.monotonic() + PATIENCE
        while not any(text in path.read_text() for path in self.folder.glob("config/projects/*/*.jsonl")):
            assert time.monotonic() < deadline, f"{text!r} does not come into the transcript"
            select.select([], [], [], 0.02)

    def run(self, prompt: str, *options: str, **more: str) -> ClaudeOutput:
        return finish(self.start(prompt, *options, **more))


class Talk:
    """A Claude Code at work, and what it prints until the end of each turn."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, text: str) -> ClaudeOutput:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"type": "user", "message": {"role": "user", "content": text}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        events: list[Json] = []
        while not events or events[-1]["type"] != "result":
            events.append(json.loads(self._process.stdout.readline()))
        return ClaudeOutput(code=None, events=tuple(events))

    def end(self) -> int:
        """Its exit code. It has written everything down by then."""
        with self._process:
            try:
                if self._process.stdin is not None and not self._process.stdin.closed:
                    self._process.communicate(timeout=PATIENCE)
            finally:
                self._process.kill()
        return self._process.returncode


def finish(process: subprocess.Popen[str]) -> ClaudeOutput:
    with process:
        try:
            reply, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return ClaudeOutput(code=process.returncode, events=tuple(json.loads(line) for line in reply.splitlines()))


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.content)
        return found

    @property
    def events(self) -> list[Json]:
        lines = self.content.decode().splitlines()
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def ask(url: str, *messages: Json, method: str = "POST", path: str = "/v1/messages", **more: Any) -> Answer:
    """A plain request, as any client of the API would send it."""
    facts = {"model": MODEL, "max_tokens": 1000, "messages": messages, **more}
    headers = {"content-type": "application/json", **facts.pop("headers", {})}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(facts) if method == "POST" else None, headers)
        answer = connection.getresponse()
        return Answer(status=answer.status, headers=dict(answer.headers.items()), content=answer.read())
    finally:
        connection.close()


def user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def model(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def use(tool: str, number: int = 1) -> Json:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}


def result(text: str, number: int = 1) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}]}
