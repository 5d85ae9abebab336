"""Projects: find one by folder, add, pause, resume and remove it."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from legion.config.files.project import FILE, hash_of, parse
from legion.config.files.user import worktrees_folder
from legion.config.guess.legion_toml import Guess, guess
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.landing.filter_rules import filter_sentence, refusal
from legion.domain.plans.plan import dropped
from legion.domain.projects import ConfigOrigin, Project, acting
from legion.domain.questions import SettledBy
from legion.domain.text import count
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State
from legion.git.core.errors import NotARepository
from legion.git.core.history import History
from legion.git.hub.filters import defined, names_of
from legion.git.hub.repository import TARGET, Hub
from legion.git.hub.submodules import Submodule, complete, submodules
from legion.git.person.inspect import RepositoryFacts, branches, file_names, has_branch, look, refuse_foreign
from legion.git.trees.staged_files import tried
from legion.jobs.board import Board
from legion.jobs.landing.target import fetch
from legion.jobs.trees import TRASH, ProjectContext, Trees
from legion.jobs.workspace import sandbox, shell_variables
from legion.store.board import goals, projects, questions, tickets
from legion.store.staff import agents
from legion.store.work import runs
from legion.system import files, safe_files
from legion.system.paths import user_config_file
from legion.wire.projects import AddProject, Done, ProjectAdded, ShellVariables

_OWNER = ".owner"
"""A file in the folder of worktrees that names the owner, so that no other Legion uses the folder."""
_EMPTY_FOLDERS = (".pool", ".making")


def find(context: Board, cwd: str) -> Project:
    """The project that a folder belongs to: a checkout of the person's, or one of our worktrees."""
    found = find_or_none(context, cwd)
    if found is None:
        raise NotFound(f"{cwd} is in no Legion project: run `legion init` in a git repository first.")
    return found


def find_or_none(context: Board, cwd: str) -> Project | None:
    place = Path(cwd)
    with context.store.read() as tx:
        known = projects.all(tx)
    for folder in (place, *place.parents):
        path = str(folder)
        if (ours := next((one for one in known if one.worktrees == path), None)) is not None:
            return ours
        # Several sessions may share a checkout; their worktrees tell them apart.
        sharing = acting(one for one in known if one.root == path)
        if sharing is not None and not os.path.exists(folder):  # noqa: PTH110 - raises for no folder
            return sharing
        if os.path.exists(folder / ".git"):  # noqa: PTH110 - as above
            return sharing or _by_git(folder, known)
    return None


def _by_git(folder: Path, known: tuple[Project, ...]) -> Project | None:
    """The project of another checkout of a known repository; None for a separate repository inside one."""
    try:
        facts = look(folder)
    except NotARepository:
        return None
    return acting(project for project in known if project.common_dir == str(facts.common_dir))


def add(context: Trees, request: AddProject) -> ProjectAdded:
    facts = look(Path(request.path))
    refuse_unfit(facts)
    with context.store.read() as tx:
        project = projects.by_common_dir(tx, str(facts.common_dir))
    moved = _moved_from(context, facts) if project is None else None
    root = Path(project.root) if project else facts.root
    project = project or moved
    file = root / FILE
    there = _own_text(file)
    first = _guessed(context, facts, root) if there is None else Guess(kind="", text=there)
    text = first.text
    config = parse(text, origin=str(file))
    _refuse_invalid_committed_file(facts)
    worktrees = (
        Path(project.worktrees)
        if project
        else _free_folder(worktrees_folder(context.user, root), _owner_text(context, root))
    )
    known = project is not None
    if not request.dry_run and not known:
        assert facts.head is not None, "an unfit repository was refused"
        refuse_foreign(facts.common_dir)
        complete(facts.common_dir, facts.head)
    if not request.dry_run:
        refuse_unwritable(worktrees)
        if moved is not None:
            project = _take_over(context, moved, facts)
        if there is None:
            _write_config(file, text)
        try:
            project = register(context, project, facts, worktrees, text, trust=there is None)
        except BaseException:
            if there is None:
                file.unlink(missing_ok=True)
            raise
    trusted = is_trusted(context, project) if project else there is None
    return ProjectAdded(
        name=root.name,
        root=str(root),
        branch=project.branch if project else str(facts.branch),
        hub=str(context.data.project(project.id) / "hub.git") if project else "",
        worktrees=str(worktrees),
        config_file=str(file),
        config_text=text,
        setup=config.setup.run,
        checks={check.name: check.command for check in config.checks},
        wrote_config=there is None,
        trusted=trusted,
        dry_run=request.dry_run,
        notes=[
            *([f"This is {moved.name}, moved here from {moved.root}; its tickets stay."] if moved else []),
            *first.notes,
            *_notes(facts, there, known=known and moved is None and not request.dry_run, trusted=trusted),
            *_filter_notes(facts),
            *sandbox.service_notes(context, root),
            *(_filter_faults(context, project) if project is not None and not request.dry_run else []),
        ],
    )


def use_shell(context: Board, request: ShellVariables) -> Done:
    """Only the person's token calls this: no agent and no browser chooses what the programs of a project find."""
    facts = look(Path(request.path))
    changed = shell_variables.report(context, facts.common_dir, facts.root, request.variables)
    message = f"Programs of {facts.root.name} get these variables of your shell."
    note = f"Programs of {facts.root.name} get {', '.join(changed)} as in this shell from now on."
    return Done(message=message, notes=[note] if changed else [])


def _moved_from(context: Board, facts: RepositoryFacts) -> Project | None:
    """The project whose repository was moved here: its old folder is missing, and this one has its commits."""
    with context.store.read() as tx:
        lost = [project for project in projects.all(tx) if not Path(project.common_dir).exists()]
    missing = [project for project in lost if not project.session]
    here = History(facts.common_dir)
    candidates = [project for project in missing if project.person_tip and here.resolve(project.person_tip)]
    return candidates[0] if len(candidates) == 1 else None


def _take_over(context: Trees, project: Project, facts: RepositoryFacts) -> Project:
    """Record the new folder. The worktrees stay where they are: they belong to the hub, not to the person's folder."""
    with context.store.write() as tx:
        for one in projects.sessions_of(tx, project.common_dir):
            context.forget(one.id)
            here = replace(one, root=str(facts.root), common_dir=str(facts.common_dir))
            about = {"root": str(facts.root), "moved_from": project.root}
            projects.save(tx, here, EventKind.PROJECT_ADDED, about)
        return projects.get(tx, project.id)


def refuse_unfit(facts: RepositoryFacts) -> None:
    if facts.is_bare:
        raise BadInput("This is a bare repository: run `legion init` in a checkout of it.")
    if facts.head is None:
        if facts.branch is not None and has_branch(facts.common_dir, facts.branch):
            raise BadInput(
                f"The last commit of {facts.branch} cannot be read: see `git fsck`, and whether all files in "
                f"{facts.common_dir} are yours to read (`chown -R`), then run `legion init` again."
            )
        raise BadInput(
            "This repository has no commit yet: make a first one (`git commit`), then run `legion init` again."
        )
    if facts.branch is None:
        raise BadInput(
            "HEAD is detached here: switch to the branch that work should land on, then run `legion init` again."
        )


def _refuse_invalid_committed_file(facts: RepositoryFacts) -> None:
    """The committed file is in force, whatever the checkout contains."""
    assert facts.head is not None, "an unfit repository was refused"
    committed = History(facts.common_dir).read_file(facts.head, FILE)
    if committed is not None:
        parse(committed.decode("utf-8", "replace"), origin=f"{FILE} as it is committed")


def remove(context: Trees, cwd: str) -> Done:
    """Remove the project. Its worktrees and its hub go to the trash, legion.toml stays."""
    record = find(context, cwd)
    with context.store.read() as tx:
        others = [one.session for one in projects.sessions_of(tx, record.common_dir) if one.session]
    if others:
        raise StateConflict(
            f"The project has sessions ({', '.join(others[:5])}): end them with `legion session complete NAME` or "
            "`legion session delete NAME` first."
        )
    project = context.project_of(record)
    hub = end(context, record)
    return Done(
        message=f"{record.name} is no longer a Legion project.",
        notes=[
            f"The agents' worktrees are in {project.trash}, the hub is in {hub}.",
            f"{FILE} stays: delete it if you want.",
        ],
    )


def end(context: Trees, record: Project, *, uncollected: bool = False) -> Path:
    """Remove one session. Returns where its hub went. With `uncollected`, also one whose work was not collected."""
    project = context.project_of(record)
    # Without the repository nothing can be collected; the answer names the trash, which keeps the hub for a while.
    ahead = _uncollected(context, project) if Path(record.common_dir).is_dir() and not uncollected else 0
    if ahead:
        them = count(ahead, "landed commit is", "landed commits are")
        raise StateConflict(
            f"{them} not on {record.branch} yet: run `legion collect` first, or merge it yourself "
            f"with `git fetch {project.hub.path} {TARGET}` and `git merge FETCH_HEAD`."
        )
    with context.store.write() as tx:
        live = tickets.live(tx, project=record.id)
        started = [ticket.id for ticket in live if ticket.state is not State.QUEUED]
        started += [run.ticket for run in runs.active(tx) if run.project == record.id and run.ticket is not None]
        if staff := [agent.name for agent in agents.standing(tx) if agent.project == record.id]:
            raise StateConflict(
                f"The project has standing agents ({', '.join(staff[:5])}): fire them with `legion agents fire` first."
            )
        if planned := [run.plan for run in runs.active(tx) if run.project == record.id and run.plan is not None]:
            raise StateConflict(f"A planner works on P{planned[0]}: run `legion plan drop P{planned[0]}` first.")
        if started:
            listed = ", ".join(str(number) for number in sorted(set(started))[:5])
            raise StateConflict(f"Tickets are still running here ({listed}): run `legion stop all` first.")
        for ticket in reversed(board.topological({ticket.id: ticket.spec.after for ticket in live})):
            tickets.drop(tx, ticket)
        for asked in [one for one in questions.open_ones(tx) if one.project == record.id]:
            questions.settle(tx, asked.id, asked.fallback, "its project was removed", by=SettledBy.END)
        for plan in goals.of_project(tx, record.id):
            if plan.open:
                goals.save(tx, plan, dropped(plan))
        current = projects.get(tx, record.id)
        projects.save(tx, replace(current, removed_at=tx.now), EventKind.PROJECT_REMOVED, {"root": record.root})
    context.forget(record.id)
    hub = files.move_to_trash(project.folder, context.data.root / "trash") / project.hub.path.name
    folder = Path(record.worktrees)
    for place in folder.iterdir() if folder.is_dir() else ():
        if place != project.trash:
            files.move_to_trash(place, project.trash)
    return hub


def set_paused(context: Board, cwd: str, paused: bool) -> Project:
    project = find(context, cwd)
    kind = EventKind.PROJECT_PAUSED if paused else EventKind.PROJECT_RESUMED
    with context.store.write() as tx:
        current = projects.get(tx, project.id)
        # A person who resumes has fixed something: commits that were refused are tried again.
        refused = current.person_refused if paused else None
        return projects.save(tx, replace(current, paused=paused, frozen=False, person_refused=refused), kind, {})


def is_trusted(context: Board, project: Project) -> bool:
    with context.store.read() as tx:
        return projects.is_trusted(tx, project.id, project.config_hash)


def register(
    context: Board,
    known: Project | None,
    facts: RepositoryFacts,
    worktrees: Path,
    text: str,
    *,
    trust: bool,
    session: str = "",
) -> Project:
    """Create row, hub and target, in this order. Each step continues what an interrupted one left."""
    assert facts.branch is not None, "an unfit repository was refused"
    branch = facts.branch if known is None or known.branch not in branches(facts.common_dir) else known.branch
    if known is None:
        files.write_atomic(worktrees / _OWNER, _owner_text(context, facts.root))
        with context.store.write() as tx:
            known = projects.add(
                tx,
                name=facts.root.name,
                root=str(facts.root),
                common_dir=str(facts.common_dir),
                branch=branch,
                worktrees=str(worktrees),
                config_text=text,
                config_hash=hash_of(text),
                config_origin=ConfigOrigin.CHECKOUT,
                target="",
                session=session,
            )
    folder = context.data.project(known.id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    hub = Hub.create(facts.common_dir, folder / "hub.git", tip=facts.head)
    tip = hub.fetch_person(facts.common_dir, branch)
    target = hub.start_target(tip)
    landed = hub.read_file(target, FILE)
    in_force = landed.decode("utf-8", "replace") if landed is not None else text
    with context.store.write() as tx:
        current = projects.get(tx, known.id)
        ready = replace(
            current,
            branch=branch,
            target=target,
            config_text=in_force,
            config_hash=hash_of(in_force),
            config_origin=ConfigOrigin.TARGET if landed is not None else ConfigOrigin.CHECKOUT,
            person_tip=tip,
            person_absorbed=tip if hub.is_ancestor(tip, target) else current.person_absorbed,
            base_commit=current.base_commit or tip,
        )
        if trust:
            projects.trust(tx, known.id, hash_of(text))
        return projects.save(tx, ready, EventKind.PROJECT_ADDED, {"root": str(facts.root), "target": target})


def _owner_text(context: Board, root: Path) -> str:
    return f"Worktrees of {root}, in the care of {context.data.root}\n"


def _free_folder(folder: Path, owner_text: str) -> Path:
    """The folder, or the next free one with a number: another Legion, with other data, may use it for its trees."""
    others = (folder.with_name(f"{folder.name}-{number}") for number in range(2, 100))
    return next((place for place in (folder, *others) if _is_free(place, owner_text)), folder)


def _is_free(folder: Path, owner_text: str) -> bool:
    """Empty, or left by a removed project or an interrupted init. If it cannot be read, the first use reports why."""
    try:
        # A kill may leave a temporary file of the owner file.
        there = {place.name: place for place in folder.iterdir() if not place.name.startswith(f".{_OWNER}.")}
        there.pop(TRASH, None)
        owner = there.pop(_OWNER, None)
        if owner is not None and owner.read_text(errors="replace") != owner_text:
            return False
        return all(name in _EMPTY_FOLDERS and not any(place.iterdir()) for name, place in there.items())
    except OSError:
        return True


def refuse_unwritable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        free = shutil.disk_usage(folder).free
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "not writable")
    except OSError as trouble:
        raise NotAllowed(
            f"{folder} cannot be used for worktrees ({trouble.strerror}): set another `folder` under [worktrees] "
            "in your settings."
        ) from trouble
    if free < 50 * 2**20:
        raise NotAllowed(f"The disk that holds {folder} is full: free some space and try again.")


def _write_config(file: Path, text: str) -> None:
    try:
        # Through a dangling link the repository would choose where Legion writes.
        with file.open("x", encoding="utf-8") as fresh:
            fresh.write(text)
    except OSError as trouble:
        raise NotAllowed(
            f"{file} cannot be written ({trouble.strerror}): make the folder writable and try again."
        ) from trouble


def _notes(facts: RepositoryFacts, there: str | None, *, known: bool, trusted: bool) -> list[str]:
    notes = []
    if known:
        notes.append("This repository was a project already; only missing parts were added.")
    if there is not None and not trusted:
        notes.append(f"{FILE} existed already: read its commands and run `legion trust` to allow them.")
    if there is None:
        notes.append(f"Read {FILE} and commit it; after a change to it run `legion trust`.")
    if facts.dirty_files:
        what = count(facts.dirty_files, "file is", "files are")
        notes.append(f"{what} not committed; agents see only what is committed.")
    if facts.is_shallow:
        notes.append("This is a shallow clone: agents see its history only as far as it goes.")
    missing = [one.path for one in _submodules(facts) if not one.repository.is_dir()]
    if missing:
        empty = ", ".join(missing[:5])
        notes.append(f"Submodules stay empty in worktrees ({empty}): run `git submodule update --init --recursive`.")
    return notes


def _submodules(facts: RepositoryFacts) -> tuple[Submodule, ...]:
    return submodules(History(facts.common_dir), facts.head or "", facts.common_dir / "modules")


def _filter_notes(facts: RepositoryFacts) -> list[str]:
    assert facts.head is not None, "an unfit repository was refused"
    names = names_of(History(facts.common_dir), facts.head, facts.common_dir)
    known = defined(facts.common_dir) if names else {}
    return [filter_sentence(name, refusal(name, known.get(name))) for name in names]


def _filter_faults(context: Trees, project: Project) -> list[str]:
    """Of filters that run in the sandbox: an agent's first change should not be the first to show that one fails."""
    hub = context.project_of(project).hub
    filters = hub.filters(project.target)
    faults = {} if filters is None else tried(hub, filters, project.target)
    return [
        f"The git filter {name} does not work in the sandbox: {why}. Programs and files that it needs are shown by "
        f"`sandbox.read` in {user_config_file()}."
        for name, why in faults.items()
    ]


def _guessed(context: Board, facts: RepositoryFacts, root: Path) -> Guess:
    """A legion.toml for this checkout, from its files and the programs on this machine."""
    path = shell_variables.current(context, facts.common_dir, facts.root).get("PATH")
    installed = cache(lambda program: shutil.which(program, path=path) is not None)
    return guess(
        file_names(root),
        partial(safe_files.text_behind, root),
        installed,
        tagged=bool(History(facts.common_dir).tags()),
    )


def _own_text(file: Path) -> str | None:
    """The text of the person's legion.toml; None if there is none."""
    try:
        if file.is_file():
            return file.read_text(encoding="utf-8", errors="replace")
    except OSError as trouble:
        raise NotAllowed(f"{file} cannot be read ({trouble.strerror}): make it readable and try again.") from trouble
    if file.exists() or file.is_symlink():
        raise BadInput(f"{file} is not a regular file: move it away and try again.")
    return None


def _uncollected(context: Board, project: ProjectContext) -> int:
    """The number of landed commits that the person's branch lacks, also after the two diverged."""
    tip = fetch(context, project).person_tip
    return len(project.hub.commits_between(tip, project.target)) if tip is not None else 0
