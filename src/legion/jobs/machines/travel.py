"""A run as it travels to a machine: everything that is needed there to prepare, start and save it, as JSON.

The relay of a machine and the head both ask here, about the path as it was sent. Nothing is decoded and no dot is
resolved: another spelling of a path is another path, and what the table does not have is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

from legion.domain.agents.teams import RolePart
from legion.domain.agents.tools import Tool
from legion.domain.runs import Run
from legion.drivers.profile import ProgramSettings, RunInput, ToolLink
from legion.gateway.access.admission import Refused, route_of

VERSION = 1
FILE = "job.json"
"""In the run's folder, on the head and on its machine."""
SAVED = "saved.json"
"""What the machine saved of the tree, in the run's folder on the head."""
SNAPSHOT = "snapshot.json"
"""The last state of the tree that arrived while the run worked, in the run's folder on the head."""


@dataclass(frozen=True, kw_only=True)
class TravellingProject:
    id: int
    name: str
    branch: str
    config_text: str
    config_hash: str


@dataclass(frozen=True, kw_only=True)
class TravellingModel:
    """Access to a model through the head's gateway. The token is the run's pass, and opens nothing else."""

    token: str
    oauth: bool
    settings: ProgramSettings
    budget_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class MachineJob:
    run: Run
    project: TravellingProject
    title: str
    """Of the ticket."""
    base: str
    """The commit that the worktree is based on."""
    target: str
    """The project's target when the job was made: its settings and ignore files are in force."""
    start: str | None
    """The commit whose files the worktree shows at the start; None: those of the base."""
    plant: str | None = None
    """A tree that the worktree shows instead: the merge with what landed meanwhile, in the place of the old files."""
    previous: str
    """The run before this one. A machine that has its worktree continues in it; any other starts from `start`."""
    driver: str
    driver_name: str
    """As tickets and settings name it; empty: the driver's own name."""
    argv: tuple[str, ...]
    timeout: float
    input: RunInput
    model: TravellingModel | None = None
    saves: bool = True
    """Whether its tree is a change. Else it is a checkout, which is thrown away at the end."""
    has_setup: bool = True
    """Whether the project's [setup] runs there first."""
    has_environment: bool = True
    """Whether it gets the project's [environment]."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that a checkout shows in addition, by path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of its environment."""

    @property
    def commits(self) -> tuple[str, ...]:
        """All that the machine needs of the hub; a planted tree is no commit."""
        wanted = (self.base, self.target, self.start, self.plant)
        return tuple(dict.fromkeys(one for one in wanted if one is not None))

    def to_json(self) -> dict[str, Any]:
        facts = asdict(self)
        facts["version"] = VERSION
        facts["run"] = {**facts["run"], "part": self.run.part.value, "outcome": None}
        tools = self.input.tools
        facts["input"]["tools"] = None if tools is None else sorted(tools)
        # A store of tree states is of the head's own disk.
        facts["input"]["state_store"] = None
        return facts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> MachineJob:
        """Fields that this release does not know are left out. Raises KeyError, TypeError or ValueError."""
        if facts["version"] != VERSION:
            raise ValueError(f"a job of version {facts['version']}")
        model = facts.get("model")
        known = {one.name for one in fields(cls)}
        plain = {name: value for name, value in facts.items() if name in known}
        return cls(
            **{
                **plain,
                "run": Run(**{**_known(Run, facts["run"]), "part": RolePart(facts["run"]["part"])}),
                "project": TravellingProject(**_known(TravellingProject, facts["project"])),
                "argv": tuple(facts["argv"]),
                "input": _input(facts["input"]),
                "model": None if model is None else _model(model),
            }
        )


def _input(facts: Mapping[str, Any]) -> RunInput:
    link, tools = facts.get("tool_link"), facts.get("tools")
    return RunInput(
        **{
            **_known(RunInput, facts),
            "tools": None if tools is None else frozenset(tools),
            "tool_link": None if link is None else ToolLink.from_json(link),
            "state_store": None,
        }
    )


def _model(facts: Mapping[str, Any]) -> TravellingModel:
    wanted = _known(ProgramSettings, facts["settings"])
    tools = wanted.get("tools")
    settings = ProgramSettings(
        **{
            **wanted,
            "allowed_tools": tuple(wanted.get("allowed_tools", ())),
            "tools": None if tools is None else tuple(tools),
        }
    )
    return TravellingModel(**{**_known(TravellingModel, facts), "settings": settings})


def _known(kind: type, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: facts[one.name] for one in fields(kind) if one.name in facts}


class RelayDoor(Enum):
    GATEWAY = "gateway"
    TOOLS = "tools"

    def opens(self, method: str, path: str) -> bool:
        """Whether a request with this method and raw path is passed on."""
        if self is RelayDoor.TOOLS:
            return (method, path) in _TOOLS
        try:
            return route_of(method, path).needs_pass
        except Refused:
            return False

    def headers(self, sent: Mapping[str, str]) -> dict[str, str]:
        """The headers that are passed on, by their names in lower case. A tool needs no others than these; a provider
        reads many of its program's own.
        """
        known = {name.lower(): value for name, value in sent.items()}
        if self is RelayDoor.TOOLS:
            return {name: value for name, value in known.items() if name in _OF_TOOLS}
        return {name: value for name, value in known.items() if name not in _NOT_PASSED}


TOKEN = "legion-machine"
"""The header with a machine's token. A relayed request carries the run's pass in the usual one."""
_TOOLS = frozenset(("POST", f"/v1/tools/{one.value}") for one in Tool)
_OF_TOOLS = frozenset(("authorization", "content-type"))
_NOT_PASSED = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length")
) | {TOKEN, "accept-encoding", "cookie", "set-cookie", "location", "expect"}


def passed_back(received: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that the agent gets."""
    return {name: value for name, value in received.items() if name.lower() not in _NOT_PASSED}
