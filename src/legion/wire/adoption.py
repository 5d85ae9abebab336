"""Shapes of requests and answers about adopted conversations and handoffs."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class AdoptConversation:
    cwd: str
    id: str = ""
    """Empty: the last one of Claude Code in the folder's project."""
    title: str = ""
    text: str = ""
    team: str = ""


@dataclass(kw_only=True)
class Adopted:
    schema: str = "legion.adopted/1"
    ticket: int
    conversation: str
    folder: str
    message: str
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class HandedOff:
    schema: str = "legion.handedoff/1"
    ticket: int
    conversation: str
    folder: str
    """The worktree."""
    transcript: str
    argv: list[str]
    """The command that resumes the conversation in that folder."""
    message: str
