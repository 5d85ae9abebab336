"""Runs a command of the project (setup, check, proof) to its end in a tree, in the sandbox, through a runner."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.errors import LegionError
from legion.domain.failure_causes import refused_host
from legion.drivers import EndKind, Program
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import caches, kept_outputs, sandbox
from legion.runner import launch
from legion.runner.journal import JournalKind, read_journal
from legion.runner.launch import EndedRun, LostRun
from legion.runner.sandbox import SandboxNetwork
from legion.runner.spec import RunFolder, RunnerError, RunSpec, write_spec
from legion.store.board import projects

TAIL_BYTES = 6000
_MOST_HOSTS = 3


class NotTrusted(LegionError):
    """The legion.toml in force changed during a job. The job backs off until the person trusts the new one."""


@dataclass(frozen=True, kw_only=True)
class CommandEnd:
    exit_code: int | None
    """None if it did not end by itself."""
    how: str
    """For people: `exit code 1`, `timed out after 600 s`."""
    lost: bool
    """It did not finish for a reason outside of it, so it proves nothing about what it tests."""
    duration: float
    tail: str
    output: Path
    digest: str


def run(
    context: Context,
    project: ProjectContext,
    *,
    name: str,
    command: str,
    tree: Path,
    timeout: float,
    writable: tuple[Path, ...] = (),
    readable: tuple[Path, ...] = (),
    env: Mapping[str, str] | None = None,
    offline: bool = False,
    installs: bool = False,
    landed: bool = False,
    cancel: CancelToken | None = None,
) -> CommandEnd:
    """Every call has a run folder of its own, which keeps its complete output.

    It gets a copy of the project's cache of downloads: the whole cache if it `installs` packages, else what builds
    read. `landed`: the command is one of legion.toml and no file in the tree is of a change that has not landed, so its
    downloads become the project's if it succeeds.
    Raises Cancelled if the token is cancelled before the command ends.
    """
    with context.store.read() as tx:
        if not projects.is_trusted(tx, project.id, project.record.config_hash):
            raise NotTrusted(f"`{command}` is not run: legion.toml changed, so read it and run `legion trust`.")
    box = sandbox.sandbox(context, project, writable=(tree, *writable), readable=readable)
    if offline and box is not None:
        box = replace(box, network=SandboxNetwork.NONE, bridge=None)
    run_dir = context.data.runs / f"{name.replace(' ', '-')}-{project.id}-{time.time_ns()}-{os.urandom(3).hex()}"
    program = Program(
        argv=("sh", "-c", command),
        cwd=tree,
        # Tests of code that reads these variables expect none.
        env=sandbox.environment(context, project, {"LEGION_CHECK": name, **(env or {})}, proxied=installs),
    )
    spec = RunSpec(run=run_dir.name, program=program, timeout=timeout, limits=sandbox.limits(context), sandbox=box)
    with contextlib.ExitStack() as copies:
        if box is not None:
            replaced = copies.enter_context(kept_outputs.written_to(project, tree, readable))
            places = {place for place, _ in replaced}
            box = replace(box, replaced=replaced, readable=tuple(path for path in box.readable if path not in places))
            spec = replace(spec, sandbox=box)
        # Without a sandbox, builds use the person's own downloads.
        if not installs and (box is None or (not landed and caches.is_empty(project, installs=False))):
            return _run(context, run_dir, spec, cancel)
        cache = copies.enter_context(caches.copied(project, installs=installs))
        named = caches.variables(context.user, cache, installs=installs)
        box = None if box is None else replace(box, writable=(*box.writable, cache))
        program = replace(program, env={**named, **program.env})
        ended = _run(context, run_dir, replace(spec, program=program, sandbox=box), cancel)
        if landed and ended.exit_code == 0:
            caches.publish(project, cache)
    return ended


def _run(context: Context, run_dir: Path, spec: RunSpec, cancel: CancelToken | None) -> CommandEnd:
    write_spec(run_dir, spec)
    began = time.monotonic()
    context.launcher.start(run_dir)
    with (cancel or CancelToken()).running(run_dir):
        ended = launch.wait(run_dir)
    return end_of(run_dir, ended, time.monotonic() - began)


def end_of(run_dir: Path, ended: EndedRun | LostRun, duration: float) -> CommandEnd:
    """How a command ended, by its run's folder; `duration` counts where its runner left none."""
    output = RunFolder(run_dir).output
    tail, digest = _read(output)
    if isinstance(ended, LostRun):
        return CommandEnd(
            exit_code=None,
            how="its runner was killed",
            lost=True,
            duration=duration,
            tail=tail,
            output=output,
            digest=digest,
        )
    result = ended.result
    code = result.exit_code if result.outcome is EndKind.EXITED else None
    if code != 0:
        tail += "".join(f"\n[{sentence}]" for sentence in _refused_hosts(run_dir))
    return CommandEnd(
        exit_code=code,
        how=result.message.rstrip("."),
        lost=result.outcome in (EndKind.STOPPED, EndKind.FAILED_TO_START),
        duration=result.ended_at - result.started_at,
        tail=tail,
        output=output,
        digest=digest,
    )


def _refused_hosts(run_dir: Path) -> list[str]:
    found = read_journal(run_dir, kinds=(JournalKind.REFUSED.value,))[:_MOST_HOSTS]
    return [refused_host(str(one.facts.get("host")), str(one.facts.get("why"))) for one in found]


def _read(output: Path) -> tuple[str, str]:
    """The last part of the output, and the digest of all of it."""
    digest = hashlib.sha256()
    tail = b""
    try:
        with output.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                tail = (tail + piece)[-TAIL_BYTES:]
    except FileNotFoundError:
        pass
    return tail.decode("utf-8", "replace"), digest.hexdigest()


# Cancels a test whose result is no longer needed.

log = logging.getLogger(__name__)


class Cancelled(LegionError):
    """The test was cancelled. It leaves no receipt."""


class CancelToken:
    """Passed to a test, or to several at once, by the thread that may cancel them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: set[Path] = set()

    def cancel(self) -> None:
        """Raises RunnerError where the runner of the test's command does not answer."""
        with self._lock:
            self._cancelled = True
            running = tuple(self._running)
        for run_dir in running:
            launch.stop(run_dir, grace=0)

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        if self._cancelled:
            raise Cancelled("The test was cancelled because its result is no longer needed.")

    @contextlib.contextmanager
    def running(self, run_dir: Path) -> Iterator[None]:
        """Around the time in which a started command runs. Raises Cancelled at its end if that was not its own."""
        with self._lock:
            self._running.add(run_dir)
            cancelled = self._cancelled
        try:
            if cancelled:
                launch.stop(run_dir, grace=0)
            yield
        finally:
            with self._lock:
                self._running.discard(run_dir)
        self.raise_if_cancelled()


def cancel_all(tokens: Iterable[CancelToken]) -> None:
    """Cancel each of them, also where the runner of one does not answer: that test ends by itself."""
    for token in tokens:
        try:
            token.cancel()
        except RunnerError as silent:
            log.warning("a cancelled test may run to its end: %s", silent.message)
