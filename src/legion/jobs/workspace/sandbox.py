"""Where programs run: which folders they see, which variables they get. Nothing of the person's comes along unnamed."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from legion.config.sections.machine import SandboxMode
from legion.domain.errors import NotAllowed
from legion.git.core.command import git_program
from legion.jobs.context import Context, ProjectContext
from legion.runner import etc
from legion.runner.sandbox import Sandbox, SandboxNetwork
from legion.runner.toolchains import toolchains

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TERM")


def environment(context: Context, extra: Mapping[str, str]) -> dict[str, str]:
    """An allow-list: what every program needs, what the person named, what is ours to say.

    HOME is the person's by name. Inside a sandbox that folder is empty but for the toolchains.
    """
    names = (*_PASSED_ON, *context.user.sandbox.env)
    passed = {name: os.environ[name] for name in names if name in os.environ}
    identity = {
        "GIT_AUTHOR_NAME": "Legion",
        "GIT_AUTHOR_EMAIL": "legion@localhost",
        "GIT_COMMITTER_NAME": "Legion",
        "GIT_COMMITTER_EMAIL": "legion@localhost",
    }
    return {"HOME": str(Path.home()), **passed, **identity, **extra}


@functools.lru_cache(maxsize=64)
def _tools(path: str, home: Path, named: tuple[Path, ...], hidden: tuple[Path, ...], minute: int) -> tuple[Path, ...]:
    """Looked up once a minute: what a person installs is soon seen, and thirty starts at once look only once."""
    return toolchains(path, home, named=named, hidden=hidden)


@functools.lru_cache(maxsize=8)
def _etc(folder: Path, moment: int) -> Path:
    return etc.sync(folder)


def sandbox(
    context: Context,
    project_context: ProjectContext,
    *,
    writable: Iterable[Path],
    readable: Iterable[Path] = (),
    small: bool = False,
) -> Sandbox | None:
    """The walls around a program in this project, or None where they are off or cannot be had (doctor says so).

    A `small` one is for a git of the system: it is built faster and shows neither toolchains nor /etc.
    """
    settings = context.user.sandbox
    if settings.mode is SandboxMode.REQUIRE and not context.sandbox.works:
        raise NotAllowed(f"Your settings require a sandbox, and none works here: {context.sandbox.why}")
    if settings.mode is SandboxMode.OFF or not context.sandbox.works:
        return None
    home = Path.home()
    network = SandboxNetwork(settings.network.value)
    if small and Path(git_program()).is_relative_to("/usr"):
        shown = (project_context.hub.objects, *readable)
        return Sandbox(home=home, writable=tuple(writable), readable=shown, network=network, small=True)
    hidden = (context.data.root, Path(project_context.project.worktrees))
    minute = int(context.clock() // 60)
    tools = _tools(os.environ.get("PATH", ""), home, settings.read, hidden, minute)
    return Sandbox(
        home=home,
        writable=(*writable, *settings.write),
        readable=(project_context.hub.objects, *tools, *readable),
        network=network,
        etc=_etc(context.data.root / "etc", int(context.clock() // 10)),
    )
