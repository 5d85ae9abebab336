"""Conversations that a ticket continues: the person's, as a copy, and its own after it was in the person's hands.

The person's checkout is only read. The copy is kept with the project until a run takes it into its agent's state.

The next run of the ticket takes what was written there if it continues exactly what the ticket has. So what the person
discussed in the terminal is part of the ticket's conversation, whatever resumes the ticket.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import StateConflict
from legion.domain.tickets.spec import StartPoint
from legion.drivers.profile import DriverProfile
from legion.git.core.errors import BranchGone, RepositoryGone
from legion.git.person.inspect import look
from legion.git.trees.snapshots import snapshot
from legion.git.trees.unsaved import unfinished
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.sandbox import live_tree
from legion.jobs.workspace.save import AUTHOR
from legion.system import files, safe_files

_FOLDER = "adopted"


@dataclass(frozen=True, kw_only=True)
class SavedCheckout:
    ground: StartPoint
    changed: bool
    """It differs from the commit that the ticket starts from."""
    commits: tuple[str, ...]
    """The subjects of the person's commits that the target lacks: they are part of the change."""
    left_out: tuple[str, ...]
    """Nested repositories, changed submodules and unreadable files: they stay in the checkout alone."""


def save_checkout(context: Trees, project: ProjectContext, folder: Path) -> SavedCheckout:
    """The files of the checkout that contains the folder, as a commit in the hub. Raises StateConflict."""
    facts = look(folder)
    if (operation := unfinished(facts.root)) is not None:
        raise StateConflict(f"A {operation.value} is unfinished in {facts.root}: {operation.remedy}. Then adopt again.")
    base = _base(project, facts.head, facts.branch)
    name = uuid.uuid4().hex
    index = project.folder / _FOLDER / f"{name}.index"
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        shot = snapshot(
            live_tree(context, project, facts.root),
            index,
            parent=base,
            message=f"Work in {facts.root.name}\n",
            author=AUTHOR,
            when=int(context.clock()),
        )
    finally:
        index.unlink(missing_ok=True)
    project.hub.keep(f"adopted/{name}", shot.commit)
    left_out = (*shot.nested, *shot.unreadable, *shot.submodules)
    commits = project.hub.commits_between(project.target, facts.head or base)
    return SavedCheckout(
        ground=StartPoint(base=base, tree=shot.tree),
        changed=shot.changed,
        commits=tuple(one.subject for one in commits),
        left_out=left_out,
    )


def keep_transcript(project: ProjectContext, transcript: Path, conversation: str) -> None:
    """Copy it to where the ticket's first run finds it, whatever happens to the original. Raises OSError."""
    place = _kept(project, conversation)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomic(place, transcript.read_bytes())


def hand_over(project: ProjectContext, driver: DriverProfile, conversation: str, state: Path, tree: Path) -> None:
    """Put the copy into the agent's state folder. Where there is none, the agent starts with its briefing alone."""
    kept = _kept(project, conversation)
    if kept.is_file() and driver.capabilities.rewinds and driver.transcript(state, conversation) is None:
        driver.take_transcript(kept, conversation, state, tree)


def _kept(project: ProjectContext, conversation: str) -> Path:
    return project.folder / _FOLDER / f"{conversation}.jsonl"


def _base(project: ProjectContext, head: str | None, branch: str | None) -> str:
    """The last commit that the checkout and the target share: what the checkout has beyond it is the change."""
    if head is None:
        raise StateConflict("The checkout has no commit yet; commit something first.")
    if project.hub.resolve(head) is None:
        if branch is None:
            raise StateConflict("The checkout is on no branch, and its commit is not known: check out a branch.")
        try:
            project.hub.fetch_person(Path(project.record.common_dir), branch)
        except (BranchGone, RepositoryGone) as gone:
            raise StateConflict(f"The checkout cannot be read: {gone}") from None
    shared = project.hub.merge_base(head, project.target) if project.hub.resolve(head) else None
    if shared is None:
        raise StateConflict(f"The checkout shares no commit with {project.record.branch}; check out another branch.")
    return shared


log = logging.getLogger(__name__)


def give(driver: DriverProfile, transcript: Path, conversation: str, tree: Path) -> Path:
    """Copy it to where the person's program looks for it; never over what they added there. Raises StateConflict."""
    copy = _copy(driver, conversation, tree)
    content = _read(transcript)
    if copy.exists():
        there = copy.read_bytes()
        if there.startswith(content):
            return copy
        if not content.startswith(there):
            raise StateConflict(f"{copy} was continued in a terminal, and so was the ticket: move it away.")
    copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomic(copy, content)
    return copy


def take_back(driver: DriverProfile, state: Path, conversation: str, tree: Path) -> bool:
    """Put what the person added into the agent's state folder. Repeated, nothing is left to take."""
    if not driver.capabilities.rewinds or driver.login_file() is None:
        return False
    copy = _copy(driver, conversation, tree)
    own = driver.transcript(state, conversation)
    try:
        if own is None or copy.stat().st_size <= own.stat().st_size or not _continues(copy, own):
            return False
    except (OSError, StateConflict):
        return False
    driver.take_transcript(copy, conversation, state, tree)
    log.info("conversation %s continues with what was written in a terminal", conversation)
    return True


def _continues(copy: Path, own: Path) -> bool:
    """It has complete lines only, and starts with all that the ticket has."""
    there = copy.read_bytes()
    return there.endswith(b"\n") and there.startswith(_read(own))


def _read(transcript: Path) -> bytes:
    """It is where its agent can write, two folders below the agent's own. No link is followed on the way."""
    top = transcript.parents[2]
    content = safe_files.read(top, str(transcript.relative_to(top)))
    if content is None:
        raise StateConflict(f"{transcript} is no longer a file: start a new run with `legion retry`.")
    return content


def _copy(driver: DriverProfile, conversation: str, tree: Path) -> Path:
    login = driver.login_file()
    assert login is not None, "a driver that rewinds has a login"
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(tree))
    return login.parent / "projects" / name / f"{conversation}.jsonl"
