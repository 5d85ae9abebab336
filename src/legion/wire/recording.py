"""Recordings on the wire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class SetRecording:
    """`legion record on` and `legion record off`."""

    on: bool


@dataclass(kw_only=True)
class CassetteFile:
    name: str
    text: str


@dataclass(kw_only=True)
class Cassette:
    """What the model said in a ticket: one script for its agent, one for each subagent."""

    schema: str = "legion.cassette/1"
    ticket: int
    files: list[CassetteFile]
