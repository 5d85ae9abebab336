"""The client's side of a session: answers the requests of a program, and passes its updates on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from acp import RequestError, schema

from legion.drivers import Host, PermissionAnswer
from legion.drivers.acp.terminals import Terminals, command_line, shown
from legion.drivers.acp.updates import Updates
from legion.drivers.turns.journal import RunJournal, cut, summary
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.permission_rules import rule_for
from legion.system import safe_files

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
        self, host: Host, options: TurnOptions, updates: Updates, terminals: Terminals, on_work: Callable[[], None]
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
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_meta: Any
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
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_meta: Any
    ) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=self._files.read(path, line, limit))

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_meta: Any
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
        **_meta: Any,
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

    async def terminal_output(self, session_id: str, terminal_id: str, **_meta: Any) -> schema.TerminalOutputResponse:
        return self._terminals.output(terminal_id)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_meta: Any
    ) -> schema.WaitForTerminalExitResponse:
        return await self._terminals.wait(terminal_id)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_meta: Any) -> schema.KillTerminalResponse:
        self._terminals.kill(terminal_id)
        return schema.KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **_meta: Any) -> schema.ReleaseTerminalResponse:
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
        self._host.record("answered", question=question, allowed=allowed, **({} if permit else {"withdrawn": True}))
        return allowed


def _outcome(options: list[schema.PermissionOption], *, allowed: bool) -> schema.AllowedOutcome | schema.DeniedOutcome:
    """The narrowest of the program's options: this once rather than for always."""
    wanted = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
    return schema.DeniedOutcome(outcome="cancelled")


# Decides whether a program may use a tool that it asks for, by the person's settings and the sandbox. Pure.

_RULE = re.compile(r"([A-Za-z_]+)(?:\((.*)\))?", re.DOTALL)
_COMPOUND = set(";&|`$<>(){}\n\r")
"""A command with one of these may hold another command, which no pattern was meant for."""
_READING = frozenset({"read", "search", "think"})
_WRITING = frozenset({"edit", "delete", "move"})
_TOOLS = {"execute": "Bash", "edit": "Edit", "delete": "Edit", "move": "Edit", "read": "Read", "fetch": "WebFetch"}
"""The settings name tools as Claude Code does."""
_SAME = {"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "WebSearch": "WebFetch"}


class PermissionVerdict(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, kw_only=True)
class PermissionQuery:
    """One use of a tool, as the program describes it."""

    kind: str
    """`read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode` or `other`."""
    command: str = ""
    paths: tuple[str, ...] = ()
    url: str = ""

    @staticmethod
    def of(kind: str, input: object, locations: Sequence[str]) -> PermissionQuery:
        facts = input if isinstance(input, Mapping) else {}
        command = next((facts[name] for name in ("command", "cmd") if isinstance(facts.get(name), str)), "")
        names = ("file_path", "path", "filePath", "filepath", "fileName", "absolute_path")
        named = [facts[name] for name in names if isinstance(facts.get(name), str)]
        url = facts.get("url")
        paths = tuple(dict.fromkeys((*locations, *named)))
        return PermissionQuery(kind=kind, command=command, paths=paths, url=url if isinstance(url, str) else "")

    @property
    def rule(self) -> str:
        """The narrowest rule of the settings that allows exactly this; empty where there is none."""
        tool = _TOOLS.get(self.kind, "")
        input = {"command": self.command, "file_path": self.paths[0] if len(self.paths) == 1 else "", "url": self.url}
        return rule_for(tool, input) if tool else ""


@dataclass(frozen=True, kw_only=True)
class Policy:
    mode: str
    """The permission mode of the settings."""
    allowed: tuple[str, ...]
    """The rules of the settings, such as `Bash(make *)`."""
    sandboxed: bool
    asks: bool
    tree: Path


def decide(request: PermissionQuery, policy: Policy) -> PermissionVerdict:
    if policy.mode == "bypassPermissions" or request.kind == "think":
        return PermissionVerdict.ALLOW
    if any(_matches(rule, request) for rule in policy.allowed):
        return PermissionVerdict.ALLOW
    if policy.mode != "dontAsk":
        inside = all(_is_inside(path, policy.tree) for path in request.paths)
        if request.kind in _READING and inside:
            return PermissionVerdict.ALLOW
        if policy.mode != "default" and _is_harmless(request, policy, inside=inside):
            return PermissionVerdict.ALLOW
    return PermissionVerdict.ASK if policy.asks and policy.mode != "dontAsk" else PermissionVerdict.DENY


def _is_harmless(request: PermissionQuery, policy: Policy, *, inside: bool) -> bool:
    """In a sandbox nothing outside can be harmed; without one only the worktree may change."""
    if policy.sandboxed:
        return request.kind != "switch_mode"
    return request.kind in _WRITING and inside and bool(request.paths)


def _matches(rule: str, request: PermissionQuery) -> bool:
    found = _RULE.fullmatch(rule.strip())
    tool = _TOOLS.get(request.kind)
    if found is None or tool is None or _SAME.get(found[1], found[1]) != tool:
        return False
    pattern = found[2]
    if pattern is None or pattern in ("", "*"):
        return True
    if tool == "Bash":
        return _matches_command(pattern, request.command)
    if tool == "WebFetch":
        return rule == request.rule
    paths = [PurePosixPath(path) for path in request.paths]
    wanted = pattern.removeprefix("/") if pattern.startswith("//") else pattern
    return bool(paths) and all(".." not in path.parts and fnmatchcase(str(path), wanted) for path in paths)


def _matches_command(pattern: str, command: str) -> bool:
    if command == pattern:
        return True
    start = pattern.removesuffix("*").removesuffix(":").rstrip()
    if not pattern.endswith("*") or set(command) & _COMPOUND:
        return False
    return command == start or command.startswith(f"{start} ")


def _is_inside(path: str, tree: Path) -> bool:
    """By its text: the sandbox and the driver's own requests hold what links could change."""
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        return False
    return not pure.is_absolute() or pure.is_relative_to(PurePosixPath(tree))


# Answers a program's requests for files, inside its worktree only. No link is followed, whatever the agent made.

LARGEST = 16 << 20
"""Bytes of a file: it becomes one message."""


class WorktreeFiles:
    def __init__(self, tree: Path) -> None:
        self._tree = tree

    def read(self, path: str, line: int | None, limit: int | None) -> str:
        """Raises RequestError for a file outside, a link, or none."""
        content = safe_files.read(self._tree, self._inside(path), most=LARGEST + 1)
        if content is None:
            raise RequestError.resource_not_found(path)
        if len(content) > LARGEST:
            raise RequestError.invalid_params({"details": f"{path} is larger than {LARGEST >> 20} MB."})
        text = content.decode("utf-8", "replace")
        if line is None and limit is None:
            return text
        lines = text.splitlines(keepends=True)
        first = max(0, (line or 1) - 1)
        return "".join(lines[first : None if limit is None else first + limit])

    def write(self, path: str, content: str) -> None:
        """Raises RequestError for a place outside, or where a link or folder is in the way."""
        data = content.encode("utf-8", "replace")
        if len(data) > LARGEST:
            raise RequestError.invalid_params({"details": f"{path} is larger than {LARGEST >> 20} MB."})
        try:
            safe_files.write(self._tree, self._inside(path), data, keep_mode=True)
        except OSError as fault:
            raise RequestError.invalid_params({"details": f"{path} cannot be written: {fault.strerror}."}) from fault

    def folder(self, path: str | None) -> Path:
        """A folder of the worktree, where a command may start. Raises RequestError for any other, and for links."""
        if path is None or PurePosixPath(path) == PurePosixPath(self._tree):
            return self._tree
        below = self._inside(path)
        place = self._tree / below
        if place.resolve() != self._tree.resolve() / below or not place.is_dir():
            raise RequestError.invalid_params({"details": f"{path} is no folder of the worktree {self._tree}."})
        return place

    def _inside(self, path: str) -> str:
        """The path below the worktree."""
        pure = PurePosixPath(os.path.normpath(path))
        if not pure.is_absolute():
            pure = PurePosixPath(self._tree) / pure
        is_below = pure.is_relative_to(self._tree) and pure != PurePosixPath(self._tree)
        if ".." in PurePosixPath(path).parts or not is_below:
            raise RequestError.invalid_params({"details": f"{path} is outside of the worktree {self._tree}."})
        return str(pure.relative_to(self._tree))
