"""Shapes of attaching: which terminal a person gets, and the frames that travel between it and their own."""

from __future__ import annotations

from dataclasses import dataclass

from legion.domain.terminal import BadFrame, FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame

__all__ = [
    "BadFrame",
    "FrameKind",
    "FrameReader",
    "Hello",
    "OpenShell",
    "OpenTerminal",
    "TerminalEnd",
    "TerminalSize",
    "frame",
]


@dataclass(frozen=True, kw_only=True)
class OpenShell:
    columns: int = 80
    rows: int = 24
    term: str = ""
    """The kind of the person's terminal, as TERM names it."""


@dataclass(frozen=True, kw_only=True)
class OpenTerminal:
    """A terminal that a client on the same machine can attach to."""

    run: str
    """The name of its run's folder."""
    socket: str
    """The unix socket that its runner listens on."""
    message: str
    """For the person, in one sentence."""
    wheel: bool = False
    """A conversation that the person took over: leaving gives it back."""
    schema: str = "legion.terminal/1"
