"""The canary: runs the project's checks on the target with every source file empty, and records which stay green.

It runs once for the checks and the setup in force. Setup runs on the target itself before, as it has in a warm tree: a
check that tests what setup installed then stays green.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.checks import Check, CheckResult
from legion.domain.events import EventKind
from legion.domain.review.source_files import blind, remedy, source_files
from legion.git.hub.objects import write_commit
from legion.git.merge import partial_trees
from legion.jobs.checks import execution
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace.cancellation import CancelToken
from legion.jobs.workspace.save import AUTHOR
from legion.system import files

_PACKAGE = "package.json"


@dataclass(frozen=True, kw_only=True)
class BlindChecks:
    """What the canary found wrong, for a person."""

    names: tuple[str, ...]
    files: int
    remedy: str

    @property
    def sentence(self) -> str:
        named = ", ".join(f"`{name}`" for name in self.names)
        stays, tests = ("stays", "it does") if len(self.names) == 1 else ("stay", "they do")
        files = "the only source file is" if self.files == 1 else f"all {self.files} source files are"
        return f"{named} {stays} green when {files} empty, so {tests} not test this tree"


def is_due(project: ProjectContext) -> bool:
    """Whether checks in force were never tried, or only on a target on which some of them are red."""
    last = _last(project)
    if not project.config.checks or (last is not None and _is_complete(last, project.config)):
        return False
    return last is None or last.commit != project.record.target


def state(project: ProjectContext) -> str:
    """How far the canary has come, for a person."""
    last = _last(project)
    if last is None:
        return "not tried yet"
    if not last.files:
        return "not known: no source files were recognised"
    if not _is_complete(last, project.config):
        return "not known: they fail on the target itself"
    return "they fail when the source files are empty"


def found(project: ProjectContext) -> BlindChecks | None:
    """The checks in force that the canary showed to prove nothing."""
    last, config = _last(project), project.config
    if last is None:
        return None
    passes = {check: last.green.get(check.name) for check in config.checks}
    names = tuple(check.name for check in blind(passes))
    return BlindChecks(names=names, files=last.files, remedy=remedy(config.setup.run)) if names else None


def run(context: Context, project: ProjectContext, cancel: CancelToken) -> None:
    """Try the checks and record the result. Checks that are red on the target itself are not tried.

    Raises Cancelled if the token is cancelled before the end.
    """
    target, config = project.target, project.config
    source = source_files(partial_trees.tracked(project.hub, target), tuple(_commands(project, target, config.checks)))
    green: dict[str, bool] = {}
    if source:
        wanted = execution.project_checks(project)
        tested = execution.test_unless_cancelled(context, project, target, wanted, cancel)
        sound = {one.command for one in tested.receipts if one.verdict is CheckResult.GREEN}
        commit = _without_source(project, target, source)
        for check in config.checks:
            if check.command in sound:
                code = execution.try_out(context, project, commit, check, why="canary", cancel=cancel)
                green[check.name] = code == 0
    result = _Result(key=key(config), commit=target, files=len(source), green=green)
    files.write_atomic(_file(project), json.dumps(asdict(result)))
    if not source:
        return
    with context.store.write() as tx:
        data = {"commit": target, "files": len(source), "green": green}
        tx.record(EventKind.EMPTIED, project=project.id, data=data)


def key(config: ProjectConfig) -> str:
    """The same for the same checks and the same setup."""
    facts = [config.setup.run, *((check.name, check.command) for check in config.checks)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class _Result:
    """The last result, kept in a file: what is lost with it is learned again."""

    key: str
    commit: str
    files: int
    green: dict[str, bool]
    """By name of the check; one that is red on the target itself is missing."""


def _last(project: ProjectContext) -> _Result | None:
    """The result for the checks in force."""
    try:
        last = _Result(**json.loads(_file(project).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return last if last.key == key(project.config) else None


def _is_complete(last: _Result, config: ProjectConfig) -> bool:
    return not last.files or all(check.name in last.green for check in config.checks)


def _file(project: ProjectContext) -> Path:
    return project.folder / "canary.json"


def _commands(project: ProjectContext, target: str, checks: Iterable[Check]) -> Iterable[str]:
    """The commands of the checks, and of the scripts that `npm test` and the like start."""
    yield from (check.command for check in checks)
    package = project.hub.read_file(target, _PACKAGE)
    if package is not None:
        try:
            scripts = json.loads(package).get("scripts", {})
        except (ValueError, AttributeError):
            return
        if isinstance(scripts, dict):
            yield from (script for script in scripts.values() if isinstance(script, str))


def _without_source(project: ProjectContext, target: str, source: tuple[str, ...]) -> str:
    stamp = AUTHOR.stamp(0)
    return write_commit(
        project.hub,
        tree=partial_trees.emptied(project.hub, target, source),
        parents=(target,),
        author=stamp,
        committer=stamp,
        message="Every source file empty",
    )
