"""One run of Claude Code: begins or resumes its conversation, passes on what it is told, and hears it to the end.

It may say several times that it is through (subagents in the background begin new turns), so it is heard until its
pipe closes; what it said last counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import uuid
from collections.abc import AsyncIterator, Coroutine
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

from legion.drivers import Ask, Ending, Host, InterruptRequest, PermissionAnswer, StartFailed, StopRequest, TellRequest
from legion.drivers.claude import transcript
from legion.drivers.claude.journal import ClaudeJournal, digest_of, summary
from legion.drivers.claude.mcp_server import server
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.claude.outcome import FinalResult, SessionFacts, StopCause, judge
from legion.drivers.claude.permission_rules import rule_for
from legion.drivers.claude.state_timing import StateTiming
from legion.drivers.claude.transport import HostTransport

_NEVER = ("AskUserQuestion",)
"""Nobody could answer with more than yes or no."""
_OWN_AGENTS = ("ListAgents", "SendMessage")
"""Claude Code's own way to other sessions: who has Legion's would look for its colleagues in the wrong place."""
_LAST_WORDS = 2000
_REFUSALS = 2
_INTERRUPTION = 2.0
"""Seconds that it gets to end when a person interrupts it and says nothing further."""
_LONGEST_SILENCE = 300.0
"""Seconds after its last word: Claude Code waits for what it runs in the background, which may never end."""
_LONGEST_OUTAGE = 240.0
"""Seconds between the first vain request and the last: where each one hangs, Claude Code would go on for an hour."""


class ClaudeSession:
    """A conversation, and everything that can happen around it."""

    def __init__(self, host: Host, options: ClaudeOptions) -> None:
        self._host = host
        self._options = options
        self._begun_before = transcript.has_messages(options.config_dir, options.conversation)
        self._forks = (
            not self._begun_before
            and bool(options.fork_of)
            and transcript.is_there(options.config_dir, options.fork_of)
        )
        self._resumed = self._begun_before or self._forks
        if not self._begun_before:
            transcript.put_aside(options.config_dir, options.conversation)
        self._notes = ClaudeJournal(host)
        self._complaints = bytearray()
        self._client_options = self._told()
        hear = None if options.camera is None else StateTiming(host.record, options.camera).hear
        self._transport = HostTransport(host, self._client_options, complain=self._complain, hear=hear)
        self._client = ClaudeSDKClient(self._client_options, self._transport)
        self._begun = False
        self._prompted = asyncio.Event()
        self._final: FinalResult | None = None
        self._error = ""
        self._resets_at: float | None = None
        self._asked = StopCause.NOTHING
        self._refusals = 0
        self._vain_since: float | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._told_ids: set[str] = set()
        self._unheard: dict[str, str] = {}
        """Messages that were sent and not yet echoed, by their id."""
        self._questions: dict[str, asyncio.Future[PermissionAnswer]] = {}
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._obeying: set[asyncio.Task[None]] = set()

    async def until_end(self) -> Ending:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._host.asks.fileno(), self._take_asks)
        try:
            await self._begin()
            await self._listen()
        except ClaudeSDKError as broken:
            self._complain(f"\n{broken}\n".encode())
        finally:
            loop.remove_reader(self._host.asks.fileno())
        code = await self._leave()
        if self._is_beyond_use():
            transcript.put_aside(self._options.config_dir, self._options.conversation)
        return judge(
            SessionFacts(
                final=self._final,
                error=self._error,
                resets_at=self._resets_at,
                asked=self._asked,
                timeout=self._host.timeout,
                exit_code=code,
                complaint=self._complaints[-_LAST_WORDS:].decode("utf-8", "replace"),
            )
        )

    def _is_beyond_use(self) -> bool:
        """Whether no attempt can go on in this conversation; the next one then begins with the whole briefing."""
        if self._final is not None:
            return self._final.reason == "prompt_too_long"
        # Claude Code names a conversation that it cannot find, read or begin, and ends.
        return not self._begun and self._options.conversation.encode() in self._complaints

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(self._client.connect())
        if self._host.timeout is not None:
            loop.call_later(self._host.timeout, self._out_of_time)
        loop.add_reader(self._host.deaths.fileno(), self._look_for_death)
        await asyncio.wait((connecting, self._exit), return_when=asyncio.FIRST_COMPLETED)
        await self._connected(connecting)
        self._begun = True
        self._host.record("conversation", id=self._options.conversation, resumed=self._resumed)
        prompt = self._options.again if self._resumed else self._options.prompt
        id = self._options.prompt_id or str(uuid.uuid4())
        await self._tell(TellRequest(id=id, text=prompt.read_text("utf-8")))
        self._prompted.set()

    async def _connected(self, connecting: asyncio.Task[None]) -> None:
        """Raises ClaudeSDKError where the program ended, or said nothing, before there was a conversation."""
        if not connecting.done():
            # The SDK would wait for the answer of a dead program.
            await self._transport.hear_out()
            connecting.cancel()
        try:
            await connecting
        except asyncio.CancelledError:
            raise CLIConnectionError("Claude Code ended before the conversation began.") from None
        except (ClaudeSDKError, StartFailed):
            raise
        except Exception as silence:  # the SDK has no class for a program that does not answer in time
            raise CLIConnectionError(f"Claude Code did not answer ({silence}).") from silence

    async def _listen(self) -> None:
        async for message in self._client.receive_messages():
            self._notes.take(message)
            self._learn(message)
            if self._leaving is not None:
                self._leaving.cancel()
                self._leaving = None
            if isinstance(message, ResultMessage) and not self._unheard:
                await self._transport.end_input()
            if self._final is not None and not self._transport.is_ready():
                loop = asyncio.get_running_loop()
                self._leaving = loop.call_later(_LONGEST_SILENCE, self._end_leftovers)

    def _learn(self, message: Message) -> None:
        match message:
            case AssistantMessage():
                self._error = message.error or ""
                self._vain_since = None
            case SystemMessage(subtype="api_retry"):
                self._count_refusals(message.data)
                self._look_for_outage()
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
                if uuid_of_echo in self._unheard:
                    del self._unheard[uuid_of_echo]
                    self._host.record("heard", id=uuid_of_echo)

    def _count_refusals(self, retry: dict[str, Any]) -> None:
        """A key may have been changed a moment ago, so one refusal is forgiven."""
        self._refusals = self._refusals + 1 if retry.get("error_status") in (401, 403) else 0
        if self._refusals == _REFUSALS:
            self._spawn(self._end(StopCause.REFUSAL, self._host.grace))

    def _look_for_outage(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._vain_since is None:
            self._vain_since = now
        elif now - self._vain_since > _LONGEST_OUTAGE:
            self._spawn(self._end(StopCause.OUTAGE, self._host.grace))

    def _told(self) -> ClaudeAgentOptions:
        options = self._options
        desk = options.desk
        own = [] if desk is None else [f"mcp__{desk.server}__{tool.name}" for tool in desk.tools]
        return ClaudeAgentOptions(
            mcp_servers={} if desk is None else {desk.server: server(desk)},
            system_prompt={"type": "preset", "preset": "claude_code", "append": options.rules},
            session_id=None if self._begun_before else options.conversation,
            resume=options.conversation if self._begun_before else options.fork_of if self._forks else None,
            fork_session=self._forks,
            resume_session_at=options.fork_at or None if self._forks else None,
            model=options.model or None,
            fallback_model=options.fallback_model or None,
            permission_mode=options.permission_mode.value,
            allowed_tools=[*options.allowed_tools, *own],
            tools=None if options.tools is None else list(options.tools),
            disallowed_tools=[*_NEVER, *(_OWN_AGENTS if desk is not None else ())],
            max_turns=options.max_turns,
            max_budget_usd=options.budget_usd,
            # Nobody's settings: a repository's could name another endpoint or run commands, a person's are for them.
            setting_sources=[],
            strict_mcp_config=True,
            verbatim_prompts=True,
            can_use_tool=self._may_use if options.asks else None,
            hooks={"PreToolUse": [HookMatcher(hooks=[self._about_to_use])]},
            extra_args={"replay-user-messages": None},
            cwd=self._host.program.cwd,
        )

    def _take_asks(self) -> None:
        """One task per ask, begun in the order in which they came."""
        for ask in self._host.asks.take():
            self._spawn(self._obey(ask))

    def _spawn(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._obeying.add(task)
        task.add_done_callback(self._obeying.discard)

    async def _obey(self, ask: Ask) -> None:
        match ask:
            case TellRequest() if self._is_news(ask):
                self._host.record("told", id=ask.id, text=ask.text)
                # Nothing comes before what the run begins with.
                await self._prompted.wait()
                await self._tell(ask)
            case InterruptRequest(then=then) if then is None or self._is_news(then):
                await self._interrupt(then)
            case PermissionAnswer():
                waiting = self._questions.get(ask.question)
                if waiting is not None and not waiting.done():
                    waiting.set_result(ask)
            case StopRequest(grace=grace):
                grace = self._host.grace if grace is None else grace
                self._host.record("stopping", grace=grace)
                await self._end(StopCause.STOP, grace)

    def _is_news(self, message: TellRequest) -> bool:
        """Whoever does not know whether it was heard asks again."""
        known = message.id in self._told_ids
        self._told_ids.add(message.id)
        return not known

    async def _tell(self, message: TellRequest) -> None:
        """The message counts as told once the program echoes it; until then the run does not end by itself."""
        self._unheard[message.id] = message.text
        try:
            await self._client.query(_one(message))
        except ClaudeSDKError:
            del self._unheard[message.id]
            self._host.record("not-heard", id=message.id)

    async def _interrupt(self, then: TellRequest | None) -> None:
        self._host.record("interrupted")
        if then is None:
            # What it was told and has not heard would begin its next turn at once; that waits until it goes on.
            await self._end(StopCause.INTERRUPT, _INTERRUPTION)
            return
        self._host.record("told", id=then.id, text=then.text)
        self._unheard[then.id] = then.text
        with contextlib.suppress(ClaudeSDKError, TimeoutError):
            await asyncio.wait_for(self._client.interrupt(), self._host.grace)
        await self._tell(then)

    async def _may_use(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        """A person decides; without an answer in time it is denied."""
        question = str(uuid.uuid4())
        answer: asyncio.Future[PermissionAnswer] = asyncio.get_running_loop().create_future()
        self._questions[question] = answer
        self._host.record("asked", question=question, tool=tool, input=summary(input), rule=rule_for(tool, input))
        self._notes.say(f"  asks a person: may it use {tool}: {summary(input)}")
        try:
            permit = await asyncio.wait_for(answer, self._options.patience)
        except TimeoutError:
            permit = PermissionAnswer(question=question, allowed=False, why="Nobody answered in time.")
        del self._questions[question]
        self._host.record("answered", question=question, allowed=permit.allowed)
        if permit.allowed:
            return PermissionResultAllow()
        return PermissionResultDeny(message=permit.why or "A person said no; find another way.")

    async def _about_to_use(self, facts: HookInput, call: str | None, context: HookContext) -> HookJSONOutput:
        """What begins here and never returns was cut off, and whoever resumes the conversation is told so."""
        tool, input = facts.get("tool_name"), facts.get("tool_input")
        self._host.record("begins", call=call, tool=tool, input=summary(input), digest=digest_of(input))
        return {}

    def _out_of_time(self) -> None:
        self._host.record("out-of-time", timeout=self._host.timeout)
        self._spawn(self._end(StopCause.TIME, self._host.grace))

    async def _end(self, why: StopCause, grace: float) -> None:
        """Ask politely, close its input, and set the times for SIGTERM and SIGKILL."""
        if self._asked in (StopCause.NOTHING, StopCause.INTERRUPT):
            self._asked = why
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
        """Whatever still runs is nobody's work any more; its last word counts."""
        self._host.record("left-behind", silence=_LONGEST_SILENCE)
        self._kill()

    def _signal(self, number: int) -> None:
        if not self._exit.done():
            self._transport.child.signal(number)

    def _kill(self) -> None:
        if not self._exit.done():
            self._transport.child.kill()

    def _look_for_death(self) -> None:
        if not self._transport.started or self._exit.done():
            return
        try:
            code = self._transport.child.poll()
        except StartFailed as never:
            self._exit.set_exception(never)
            return
        if code is not None:
            self._exit.set_result(code)

    async def _leave(self) -> int:
        """Until nothing of it lives. Raises StartFailed where it turns out that it never began."""
        self._look_for_death()
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
        for id in self._unheard:
            self._host.record("not-heard", id=id)
        return code

    def _complain(self, data: bytes) -> None:
        """What it prints beside the conversation: kept for people, its end for the verdict."""
        self._host.output.write(data)
        self._complaints += data
        del self._complaints[:-_LAST_WORDS]


async def _one(message: TellRequest) -> AsyncIterator[dict[str, Any]]:
    """A user message that carries our id, so that its echo can be known."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": message.text},
        "parent_tool_use_id": None,
        "uuid": message.id,
    }
