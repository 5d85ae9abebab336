"""Runs an interactive program in a terminal of its own: relays it to viewers, and reads its state from its output."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import selectors
import signal
import struct
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from legion.domain.terminal import TerminalEnd, TerminalSize
from legion.drivers import (
    Child,
    ControlRequest,
    Ending,
    EndKind,
    Host,
    InterruptRequest,
    PermissionAnswer,
    Program,
    StartFailed,
    StopRequest,
    TellRequest,
    TerminalInput,
)
from legion.drivers.profile import ToolLink
from legion.drivers.terminal.screen import ScreenReader, ScreenState
from legion.drivers.terminal_options import TerminalOptions
from legion.drivers.turns.tool_server import ToolServer

CHUNK = 1 << 16
_NUDGE = 0.05
"""Seconds for which the terminal has another size, so that the program sees two changes and draws its screen again."""
_PASTE = b"\x1b[200~%s\x1b[201~"
_LOOK = 1.0
_FIRST_QUIET = 1.0
"""Seconds of silence after which a program without patterns gets its prompt."""
_MOST_UNREAD = 1 << 20
_INTERRUPT = b"\x03"
_LEAST_GRACE = 6.0
"""Seconds for a program that stores its conversation when it ends."""
_LEAVE_EVERY = 0.4
"""Seconds: the first key may end a turn, the next one a draft."""


class TerminalDriver:
    def run(self, host: Host) -> Ending:
        options = TerminalOptions.from_json(host.options)
        with contextlib.ExitStack() as stack:
            program = None
            if options.link is not None:
                server = stack.enter_context(served(options.link))
                host.forward(server.port)
                program = with_tools(host.program, server)
            try:
                child = host.start(program)
            except StartFailed as failure:
                return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
            return _TerminalRun(host, child, options).run_to_end()


class _TerminalRun:
    """One select loop over the terminal, its viewers, control requests and deadlines."""

    def __init__(self, host: Host, child: Child, options: TerminalOptions) -> None:
        self._host = host
        self._child = child
        self._options = options
        self._screen = ScreenReader(options)
        self._shown = ScreenState.WORKING
        self._unread = bytearray()
        """Typed, and not read by the program yet."""
        self._prompt = options.prompt
        self._question: str | None = None
        self._asked = 0
        now = time.monotonic()
        self._printed_at = now
        self._left_at = now
        self._cpu = 0.0
        self._settled_at = 0.0
        """When its state was last read from a silent screen."""
        self._size = TerminalSize(columns=options.columns, rows=options.rows).usable
        self._resize(self._size)
        self._nudge_at: float | None = None
        self._look_at = now + _LOOK
        self._timeout_at = None if host.timeout is None else now + host.timeout
        self._ending: EndKind | None = None
        self._leave_at: float | None = None
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._viewers = host.open_viewers()
        host.record("terminal", columns=self._size.columns, rows=self._size.rows)

    def run_to_end(self) -> Ending:
        code: int | None = None
        failure: StartFailed | None = None
        with selectors.DefaultSelector() as selector:
            for source in (self._child.output, self._host.asks, self._host.deaths, self._viewers):
                selector.register(source, selectors.EVENT_READ)
            reads = True
            while code is None and failure is None:
                for key, _ in selector.select(self._until_deadline()):
                    if key.fileobj is self._child.output:
                        reads = self._read_output()
                    elif key.fileobj is self._host.asks:
                        for ask in self._host.asks.take():
                            self._handle(ask)
                    elif key.fileobj is self._viewers:
                        for typed in self._viewers.take():
                            self._type(typed)
                if not reads and self._child.output in {one.fileobj for one in selector.get_map().values()}:
                    selector.unregister(self._child.output)
                self._write()
                self._check_deadlines()
                try:
                    code = self._child.poll()
                except StartFailed as never:
                    failure = never
        self._child.sweep()
        while self._read_output():
            pass
        ending = self._make_ending(code, failure)
        self._viewers.end(TerminalEnd(exit_code=ending.exit_code, message=ending.message))
        return ending

    # The terminal

    def _read_output(self) -> bool:
        """False at the end of the terminal, or when nothing is available after the program's end."""
        try:
            data = os.read(self._child.output.fileno(), CHUNK)
        except BlockingIOError:
            return self._ending is None
        except OSError:
            return False
        if not data:
            return False
        self._printed_at = time.monotonic()
        self._host.output.write(data)
        self._viewers.show(data)
        self._screen.feed(data)
        return True

    def _write(self) -> None:
        assert self._child.input is not None, "a program on a terminal can be typed to"
        with contextlib.suppress(BlockingIOError, OSError):
            while self._unread:
                del self._unread[: os.write(self._child.input.fileno(), self._unread[:CHUNK])]

    def _type(self, typed: TerminalInput) -> None:
        self._left_at = time.monotonic()
        if typed.repaint:
            self._resize(TerminalSize(columns=typed.size.columns, rows=typed.size.rows - 1).usable)
            self._size = typed.size
            self._nudge_at = time.monotonic() + _NUDGE
        elif typed.size != self._size:
            self._size = typed.size
            self._resize(typed.size)
        if typed.keys:
            self._end_nudge()
            self._keys(typed.keys)

    def _end_nudge(self) -> None:
        if self._nudge_at is not None:
            self._nudge_at = None
            self._resize(self._size)

    def _keys(self, keys: bytes) -> None:
        if len(self._unread) < _MOST_UNREAD:
            self._unread += keys
            self._write()

    def _resize(self, size: TerminalSize) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(
                self._child.output.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0)
            )

    # Its state

    def _look(self, now: float) -> None:
        """Once a second: what the program waits for, if it waits."""
        silent = now - self._printed_at
        if silent < (self._options.quiet if self._screen.asked() is None else _FIRST_QUIET):
            self._show(ScreenState.WORKING)
            return
        if self._settled_at > self._printed_at and not self._prompt:
            return
        idle = self._is_idle()
        if idle:
            self._settled_at = now
        state = self._screen.state(quiet=idle)
        self._show(state)
        if state is ScreenState.ASKING:
            self._ask()
        elif self._prompt and idle and (state is ScreenState.READY or not self._options.ready):
            self._paste(self._prompt)
            self._host.record("prompted", size=len(self._prompt))
            self._prompt = ""

    def _show(self, state: ScreenState) -> None:
        for note in self._screen.notes:
            self._host.record("notified", text=note)
        self._screen.notes.clear()
        if state is not self._shown:
            self._shown = state
            self._host.record("screen", state=state.value, title=self._screen.title)

    def _is_idle(self) -> bool:
        """Whether its processes used no CPU since the last look; where that is not known, silence alone counts."""
        used = self._host.cpu_seconds()
        before, self._cpu = self._cpu, used if used is not None else 0.0
        return used is None or used - before < 0.05

    def _ask(self) -> None:
        """Accept what a rule names; anything else is a person's question, once."""
        asked = self._screen.asked()
        if asked is None or self._question is not None:
            return
        if asked.rule:
            self._host.record("accepted", text=asked.text, rule=asked.rule)
            self._answer()
            return
        self._asked += 1
        self._question = f"screen-{self._asked}"
        self._host.record("asked", question=self._question, tool="terminal", input=asked.text, rule="")

    def _answer(self) -> None:
        self._screen.answered()
        self._keys(self._options.yes.encode())

    def _paste(self, text: str) -> None:
        """As one paste, so that its line ends do not send it before its end."""
        clean = text.replace("\x1b", "").encode()
        self._keys((_PASTE % clean if b"\n" in clean else clean) + b"\r")
        self._screen.answered()

    # Requests and deadlines

    def _handle(self, ask: ControlRequest) -> None:
        match ask:
            case StopRequest(grace=grace):
                grace = self._host.grace if grace is None else grace
                self._host.record("stopping", grace=grace)
                self._start_ending(EndKind.STOPPED, grace)
            case InterruptRequest(then=None):
                self._host.record("interrupted")
                self._start_ending(EndKind.INTERRUPTED, self._host.grace)
            case InterruptRequest(then=then) if then is not None:
                self._host.record("interrupted")
                self._keys(_INTERRUPT)
                self._tell(then)
            case TellRequest():
                self._tell(ask)
            case PermissionAnswer() if ask.question == self._question:
                self._question = None
                self._host.record("answered", question=ask.question, allowed=ask.allowed)
                if ask.allowed:
                    self._answer()
                else:
                    self._screen.answered()
                    self._keys(b"\x1b")

    def _tell(self, message: TellRequest) -> None:
        self._host.record("told", id=message.id, text=message.text)
        self._paste(message.text)
        self._host.record("heard", id=message.id)

    def _start_ending(self, why: EndKind, grace: float) -> None:
        """First the program's own key, or SIGHUP as a closed terminal sends it; then SIGTERM, in the end SIGKILL."""
        now = time.monotonic()
        if self._options.leave and grace > 0:
            grace = max(grace, _LEAST_GRACE)
        if self._ending is None:
            self._ending = why
            self._timeout_at = None
            self._term_at = now + grace / 2
            self._kill_at = now + grace
            if self._options.leave and grace > 0:
                self._leave_at = now
            else:
                self._child.signal(signal.SIGHUP)
        elif self._kill_at is not None:
            self._kill_at = min(self._kill_at, now + grace)

    def _until_deadline(self) -> float:
        moments = (self._timeout_at, self._leave_at, self._term_at, self._kill_at, self._nudge_at, self._look_at)
        return max(0.0, min(moment for moment in moments if moment is not None) - time.monotonic())

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if self._nudge_at is not None and now >= self._nudge_at:
            self._end_nudge()
        if now >= self._look_at:
            self._look_at = now + _LOOK
            if self._ending is None:
                self._look(now)
        if self._viewers.watched:
            self._left_at = now
        elif self._options.leave_after is not None and now - self._left_at > self._options.leave_after:
            self._start_ending(EndKind.EXITED, self._host.grace)
        if self._timeout_at is not None and now >= self._timeout_at:
            self._host.record("out-of-time", timeout=self._host.timeout)
            self._start_ending(EndKind.TIMED_OUT, self._host.grace)
        if self._leave_at is not None and now >= self._leave_at:
            self._leave_at = now + _LEAVE_EVERY
            self._keys(self._options.leave.encode())
        if self._term_at is not None and now >= self._term_at:
            self._term_at = self._leave_at = None
            self._child.signal(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._child.kill()

    def _make_ending(self, code: int | None, failure: StartFailed | None) -> Ending:
        if failure is not None:
            return Ending(outcome=EndKind.FAILED_TO_START, exit_code=None, message=str(failure))
        match self._ending:
            case EndKind.STOPPED:
                return Ending(outcome=EndKind.STOPPED, exit_code=code, message="The run was stopped as asked.")
            case EndKind.INTERRUPTED:
                message = "A person ended the program."
                return Ending(outcome=EndKind.INTERRUPTED, exit_code=code, message=message)
            case EndKind.TIMED_OUT:
                message = f"The program was ended because its limit of {self._host.timeout:g} s had passed."
                return Ending(outcome=EndKind.TIMED_OUT, exit_code=code, message=message)
        if self._options.wheel:
            message = "The person left the conversation."
            return Ending(outcome=EndKind.INTERRUPTED, exit_code=code, message=message)
        return Ending(outcome=EndKind.EXITED, exit_code=code, message=f"The program ended with exit code {code}.")


# Legion's tools for an interactive program: the run's MCP server in a thread, and its address in the command line.

URL, TOKEN = "LEGION_TOOLS_URL", "LEGION_TOOLS_TOKEN"
"""The variables of the program, for those whose settings can name one."""


@contextlib.contextmanager
def served(link: ToolLink) -> Iterator[ToolServer]:
    """The server, for the length of a block; the terminal's own loop never waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tools", daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(ToolServer.open(link), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def with_tools(program: Program, server: ToolServer) -> Program:
    """The program with the server's address and token in its arguments and variables. Other braces stay."""

    def filled(text: str) -> str:
        return text.replace("{tools_url}", server.url).replace("{tools_token}", server.token)

    env = {name: filled(value) for name, value in program.env.items()}
    return replace(program, argv=tuple(map(filled, program.argv)), env={**env, URL: server.url, TOKEN: server.token})
