"""The conversation, as the next request needs it and as Claude Code keeps it in a file."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

from tests.support.stand_in.line import Json, new_id

VERSION = "2.1.319"


class Transcript:
    """The conversation, as the next request needs it and as the file keeps it."""

    def __init__(self, options: dict[str, str]) -> None:
        self.cwd = str(Path.cwd())
        self.id = options.get("session-id") or options["resume"]
        self.messages: list[Json] = []
        self._projects = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects")
        self._path = self._projects / re.sub(r"[^a-zA-Z0-9]", "-", self.cwd) / f"{self.id}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._last: str | None = None
        if "resume" in options:
            self._load(options["resume"], options.get("resume-session-at", ""))
        elif self._path.exists():
            sys.exit(f"Error: Session ID {self.id} is already in use.")

    def add(self, role: str, content: object, *, uuid: str = "", **facts: object) -> str:
        """A message of the conversation."""
        message = {"role": role, "content": content, **(facts.pop("message", None) or {})}  # type: ignore[dict-item]
        self.messages.append({"role": role, "content": content})
        return self._write(type=role, message=message, uuid=uuid or new_id(), **facts)

    def join(self, count: int) -> None:
        """The last entries are one message of the request."""
        if count > 1:
            last = self.messages[-count:]
            self.messages[-count:] = [{**last[0], "content": [block for one in last for block in one["content"]]}]

    def add_queued(self, message: Json) -> None:
        """A message that came while tools were used: part of the request with their results."""
        text = message["message"]["content"]
        self.messages[-1]["content"].append({"type": "text", "text": text})
        note = {"type": "queued_command", "prompt": text, "source_uuid": message["uuid"]}
        self._write(type="attachment", attachment=note, uuid=new_id())

    def _write(self, **entry: object) -> str:
        uuid = str(entry["uuid"])
        same = {"sessionId": self.id, "cwd": self.cwd, "isSidechain": False, "version": VERSION}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        line = json.dumps({"parentUuid": self._last, **same, "timestamp": stamp, **entry})
        with self._path.open("a") as file:
            file.write(line + "\n")
        self._last = uuid
        return uuid

    def _load(self, source: str, last: str) -> None:
        """What was said so far; where it is forked, into a file of its own."""
        found = next(self._projects.glob(f"*/{source}.jsonl"), None)
        if found is None:
            sys.exit(f"No conversation found with session ID: {source}")
        entries = [json.loads(line) for line in found.read_text().splitlines()]
        if source != self.id:
            kept = [entry.get("uuid") for entry in entries]
            entries = entries[: kept.index(last) + 1] if last else entries
            lines = [json.dumps({**entry, "sessionId": self.id}) + "\n" for entry in entries]
            self._path.write_text("".join(lines))
        else:
            self._path = found
        for entry in entries:
            self._recall(entry)
            self._last = entry.get("uuid") or self._last
        self._close_open_calls()

    def _recall(self, entry: Json) -> None:
        if entry["type"] in ("user", "assistant"):
            message = {name: entry["message"][name] for name in ("role", "content")}
            previous = self.messages[-1] if self.messages else None
            if previous is not None and previous["role"] == message["role"] == "assistant":
                previous["content"] += message["content"]
            else:
                self.messages.append(message)
        elif entry["type"] == "attachment" and entry["attachment"]["type"] == "queued_command":
            self.messages[-1]["content"].append({"type": "text", "text": entry["attachment"]["prompt"]})

    def _close_open_calls(self) -> None:
        """A conversation that was cut off in a tool continues without its call."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last["role"] == "assistant":
            last["content"] = [block for block in last["content"] if block["type"] != "tool_use"]
            if not last["content"]:
                self.messages.pop()
