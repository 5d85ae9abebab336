"""Control requests of a run, each in a task of its own, and the narrowest permission rule for a call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from legion.drivers import ControlRequest, ControlRequests

_EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
_READS = {"Read": "file_path"}
_LONGEST = 300
_SPECIAL = set("()*\n\r\0")
"""Characters with a meaning in a rule, or that cannot be shown on one line."""


def rule_for(tool: str, input: Mapping[str, object]) -> str:
    """Empty where no rule allows exactly this."""
    if tool == "Bash":
        return _rule("Bash", input.get("command"))
    if tool in _EDITS:
        return _rule("Edit", _absolute(input.get(_EDITS[tool])))
    if tool in _READS:
        return _rule("Read", _absolute(input.get(_READS[tool])))
    if tool == "WebFetch":
        return _rule("WebFetch", _domain(input.get("url")))
    return tool if tool.startswith("mcp__") or tool == "WebSearch" else ""


def _rule(tool: str, content: object) -> str:
    if not isinstance(content, str) or not content.strip() or len(content) > _LONGEST or _SPECIAL & set(content):
        return ""
    return f"{tool}({content})"


def _absolute(path: object) -> object:
    """An absolute path in a rule starts with two slashes."""
    return f"/{path}" if isinstance(path, str) and path.startswith("/") else None


def _domain(url: object) -> object:
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None
    return f"domain:{host}" if host else None


Handler = Callable[[ControlRequest], Coroutine[Any, Any, None]]


class RequestTasks:
    """The open requests of a run, and other work that must not delay it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def listening(self, asks: ControlRequests, handle: Handler) -> Iterator[None]:
        """Inside, one task per request is started, in the order of arrival."""

        def take() -> None:
            for ask in asks.take():
                self.spawn(handle(ask))

        loop = asyncio.get_running_loop()
        loop.add_reader(asks.fileno(), take)
        try:
            yield
        finally:
            loop.remove_reader(asks.fileno())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
