"""The options of a run of turns, as its spec.json holds them. The daemon writes them, so no SDK is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from legion.drivers.profile import ToolLink
from legion.drivers.programs.description import ProgramDescription

_PATHS = ("home", "prompt", "again")


@dataclass(frozen=True, kw_only=True)
class TurnOptions:
    program: ProgramDescription
    conversation: str
    """A uuid of ours. The program's own id of the conversation is stored under it."""
    home: Path
    """The program's home folder; the agent's own, kept across its runs."""
    prompt: Path
    """A file with the text that starts a conversation."""
    again: Path
    """A file with the text that resumes a conversation."""
    rules: str = ""
    """In front of the first prompt: these programs take no system prompt."""
    sandboxed: bool
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    """Used without asking."""
    asks: bool = False
    """Whether a tool that is not allowed becomes a question to a person; else it is denied."""
    patience: float = 3600.0
    """Seconds that a question waits for its answer; then it is denied."""
    prompt_id: str = ""
    """The uuid of the message that starts the run; empty: any."""
    link: ToolLink | None = None
    """Legion's own tools; None: it has none of them."""
    gateway_url: str = ""
    gateway_token: str = ""

    def to_json(self) -> dict[str, Any]:
        facts = asdict(self)
        for name in _PATHS:
            facts[name] = str(facts[name])
        facts["program"] = self.program.to_json()
        return facts

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> TurnOptions:
        """Options of another release may hold names that this one does not know; they are ignored."""
        known = {field.name: facts[field.name] for field in fields(TurnOptions) if field.name in facts}
        for name in _PATHS:
            known[name] = Path(known[name])
        known["program"] = ProgramDescription.from_json(known["program"])
        known["allowed_tools"] = tuple(known["allowed_tools"])
        known["link"] = None if known.get("link") is None else ToolLink.from_json(known["link"])
        return TurnOptions(**known)
