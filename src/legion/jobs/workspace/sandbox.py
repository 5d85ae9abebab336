"""The sandbox and environment variables of a program. Nothing of the person is passed that is not on a list."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from legion.config.guess.repository import Folder, local_services
from legion.config.sections.machine import NetworkMode, SystemCalls
from legion.domain import projects
from legion.domain.egress import EgressMode, EgressPolicy, narrowed, parse_places
from legion.domain.text import to_json
from legion.git.core.command import git_program
from legion.git.person.inspect import file_names
from legion.git.trees.live import LiveTree
from legion.git.trees.obstacles import remove_pipes
from legion.jobs.board import Board
from legion.jobs.filter_sandbox import confine_by, confines, visible_tools
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import kept_outputs, shell_variables
from legion.runner import egress, etc, seccomp
from legion.runner.bridge import NetworkBridge
from legion.runner.egress import UpstreamProxy
from legion.runner.sandbox import Sandbox, SandboxNetwork, wrap
from legion.store.board import questions
from legion.system import process, safe_files
from legion.system.cgroups import GroupLimits, machine_memory
from legion.system.paths import user_config_file
from legion.system.process import FinishedProcess

_MEMORY_SHARE = 0.75
_READING = 120.0
"""Seconds that reading the commits of an agent's repository may take."""
_IDLE = 3.0
"""Seconds after which a git that does nothing waits for a named pipe, so for ever."""
_PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "TERM")


def environment(
    context: Trees, project: ProjectContext, extra: Mapping[str, str], *, proxied: bool = True
) -> dict[str, str]:
    """An allow-list: variables that every program needs, those that the person named, and Legion's own.

    HOME has the person's path. Inside a sandbox that folder is empty but for the toolchains. `proxied`: variables name
    the sandbox's way out. Without them programs reach names all the same.
    """
    names = (*_PASSED_ON, *context.user.sandbox.env)
    passed = {name: os.environ[name] for name in names if name in os.environ}
    identity = {
        "GIT_AUTHOR_NAME": "Legion",
        "GIT_AUTHOR_EMAIL": "legion@localhost",
        "GIT_COMMITTER_NAME": "Legion",
        "GIT_COMMITTER_EMAIL": "legion@localhost",
    }
    of_shell = projects.for_programs(_shell(context, project))
    found = {"HOME": str(Path.home()), **of_shell, **passed, **identity, **extra}
    way = egress.variables() if bridge(context, project) else {}
    return {**found, **way} if proxied else {name: value for name, value in found.items() if name not in way}


def bridge(context: Trees, project: ProjectContext) -> NetworkBridge | None:
    """What the project's programs reach through their own network; None where they use this machine's."""
    settings, own = context.user.sandbox, project.config.environment
    if not is_on(context) or (settings.network is NetworkMode.HOST and own.network is EgressMode.PUBLIC):
        return None
    mode = EgressMode.PUBLIC if settings.network is NetworkMode.HOST else EgressMode(settings.network.value)
    person = EgressPolicy(mode=mode, allow=settings.allow, private=settings.allow)
    repository = EgressPolicy(mode=own.network, allow=own.allow)
    variables = {name.upper(): value for name, value in (*os.environ.items(), *_shell(context, project).items())}
    upstream = UpstreamProxy(
        http=variables.get("HTTP_PROXY", ""),
        https=variables.get("HTTPS_PROXY", ""),
        direct=tuple(filter(None, (one.strip() for one in variables.get("NO_PROXY", "").lower().split(",")))),
    )
    with context.store.read() as tx:
        allowed = parse_places(host for host, yes in questions.reachable(tx, project.id).items() if yes)
    policy = narrowed(person, repository).with_places(allowed)
    return NetworkBridge(
        egress=policy,
        upstream=upstream,
        forwards=(*(one for one in settings.local if isinstance(one, int)), *_named_ports(settings.env)),
        sockets=tuple(one for one in settings.local if isinstance(one, Path)),
    )


def service_notes(context: Trees, root: Path) -> list[str]:
    """What the person may set, as a sentence, where the project uses services of this machine."""
    settings = context.user.sandbox
    wanted = local_services(Folder(tuple(file_names(root)), partial(safe_files.text_behind, root)))
    if settings.network is NetworkMode.HOST or not is_on(context) or set(wanted) <= set(settings.local):
        return []
    local = [one if isinstance(one, int) else str(one) for one in dict.fromkeys((*settings.local, *wanted))]
    setting = f"`local = {to_json(local)}` under [sandbox] in {user_config_file()}"
    return [f"Its files name services of this machine. Agents and checks reach them with {setting}."]


def _named_ports(names: Iterable[str]) -> Iterator[int]:
    """Ports of this machine in the variables that the person gives to agents: a model's address, a database's."""
    for name in names:
        with contextlib.suppress(ValueError):
            found = urlsplit(os.environ.get(name, ""))
            if found.hostname in ("localhost", "127.0.0.1") and found.port:
                yield found.port


def with_reach(box: Sandbox | None, env: Mapping[str, str], gateway: str = "") -> Sandbox | None:
    """The sandbox of an agent, whose bridge leads to what its variables name: the model, Legion, its own ports."""
    if box is None or box.bridge is None:
        return box
    token, own = env.get("LEGION_TOKEN"), urlsplit(env.get("LEGION_URL", "")).port
    first, count = int(env.get("LEGION_PORT", "0")), int(env.get("LEGION_PORTS", "0"))
    model = urlsplit(gateway).port
    return replace(
        box,
        bridge=replace(
            box.bridge,
            forwards=tuple(dict.fromkeys((*box.bridge.forwards, *((model,) if model else ())))),
            api=(own,) if own and token else (),
            tokens=(token,) if token else (),
            inward=tuple(range(first, first + count)) if first else (),
        ),
    )


def _shell(context: Board, project: ProjectContext) -> dict[str, str]:
    return shell_variables.current(context, Path(project.record.common_dir), Path(project.record.root))


def limits(context: Board) -> GroupLimits:
    """What one run may use at most, by the person's settings."""
    settings = context.user.sandbox
    memory = _MEMORY_SHARE * machine_memory() if settings.memory_gb is None else settings.memory_gb * 2**30
    return GroupLimits(memory=int(memory) or None, processes=settings.processes or None)


def is_on(context: Trees) -> bool:
    return not context.user.sandbox.is_off and context.sandbox.works


def sandbox(
    context: Trees,
    project: ProjectContext,
    *,
    writable: Iterable[Path],
    readable: Iterable[Path] = (),
    small: bool = False,
) -> Sandbox | None:
    """The sandbox of a program in this project; None if it is off or not available, which `legion doctor` reports.

    A `small` one is for a git of the system: it is built faster and shows neither toolchains nor /etc.
    """
    settings = context.user.sandbox
    if not confines(settings, context.sandbox):
        return None
    home = Path.home()
    led, image = bridge(context, project), context.sandbox.image
    network = SandboxNetwork.OPEN if led is None else SandboxNetwork.NONE
    if small and Path(git_program()).is_relative_to("/usr"):
        shown = (project.hub.objects, *readable)
        return Sandbox(home=home, writable=tuple(writable), readable=shown, network=network, small=True, image=image)
    hidden = (context.data.root, Path(project.record.worktrees))
    variables = _shell(context, project)
    tools = visible_tools(settings, variables.get("PATH", os.defpath), hidden, context.clock())
    shown = (project.hub.objects, *tools, *shell_variables.certificates(variables), *readable)
    return Sandbox(
        home=home,
        writable=(*writable, *settings.write),
        readable=shown,
        network=network,
        etc=etc.sync(context.data.root / "etc"),
        filtered=_filters(context),
        # A sandbox inside of it would need mounts, which it forbids.
        walled=_filters(context) and context.sandbox.walled,
        bridge=led,
        image=image,
    )


def live_tree(context: Trees, project: ProjectContext, path: Path) -> LiveTree:
    """The worktree of a run, for readers: git sees nothing but it, whatever its program does meanwhile.

    Where there is no sandbox, that program can read all of the person's files itself.
    """

    def box(readable: Sequence[Path], writable: Sequence[Path], _: Mapping[str, str]) -> Sandbox | None:
        return sandbox(context, project, writable=writable, readable=readable, small=True)

    pipes = project.worktrees.pipes(path.name)
    return LiveTree(hub=project.hub, path=path, confine=confine_by(box), made=_made(project, path), pipes=pipes)


def _made(project: ProjectContext, tree: Path) -> tuple[str, ...]:
    """What [setup] made in a worktree; nothing where that is gone."""
    with contextlib.suppress(OSError):
        return kept_outputs.outputs(kept_outputs.record_of(project, tree)) if project.config.setup.run else ()
    return ()


def reader(context: Trees, project: ProjectContext, tree: Path) -> Callable[[Sequence[str]], FinishedProcess]:
    """Runs commands in a sandbox that can only read the agent's worktree."""
    box = sandbox(context, project, writable=(), readable=(tree,), small=True)
    filter = seccomp.program() if _filters(context) else None

    def run(argv: Sequence[str]) -> FinishedProcess:
        env = environment(context, project, {})
        if box is None:
            return process.run(argv, cwd=tree, env=env, timeout=_READING)
        # bubblewrap reads the filter from its input, to the end: the command finds nothing left there.
        remove_pipes(tree / ".git")
        wrapped = wrap(argv, box, cwd=tree, env=env, filter=None if filter is None else 0)
        return process.run(wrapped.argv, env=wrapped.env, stdin=filter or b"", timeout=_READING, idle=_IDLE)

    return run


def _filters(context: Trees) -> bool:
    return (
        context.sandbox.image is None
        and context.sandbox.filters_calls
        and context.user.sandbox.system_calls is SystemCalls.FILTERED
    )
