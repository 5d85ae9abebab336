"""The driver of programs that print JSON lines, as a runner loads it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from legion.drivers import Ending, Host, PermissionAnswer
from legion.drivers.turns import conversations
from legion.drivers.turns.journal import RunJournal, cut
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.outcome import readable
from legion.drivers.turns.process import AgentProcess
from legion.drivers.turns.run import ProgramGone, TurnActivity, TurnReport, run_turns


class JsonLinesDriver:
    def run(self, host: Host) -> Ending:
        return run_turns(host, JsonLinesAgent)


# One conversation with a program that prints JSON lines: a process per turn, each of which resumes the one before.

_CANCEL_PATIENCE = 5.0
"""Seconds to exit after SIGINT; then it is killed."""
_EXIT_PATIENCE = 10.0
"""Seconds to exit after its last line."""
_MOST_CALLS = 200
"""Open at once; of further ones nothing is recorded until they return."""
_LONGEST_NAME = 300


def _nothing() -> None:
    """Until the run is there."""


class JsonLinesAgent:
    def __init__(self, host: Host, options: TurnOptions, activity: TurnActivity) -> None:
        self._host = host
        self._options = options
        self._activity = activity
        self._journal = RunJournal(host)
        self._read = READERS[options.program.json.reader]
        self._process: AgentProcess | None = None
        self._session = ""
        self._open: set[str] = set()
        self._text = ""
        self._error = ""
        self._report: TurnReport | None = None
        self._cancelled = False
        self._code: int | None = None
        self.denied: list[str] = []
        """These programs ask for no permission: the sandbox holds them."""
        self.on_work: Callable[[], None] = _nothing
        """Called when the program works on its prompt."""

    @property
    def stderr(self) -> str:
        return "" if self._process is None else self._process.stderr

    async def open(self) -> bool:
        if self._options.program.json.resume:
            self._session = conversations.remembered(self._options.home, self._options.conversation)
        return bool(self._session)

    async def turn(self, text: str) -> TurnReport:
        self._text, self._error, self._report, self._cancelled = "", "", None, False
        self._open.clear()
        process = self._process = AgentProcess(self._host)
        await process.start(self._command_line(text))
        try:
            await self._send(process, text)
            await self._read_lines(process)
        finally:
            self._code = await process.end(_EXIT_PATIENCE)
            self._activity.open_calls = 0
        if self._cancelled:
            return TurnReport(reason="cancelled", text=self._text)
        if self._report is not None:
            return self._report
        if self._error:
            return TurnReport(text=self._text, error=self._error)
        stderr = readable(process.stderr)
        more = f": {stderr}" if stderr else ""
        title = self._options.program.title
        raise ProgramGone(f"{title} ended without a result (exit code {self._code}){more}.")

    async def cancel(self) -> None:
        """Returns when the turn's process has ended."""
        self._cancelled = True
        # Once it has ended, the next turn's process may take its place.
        process = self._process
        if process is None or process.exit.done():
            return
        process.signal(signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(process.exit), _CANCEL_PATIENCE)
        process.kill()

    def answer(self, answer: PermissionAnswer) -> None:
        """It asks nothing."""

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    async def close(self, grace: float) -> int | None:
        return self._code

    def take_session(self, id: str) -> None:
        if id != self._session and conversations.is_id(id):
            self._session = id
            conversations.remember(self._options.home, self._options.conversation, id)

    def take_text(self, text: str) -> None:
        if text.strip():
            self._text = text
            self._journal.record_text(text)

    def take_thinking(self, text: str) -> None:
        self._journal.record_thought(text)

    def start_call(self, call: str, tool: str, input: object) -> None:
        call, tool = cut(call, _LONGEST_NAME), cut(tool, _LONGEST_NAME)
        if call not in self._open and len(self._open) < _MOST_CALLS:
            self._open.add(call)
            self._activity.open_calls = len(self._open)
            self._journal.record_call(call, tool, input)
            self._journal.record_start(call, tool, input)

    def end_call(self, call: str, text: str, *, failed: bool) -> None:
        call = cut(call, _LONGEST_NAME)
        self._open.discard(call)
        self._activity.open_calls = len(self._open)
        self._journal.record_return(call, text, failed=failed)

    def take_error(self, message: str) -> None:
        self._error = message
        if self._process is not None:
            self._process.keep(f"{message}\n".encode(errors="replace"))

    def end_turn(self, reason: str, usage: Mapping[str, Any], cost_usd: float | None) -> None:
        self._report = TurnReport(reason=reason, text=self._text, usage=dict(usage), cost_usd=cost_usd)

    def _command_line(self, text: str) -> tuple[str, ...]:
        program, *arguments = self._host.program.argv
        if self._session:
            arguments = [word.replace("{session}", self._session) for word in self._options.program.json.resume]
        return (program, *(word.replace("{prompt}", text) for word in arguments))

    async def _send(self, process: AgentProcess, text: str) -> None:
        assert process.stdin is not None, "it talks"
        with contextlib.suppress(ConnectionError, OSError):
            if self._options.program.json.prompt_on_stdin:
                process.stdin.write(text.encode("utf-8", "replace"))
                await process.stdin.drain()
        process.stdin.close()

    async def _read_lines(self, process: AgentProcess) -> None:
        """To the end of its output, or until it stays silent after the end of its turn."""
        while True:
            is_over = self._report is not None and not self._open
            try:
                async with asyncio.timeout(_EXIT_PATIENCE if is_over else None):
                    line = await process.read_line()
            except TimeoutError:
                process.keep(b"It had ended its turn and did not exit, so it was ended.\n")
                process.kill()
                return
            if not line:
                return
            if isinstance(line, bytes):
                self._take(process, line)

    def _take(self, process: AgentProcess, line: bytes) -> None:
        try:
            facts = json.loads(line)
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            process.keep(line)
            return
        self._activity.note()
        before = self._session
        self._read(facts, self)
        if self._session == before and (self._text or self._open):
            self.on_work()


# Reads the JSON lines of agent programs: one reader per program, each into the same few facts. Pure.

Line = Mapping[str, Any]


class TurnSink(Protocol):
    """What a turn consists of."""

    def take_session(self, id: str) -> None:
        """The program's own id of the conversation."""
        ...

    def take_text(self, text: str) -> None: ...

    def take_thinking(self, text: str) -> None: ...

    def start_call(self, call: str, tool: str, input: object) -> None: ...

    def end_call(self, call: str, text: str, *, failed: bool) -> None: ...

    def take_error(self, message: str) -> None:
        """An error that may still be followed by a retry."""
        ...

    def end_turn(self, reason: str, usage: Mapping[str, Any], cost_usd: float | None) -> None: ...


def read_codex(line: Line, sink: TurnSink) -> None:
    """`codex exec --json`. Its usage counts the complete conversation."""
    match line:
        case {"type": "thread.started", "thread_id": str(id)}:
            sink.take_session(id)
        case {"type": "item.started" | "item.completed" as moment, "item": {"type": str(kind)} as item}:
            _read_codex_item(moment == "item.completed", kind, item, sink)
        case {"type": "turn.completed"}:
            usage = line.get("usage")
            sink.end_turn("end_turn", usage if isinstance(usage, dict) else {}, None)
        case {"type": "turn.failed", "error": {"message": str(message)}} | {"type": "error", "message": str(message)}:
            sink.take_error(message)


def _read_codex_item(done: bool, kind: str, item: Line, sink: TurnSink) -> None:
    id = str(item.get("id"))
    match kind:
        case "agent_message" if done:
            sink.take_text(str(item.get("text") or ""))
        case "reasoning" if done:
            sink.take_thinking(str(item.get("text") or ""))
        case "command_execution" | "file_change" | "mcp_tool_call" | "web_search":
            names = ("command", "changes", "arguments", "query")
            sink.start_call(id, kind, {name: item[name] for name in names if name in item})
            if done:
                text = str(item.get("aggregated_output") or "")
                sink.end_call(id, text, failed=item.get("status") == "failed" or item.get("exit_code") not in (None, 0))


def read_pi(line: Line, sink: TurnSink) -> None:
    """`pi --mode json`."""
    match line:
        case {"type": "session", "id": str(id)}:
            sink.take_session(id)
        case {"type": "message_end", "message": {"role": "assistant", "content": list(blocks)} as message}:
            for block in blocks:
                _read_pi_block(block, sink)
            error = message.get("errorMessage")
            if message.get("stopReason") == "error":
                sink.take_error(str(error or "the model did not answer"))
            elif message.get("stopReason") == "stop":
                usage = message.get("usage")
                facts = usage if isinstance(usage, dict) else {}
                sink.end_turn("end_turn", {name: n for name, n in facts.items() if isinstance(n, int)}, _pi_cost(facts))
        case {"type": "tool_execution_start", "toolCallId": str(call), "toolName": str(tool)}:
            sink.start_call(call, tool, line.get("args"))
        case {"type": "tool_execution_end", "toolCallId": str(call), "result": {"content": list(parts)}}:
            texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
            sink.end_call(call, "\n".join(texts), failed=line.get("isError") is True)


def _read_pi_block(block: object, sink: TurnSink) -> None:
    match block:
        case {"type": "text", "text": str(text)}:
            sink.take_text(text)
        case {"type": "thinking", "thinking": str(text)}:
            sink.take_thinking(text)


def _pi_cost(usage: Line) -> float | None:
    match usage:
        case {"cost": {"total": int() | float() as total}} if total > 0:
            return float(total)
    return None


READERS: Mapping[str, Callable[[Line, TurnSink], None]] = {"codex": read_codex, "pi": read_pi}
