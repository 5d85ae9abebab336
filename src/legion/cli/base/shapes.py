"""Answers that the command line gives without the daemon, with the same rules as the wire's."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Version:
    schema: str = "legion.version/1"
    version: str


@dataclass(kw_only=True)
class DaemonShape:
    """`legion up` and `legion serve`."""

    schema: str = "legion.daemon/1"
    pid: int
    url: str
    version: str
    data_dir: str
    token_file: str
    """The file with the token that every request needs; only you can read it."""
    started: bool
    """False where it was running already."""


@dataclass(kw_only=True)
class McpShape:
    """`legion plugin mcp`."""

    schema: str = "legion.mcp/1"
    url: str
    token_file: str
    """Its content belongs into the header `Authorization: Bearer ...`; it opens the tools and nothing else."""


@dataclass(kw_only=True)
class Completion:
    schema: str = "legion.completion/1"
    shell: str
    script: str


@dataclass(kw_only=True)
class JoinedMachine:
    """`legion machine join --service`."""

    schema: str = "legion.joined/1"
    name: str
    file: str
    """The service that was written."""
    commands: list[str]
    """What starts it."""


@dataclass(kw_only=True)
class MachineManifest:
    """`legion machine manifest`."""

    schema: str = "legion.manifest/1"
    kind: str
    """systemd, launchd, compose or kubernetes."""
    name: str
    text: str


@dataclass(kw_only=True)
class NativeTaskLine:
    """A task of an Agent Team of Claude Code."""

    id: str
    subject: str
    status: str
    """pending, in_progress or completed."""
    owner: str
    after: list[str]


@dataclass(kw_only=True)
class NativeTeamLine:
    name: str
    about: str
    members: list[str]
    tasks: list[NativeTaskLine]
    faults: list[str] = field(default_factory=list)
    """Files that could not be read."""


@dataclass(kw_only=True)
class EpicLine:
    """An epic in a list."""

    name: str
    done: int
    total: int
    counts: dict[str, int]
    """Its tickets by state."""


@dataclass(kw_only=True)
class EpicsShape:
    """`legion status epic` without a name: those with tickets that are open or failed."""

    schema: str = "legion.epics/1"
    epics: list[EpicLine]


@dataclass(kw_only=True)
class PluginAt:
    """A place where the plugin can be."""

    place: str
    """`user` or `project`."""
    folder: str
    installed: bool
    settings: str
    """The file of Claude Code that may hold the status line."""


@dataclass(kw_only=True)
class PluginCommand:
    """A slash command or an agent that the plugin brings."""

    name: str
    about: str


@dataclass(kw_only=True)
class PluginShape:
    """`legion plugin`."""

    schema: str = "legion.plugin/1"
    places: list[PluginAt]
    message: str
    files: list[str] = field(default_factory=list)
    """Of `install --dry-run`: every file that would be written."""
    commands: list[PluginCommand] = field(default_factory=list)
    """Of `install --list`: what Claude Code gets."""


@dataclass(kw_only=True)
class NativeTeams:
    """`legion native`."""

    schema: str = "legion.native/1"
    teams: list[NativeTeamLine]
