"""Changes that need a person's approval: secrets, undeclared protected files, weakened tests, hidden characters, large
or very many files, and folders that git takes for a repository.

The question is asked once per change: its key is made of the content of those files. The ticket is parked meanwhile;
when it returns to `checking` it finds the answer, or that the deadline has passed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from legion.config.sections.evidence import GuardMode
from legion.domain.landing.filter_rules import filter_changes, filter_lines, late_filter
from legion.domain.landing.queue import LandingMode
from legion.domain.questions import TOO_LATE, Question, QuestionKind, SettledBy
from legion.domain.review import diffs
from legion.domain.review.additions import (
    HiddenCharacter,
    LargeFile,
    SecretFound,
    hidden_characters,
    secrets_in,
    too_large,
)
from legion.domain.review.path_patterns import matches
from legion.domain.review.protected_files import ToolFile, TouchedFile, left_by_tools, stopped_by
from legion.domain.review.weakened_tests import Weakening, weakenings
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Change, Park, ParkReason, Step, Ticket
from legion.git.core.history import FileChange, FileStatus
from legion.git.hub.attribute_files import attribute_files, attribute_texts
from legion.git.hub.filters import chosen_filters, defined
from legion.git.hub.repository import Hub
from legion.git.merge import partial_trees
from legion.jobs.attempts import feedback
from legion.jobs.board import Board
from legion.jobs.supervise.outcome import first_paths
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace import save
from legion.store.board import questions
from legion.store.database.transactions import ReadTransaction, Transaction

_MOST_COMMITS = 50
"""Commits of a change whose own differences are searched for secrets, beginning with the last."""
_SHOWN = 12
"""Files and lines that a question names; the rest is counted."""


@dataclass(frozen=True, kw_only=True)
class ApprovalConcern:
    """Why a person has to be asked about a change."""

    key: str
    protected: tuple[str, ...]
    """Paths that are protected and not declared."""
    weakened: tuple[Weakening, ...]
    """Signs in undeclared paths, protected or not."""
    repositories: tuple[str, ...] = ()
    """Folders that git takes for a repository, and links into one."""
    links: tuple[str, ...] = ()
    """Links that lead out of the repository."""
    many: int = 0
    """How many files it changes, if that is more than the person's limit."""
    large: tuple[LargeFile, ...] = ()
    """Files above the person's limit."""
    secrets: tuple[SecretFound, ...] = ()
    """Keys, tokens and passwords in undeclared paths."""
    hidden: tuple[HiddenCharacter, ...] = ()
    """Characters in undeclared paths that make code read as other code than it is."""
    filters: tuple[str, ...] = ()
    """What it changes about git filters, by undeclared attribute files; files that were stored before they had one."""
    again: StartPoint | None = None
    """Where the next attempt starts after a no; None: it continues."""
    left: tuple[ToolFile, ...] = ()
    """New files that tools leave behind."""

    @property
    def question(self) -> str:
        undeclared = (*self.protected, *self.only_weakened)
        found = [f"{one.path}: {sentence(one)}" for one in self.weakened]
        count = [f"{self.many} files: more than `protection.most_files` allows without a question"] if self.many else []
        parts = [
            ("It seems to hold secrets, which stay in the history once it has landed:", _sentences(self.secrets)),
            ("It has characters that make it read as other code than it is:", _sentences(self.hidden)),
            ("It changes which files go through git filters:", self.filters),
            ("It is large:", count),
            ("It touches what its ticket does not declare (`--files`):", undeclared),
            ("Tests look weaker:", found),
            ("Files are larger than `protection.file_mb`:", _sentences(self.large)),
            ("Tools seem to have left these (a no keeps them out):", _sentences(self.left)),
            ("Git takes these for repositories and runs the programs that they name:", self.repositories),
            ("These links lead out of the repository, to files of the host where it is checked out:", self.links),
        ]
        listed = "\n".join(f"{what}\n{_list(rows)}" for what, rows in parts if rows)
        return f"May this change land? {listed}\nA no sends it back with your words."

    @property
    def reason(self) -> str:
        parts = [
            ("it seems to hold secrets", tuple(dict.fromkeys(one.path for one in self.secrets))),
            ("it hides characters", tuple(dict.fromkeys(one.path for one in self.hidden))),
            ("it changes git filters", tuple(one.partition(" ")[0] for one in self.filters)),
            ("it changed protected files", self.protected),
            ("tests look weaker", self.only_weakened),
            ("it holds a git repository", self.repositories),
            ("it links out of the repository", self.links),
            ("it changes many files", (str(self.many),) if self.many else ()),
            ("it adds large files", tuple(one.path for one in self.large)),
            ("it adds what tools leave behind", tuple(one.path for one in self.left)),
        ]
        return " and ".join(f"{what} ({first_paths(paths)})" for what, paths in parts if paths)

    @property
    def paths(self) -> tuple[str, ...]:
        added = (*(one.path for one in self.large), *(one.path for one in self.left))
        return tuple(dict.fromkeys((*self.protected, *self.only_weakened, *self.repositories, *self.links, *added)))

    @property
    def only_weakened(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.path for one in self.weakened if one.path not in self.protected))


def sentence(one: Weakening) -> str:
    where = "" if one.line is None else f" in line {one.line}"
    return f"{one.sign.value}{where}: {one.words}"


def find_weakenings(project: ProjectContext, ticket: Ticket, change: Change) -> tuple[Weakening, ...]:
    """Every sign in the change, declared or not."""
    commands = [*(check.command for check in project.config.checks), *ticket.spec.proofs]
    return weakenings(diffs.read(project.hub.patch(change.base, change.commit)), commands)


def find_hidden(project: ProjectContext, change: Change) -> tuple[HiddenCharacter, ...]:
    """Every character that the change adds and a screen does not show."""
    return hidden_characters(diffs.read(project.hub.patch(change.base, change.commit)))


def concern(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> ApprovalConcern | None:
    """None for a change that needs no approval."""
    if ticket.spec.undoes is not None:
        # A revert of a landed change is exactly what a person asked for.
        return None
    hub = project.hub
    found = (*save.repositories(hub, change, change.commit), *save.links_into_git(hub, change))
    links = save.links_outside(hub, change)
    changed = hub.changed_files(change.base, change.commit)
    stopped, weak = _undeclared(context, project, ticket, change)
    most = context.user.protection.most_files
    many = len(changed) if most and len(changed) > most else 0
    large = _large(context, project, ticket, changed)
    secrets = _secrets(context, project, ticket, change)
    hidden = _disguises(context, project, ticket, change)
    filters = _filters(context, project, ticket, change)
    left = _left_by_tools(context, project, ticket, change, changed)
    if not (stopped or weak or found or links or many or large or secrets or hidden or filters or left):
        return None
    paths = {
        *stopped,
        *(one.path for one in weak),
        *(one.path for one in hidden),
        *((file.path for file in changed if _is_attributes(file)) if filters else ()),
        *links,
        *(one.path for one in large),
        *(one.path for one in left),
        *_inside(changed, ["."] if many else found),
    }
    return ApprovalConcern(
        key=_key(ticket, changed, paths, secrets),
        protected=stopped,
        weakened=weak,
        repositories=found,
        links=links,
        many=many,
        large=large,
        secrets=secrets,
        hidden=hidden,
        filters=filters,
        left=left,
    )


def assembled_by_merge(project: ProjectContext, ticket: Ticket, candidate: str) -> ApprovalConcern | None:
    """Repositories that are complete only together with what landed meanwhile, and files that were stored before it
    gave them a filter. Those of the change itself have been settled before.
    """
    change = ticket.change
    if change is None or ticket.spec.undoes is not None:
        return None
    hub = project.hub
    merged = save.repositories(hub, change, candidate)
    new = tuple(path for path in merged if path not in save.repositories(hub, change, change.commit))
    changed = hub.changed_files(change.base, change.commit)
    filters = _stored_before(project, change.commit, candidate, changed)
    if not new and not filters:
        return None
    paths = {*_inside(changed, new), *filters}
    said = tuple(late_filter(path, name) for path, name in filters.items())
    return ApprovalConcern(
        key=_key(ticket, changed, paths),
        protected=(),
        weakened=(),
        repositories=new,
        filters=said,
        again=StartPoint(base=project.target, tree=hub.tree_of(project.target)) if filters else None,
    )


def _stored_before(
    project: ProjectContext, commit: str, candidate: str, changed: Sequence[FileChange]
) -> dict[str, str]:
    """By file of a change that was stored without a filter: the one that it goes through where it would land."""
    hub, common_dir = project.hub, Path(project.record.common_dir)
    if attribute_files(hub, commit) == attribute_files(hub, candidate):
        return {}
    paths = [os.fsencode(file.path) for file in changed]
    was, now = (chosen_filters(hub, one, common_dir, paths) for one in (commit, candidate))
    # A filter without a definition hides nothing.
    runs = defined(common_dir)
    return {path: name for path, name in now.items() if path not in was and name in runs}


def _undeclared(
    context: Board, project: ProjectContext, ticket: Ticket, change: Change
) -> tuple[tuple[str, ...], tuple[Weakening, ...]]:
    """Protected paths and signs of weaker tests that the ticket does not declare."""
    own = context.user.protection
    if own.mode is GuardMode.OFF:
        return (), ()
    declared = _declared(context, ticket)
    checks = [check.command for check in project.config.checks]
    files = [touched(file) for file in project.hub.changed_files(change.base, change.commit)]
    stopped = stopped_by(files, project.config.protected.paths, declared, checks, ticket.spec.proofs)
    weak = [one for one in find_weakenings(project, ticket, change) if not matches(one.path, declared)]
    return stopped, tuple(weak)


def _disguises(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> tuple[HiddenCharacter, ...]:
    if context.user.protection.mode is GuardMode.OFF:
        return ()
    declared = _declared(context, ticket)
    return tuple(one for one in find_hidden(project, change) if one.disguises and not matches(one.path, declared))


def _filters(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> tuple[str, ...]:
    """What the change means for files that git stores through a filter, a sentence for each rule."""
    files = [file for file in project.hub.changed_files(change.base, change.commit) if _is_attributes(file)]
    declared = _declared(context, ticket)
    if context.user.protection.mode is GuardMode.OFF or all(matches(file.path, declared) for file in files):
        return ()
    hub, common_dir = project.hub, Path(project.record.common_dir)
    commits = (change.base, change.commit)
    before, after = (filter_lines(attribute_texts(hub, commit)) for commit in commits)
    if before == after:
        return ()
    paths = [os.fsencode(path) for path in hub.files(change.commit)]
    was, now = (chosen_filters(hub, commit, common_dir, paths) for commit in commits)
    return filter_changes(was, now, (before, after), defined(common_dir))


def _is_attributes(file: FileChange) -> bool:
    return file.path.rpartition("/")[2] == ".gitattributes"


def _secrets(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> tuple[SecretFound, ...]:
    """Those of every commit that would be in the history, also where a later commit removes them."""
    if not context.user.protection.secrets:
        return ()
    squashed = project.config.landing.mode is LandingMode.SQUASH
    found = _secrets_of(project.hub.path, change, squashed=squashed)
    return tuple(one for one in found if not matches(one.path, _declared(context, ticket)))


@lru_cache(maxsize=256)
def _secrets_of(hub_path: Path, change: Change, *, squashed: bool) -> tuple[SecretFound, ...]:
    """A change is looked at several times on its way, and never changes."""
    hub = Hub(hub_path)
    patches = [hub.patch(change.base, change.commit)]
    if not squashed:
        steps = hub.straight_line(change.base, change.commit)
        if steps is None:
            commits = hub.commits_between(change.base, change.commit)
            steps = tuple((one.parents[0], one.commit) for one in commits if len(one.parents) == 1)
        between = [step for step in steps if step[1] != change.commit]
        patches += [hub.patch(parent, commit) for parent, commit in between[-_MOST_COMMITS:]]
    return secrets_in(file for patch in patches for file in diffs.read(patch))


def _large(
    context: Board, project: ProjectContext, ticket: Ticket, changed: Sequence[FileChange]
) -> tuple[LargeFile, ...]:
    own = context.user.protection
    if own.mode is GuardMode.OFF:
        return ()
    sizes = ((file.path, project.hub.size_of(file.content.split(" ")[-1])) for file in changed if file.content)
    return too_large(sizes, _declared(context, ticket), own.file_mb)


def _left_by_tools(
    context: Board, project: ProjectContext, ticket: Ticket, change: Change, changed: Sequence[FileChange]
) -> tuple[ToolFile, ...]:
    if context.user.protection.mode is GuardMode.OFF:
        return ()
    new = (file.path for file in changed if file.status is FileStatus.ADDED)
    return left_by_tools(new, lambda: partial_trees.tracked(project.hub, change.base), _declared(context, ticket))


def _declared(context: Board, ticket: Ticket) -> tuple[str, ...]:
    """An agent that dispatches a ticket cannot declare files that a person has protected."""
    return (*(() if ticket.spec.dispatcher else ticket.spec.files), *context.user.protection.allow)


def _inside(changed: Sequence[FileChange], places: Sequence[str]) -> set[str]:
    """The changed files that are one of these places or below one."""
    whole = "." in places
    return {file.path for file in changed if whole or any(f"{file.path}/".startswith(f"{one}/") for one in places)}


def settle(tx: Transaction, ticket: Ticket, about: ApprovalConcern, within: float) -> Step | None:
    """The step after the answer; None is a yes. Asks the question if it was not asked before."""
    question = questions.ask(
        tx,
        key=about.key,
        kind=QuestionKind.CHANGE,
        project=ticket.project,
        ticket=ticket.id,
        words=about.question,
        deadline=tx.now + within,
    )
    if question.settled_at is None and question.deadline <= tx.now:
        question = questions.settle(tx, question.id, question.fallback, TOO_LATE, by=SettledBy.SILENCE)
    if question.settled_at is None:
        return Park(ParkReason.QUESTION, about.reason, until=question.deadline)
    return None if question.allowed else _sent_back(ticket, about, question)


def refused(tx: ReadTransaction, ticket: Ticket, about: ApprovalConcern) -> Step | None:
    """The step back with the person's reason, if they have refused this change already: that goes before all else."""
    question = questions.by_key(tx, about.key)
    if question is None or question.settled_at is None or question.allowed:
        return None
    return _sent_back(ticket, about, question)


def _sent_back(ticket: Ticket, about: ApprovalConcern, question: Question) -> Step:
    outcome = "unanswered" if question.settled_by is SettledBy.SILENCE else "and you said no"
    signs = [*map(sentence, about.weakened), *_sentences((*about.large, *about.hidden, *about.left))]
    if about.left:
        signs.append("Delete what tools left behind, and add it to .gitignore.")
    secrets = _sentences(about.secrets)
    text = feedback.touched_protected(about.paths, signs, question.why, many=about.many, secrets=secrets)
    return next_try(ticket, f"{about.reason}, {outcome}", text, about.again)


def touched(file: FileChange) -> TouchedFile:
    adds = file.status is FileStatus.ADDED or (file.status is FileStatus.MODIFIED and file.deletions == 0)
    return TouchedFile(path=file.path, only_adds=adds, new=file.status is FileStatus.ADDED)


def _key(
    ticket: Ticket, changed: Sequence[FileChange], paths: Container[str], secrets: Sequence[SecretFound] = ()
) -> str:
    """The same content is the same question, until a person retries the ticket."""
    contents = sorted(f"{file.path}\0{file.content}" for file in changed if file.path in paths)
    contents += sorted(f"{one.path}\0{one.text}" for one in secrets)
    digest = hashlib.sha256("\n".join(contents).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{QuestionKind.CHANGE.value}:{ticket.id}/{ticket.spared}/{digest[:32]}"


def _sentences(found: Sequence[LargeFile | SecretFound | HiddenCharacter | ToolFile]) -> tuple[str, ...]:
    return tuple(one.sentence for one in found)


def _list(rows: Sequence[str]) -> str:
    """One line each, also for file names with line breaks."""
    more = [f"- and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return "\n".join([*(f"- {' '.join(row.splitlines())}" for row in rows[:_SHOWN]), *more])
