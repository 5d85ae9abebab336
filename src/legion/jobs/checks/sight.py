"""Keeps the result of the last trial of a project's checks, and asks a person where it leaves doubts.

The result is a file of the project: what is lost with it is learned again. Sessions of one repository share results.
"""

from __future__ import annotations

import dataclasses
import difflib
import getpass
import hashlib
import json
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

from legion.config.files.project import FILE, ProjectConfig
from legion.config.guess.fix import fixed
from legion.config.guess.repository import Folder
from legion.domain.checks import Check, CheckResult
from legion.domain.events import EventKind
from legion.domain.projects import ConfigOrigin
from legion.domain.questions import FIX, LEAVE, TRUST, Question, QuestionKind, SettledBy
from legion.domain.review.source_files import layout, packages, reads_setup, source_files
from legion.domain.review.trial import Sight, Trial, TriedCheck
from legion.git.hub.repository import Hub
from legion.git.merge import partial_trees
from legion.jobs.board import Board
from legion.jobs.supervise.questions import release_tickets
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import shell_variables
from legion.store import events
from legion.store.board import projects, questions
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.system import files

_FILE = "trial.json"
_PACKAGE = "package.json"
_ANSWER_WITHIN = 30 * 86_400.0


def is_on(context: Board, project: ProjectContext) -> bool:
    return context.user.protection.trial and bool(project.config.checks)


def last(context: Board, tx: ReadTransaction, project: ProjectContext, commit: str = "") -> Trial | None:
    """The result for the checks in force, as they are at the commit, by default the target."""
    wanted = key(project, commit or project.record.target)
    found = _read(project.folder / _FILE)
    if found is not None and found.key == wanted:
        return found
    others = [one.id for one in projects.sessions_of(tx, project.record.common_dir) if one.id != project.id]
    shared = (_read(context.data.project(other) / _FILE) for other in others)
    return next((one for one in shared if one is not None and one.key == wanted and one.complete), None)


def is_due(context: Board, tx: ReadTransaction, project: ProjectContext) -> bool:
    """Whether the checks in force were never tried, failed on another target or with other variables of the shell, or
    proved flaky since."""
    if not is_on(context, project):
        return False
    found = last(context, tx, project)
    if found is None:
        return True
    if found.complete:
        return _is_newly_flaky(tx, project, found.at)
    reported = shell_variables.changed_at(context, Path(project.record.common_dir))
    return found.commit != project.record.target or reported > found.at


def _is_newly_flaky(tx: ReadTransaction, project: ProjectContext, since: float) -> bool:
    """Whether a check was flaky for the first time after the trial."""
    flaky = events.since(tx, project.id, EventKind.FLAKY, 0.0)
    first: dict[str, float] = {}
    for event in flaky:
        first[str(event.data["command"])] = min(event.at, first.get(str(event.data["command"]), event.at))
    return any(first.get(check.command, 0.0) > since for check in project.config.checks)


def forget(project: ProjectContext) -> None:
    """The trial is due again."""
    (project.folder / _FILE).unlink(missing_ok=True)


def keep(context: Board, project: ProjectContext, found: Trial) -> None:
    """Store the result. Where it leaves doubts the person is asked, once; else what waited for it continues."""
    files.write_atomic(project.folder / _FILE, json.dumps(dataclasses.asdict(found), default=lambda one: one.value))
    new = proposal(context, project) if found.blind or found.copies else None
    with context.store.write() as tx:
        data = {
            "commit": found.commit,
            "files": found.files,
            "checks": {one.name: one.sight.value for one in found.checks},
            "sees": found.sees,
        }
        tx.record(EventKind.TRIED, project=project.id, data=data)
        if not found.complete:
            return
        about = _key_of_question(project, found) if found.doubts else ""
        for one in questions.open_ones(tx):
            if one.kind is QuestionKind.CHECKS and one.project == project.id and one.key.rpartition(":")[0] != about:
                questions.settle(tx, one.id, one.fallback, "the checks were tried again", by=SettledBy.END)
        if found.doubts:
            _ask(tx, project, found, new)
        else:
            release_tickets(tx, project.id)


def is_trusted(tx: ReadTransaction, project: ProjectContext, found: Trial) -> bool:
    """Whether a person has answered that they trust the checks in spite of these doubts."""
    asked, _ = _asked(tx, project, found)
    return asked is not None and asked.choice == TRUST


def question(tx: ReadTransaction, project: ProjectContext, found: Trial) -> Question | None:
    """The open question about these doubts."""
    asked, _ = _asked(tx, project, found)
    return asked if asked is not None and asked.settled_at is None else None


def trusted_by(context: Board, tx: ReadTransaction, project: ProjectContext, check: Check) -> str:
    """Who trusts the check although it was not shown to see the code; empty where it was, or no one was asked."""
    if not is_on(context, project) or check not in project.config.checks:
        return ""
    found = last(context, tx, project)
    if found is None or not found.doubts:
        return ""
    return getpass.getuser() if is_trusted(tx, project, found) else ""


def proposal(context: Board, project: ProjectContext) -> str | None:
    """A legion.toml in place of the one in force whose checks may see the code."""
    record, target = project.record, project.record.target
    path = shell_variables.current(context, Path(record.common_dir), Path(record.root)).get("PATH")

    def text_of(name: str) -> str:
        return (project.hub.read_file(target, name) or b"").decode("utf-8", "replace")

    names = tuple(partial_trees.tracked(project.hub, target))
    return fixed(record.config_text, Folder(names, text_of, lambda name: shutil.which(name, path=path) is not None))


def difference(before: str, after: str) -> str:
    """The lines that change, for a person."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def _ask(tx: Transaction, project: ProjectContext, found: Trial, new: str | None) -> None:
    """Once; and again where a trial finds the same after an answer that left it open."""
    doubts, remedy = "; ".join(found.doubts), found.remedy(project.config.setup.run)
    if new is None:
        way = f"To fix it: {remedy}. Then commit {FILE} and run `legion trust`: the checks are tried again."
    else:
        landed = project.record.config_origin is ConfigOrigin.TARGET
        then = "when you have committed it, the checks are tried again" if landed else "the checks are tried again"
        changed = difference(project.record.config_text, new)
        way = f"`{FIX}` changes these lines of {FILE} in your checkout; {then}:\n{changed}"
    asked, next_key = _asked(tx, project, found)
    if asked is not None and (asked.settled_at is None or asked.choice == TRUST):
        return
    questions.ask(
        tx,
        key=next_key,
        kind=QuestionKind.CHECKS,
        project=project.id,
        words=(
            f"Shall changes land on these checks? {doubts[:1].upper()}{doubts[1:]}.\n"
            f"{way}\n`{TRUST}` lands changes all the same, and every receipt says so; until then finished tickets wait."
        ),
        deadline=tx.now + _ANSWER_WITHIN,
        choices=None if new is None else (FIX, LEAVE, TRUST),
    )


def _asked(tx: ReadTransaction, project: ProjectContext, found: Trial) -> tuple[Question | None, str]:
    """The last question about these doubts, and the key of the next one."""
    known, number, start = None, 1, _key_of_question(project, found)
    while (one := questions.by_key(tx, f"{start}:{number}")) is not None:
        known, number = one, number + 1
    return known, f"{start}:{number}"


def _key_of_question(project: ProjectContext, found: Trial) -> str:
    """The same for the same doubts about the same commands, in all sessions of a repository."""
    facts = [project.record.common_dir, *_commands(project.config), *found.doubts]
    return f"{QuestionKind.CHECKS.value}:{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]}"


def _commands(config: ProjectConfig) -> list[str]:
    return [config.setup.run, *(f"{check.name}: {check.command}" for check in config.checks)]


def key(project: ProjectContext, commit: str) -> str:
    """The same for the same setup, checks, lock files and packages."""
    config = project.config
    checks = tuple(check.command for check in config.checks)
    facts = [*_commands(config), *config.setup.key, _layout(project.hub.path, commit, checks, config.setup.key)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def sources(project: ProjectContext, commit: str) -> dict[str, tuple[str, ...]]:
    """The source files of a commit by their package."""
    paths = tuple(partial_trees.tracked(project.hub, commit))
    commands = [*(check.command for check in project.config.checks), *scripts(project.hub, commit).values()]
    return packages(paths, source_files(paths, commands))


@lru_cache(maxsize=64)
def _layout(hub_path: Path, commit: str, checks: tuple[str, ...], setup_key: tuple[str, ...]) -> str:
    """A digest of what decides where checks find the code: a commit never changes, so it is made once."""
    hub = Hub(hub_path)
    known = partial_trees.tracked(hub, commit)
    found = packages(tuple(known), source_files(known, [*checks, *scripts(hub, commit).values()]))
    deciding = sorted((path, id) for path, id in known.items() if reads_setup(path) or path in setup_key)
    return hashlib.sha256(json.dumps([layout(found), deciding]).encode()).hexdigest()


def scripts(hub: Hub, commit: str) -> dict[str, str]:
    """By name, the scripts that `npm test` and the like start."""
    try:
        found = json.loads(hub.read_file(commit, _PACKAGE) or b"{}").get("scripts", {})
    except (ValueError, AttributeError):
        return {}
    named = found.items() if isinstance(found, dict) else ()
    return {name: script for name, script in named if isinstance(script, str)}


def _read(file: Path) -> Trial | None:
    try:
        facts = json.loads(file.read_bytes())
        lists = {name: tuple(facts[name]) for name in ("unseen", "unknown", "copies")}
        return Trial(**{**facts, **lists, "checks": tuple(_check(one) for one in facts["checks"])})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _check(facts: dict[str, Any]) -> TriedCheck:
    return TriedCheck(**{**facts, "base": CheckResult(facts["base"]), "sight": Sight(facts["sight"])})
