"""The daemon's side of a driver: what it can do, how a run of it is prepared, and what its files say afterwards.

A profile is imported by the daemon, so it imports no SDK of an agent program; `load` does, and only runners call it.
The daemon never asks for a driver's name: it asks for a capability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legion.domain.scheduling.usage import Usage
from legion.drivers import Driver, Program
from legion.drivers.tree_states import StateStore


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a driver and its program can do. The defaults are those of a program that only reads its briefing."""

    talks: bool = False
    """It has a conversation: it accepts messages while it works, and its journal holds its answers."""
    interrupts: bool = False
    """Its current step can be interrupted, and it continues with another message."""
    resumes: bool = False
    """A later run continues its conversation."""
    asks: bool = False
    """It can ask a person: for a permission, and by Legion's own tools."""
    reads_only: bool = False
    """It can be limited to tools that only read, and its journal names the files that they opened."""
    budgets: bool = False
    """It stops when its budget is spent."""
    models: bool = False
    """It uses the model that it is given, through the gateway. Without it Legion knows nothing of its model."""
    usage: bool = False
    """Its journal reports tokens and cost; see `DriverProfile.usage`."""
    transcript: bool = False
    """Its transcript holds the ids of the messages that reached the model; see `DriverProfile.delivered`."""
    rewinds: bool = False
    """It records the tree between calls, and its conversation can be forked behind a call."""
    interactive: bool = False
    """A person can take over its conversation in a terminal; see `DriverProfile.interactive`."""


@dataclass(frozen=True, kw_only=True)
class ProgramFile:
    """The agent program that a run starts."""

    path: Path
    version: str
    bundled: bool
    passed_over: str = ""
    """Why the person's own program is not used, where there is one."""


class ProgramUnusable(Exception):
    """There is no usable agent program; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class ToolText:
    """A tool of Legion's as the model reads it."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolLink:
    """How the runner reaches the daemon on the agent's behalf, and which tools that gives."""

    record: str
    """The file that holds the current daemon's address."""
    token: str
    """The agent's own; it stays in the runner."""
    server: str
    tools: tuple[ToolText, ...]

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> ToolLink:
        tools = tuple(
            ToolText(name=t["name"], description=t["description"], schema=t["schema"]) for t in facts["tools"]
        )
        return ToolLink(record=facts["record"], token=facts["token"], server=facts["server"], tools=tools)


@dataclass(frozen=True, kw_only=True)
class GatewayEndpoint:
    """The gateway as one run reaches it: its address, and the token of the run's pass."""

    url: str
    token: str
    oauth: bool
    """The provider's key is an OAuth token, which some programs announce in another way."""


@dataclass(frozen=True, kw_only=True)
class LoginLink:
    """The person's own login, which the agent can then read."""

    credentials: Path


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """The person's settings for programs with a model, narrowed to one run."""

    model: str = ""
    fallback_model: str = ""
    permission_mode: str = ""
    """Empty: the driver's own default."""
    allowed_tools: tuple[str, ...] = ()
    """Used without asking."""
    tools: tuple[str, ...] | None = None
    """The only tools of its own that the run has; None: all of them."""
    max_turns: int | None = None
    answer_within: float = 3600.0
    """Seconds that a question to a person waits for its answer."""


@dataclass(frozen=True, kw_only=True)
class RunInput:
    """What one run works on, for a ticket or for a standing agent's mail. What a driver cannot do it ignores."""

    prompt: str
    """Starts a conversation."""
    resume_prompt: str = ""
    """Continues a conversation."""
    rules: str = ""
    """For the system prompt; a program without one gets them in front of its prompt."""
    model: str = ""
    """Empty: as the settings say."""
    tools: frozenset[str] | None = None
    """The only tools it has, of those that the person's settings leave; None: all of them."""
    allowance: float | None = None
    """Dollars that its ticket or agent may have spent in all when the run is stopped; None: no limit."""
    spent: float = 0.0
    """Dollars that its ticket or agent had spent before this run."""
    role: str = ""
    team: str = ""
    """Routes may name both."""
    provider: str = ""
    """Empty: as the person's settings say."""
    asks: bool = False
    prompt_id: str = ""
    """The uuid of the message that starts the run; empty: any."""
    tool_link: ToolLink | None = None
    """Its access to Legion's own tools."""
    reads_instructions: bool = True
    """Whether the repository's instructions to agents are added to its rules."""
    fork_of: str = ""
    fork_at: str = ""
    """The conversation that its own starts as a copy of, up to this entry or complete."""
    shares_prompt: bool = False
    """Its system prompt names nothing of its own folders, so that a copy of the conversation in another folder reads
    it from the provider's cache."""
    state_store: StateStore | None = None
    """Where the tree is recorded from call to call; None: it is not."""
    streams: bool = False
    """Whether a person may watch: text is printed while the model writes it."""


@dataclass(frozen=True, kw_only=True)
class ModelSetup:
    """What a driver with a model needs in addition."""

    program: ProgramFile
    access: GatewayEndpoint | LoginLink | None
    """None: the program has an account of its own, of which Legion knows nothing."""
    settings: ProgramSettings
    conversation: str
    """A uuid of ours."""
    budget_usd: float | None
    """Set only where the driver has to keep it, because no gateway does."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One run as the daemon asks a driver to prepare it."""

    input: RunInput
    tree: Path
    """The worktree."""
    state: Path
    """The agent's own folder, kept across its runs."""
    given: Path
    """A folder of the run that the agent can read."""
    env: Mapping[str, str]
    sandboxed: bool
    argv: tuple[str, ...] = ()
    """The command line of a plain program."""
    model: ModelSetup | None = None
    """For a driver whose capabilities name `models`, or whose program has an account of its own."""


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """What a driver makes of a request, for the run's spec."""

    program: Program
    options: Mapping[str, Any] = field(default_factory=dict)
    """As JSON has it; the driver reads them in the runner."""
    readable: tuple[Path, ...] = ()
    """Files that the sandbox has to show in addition."""


@dataclass(frozen=True, kw_only=True)
class ConversationSize:
    tokens: int = 0
    """Of the model's context, as of the last answer."""
    compacted: bool = False
    """The program has replaced earlier parts by a summary."""


class DriverProfile(ABC):
    """One driver as the daemon sees it. A driver overrides what its capabilities promise."""

    name: str
    """As specs, settings and tickets name it."""
    title: str
    """For people."""
    capabilities: Capabilities = Capabilities()
    kind: str = ""
    """The driver that a runner loads; empty: the one of this name."""
    own_home: bool = False
    """The program keeps its conversations in its home folder, so each agent has one of its own."""
    default_model: str = ""
    """The model where neither ticket nor ladder names one; empty: the program's own choice."""
    needs_command: bool = False
    """It starts any command line, so it cannot be chosen by its name alone."""
    heavy: bool = False
    """Its library takes long to import: the fork server imports it before the first run that needs it."""
    instruction_files: tuple[str, ...] = ()
    """Files in which a repository instructs every agent of this kind."""

    @abstractmethod
    def load(self) -> Driver:
        """The driver itself, for a runner. Raises ImportError where its library is missing."""

    def warm(self) -> None:
        """Import whatever `load` and the first run need. Raises ImportError."""
        self.load()

    @abstractmethod
    def prepare(self, request: RunRequest) -> PreparedRun:
        """Write the run's files and return what the runner starts."""

    def interactive(self, request: RunRequest) -> PreparedRun:
        """The same conversation in the program's own interactive form, for the terminal driver."""
        raise ProgramUnusable(f"{self.title} has no interactive form: use --driver claude, or `legion tell`.")

    def find_program(self, wanted: str) -> ProgramFile:
        """The program of the settings, else the person's own, else a bundled one. Raises ProgramUnusable."""
        raise ProgramUnusable(f"The driver {self.name} has no program of its own: give it a command line.")

    def refuse_missing(self) -> None:
        """Raises ProgramUnusable where a quick look shows that its program is not on this machine."""
        return

    def login_file(self) -> Path | None:
        """Where the program keeps the person's own login, whether or not it exists; None: it has none."""
        return None

    def model_pattern(self, model: str) -> str:
        """A pattern over full model names for a name that the program may abbreviate."""
        return model

    def tools(self, options: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The only tools that a run has, by the options in its spec; None where that is not known."""
        return None

    def usage(self, models: Mapping[str, Any]) -> dict[str, Usage]:
        """What a conversation has used in all, by model, from the `models` of a `result` event."""
        return {}

    def has_conversation(self, state: Path, conversation: str) -> bool:
        """Whether the agent's state folder holds a readable transcript of this conversation."""
        return False

    def delivered(self, state: Path, conversation: str, ids: Collection[str]) -> frozenset[str]:
        """Those of our messages that the transcript holds."""
        return frozenset()

    def conversation_size(self, state: Path, conversation: str) -> ConversationSize:
        """How much of the model's context the conversation takes; 0 where that is not known."""
        return ConversationSize()

    def put_aside(self, state: Path, conversation: str) -> bool:
        """Rename the transcript, so that the conversation starts again under the same id. False where there is none."""
        return False

    def resume_point(self, state: Path, conversation: str, call: str) -> str | None:
        """The transcript's entry behind this call, from which a conversation can be forked."""
        return None

    def transcript(self, state: Path, conversation: str) -> Path | None:
        """The file of a conversation in an agent's state folder; None where there is none that can be read."""
        return None

    def take_transcript(self, transcript: Path, conversation: str, state: Path, tree: Path) -> None:
        """Copy a conversation's file into a state folder, for a run in that tree to fork it. Raises OSError.

        Only for a driver whose capabilities name `rewinds`.
        """
        raise NotImplementedError(self.name)
