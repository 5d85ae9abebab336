"""Trials of a project's checks: start one, and show the last one or the one that runs."""

from __future__ import annotations

import stat
from pathlib import Path

from legion.config.files.project import FILE, hash_of
from legion.domain.checks import CheckResult
from legion.domain.errors import NotAllowed, StateConflict
from legion.domain.projects import ConfigOrigin
from legion.domain.questions import Question
from legion.domain.review.trial import Trial
from legion.jobs.board import Board
from legion.jobs.checks import sight
from legion.jobs.trees import ProjectContext, Trees
from legion.service.projects import registry, trust
from legion.service.shared.fragments import shaped
from legion.store.board import projects
from legion.store.database.transactions import ReadTransaction
from legion.system import files
from legion.wire.projects import TrialCheck, TrialPage, Trust, TryChecks


def try_checks(context: Trees, wanted: TryChecks) -> TrialPage:
    project = context.project_of(registry.find(context, wanted.cwd))
    live = context.live.trials
    if wanted.again and sight.is_on(context, project) and live.running.get(project.id) is None:
        live.again.update({project.id: True})
        sight.forget(project)
    live.troubles.remove([project.id])
    context.store.tell()
    return _page(context, project)


def fix(context: Trees, question: Question) -> str:
    """Change legion.toml in the checkout as the question shows, and trust it. Returns what follows, for the person."""
    with context.store.read() as tx:
        record = projects.get(tx, question.project)
    text = sight.proposal(context, context.project_of(record))
    if text is None or sight.difference(record.config_text, text) not in question.words:
        raise StateConflict(
            f"{FILE} is another one than when this was asked: `legion doctor --try` tries the checks and asks again."
        )
    file = Path(record.root) / FILE
    if file.is_symlink() or trust.in_the_checkout(record) != record.config_text:
        raise StateConflict(
            f"{file} is another one than the one in force, so it is not overwritten: change it as the question shows, "
            "then run `legion trust`."
        )
    try:
        files.write_atomic(file, text, mode=stat.S_IMODE(file.stat().st_mode))
    except OSError as trouble:
        raise NotAllowed(f"{file} cannot be written ({trouble.strerror}): make it writable and try again.") from trouble
    trust.trust(context, Trust(cwd=record.worktrees, hashes=[hash_of(text)]))
    if record.config_origin is ConfigOrigin.TARGET:
        return f"{file} is changed, and trusted. Commit it: the checks are tried again when it has landed."
    return f"{file} is changed, and trusted. The checks are tried again; `legion doctor` shows what that finds."


def page(context: Trees, cwd: str, after: int = 0, timeout: float = 0.0) -> TrialPage:
    project = context.project_of(registry.find(context, cwd))
    if timeout:
        context.live.trials.wait(after, timeout)
    return _page(context, project)


def _page(context: Board, project: ProjectContext) -> TrialPage:
    with context.store.read() as tx:
        return page_of(context, tx, project)


def page_of(context: Board, tx: ReadTransaction, project: ProjectContext) -> TrialPage:
    live = context.live.trials
    number, steps = live.number, live.running.get(project.id)
    if not sight.is_on(context, project):
        off = "`protection.trial` is off in your settings: it is not known whether the checks see the code"
        none = "there is no check to try: changes land unchecked"
        return TrialPage(state="off", number=number, lines=[off if project.config.checks else none])
    if not projects.is_trusted(tx, project.id, project.record.config_hash):
        return TrialPage(state="untrusted", number=number, lines=["legion.toml is not trusted, so no check runs"])
    if steps is not None:
        return TrialPage(state="running", number=number, steps=list(steps), lines=["the trial runs"])
    if (trouble := live.troubles.get(project.id)) is not None:
        return TrialPage(state="failed", number=number, lines=[trouble], trouble=trouble)
    found = sight.last(context, tx, project)
    if found is None or sight.is_due(context, tx, project):
        return TrialPage(state="due", number=number, lines=["the checks were not tried yet"])
    return _done(tx, project, found, number)


def _done(tx: ReadTransaction, project: ProjectContext, found: Trial, number: int) -> TrialPage:
    asked = sight.question(tx, project, found) if found.doubts else None
    sees = found.sees.partition(":")[0].replace("not known", "unknown")
    answer = f"; or answer question {asked.id} in `legion inbox`: {', '.join(asked.choices)}" if asked else ""
    return TrialPage(
        state="done",
        number=number,
        lines=list(found.lines),
        sees=sees,
        doubts=list(found.doubts),
        remedy="" if sees == "yes" else found.remedy(project.config.setup.run) + answer,
        question=None if asked is None else asked.id,
        trusted=bool(found.doubts) and sight.is_trusted(tx, project, found),
        setup_seconds=found.setup,
        setup_fault=found.setup_fault,
        checks=[
            shaped(TrialCheck, one, ok=one.base is CheckResult.GREEN, sight=one.sight.value) for one in found.checks
        ],
        commit=found.commit,
    )
