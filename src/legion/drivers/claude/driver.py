"""The driver of Claude Code that a runner loads."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIConnectionError,
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    Message,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    RateLimitEvent,
    ResultMessage,
    SystemMessage,
    ToolPermissionContext,
)

from legion.drivers import (
    ControlRequest,
    Ending,
    EndKind,
    Host,
    InterruptRequest,
    PermissionAnswer,
    StartFailed,
    StopRequest,
    TellRequest,
)
from legion.drivers.claude import transcript
from legion.drivers.claude.journal import ClaudeJournal, FinalResult, SessionFacts, StateTiming, judge
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.claude.transport import HostTransport, ProgramEnded, server
from legion.drivers.turns.journal import digest_of, summary
from legion.drivers.turns.outcome import StopCause
from legion.drivers.turns.permission_rules import RequestTasks, rule_for


class ClaudeDriver:
    def run(self, host: Host) -> Ending:
        try:
            return asyncio.run(_run_session(host))
        except StartFailed as failure:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))


async def _run_session(host: Host) -> Ending:
    options = ClaudeOptions.from_json(host.options)
    session = ClaudeSession(host, options)
    ending = await session.run_to_end()
    if not session.could_not_fork:
        return ending
    host.output.write(b"The conversation to copy cannot be read: a fresh one starts.\n")
    host.record("not-forked", source=options.fork_of)
    return await ClaudeSession(host, replace(options, fork_of="", fork_at="")).run_to_end()


# One run of Claude Code: starts or resumes its conversation, delivers messages, and reads its output to the end.
#
# It may report several results (subagents in the background start new turns), so its output is read until the pipe
# closes; the last result counts.

_DISALLOWED = ("AskUserQuestion",)
"""A person can answer only yes or no."""
_OWN_AGENTS = ("ListAgents", "SendMessage")
"""Claude Code's own tools for other sessions: an agent with Legion's tools would use the wrong ones."""
_KEPT_STDERR = 2000
_MOST_REFUSALS = 2
_INTERRUPT_GRACE = 2.0
"""Seconds to exit after an interrupt without a follow-up message."""
_LONGEST_SILENCE = 300.0
"""Seconds after its result: Claude Code waits for its background processes, which may never end."""
_LONGEST_OUTAGE = 240.0
"""Seconds of failed requests: where each one hangs, Claude Code would retry for an hour."""


class ClaudeSession:
    """A conversation, with its control requests, deadlines and process."""

    def __init__(self, host: Host, options: ClaudeOptions) -> None:
        self._host = host
        self._options = options
        self._has_messages = transcript.has_messages(options.config_dir, options.conversation)
        self._forks = (
            not self._has_messages
            and bool(options.fork_of)
            and transcript.has_messages(options.config_dir, options.fork_of)
        )
        self._resumed = self._has_messages or self._forks
        if not self._has_messages:
            transcript.put_aside(options.config_dir, options.conversation)
        self._journal = ClaudeJournal(host)
        self._stderr = bytearray()
        self._client_options = self._sdk_options()
        on_message = None if options.camera is None else StateTiming(host.record, options.camera).handle
        self._transport = HostTransport(host, self._client_options, on_stderr=self._keep_stderr, on_message=on_message)
        self._client = ClaudeSDKClient(self._client_options, self._transport)
        self._connected = False
        self._prompted = asyncio.Event()
        self._final: FinalResult | None = None
        self._error = ""
        self._resets_at: float | None = None
        self._cause = StopCause.NOTHING
        self._refusals = 0
        self._failing_since: float | None = None
        self._leftovers_timer: asyncio.TimerHandle | None = None
        self._unconfirmed: dict[str, str] = {}
        """Messages that were sent and not yet echoed, by their id."""
        self._questions: dict[str, asyncio.Future[PermissionAnswer]] = {}
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._requests = RequestTasks()

    async def run_to_end(self) -> Ending:
        try:
            with self._requests.listening(self._host.asks, self._handle):
                await self._start()
                await self._read_messages()
        except ClaudeSDKError as broken:
            self._keep_stderr(f"\n{broken}\n".encode())
        code = await self._wait_exit()
        if self._cannot_resume():
            transcript.put_aside(self._options.config_dir, self._options.conversation)
        return judge(
            SessionFacts(
                final=self._final,
                error=self._error,
                resets_at=self._resets_at,
                cause=self._cause,
                timeout=self._host.timeout,
                exit_code=code,
                stderr=self._stderr[-_KEPT_STDERR:].decode("utf-8", "replace"),
            )
        )

    @property
    def could_not_fork(self) -> bool:
        """Claude Code names a conversation that it cannot copy, and exits."""
        return self._forks and not self._connected and self._options.fork_of.encode() in self._stderr

    def _cannot_resume(self) -> bool:
        """Whether the conversation is unusable; the next attempt then starts with the complete briefing."""
        if self._final is not None:
            return self._final.reason == "prompt_too_long"
        # Claude Code names a conversation that it cannot find, read or start, and exits.
        return not self._connected and self._options.conversation.encode() in self._stderr

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(self._client.connect())
        if self._host.timeout is not None:
            loop.call_later(self._host.timeout, self._out_of_time)
        loop.add_reader(self._host.deaths.fileno(), self._check_exit)
        await asyncio.wait((connecting, self._exit), return_when=asyncio.FIRST_COMPLETED)
        await self._wait_connected(connecting)
        self._connected = True
        self._host.record("conversation", id=self._options.conversation, resumed=self._resumed)
        prompt = self._options.again if self._resumed else self._options.prompt
        id = self._options.prompt_id or str(uuid.uuid4())
        await self._send(TellRequest(id=id, text=prompt.read_text("utf-8")))
        self._prompted.set()

    async def _wait_connected(self, connecting: asyncio.Task[None]) -> None:
        """Raises ClaudeSDKError where the program exited, or did not answer, before there was a conversation."""
        if not connecting.done():
            # The SDK would wait for the answer of a dead program.
            await self._transport.drain()
            connecting.cancel()
        try:
            await connecting
        except (asyncio.CancelledError, ProgramEnded):
            raise CLIConnectionError("Claude Code exited before the conversation started.") from None
        except (ClaudeSDKError, StartFailed):
            raise
        except Exception as silence:  # the SDK has no class for a program that does not answer in time
            raise CLIConnectionError(f"Claude Code did not answer ({silence}).") from silence

    async def _read_messages(self) -> None:
        async for message in self._client.receive_messages():
            self._journal.take(message)
            self._update(message)
            if self._leftovers_timer is not None:
                self._leftovers_timer.cancel()
                self._leftovers_timer = None
            if isinstance(message, ResultMessage) and not self._unconfirmed:
                await self._transport.end_input()
            if self._final is not None and not self._transport.is_ready():
                loop = asyncio.get_running_loop()
                self._leftovers_timer = loop.call_later(_LONGEST_SILENCE, self._end_leftovers)

    def _update(self, message: Message) -> None:
        match message:
            case AssistantMessage():
                self._error = message.error or ""
                self._failing_since = None
            case SystemMessage(subtype="api_retry"):
                self._count_refusals(message.data)
                self._check_outage()
            case RateLimitEvent() if message.rate_limit_info.status == "rejected":
                self._resets_at = message.rate_limit_info.resets_at
            case ResultMessage():
                self._final = FinalResult(
                    subtype=message.subtype,
                    is_error=message.is_error,
                    reason=message.terminal_reason or "",
                    text=message.result or " ".join(message.errors or []),
                    status=message.api_error_status,
                    denials=tuple(str(denial.get("tool_name")) for denial in message.permission_denials or []),
                )
            case _:
                uuid_of_echo = getattr(message, "uuid", None)
                if uuid_of_echo in self._unconfirmed:
                    del self._unconfirmed[uuid_of_echo]
                    self._host.record("heard", id=uuid_of_echo)

    def _count_refusals(self, retry: dict[str, Any]) -> None:
        """A key may just have been changed, so one refusal is tolerated."""
        self._refusals = self._refusals + 1 if retry.get("error_status") in (401, 403) else 0
        if self._refusals == _MOST_REFUSALS:
            self._requests.spawn(self._end(StopCause.REFUSAL, self._host.grace))

    def _check_outage(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since > _LONGEST_OUTAGE:
            self._requests.spawn(self._end(StopCause.OUTAGE, self._host.grace))

    def _sdk_options(self) -> ClaudeAgentOptions:
        options = self._options
        link = options.desk
        own = [] if link is None else [f"mcp__{link.server}__{tool.name}" for tool in link.tools]
        return ClaudeAgentOptions(
            mcp_servers={} if link is None else {link.server: server(link)},
            # Without `snapshot` a copied or resumed conversation would keep the rules with which it began.
            system_prompt={"type": "preset", "preset": "claude_code", "append": options.rules, "snapshot": False},
            session_id=None if self._has_messages else options.conversation,
            resume=options.conversation if self._has_messages else options.fork_of if self._forks else None,
            fork_session=self._forks,
            resume_session_at=options.fork_at or None if self._forks else None,
            model=options.model or None,
            fallback_model=options.fallback_model or None,
            permission_mode=options.permission_mode.value,
            allowed_tools=[*options.allowed_tools, *own],
            tools=None if options.tools is None else list(options.tools),
            disallowed_tools=[*_DISALLOWED, *(_OWN_AGENTS if link is not None else ())],
            max_turns=options.max_turns,
            max_budget_usd=options.budget_usd,
            # No settings files: a repository's could name another endpoint or run commands.
            setting_sources=[],
            strict_mcp_config=True,
            verbatim_prompts=True,
            can_use_tool=self._may_use if options.asks else None,
            hooks={"PreToolUse": [HookMatcher(hooks=[self._before_tool])]},
            extra_args={"replay-user-messages": None},
            include_partial_messages=options.streams,
            cwd=self._host.program.cwd,
        )

    async def _handle(self, ask: ControlRequest) -> None:
        match ask:
            case TellRequest():
                self._host.record("told", id=ask.id, text=ask.text)
                # The run's own prompt comes first.
                await self._prompted.wait()
                await self._send(ask)
            case InterruptRequest(then=then):
                await self._interrupt(then)
            case PermissionAnswer():
                waiting = self._questions.get(ask.question)
                if waiting is not None and not waiting.done():
                    waiting.set_result(ask)
            case StopRequest(grace=grace):
                grace = self._host.grace if grace is None else grace
                self._host.record("stopping", grace=grace)
                await self._end(StopCause.STOP, grace)

    async def _send(self, message: TellRequest) -> None:
        """The message is delivered once the program echoes it; until then the run does not end by itself."""
        self._unconfirmed[message.id] = message.text
        try:
            await self._client.query(_user_message(message))
        except ClaudeSDKError:
            del self._unconfirmed[message.id]
            self._host.record("not-heard", id=message.id)

    async def _interrupt(self, then: TellRequest | None) -> None:
        self._host.record("interrupted")
        if then is None:
            # Messages that are still queued would start its next turn at once; they wait until it resumes.
            await self._end(StopCause.INTERRUPT, _INTERRUPT_GRACE)
            return
        self._host.record("told", id=then.id, text=then.text)
        self._unconfirmed[then.id] = then.text
        with contextlib.suppress(ClaudeSDKError, TimeoutError):
            await asyncio.wait_for(self._client.interrupt(), self._host.grace)
        await self._send(then)

    async def _may_use(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        """A person decides; without an answer in time it is denied."""
        question = str(uuid.uuid4())
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[question] = answer
        self._host.record("asked", question=question, tool=tool, input=summary(input), rule=rule_for(tool, input))
        self._journal.print(f"  asks a person for permission to use {tool}: {summary(input)}")
        try:
            permit = await asyncio.wait_for(answer, self._options.patience)
        except TimeoutError:
            permit = PermissionAnswer(question=question, allowed=False, why="No answer came in time.")
        del self._questions[question]
        self._host.record("answered", question=question, allowed=permit.allowed)
        if permit.allowed:
            return PermissionResultAllow()
        return PermissionResultDeny(message=permit.why or "A person said no; find another way.")

    async def _before_tool(self, facts: HookInput, call: str | None, context: HookContext) -> HookJSONOutput:
        """A call that starts here and never returns was cut off; the prompt that resumes the conversation lists it."""
        tool, input = facts.get("tool_name"), facts.get("tool_input")
        self._host.record("begins", call=call, tool=tool, input=summary(input), digest=digest_of(input))
        return {}

    def _out_of_time(self) -> None:
        self._host.record("out-of-time", timeout=self._host.timeout)
        self._requests.spawn(self._end(StopCause.TIME, self._host.grace))

    async def _end(self, why: StopCause, grace: float) -> None:
        """Interrupt it, close its input, and schedule SIGTERM and SIGKILL."""
        if self._cause in (StopCause.NOTHING, StopCause.INTERRUPT):
            self._cause = why
        if not self._transport.started:
            return
        loop = asyncio.get_running_loop()
        if grace <= 0:
            self._transport.child.kill()
            return
        loop.call_later(grace / 2, self._signal, signal.SIGTERM)
        loop.call_later(grace, self._kill)
        with contextlib.suppress(ClaudeSDKError, TimeoutError):
            await asyncio.wait_for(self._client.interrupt(), grace / 4)
        await self._transport.end_input()

    def _end_leftovers(self) -> None:
        """Kill background processes; the last result counts."""
        self._host.record("left-behind", silence=_LONGEST_SILENCE)
        self._kill()

    def _signal(self, number: int) -> None:
        if not self._exit.done():
            self._transport.child.signal(number)

    def _kill(self) -> None:
        if not self._exit.done():
            self._transport.child.kill()

    def _check_exit(self) -> None:
        if not self._transport.started or self._exit.done():
            return
        try:
            code = self._transport.child.poll()
        except StartFailed as never:
            self._exit.set_exception(never)
            return
        if code is not None:
            self._exit.set_result(code)

    async def _wait_exit(self) -> int:
        """Returns when all of its processes are gone. Raises StartFailed where it turns out that it never started."""
        self._check_exit()
        loop = asyncio.get_running_loop()
        killing = loop.call_later(self._host.grace, self._kill)
        try:
            code = await self._exit
        finally:
            killing.cancel()
            loop.remove_reader(self._host.deaths.fileno())
            if self._transport.started:
                self._transport.child.sweep()
        with contextlib.suppress(ClaudeSDKError):
            await self._client.disconnect()
        for id in self._unconfirmed:
            self._host.record("not-heard", id=id)
        return code

    def _keep_stderr(self, data: bytes) -> None:
        """Output outside of the conversation: kept for people, its end for `judge`."""
        self._host.output.write(data)
        self._stderr += data
        del self._stderr[:-_KEPT_STDERR]


async def _user_message(message: TellRequest) -> AsyncIterator[dict[str, Any]]:
    """A user message that carries our id, so that its echo can be recognized."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": message.text},
        "parent_tool_use_id": None,
        "uuid": message.id,
    }
