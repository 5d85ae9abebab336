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

    def note_arrival(self, text: str) -> None:
        """It waits in the queue, and is not part of the conversation yet."""
        self._append({"type": "queue-operation", "operation": "enqueue", "sessionId": self.id, "content": text})

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
        self._append({"parentUuid": self._last, **same, "timestamp": stamp, **entry})
        self._last = uuid
        return uuid

    def _append(self, entry: Json) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

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
            if previous is not None and _is_one_message(previous, message):
                previous["content"] += message["content"]
            else:
                self.messages.append(message)
        elif entry["type"] == "attachment" and entry["attachment"]["type"] == "queued_command":
            self.messages[-1]["content"].append({"type": "text", "text": entry["attachment"]["prompt"]})

    def _close_open_calls(self) -> None:
        """A call that was cut off returned nothing."""
        complete: list[Json] = []
        for message, following in zip(self.messages, [*self.messages[1:], None], strict=True):
            complete.append(message)
            if message["role"] == "assistant":
                returned = _results(following) if following is not None and following["role"] == "user" else set()
                missing = [one["id"] for one in message["content"] if one["type"] == "tool_use"]
                lost = [_cut_off(id) for id in missing if id not in returned]
                complete += [{"role": "user", "content": lost}] if lost else []
        self.messages = complete


def _is_one_message(first: Json, second: Json) -> bool:
    """The blocks of an answer, and the results of its calls, are entries of their own."""
    if first["role"] == "assistant":
        return bool(second["role"] == "assistant")
    return bool(_results(first) and _results(second))


def _results(message: Json) -> set[str]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    return {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}


def _cut_off(call: str) -> Json:
    text = "[Request interrupted by user for tool use]"
    return {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": True}
