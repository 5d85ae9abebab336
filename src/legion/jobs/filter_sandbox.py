"""The sandbox of git filters: their programs see a tree, what they need of the person's repository, and no network."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from legion.config.files.user import CurrentSettings
from legion.config.sections.machine import SandboxSettings
from legion.domain.errors import NotAllowed
from legion.git.hub.filters import Confine
from legion.runner import etc
from legion.runner.probe import SandboxState
from legion.runner.sandbox import Sandbox, SandboxNetwork, wrap
from legion.runner.toolchains import ShowsTooMuch, toolchains
from legion.system.paths import user_config_file


class NoSandbox(NotAllowed):
    """No program starts with the person's settings as they are, so nothing is gained by another try."""


def confines(settings: SandboxSettings, state: SandboxState) -> bool:
    """Whether programs run in a sandbox. Raises NoSandbox if they must and cannot."""
    if settings.is_required and not state.works:
        raise NoSandbox(f"Your settings require a sandbox, and none works here: {state.why}")
    return not settings.is_off and state.works


def visible_tools(settings: SandboxSettings, path: str, hidden: tuple[Path, ...], now: float) -> tuple[Path, ...]:
    """The person's tools on `path` that programs in a sandbox see, and what the settings name."""
    return _tools(path, Path.home(), settings.read, hidden, int(now // 60))


@functools.lru_cache(maxsize=64)
def _tools(path: str, home: Path, named: tuple[Path, ...], hidden: tuple[Path, ...], minute: int) -> tuple[Path, ...]:
    """Looked up once a minute: new toolchains are soon seen, and thirty starts at once need one lookup."""
    try:
        return toolchains(path, home, named=named, hidden=hidden)
    except ShowsTooMuch as wide:
        raise NoSandbox(f"`sandbox.read` in {user_config_file()}: {wide}") from wide


def confine_by(box_of: Callable[[Sequence[Path], Sequence[Path], Mapping[str, str]], Sandbox | None]) -> Confine:
    """Runs programs in the sandbox that is made for what they read, what they write and their variables; without one
    where that is None."""

    def confine(
        argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], readable: Sequence[Path], writable: Sequence[Path]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        box = box_of(readable, writable, env)
        if box is None:
            return argv, env
        wrapped = wrap(argv, box, cwd=cwd, env=env)
        return wrapped.argv, wrapped.env

    return confine


def filter_confine(
    current: CurrentSettings, state: SandboxState, data: Path, worktrees: Path, clock: Callable[[], float]
) -> Confine:
    def box(readable: Sequence[Path], writable: Sequence[Path], env: Mapping[str, str]) -> Sandbox | None:
        settings = current.get().sandbox
        if not confines(settings, state):
            return None
        # A word of a command may name a folder around the data of all projects.
        shown = (place for place in readable if not data.is_relative_to(place))
        return Sandbox(
            home=Path.home(),
            writable=tuple(writable),
            readable=(*visible_tools(settings, env.get("PATH", os.defpath), (data, worktrees), clock()), *shown),
            network=SandboxNetwork.NONE,
            etc=etc.sync(data / "etc"),
            image=state.image,
        )

    return confine_by(box)
