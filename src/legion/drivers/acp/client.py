"""The client's side of a session: answers the requests of a program, and passes its updates on."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from acp import RequestError, schema

from legion.drivers import Host, PermissionAnswer
from legion.drivers.acp.permissions import PermissionQuery, PermissionVerdict, Policy, decide
from legion.drivers.acp.updates import Updates
from legion.drivers.acp.worktree_files import WorktreeFiles
from legion.drivers.turns.journal import RunJournal, summary
from legion.drivers.turns.options import TurnOptions


class SessionClient:
    """An `acp.Client`. The program may be hostile: no request reaches anything outside of the worktree."""

    def __init__(self, host: Host, options: TurnOptions, updates: Updates, on_work: Callable[[], None]) -> None:
        self._host = host
        self._options = options
        self._updates = updates
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
        self._questions: dict[str, asyncio.Future[PermissionAnswer]] = {}
        self.replays = False
        """While a conversation is loaded, its history comes as updates."""
        self.denied: list[str] = []

    def answer(self, answer: PermissionAnswer) -> None:
        waiting = self._questions.get(answer.question)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def session_update(self, session_id: str, update: Any, **_meta: Any) -> None:  # noqa: ANN401 (the library's)
        if self.replays:
            return
        if not isinstance(update, schema.AvailableCommandsUpdate | schema.ConfigOptionUpdate | schema.UserMessageChunk):
            self._on_work()
        self._updates.take(update)

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_meta: Any,  # noqa: ANN401 (the library's)
    ) -> schema.RequestPermissionResponse:
        call, tool, input = self._updates.begin(tool_call)
        request = PermissionQuery.of(str(tool_call.kind or tool), input, self._updates.places_of(call))
        verdict = decide(request, self._policy)
        if verdict is PermissionVerdict.ASK:
            allowed = await self._ask(tool, input, request)
        else:
            allowed = verdict is PermissionVerdict.ALLOW
        if not allowed:
            self.denied.append(tool)
            self._journal.record_denial(tool, call)
        return schema.RequestPermissionResponse(outcome=_outcome(options, allowed=allowed))

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
        self._files.write(path, content)
        return schema.WriteTextFileResponse()

    async def create_terminal(self, **_facts: Any) -> schema.CreateTerminalResponse:  # noqa: ANN401 (the library's)
        """Programs run commands themselves, in their sandbox: a terminal of ours would have another /tmp."""
        raise RequestError.method_not_found("terminal/create")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return

    async def _ask(self, tool: str, input: object, request: PermissionQuery) -> bool:
        """A person decides; without an answer in time it is denied."""
        question = str(uuid.uuid4())
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[question] = answer
        self._host.record("asked", question=question, tool=tool, input=summary(input), rule=request.rule)
        self._journal.print(f"  asks a person for permission to use {tool}: {summary(input)}")
        try:
            permit = await asyncio.wait_for(answer, self._options.patience)
        except TimeoutError:
            permit = PermissionAnswer(question=question, allowed=False, why="No answer came in time.")
        del self._questions[question]
        self._host.record("answered", question=question, allowed=permit.allowed)
        return permit.allowed


def _outcome(options: list[schema.PermissionOption], *, allowed: bool) -> schema.AllowedOutcome | schema.DeniedOutcome:
    """The narrowest of the program's options: this once rather than for always."""
    wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
    return schema.DeniedOutcome(outcome="cancelled")
