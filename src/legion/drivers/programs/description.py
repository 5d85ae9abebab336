"""The description of one agent program, and the reader of its TOML file. Pure.

A key that is unknown, or of the wrong type, is refused with a sentence that names file, key and remedy.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from legion.domain.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T", bound="DataclassInstance")

JSON_READERS = ("codex", "pi")
"""Those of drivers/json_lines/driver.py."""
_LONGEST = 64 * 1024
_FORMER = frozenset({"can.plan", "can.images", "can.cost"})
"""Keys without an effect, which files of the person may still have."""
_WORDS = {str: "text", bool: "true or false", tuple: "a list of texts", dict: "a table of texts"}


class DriverKind(Enum):
    """The driver that runs the program."""

    ACP = "acp"
    """It speaks the Agent Client Protocol on its standard input and output."""
    JSON = "json"
    """It prints a JSON object per line, and exits after each turn."""
    COMMAND = "command"
    """It reads its briefing and exits; its output is not interpreted."""
    TERMINAL = "terminal"
    """It is interactive: it runs in a terminal that people attach to."""


@dataclass(frozen=True, kw_only=True)
class ProgramPart:
    """[program]: how it is found and installed."""

    run: tuple[str, ...] = ()
    """The command line. Its first word is searched on PATH."""
    version: tuple[str, ...] = ("--version",)
    """The arguments with which it prints its version."""
    least: str = ""
    """The least version that works."""
    install: str = ""
    """The command by which a person installs it."""
    npm: str = ""
    """The package and version that the conformance suite installs by npm."""
    pip: str = ""
    """The same by pip."""
    node: str = ""
    """The least major version of node, where it needs a newer one than most systems have."""


@dataclass(frozen=True, kw_only=True)
class UnpackPart:
    """[unpack]: for a program that unpacks itself at its first start, which every agent would pay for again."""

    run: tuple[str, ...] = ()
    """The arguments with which it unpacks itself and exits. Empty: it does not."""
    folder: str = ""
    """The variable that names the folder. Agents can read it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """More variables, for unpacking only."""


@dataclass(frozen=True, kw_only=True)
class ModelPart:
    """[model]: which API it speaks, and which model it uses where the ticket names none."""

    api: str = ""
    """`messages`, `chat`, `responses` or `gemini`: the gateway serves all of them."""
    default: str = ""


@dataclass(frozen=True, kw_only=True)
class AbilityPart:
    """[can]: what it can do."""

    resume: bool = False
    """A later process continues its conversation."""
    interrupt: bool = False
    """Its current turn can be interrupted, and it continues with another message."""
    permissions: bool = False
    """It asks before it uses a tool."""
    tools: bool = False
    """It takes Legion's own tools, as an MCP server over HTTP."""
    usage: bool = False
    """It reports its tokens. The gateway counts them in any case."""
    transcript: bool = False
    """The files of its conversations hold its prompts as they were sent: needed by standing agents."""


@dataclass(frozen=True, kw_only=True)
class SignPart:
    """[signs]: texts by which its own messages show a limit or a refusal, in lower case."""

    limit: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AcpPart:
    """[acp]: what differs between programs that speak the Agent Client Protocol."""

    mode: str = ""
    """The session mode to choose, by the end of its id. Empty: the program's own choice."""
    login: str = ""
    """The method to authenticate with, where a session needs one."""
    files: bool = False
    """It reads and writes files through the driver, which then acts inside the worktree only."""
    terminals: bool = False
    """It runs its commands through the driver, which starts them in the run's sandbox."""
    copy: str = ""
    """The name of a copy of the conversation's file, made before it is loaded, for a program that overwrites it then.
    {short} stands for the first eight characters of the session's id, which the file's name ends with."""


@dataclass(frozen=True, kw_only=True)
class JsonPart:
    """[json]: what differs between programs that print JSON lines."""

    reader: str = ""
    """The reader of its lines: `codex` (`codex exec --json`) or `pi` (`pi --mode json`)."""
    resume: tuple[str, ...] = ()
    """The command line that continues a conversation, whose id replaces {session}."""
    prompt_on_stdin: bool = True
    """Else {prompt} in the command line stands for the prompt."""


@dataclass(frozen=True, kw_only=True)
class TerminalPart:
    """[terminal]: how an interactive program is read and answered. Patterns are regular expressions."""

    ready: tuple[str, ...] = ()
    """The last line while it waits for a prompt. Empty: silence without use of CPU."""
    asking: tuple[str, ...] = ()
    """Its screen while it asks."""
    accept: tuple[str, ...] = ()
    """Those of its questions that `legion attach new -y` accepts."""
    yes: str = "\r"
    """The keys that accept."""
    leave: str = ""
    """The key that ends it, typed until it has ended. Empty: it is hung up."""


@dataclass(frozen=True, kw_only=True)
class InteractivePart:
    """[interactive]: its own interactive form, in which a person takes over a conversation that it had alone."""

    resume: tuple[str, ...] = ()
    """The arguments that open a conversation, whose id replaces {session}. Empty: it has no such form."""
    tools: tuple[str, ...] = ()
    """More arguments, which give it Legion's tools: {tools_url} and {tools_token} are replaced. The same are in the
    variables LEGION_TOOLS_URL and LEGION_TOOLS_TOKEN."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that give it Legion's tools, with the replacements of all."""
    leave: str = "\x03"
    """The key that ends it, typed until it has ended. Empty: it is hung up."""


@dataclass(frozen=True, kw_only=True)
class TrialPart:
    """[trial]: how the scripted model of the conformance suite calls its tools."""

    command_tool: str = ""
    """The tool that runs a command."""
    command_input: str = ""
    """Its input as JSON, in which {command} stands for the command."""
    edit_tool: str = ""
    """The tool that writes a file."""
    edit_input: str = ""
    """Its input as JSON, with {path} and {content}."""
    end_tool: str = ""
    """The tool that ends a turn, for a program that takes no plain message as its end."""
    end_input: str = ""
    """Its input as JSON, with {text}."""


@dataclass(frozen=True, kw_only=True)
class ProgramDescription:
    name: str
    """The name of the file, and of the driver that a ticket chooses."""
    title: str
    driver: DriverKind
    tried: bool = False
    """Whether this program was seen to work: in the conformance suite, where that can play it."""
    note: str = ""
    """What a person should know about it, in one sentence."""
    program: ProgramPart = field(default_factory=ProgramPart)
    unpack: UnpackPart = field(default_factory=UnpackPart)
    model: ModelPart = field(default_factory=ModelPart)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Its variables. In values {url}, {token}, {model}, {home} and {tree} are replaced."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files in its home folder, written before each run, with the same replacements."""
    conversations: tuple[str, ...] = ()
    """Where it keeps its conversations, as patterns below its home folder."""
    instructions: tuple[str, ...] = ()
    """Files in which a repository instructs agents of this kind."""
    can: AbilityPart = field(default_factory=AbilityPart)
    signs: SignPart = field(default_factory=SignPart)
    acp: AcpPart = field(default_factory=AcpPart)
    json: JsonPart = field(default_factory=JsonPart)
    terminal: TerminalPart = field(default_factory=TerminalPart)
    interactive: InteractivePart = field(default_factory=InteractivePart)
    trial: TrialPart = field(default_factory=TrialPart)

    @property
    def uses_gateway(self) -> bool:
        """Whether its model goes through the gateway: else Legion neither counts nor limits what it spends."""
        words = (*self.environment.values(), *self.files.values(), *self.program.run)
        return any("{url}" in text or "{token}" in text for text in words)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it; defaults included."""
        facts = dataclasses.asdict(self)
        facts["driver"] = self.driver.value
        return facts

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> ProgramDescription:
        """From the spec of a run, which another release may have written: unknown keys are ignored."""
        return _made(ProgramDescription, facts, _Place(str(facts.get("name")), strict=False))


def parse(text: str, name: str, origin: str) -> dict[str, Any]:
    """The table of a file, checked only for being TOML. Raises BadInput."""
    if len(text) > _LONGEST:
        raise BadInput(f"{origin} is larger than {_LONGEST // 1024} KB: a description of a program is short.")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise BadInput(f"{origin} is not valid TOML, so fix it: {fault}.") from None
    if "name" in table:
        raise BadInput(f"In {origin}, remove `name`: a program is named after its file, which makes this one {name}.")
    return table


def described(name: str, table: Mapping[str, Any], origin: str) -> ProgramDescription:
    """The program of this table. Raises BadInput for the first fault."""
    place = _Place(origin)
    made = _made(ProgramDescription, {"name": name, **table}, place)
    if not made.program.run:
        raise place.fault("program.run", "is missing: list the words of the command line that starts the program")
    if made.driver is DriverKind.JSON and made.json.reader not in JSON_READERS:
        raise place.fault("json.reader", f"must name the reader of its lines: {' or '.join(JSON_READERS)}")
    for name in ("ready", "asking", "accept"):
        for pattern in getattr(made.terminal, name):
            try:
                re.compile(pattern)
            except re.error as fault:
                raise place.fault(f"terminal.{name}", f"holds {pattern!r}, which is no pattern ({fault})") from None
    for file in made.files:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise place.fault(f"files.{file}", "must be a path below the program's home folder")
    return made


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one; a value of the second replaces one of the first, and tables are joined."""
    joined = dict(under)
    for key, value in over.items():
        before = joined.get(key)
        joined[key] = merged(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return joined


@dataclass(frozen=True)
class _Place:
    """Where a table is from, for messages."""

    origin: str
    path: str = ""
    strict: bool = True

    def below(self, name: str) -> _Place:
        return dataclasses.replace(self, path=f"{self.path}{name}.")

    def fault(self, name: str, what: str) -> BadInput:
        return BadInput(f"In {self.origin}, `{self.path}{name}` {what}.")


def _made(kind: type[_T], table: Mapping[str, Any], place: _Place) -> _T:
    types = get_type_hints(kind)
    known = {one.name: one for one in dataclasses.fields(kind)}
    for name in table:
        if name not in known and place.strict and f"{place.path}{name}" not in _FORMER:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise place.fault(name, f"is unknown: {advice}")
    for name, one in known.items():
        needed = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        if needed and name not in table:
            raise place.fault(name, "is missing")
    return kind(**{name: _value(types[name], value, name, place) for name, value in table.items() if name in known})


def _value(kind: object, value: object, name: str, place: _Place) -> object:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise place.fault(name, "must be a table")
        return _made(kind, value, place.below(name))
    if isinstance(kind, type) and issubclass(kind, Enum):
        allowed = [one.value for one in kind]
        if value not in allowed:
            raise place.fault(name, f"must be one of {', '.join(allowed)}")
        return kind(value)
    origin = get_origin(kind)
    if origin is tuple:
        fits = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    elif origin is not None:
        assert get_args(kind) == (str, str), kind
        fits = isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    else:
        fits = type(value) is kind
    if not fits:
        words = _WORDS[tuple if origin is tuple else dict if origin is not None else bool if kind is bool else str]
        raise place.fault(name, f"must be {words}")
    return tuple(value) if isinstance(value, list) else value
