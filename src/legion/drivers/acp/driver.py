"""The driver of programs that speak the Agent Client Protocol, as a runner loads it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from acp import PROTOCOL_VERSION, Client, RequestError, schema
from acp.client.connection import ClientSideConnection
from pydantic import ValidationError

from legion import __version__
from legion.domain.text import to_json
from legion.drivers import Ending, Host, PermissionAnswer
from legion.drivers.acp.client import SessionClient
from legion.drivers.acp.terminals import Terminals
from legion.drivers.acp.updates import Updates
from legion.drivers.turns import conversations
from legion.drivers.turns.journal import RunJournal
from legion.drivers.turns.options import TurnOptions
from legion.drivers.turns.outcome import readable
from legion.drivers.turns.process import AgentProcess, LongLine
from legion.drivers.turns.run import ProgramGone, TurnActivity, TurnReport, run_turns
from legion.drivers.turns.tool_server import ToolServer


class AcpDriver:
    def run(self, host: Host) -> Ending:
        return run_turns(host, AcpAgent)


# One session of a program that speaks the Agent Client Protocol: opened or loaded, prompted, cancelled, closed.

_T = TypeVar("_T")

_START_PATIENCE = 120.0
"""Seconds: some programs unpack themselves at their first start."""
_CANCEL_PATIENCE = 10.0
"""Seconds for a cancelled turn to end; then the program is killed."""
_AUTH_REQUIRED = -32000


def _nothing() -> None:
    """Until the run is there."""


class AcpAgent:
    def __init__(self, host: Host, options: TurnOptions, activity: TurnActivity) -> None:
        self._host = host
        self._options = options
        self._process = AgentProcess(host)
        self._updates = Updates(RunJournal(host), activity)
        self._terminals = Terminals(host, sandboxed=options.sandboxed, on_look=self._process.check_exit)
        self._client = SessionClient(host, options, self._updates, self._terminals, lambda: self.on_work())
        self._tools: ToolServer | None = None
        self._connection: ClientSideConnection | None = None
        self._session = ""
        self._turn_over = asyncio.Event()
        self._turn_over.set()
        self.on_work: Callable[[], None] = _nothing
        """Called when the program works on its prompt."""
        self._ended_by_us = False

    @property
    def denied(self) -> list[str]:
        return self._client.denied

    @property
    def stderr(self) -> str:
        return self._process.stderr

    async def open(self) -> bool:
        await self._process.start(self._host.program.argv)
        # The library takes one object for both directions; ours limits the length of lines.
        self._connection = ClientSideConnection(cast(Client, self._client), PipeTransport(self._process))
        started = await self._answer(self._connection.initialize, _START_PATIENCE, **self._introduction())
        abilities = started.agent_capabilities or schema.AgentCapabilities()
        servers = await self._servers(abilities)
        known = conversations.remembered(self._options.home, self._options.conversation)
        if known and abilities.load_session and await self._load(known, servers):
            return True
        await self._new(servers)
        return False

    async def turn(self, text: str) -> TurnReport:
        assert self._connection is not None, "open"
        self._turn_over.clear()
        self._client.start_turn(self._session)
        self._updates.start_turn()
        try:
            answer = await self._connection.prompt(
                session_id=self._session, prompt=[schema.TextContentBlock(type="text", text=text)]
            )
        except RequestError as refused:
            self._updates.end_turn()
            return TurnReport(text=self._updates.last_text, error=_sentence(refused))
        except ValidationError as strange:
            self._updates.end_turn()
            return TurnReport(error=f"its answer cannot be read ({strange.error_count()} faults)")
        except (ConnectionError, OSError) as gone:
            self._updates.end_turn()
            raise self._gone() from gone
        finally:
            self._turn_over.set()
        self._updates.end_turn()
        return TurnReport(
            reason=str(answer.stop_reason),
            text=self._updates.last_text,
            usage={} if answer.usage is None else answer.usage.model_dump(exclude_none=True, exclude={"field_meta"}),
            cost_usd=self._updates.cost_usd,
        )

    async def cancel(self) -> None:
        """Returns when the turn has ended. A program that ignores it is killed."""
        if self._connection is None or not self._session:
            return
        try:
            await self._connection.cancel(session_id=self._session)
            self._client.cancel()
            await asyncio.wait_for(self._turn_over.wait(), _CANCEL_PATIENCE)
        except TimeoutError:
            self._ended_by_us = True
            self._process.kill()
        except (ConnectionError, OSError) as gone:
            raise self._gone() from gone

    def answer(self, answer: PermissionAnswer) -> None:
        self._client.answer(answer)

    def kill(self) -> None:
        self._process.kill()

    async def close(self, grace: float) -> int | None:
        await self._terminals.close()
        code = await self._process.end(grace)
        if self._connection is not None:
            await self._connection.close()
        if self._tools is not None:
            await self._tools.close()
        return code

    def _introduction(self) -> dict[str, object]:
        """What the program may ask of us. Without it, programs use their own tools, inside the sandbox."""
        wanted = self._options.program.acp
        files = schema.FileSystemCapabilities(read_text_file=wanted.files, write_text_file=wanted.files)
        return {
            "protocol_version": PROTOCOL_VERSION,
            "client_capabilities": schema.ClientCapabilities(fs=files, terminal=wanted.terminals),
            "client_info": schema.Implementation(name="legion", title="Legion", version=__version__),
        }

    async def _servers(self, abilities: schema.AgentCapabilities) -> list[schema.HttpMcpServer]:
        """Legion's own tools, where the run has them and the program takes servers over HTTP."""
        link, takes = self._options.link, abilities.mcp_capabilities
        if link is None or takes is None or not takes.http:
            return []
        self._tools = await ToolServer.open(link)
        self._host.forward(self._tools.port)
        header = schema.HttpHeader(name="Authorization", value=f"Bearer {self._tools.token}")
        return [schema.HttpMcpServer(type="http", name=link.server, url=self._tools.url, headers=[header])]

    async def _load(self, session: str, servers: list[schema.HttpMcpServer]) -> bool:
        """False where the program does not know the conversation any more."""
        assert self._connection is not None, "open"
        program = self._options.program
        conversations.copy_before_load(self._options.home, program.conversations, program.acp.copy, session)
        self._client.replays = True
        try:
            loaded = await self._answer(
                self._connection.load_session,
                _START_PATIENCE,
                cwd=str(self._host.program.cwd),
                session_id=session,
                mcp_servers=servers,
            )
            await self._client.end_replay()
        except _Refused as refused:
            self._process.keep(f"The conversation could not be resumed: {refused}\n".encode(errors="replace"))
            conversations.forget(self._options.home, self._options.conversation)
            return False
        finally:
            self._client.replays = False
        self._session = session
        await self._choose_mode(loaded.modes)
        return True

    async def _new(self, servers: list[schema.HttpMcpServer]) -> None:
        assert self._connection is not None, "open"
        facts = {"cwd": str(self._host.program.cwd), "mcp_servers": servers}
        try:
            made = await self._answer(self._connection.new_session, _START_PATIENCE, **facts)
        except _Refused as refused:
            login = self._options.program.acp.login
            if refused.code != _AUTH_REQUIRED or not login:
                raise ProgramGone(f"{self._options.program.title} opens no session: {refused}") from refused
            await self._log_in(login)
            made = await self._answer(self._connection.new_session, _START_PATIENCE, **facts)
        self._session = made.session_id
        conversations.remember(self._options.home, self._options.conversation, made.session_id)
        await self._choose_mode(made.modes)

    async def _log_in(self, method: str) -> None:
        assert self._connection is not None, "open"
        try:
            await self._answer(self._connection.authenticate, _START_PATIENCE, method_id=method)
        except _Refused as refused:
            raise ProgramGone(f"{self._options.program.title} refuses to authenticate: {refused}") from refused

    async def _choose_mode(self, modes: schema.SessionModeState | None) -> None:
        """By the end of its id: some programs use addresses as ids."""
        wanted = self._options.program.acp.mode
        if not wanted or modes is None:
            return
        for mode in modes.available_modes:
            if mode.id.endswith(wanted) and mode.id != modes.current_mode_id:
                assert self._connection is not None, "open"
                await self._answer(
                    self._connection.set_session_mode, _START_PATIENCE, session_id=self._session, mode_id=mode.id
                )

    async def _answer(self, ask: Callable[..., Awaitable[_T]], patience: float, **facts: object) -> _T:
        """Raises ProgramGone where the program ended or is silent, _Refused where it answers with an error."""
        try:
            return await asyncio.wait_for(ask(**facts), patience)
        except TimeoutError:
            raise ProgramGone(f"{self._options.program.title} did not answer within {patience:g} s.") from None
        except RequestError as refused:
            raise _Refused(refused) from refused
        except ValidationError as strange:
            raise ProgramGone(f"{self._options.program.title} answers in a form that cannot be read.") from strange
        except (ConnectionError, OSError) as gone:
            raise self._gone() from gone

    def _gone(self) -> ProgramGone:
        if self._ended_by_us:
            late = f"did not end its turn within {_CANCEL_PATIENCE:g} s of an interrupt"
            return ProgramGone(f"{self._options.program.title} {late}, so Legion ended it.")
        stderr = readable(self._process.stderr)
        more = f": {stderr}" if stderr else ""
        return ProgramGone(f"{self._options.program.title} ended in the middle of its work{more}.")


class _Refused(ProgramGone):
    """The program answered with an error."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(_sentence(error))
        self.code = error.code


def _sentence(error: RequestError) -> str:
    """The error's own words, and those of its details."""
    details = ""
    if isinstance(error.data, dict):
        found = [error.data.get(name) for name in ("details", "message", "error")]
        details = next((one for one in found if isinstance(one, str)), "")
    elif isinstance(error.data, str):
        details = error.data
    return f"{error}: {details}" if details and details not in str(error) else str(error)


# Moves JSON-RPC messages over the pipes of a program. The program may be hostile: its lines are limited in length.

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[\w.:-]{1,100}")')
_METHOD = re.compile(rb'"method"\s*:')
_TOO_LONG = -32600
_MOST_UNREAD = 32 << 20
"""Bytes of answers that a program may leave unread before no more of its requests are read."""


class PipeTransport:
    """The transport of an `acp.Connection`. What is no message goes to the run's log."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        if process.stdin is not None:
            process.stdin.transport.set_write_buffer_limits(high=_MOST_UNREAD)

    async def send(self, message: dict[str, Any]) -> None:
        writer = self._process.stdin
        if writer is None or writer.is_closing():
            raise ConnectionError("The program no longer reads its input.")
        writer.write(to_json(message, ensure_ascii=False).encode() + b"\n")
        await writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        await self._answers_are_read()
        while line := await self._process.read_line():
            if isinstance(line, LongLine):
                unread = await self._answer(line)
                if unread is not None:
                    return unread
                continue
            message = _parse(line)
            if message is not None:
                return message
            if line.strip():
                self._process.keep(line)
        return None

    async def _answer(self, line: LongLine) -> dict[str, Any] | None:
        """Without an answer the program waits for ever, and without its own answer we do. Its id is at one of the ends
        of the line, before or behind what makes it long.
        """
        found = _ID.search(line.start) or _ID.search(line.end)
        if found is None:
            return None
        error = {"code": _TOO_LONG, "message": line.sentence}
        failed = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": error}
        if not (_METHOD.search(line.start) or _METHOD.search(line.end)):
            return failed
        await self.send(failed)
        return None

    async def _answers_are_read(self) -> None:
        """The library starts a task for each message, and reads the next one before that has run."""
        await asyncio.sleep(0)
        writer = self._process.stdin
        if writer is not None and not writer.is_closing():
            with contextlib.suppress(ConnectionError):
                await writer.drain()

    async def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and "jsonrpc" in message else None
