"""The client's side of a session: answers the requests of a program, and passes its updates on."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from typing import Any

from acp import RequestError, schema

from legion.drivers import Host, PermissionAnswer
from legion.drivers.acp.permissions import PermissionQuery, PermissionVerdict, Policy, decide
from legion.drivers.acp.terminals import Terminals, command_line, shown
from legion.drivers.acp.updates import Updates
from legion.drivers.acp.worktree_files import WorktreeFiles
from legion.drivers.turns.journal import RunJournal, cut, summary
from legion.drivers.turns.options import TurnOptions

_REPLAY_SILENCE = 0.2
"""Seconds without an update after which the history of a loaded conversation is complete."""
_LONGEST_REPLAY = 60.0
_MOST_QUESTIONS = 20
"""Of a program at once; more are denied."""
_LONGEST_PATH = 300
_MOST_DENIED = 1000
"""Names that are kept."""


class SessionClient:
    """An `acp.Client`. The program may be hostile: no request reaches anything outside of the worktree."""

    def __init__(
        self,
        host: Host,
        options: TurnOptions,
        updates: Updates,
        terminals: Terminals,
        on_work: Callable[[], None],
    ) -> None:
        self._host = host
        self._options = options
        self._updates = updates
        self._terminals = terminals
        self._journal = RunJournal(host)
        self._on_work = on_work
        self._files = WorktreeFiles(host.program.cwd)
        self._policy = Policy(
            mode=options.permission_mode,
            allowed=options.allowed_tools,
            sandboxed=options.sandboxed,
            asks=options.asks,
            tree=host.program.cwd,
        )
        self._questions: dict[str, asyncio.Future[PermissionAnswer | None]] = {}
        self._session = ""
        self._cancelled = False
        """The current turn is cancelled: the protocol wants every open request for a permission answered so."""
        self._granted: set[str] = set()
        """Paths whose change was allowed in this turn."""
        self.replays = False
        """While a conversation is loaded, its history comes as updates."""
        self._replayed = asyncio.Event()
        self.denied: list[str] = []

    def answer(self, answer: PermissionAnswer) -> None:
        waiting = self._questions.get(answer.question)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def start_turn(self, session: str) -> None:
        self._session, self._cancelled = session, False
        self._granted.clear()

    def cancel(self) -> None:
        """The turn is cancelled, and with it every question of it."""
        self._cancelled = True
        for waiting in self._questions.values():
            if not waiting.done():
                waiting.set_result(None)

    def _works(self, session_id: str) -> bool:
        """Whether this is part of the run's own conversation, on whose prompt the program then works."""
        own = not self._session or session_id == self._session
        if own and not self.replays:
            self._on_work()
        return own

    async def end_replay(self) -> None:
        """Some programs answer that the conversation is loaded while they still send its history."""
        latest = time.monotonic() + _LONGEST_REPLAY
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < latest:
                await asyncio.wait_for(self._replayed.wait(), _REPLAY_SILENCE)
                self._replayed.clear()

    async def session_update(self, session_id: str, update: Any, **_meta: Any) -> None:  # noqa: ANN401 (the library's)
        if self.replays:
            self._replayed.set()
            return
        if isinstance(update, schema.AvailableCommandsUpdate | schema.ConfigOptionUpdate | schema.UserMessageChunk):
            return
        if self._works(session_id):
            self._updates.take(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.RequestPermissionResponse:
        self._works(session_id)
        call, tool, input = self._updates.begin(tool_call)
        request = PermissionQuery.of(str(tool_call.kind or tool), input, self._updates.places_of(call))
        allowed = not self._cancelled and await self._is_allowed(request, tool=tool, input=input, call=call)
        if self._cancelled:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        if allowed:
            self._granted.update(request.paths)
        return schema.RequestPermissionResponse(outcome=_outcome(options, allowed=allowed))

    async def _is_allowed(self, request: PermissionQuery, *, tool: str, input: object, call: str | None) -> bool:
        """As the settings say, or a person; a denial is recorded."""
        verdict = decide(request, self._policy)
        asked = verdict is PermissionVerdict.ASK
        allowed = await self._ask(tool, input, request) if asked else verdict is PermissionVerdict.ALLOW
        if not allowed and not self._cancelled:
            self.denied.append(tool)
            del self.denied[_MOST_DENIED:]
            self._journal.record_denial(tool, call)
        return allowed

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=self._files.read(path, line, limit))

    async def write_text_file(
        self,
        session_id: str,
        path: str,
        content: str,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.WriteTextFileResponse | None:
        self._works(session_id)
        call, input = str(uuid.uuid4()), {"file_path": path}
        self._journal.record_call(call, "edit", input)
        self._journal.record_start(call, "edit", input)
        request = PermissionQuery.of("edit", input, [])
        if path not in self._granted and not await self._is_allowed(request, tool="edit", input=input, call=call):
            raise RequestError.invalid_params({"details": f"The change is not allowed: {path}"})
        try:
            self._files.write(path, content)
        except RequestError as refused:
            self._journal.record_return(call, str(refused.data), failed=True)
            raise
        self._journal.record_return(call, "", failed=False, places=[cut(path, _LONGEST_PATH)])
        return schema.WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.CreateTerminalResponse:
        """A command needs the same permission here as in a tool of the program's own."""
        folder = self._files.folder(cwd)
        words = shown(command, args or [])
        input = {"command": words}
        if not await self._is_allowed(PermissionQuery.of("execute", input, []), tool="execute", input=input, call=None):
            raise RequestError.invalid_params({"details": f"The command is not allowed: {words}"})
        self._journal.print(f"$ {words}")
        variables = {one.name: one.value for one in env or []}
        argv = command_line(command, args or [])
        return self._terminals.create(argv, cwd=folder, env=variables, limit=output_byte_limit)

    async def terminal_output(
        self,
        session_id: str,
        terminal_id: str,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.TerminalOutputResponse:
        return self._terminals.output(terminal_id)

    async def wait_for_terminal_exit(
        self,
        session_id: str,
        terminal_id: str,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.WaitForTerminalExitResponse:
        return await self._terminals.wait(terminal_id)

    async def kill_terminal(
        self,
        session_id: str,
        terminal_id: str,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.KillTerminalResponse:
        self._terminals.kill(terminal_id)
        return schema.KillTerminalResponse()

    async def release_terminal(
        self,
        session_id: str,
        terminal_id: str,
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.ReleaseTerminalResponse:
        self._terminals.release(terminal_id)
        return schema.ReleaseTerminalResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return

    async def _ask(self, tool: str, input: object, request: PermissionQuery) -> bool:
        """A person decides; without an answer in time it is denied."""
        if len(self._questions) >= _MOST_QUESTIONS:
            return False
        question = str(uuid.uuid4())
        answer: asyncio.Future[PermissionAnswer | None] = asyncio.get_running_loop().create_future()
        self._questions[question] = answer
        self._host.record("asked", question=question, tool=tool, input=summary(input), rule=request.rule)
        self._journal.print(f"  asks a person for permission to use {tool}: {summary(input)}")
        try:
            permit = await asyncio.wait_for(answer, self._options.patience)
        except TimeoutError:
            permit = PermissionAnswer(question=question, allowed=False, why="No answer came in time.")
        del self._questions[question]
        allowed = permit is not None and permit.allowed
        self._host.record("answered", question=question, allowed=allowed)
        return allowed


def _outcome(options: list[schema.PermissionOption], *, allowed: bool) -> schema.AllowedOutcome | schema.DeniedOutcome:
    """The narrowest of the program's options: this once rather than for always."""
    wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
    return schema.DeniedOutcome(outcome="cancelled")
