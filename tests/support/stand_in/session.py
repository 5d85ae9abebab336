"""The session of the stand-in: takes messages until its input is closed, and plays a turn for each."""

from __future__ import annotations

import os
import sys
import threading

from tests.support.stand_in.line import Interrupted, Json, Line, new_id
from tests.support.stand_in.model import ApiError, Model
from tests.support.stand_in.tools import Tools
from tests.support.stand_in.transcript import VERSION, Transcript


def options_of(words: list[str]) -> dict[str, str]:
    """`--name value`, `--name=value` and `--name`."""
    found: dict[str, str] = {}
    waiting = ""
    for word in words:
        if word.startswith("--"):
            waiting, _, value = word[2:].partition("=")
            found[waiting] = value
        elif waiting:
            found[waiting] = word
    return found


class Session:
    """Takes messages until the input is closed; each starts a turn."""

    def __init__(self, options: dict[str, str]) -> None:
        self.line = Line()
        self._script = Transcript(options)
        self._id = self._script.id
        self._model = Model(self.line, options, self._id)
        self._tools = Tools(self.line, options, self._id)
        self._most_turns = int(options.get("max-turns", "0"))
        self._system = f"{options.get('append-system-prompt', '')}\nPrimary working directory: {self._script.cwd}"
        self._usage = {"inputTokens": 0, "outputTokens": 0, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
        self._turns = 0

    def run(self) -> None:
        threading.Thread(target=self.line.listen, daemon=True).start()
        while True:
            with self.line.news:
                while not self.line.messages and not self.line.over:
                    self.line.news.wait()
                if not self.line.messages:
                    return
                message = self.line.messages.popleft()
                self.line.interrupted = False
            self._turn(message)

    def _turn(self, message: Json) -> None:
        self._send("system", subtype="init", model=self._model.name, tools=self._tools.names)
        self._script.add("user", [{"type": "text", "text": message["message"]["content"]}], uuid=message["uuid"])
        self._echo(message)
        try:
            text = self._work()
        except ApiError as error:
            block = {"type": "text", "text": str(error)}
            self._send("assistant", message={"model": "<synthetic>", "content": [block]}, error=error.kind)
            facts = {"is_error": True, "terminal_reason": "api_error", "api_error_status": error.status}
            self._result("success", str(error), **facts)
        except Interrupted:
            self._script.add("user", [{"type": "text", "text": "[Request interrupted by user]"}])
            self._result("error_during_execution", "", is_error=True, terminal_reason="aborted_tools")
        else:
            if text is None:
                self._result("error_max_turns", "", is_error=True, terminal_reason="max_turns")
            else:
                self._result("success", text, is_error=False, terminal_reason="completed")

    def _work(self) -> str | None:
        """The last text of the turn; None where it has used up its turns."""
        while True:
            answer = self._answer()
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not calls:
                return "\n".join(block["text"] for block in answer["content"] if block["type"] == "text")
            self._use(calls)
            self._take_queued()
            if self._turns == self._most_turns:
                return None

    def _answer(self) -> Json:
        tools = [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in self._tools.names]
        answer = self._model.answer({"system": self._system, "tools": tools, "messages": self._script.messages})
        self._turns += 1
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        for ours, theirs in zip(self._usage, names, strict=True):
            self._usage[ours] += answer["usage"].get(theirs) or 0
        facts = {name: answer[name] for name in ("id", "type", "model", "usage", "stop_reason")}
        for block in answer["content"]:
            self._script.add("assistant", [block], message=facts)
            self._send("assistant", message={**facts, "role": "assistant", "content": [block]})
        self._script.join(len(answer["content"]))
        return answer

    def _use(self, calls: list[Json]) -> None:
        """Results of all calls are one message of the request; those after an interrupt are not made."""
        results, interrupted = [], False
        for call in calls:
            try:
                self.line.check()
                text, failed = self._tools.use(call)
            except Interrupted:
                text, failed, interrupted = "[Request interrupted by user for tool use]", True, True
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}
            results.append(result)
            self._script.add("user", [result], toolUseResult=text)
            self._send("user", message={"role": "user", "content": [result]})
        self._script.join(len(results))
        if interrupted:
            raise Interrupted

    def _take_queued(self) -> None:
        while self.line.messages:
            message = self.line.messages.popleft()
            self._script.add_queued(message)
            self._echo(message)

    def _echo(self, message: Json) -> None:
        self._send("user", message=message["message"], uuid=message["uuid"], isReplay=True)

    def _result(self, subtype: str, text: str, **facts: object) -> None:
        usage = {self._model.name: {**self._usage, "costUSD": 0.0}}
        times = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": self._turns, "total_cost_usd": 0.0, "usage": {}}
        denials = self._tools.denials
        self._send(
            "result", subtype=subtype, result=text, modelUsage=usage, permission_denials=denials, **times, **facts
        )

    def _send(self, kind: str, **facts: object) -> None:
        self.line.send(**{"type": kind, "session_id": self._id, "parent_tool_use_id": None, "uuid": new_id(), **facts})


def main() -> None:
    if "--version" in sys.argv:
        sys.stdout.write(f"{VERSION} (Claude Code, stand-in)\n")
        return
    Session(options_of(sys.argv[1:])).run()
    sys.stdout.flush()
    # Its reader still waits for input.
    os._exit(0)
