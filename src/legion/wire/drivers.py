"""Shapes of requests and answers about drivers and the agent programs behind them."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class DriverLine:
    """One driver in the list."""

    name: str
    title: str
    kind: str
    """`claude`, `acp`, `json` or `command`: how its program is driven."""
    origin: str
    """`built in`, `shipped`, `yours` or `settings`."""
    tried: bool
    """The conformance suite was seen to pass with this program."""
    found: bool
    """Its program is on the PATH of the daemon."""
    can: list[str]
    """Its capabilities, by their names."""
    note: str = ""
    fault: str = ""
    """Why it cannot be used; empty: it can."""


@dataclass(kw_only=True)
class Drivers:
    schema: str = "legion.drivers/1"
    drivers: list[DriverLine]
    folder: str
    """Where your own programs are described."""


@dataclass(kw_only=True)
class TrialCalls:
    """How a scripted model calls the program's tools: names, and inputs as JSON with placeholders."""

    command_tool: str = ""
    command_input: str = ""
    edit_tool: str = ""
    edit_input: str = ""
    end_tool: str = ""
    end_input: str = ""


@dataclass(kw_only=True)
class DriverPage:
    schema: str = "legion.driver/1"
    driver: DriverLine
    run: list[str] = field(default_factory=list)
    """Its command line."""
    path: str = ""
    version: str = ""
    least: str = ""
    """The least version that works."""
    install: str = ""
    model: str = ""
    """The model where a ticket names none."""
    api: str = ""
    """The API of the gateway that it uses."""
    conversations: list[str] = field(default_factory=list)
    """Where it keeps its conversations, below the agent's own home folder."""
    instructions: list[str] = field(default_factory=list)
    file: str = ""
    """Your own file that describes or changes it."""
    permissions: bool = False
    """It asks before it uses a tool."""
    trial: TrialCalls


@dataclass(kw_only=True)
class AddDriver:
    """`legion driver add`: the text of a description; it is refused if the text has a fault."""

    name: str
    text: str
