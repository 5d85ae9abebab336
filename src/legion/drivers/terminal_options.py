"""The options of a run in a terminal, as its spec.json holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from legion.drivers.profile import ToolLink


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    columns: int = 120
    rows: int = 40
    """Until the first viewer attaches."""
    prompt: str = ""
    """Typed when the program is ready for it; empty: nothing is typed."""
    ready: tuple[str, ...] = ()
    """Patterns of the last line of a program that waits for its next prompt."""
    asking: tuple[str, ...] = ()
    """Patterns on the screen of a program that waits for an answer."""
    accept: tuple[str, ...] = ()
    """Patterns of those questions that are accepted without a person."""
    yes: str = "\r"
    """The keys that accept."""
    leave: str = ""
    """The key by which a person ends the program, typed again until it has ended: it then stores what was said. Empty:
    it is hung up."""
    quiet: float = 3.0
    """Seconds without output after which a program that uses no CPU waits."""
    leave_after: float | None = None
    """Seconds without a viewer after which the program is ended; None: it lives on."""
    link: ToolLink | None = None
    """Legion's own tools; None: the program has none of them."""
    wheel: bool = False
    """A person took over a conversation here; its end is no claim that the ticket is done."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> TerminalOptions:
        """Options of another release may hold names that this one does not know; they are ignored."""
        known = {field.name: facts[field.name] for field in fields(TerminalOptions) if field.name in facts}
        for name in ("ready", "asking", "accept"):
            known[name] = tuple(known.get(name, ()))
        known["link"] = None if known.get("link") is None else ToolLink.from_json(known["link"])
        return TerminalOptions(**known)
