"""A repository becomes a project, is trusted, paused, and let go again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from legion.config import guess
from legion.config.project import FILE, hash_of, parse
from legion.config.user import worktrees_folder
from legion.domain.errors import BadInput, Conflict, NotAllowed, NotFound
from legion.domain.events import Kind
from legion.domain.projects import ConfigOrigin, Project
from legion.domain.tickets import State
from legion.git.errors import NotARepository
from legion.git.hub import Hub
from legion.git.inspect import RepositoryFacts, look
from legion.jobs import person
from legion.jobs.world import World
from legion.store import projects, tickets
from legion.system import files
from legion.wire.projects import AddProject, Done, ProjectAdded


def find(world: World, cwd: str) -> Project:
    """The project that a folder belongs to: a checkout of the person's, or one of our worktrees."""
    found = find_or_none(world, cwd)
    if found is None:
        raise NotFound(f"{cwd} is in no Legion project: run `legion init` in a git repository first.")
    return found


def find_or_none(world: World, cwd: str) -> Project | None:
    place = Path(cwd)
    with world.store.read() as tx:
        known = projects.all(tx)
    here = {place, *place.parents}
    by_folder = [project for project in known if here & {Path(project.root), Path(project.worktrees)}]
    if by_folder:
        return max(by_folder, key=lambda project: len(project.root))
    try:
        facts = look(place)
    except NotARepository:
        return None
    return next((project for project in known if project.common_dir == str(facts.common_dir)), None)


def add(world: World, request: AddProject) -> ProjectAdded:
    facts = look(Path(request.path))
    refuse_unfit(facts)
    assert facts.branch is not None, "an unfit repository was refused"
    with world.store.read() as tx:
        project = projects.by_common_dir(tx, str(facts.common_dir))
    file = facts.root / FILE
    there = file.read_text(encoding="utf-8", errors="replace") if file.exists() else None
    text = there if there is not None else guess.guess(_names(facts.root), lambda name: _read(facts.root / name)).text
    parse(text, origin=str(file))
    _refuse_committed_nonsense(facts)
    worktrees = worktrees_folder(world.user, facts.root)
    notes = _notes(facts, there, known=project is not None)
    if not request.dry_run:
        _refuse_unwritable(worktrees)
        if there is None:
            _write_config(file, text)
        project = _register(world, project, facts, worktrees, text, trust=there is None)
    return ProjectAdded(
        name=facts.root.name,
        root=str(facts.root),
        branch=project.branch if project else facts.branch,
        hub=str(world.data.project(project.id) / "hub.git") if project else "",
        worktrees=str(worktrees),
        config_file=str(file),
        config_text=text,
        wrote_config=there is None,
        trusted=is_trusted(world, project) if project and not request.dry_run else there is None,
        dry_run=request.dry_run,
        notes=notes,
    )


def refuse_unfit(facts: RepositoryFacts) -> None:
    if facts.is_bare:
        raise BadInput("This is a bare repository: run `legion init` in a checkout of it.")
    if facts.head is None:
        raise BadInput(
            "This repository has no commit yet: make a first one (`git commit`), then run `legion init` again."
        )
    if facts.branch is None:
        raise BadInput(
            "HEAD is detached here: switch to the branch that work should land on, then run `legion init` again."
        )
    if facts.is_shallow:
        raise BadInput("This is a shallow clone: run `git fetch --unshallow` first, so that agents see its history.")
    if facts.lfs:
        raise NotAllowed(
            "This repository keeps files in Git LFS, which Legion does not handle yet: agents would see pointers only."
        )


def _refuse_committed_nonsense(facts: RepositoryFacts) -> None:
    """The committed file is the one in force, whatever lies in the checkout."""
    assert facts.head is not None, "an unfit repository was refused"
    committed = Hub(facts.common_dir).read_file(facts.head, FILE)
    if committed is not None:
        parse(committed.decode("utf-8", "replace"), origin=f"{FILE} as it is committed")


def remove(world: World, cwd: str) -> Done:
    """Forget the project. Its worktrees and its hub go to the trash, legion.toml stays."""
    project = find(world, cwd)
    with world.store.read() as tx:
        live = [ticket.id for ticket in tickets.live(tx, project=project.id) if ticket.state is not State.QUEUED]
    if live:
        listed = ", ".join(str(number) for number in live[:5])
        raise Conflict(f"Tickets are still in hand here ({listed}): run `legion stop all` first.")
    shop = world.workshop_of(project)
    ahead = _uncollected(world, project)
    if ahead:
        raise Conflict(f"{ahead} landed commits are not on {project.branch} yet: run `legion collect` first.")
    with world.store.write() as tx:
        for ticket in tickets.live(tx, project=project.id):
            tickets.drop(tx, ticket.id)
        projects.save(tx, replace(project, removed_at=tx.now), Kind.PROJECT_REMOVED, {"root": project.root})
    for tree in shop.worktrees.list():
        shop.worktrees.discard(tree.name)
    if shop.folder.exists():
        files.throw_away(shop.folder, world.data.root / "trash")
    return Done(
        message=f"{project.name} is no Legion project any more.",
        notes=[
            f"What agents left in their worktrees lies in {shop.trash}.",
            f"{FILE} is yours: delete it if you want.",
        ],
    )


def trust(world: World, cwd: str) -> Done:
    """The person has read the commands in legion.toml, as landed and as it lies in the checkout, and means them."""
    project = find(world, cwd)
    shop = world.workshop_of(project)
    file = Path(project.root) / FILE
    in_checkout = file.read_text(encoding="utf-8", errors="replace") if file.exists() else None
    landed = shop.hub.read_file(project.target, FILE)
    text = landed.decode("utf-8", "replace") if landed is not None else in_checkout
    if text is None:
        raise NotFound(f"There is no {FILE} to trust: run `legion init` to write one.")
    parse(text, origin=FILE)
    notes = []
    with world.store.write() as tx:
        current = projects.get(tx, project.id)
        projects.trust(tx, project.id, hash_of(text))
        if in_checkout is not None and in_checkout != text:
            parse(in_checkout, origin=str(file))
            projects.trust(tx, project.id, hash_of(in_checkout))
            notes.append(f"{FILE} in your checkout differs from the landed one; it takes effect when you commit it.")
        origin = ConfigOrigin.TARGET if landed is not None else ConfigOrigin.CHECKOUT
        trusted = replace(
            current,
            config_text=text,
            config_hash=hash_of(text),
            config_origin=origin,
            baseline_commit=None,
            baseline_verdict=None,
        )
        projects.save(tx, trusted, Kind.PROJECT_TRUSTED, {"hash": hash_of(text)})
    return Done(message=f"The commands in {FILE} of {project.name} are trusted.", notes=notes)


def set_paused(world: World, cwd: str, paused: bool) -> Project:
    project = find(world, cwd)
    kind = Kind.PROJECT_PAUSED if paused else Kind.PROJECT_RESUMED
    with world.store.write() as tx:
        current = projects.get(tx, project.id)
        # Whoever resumes has mended something: what was refused before is looked at again.
        refused = current.person_refused if paused else None
        return projects.save(tx, replace(current, paused=paused, person_refused=refused), kind, {})


def is_trusted(world: World, project: Project) -> bool:
    with world.store.read() as tx:
        return projects.is_trusted(tx, project.id, project.config_hash)


def _register(
    world: World, known: Project | None, facts: RepositoryFacts, worktrees: Path, text: str, *, trust: bool
) -> Project:
    """Row, hub, target, in this order; each step finds what an interrupted one left."""
    assert facts.branch is not None, "an unfit repository was refused"
    if known is None:
        with world.store.write() as tx:
            known = projects.add(
                tx,
                name=facts.root.name,
                root=str(facts.root),
                common_dir=str(facts.common_dir),
                branch=facts.branch,
                worktrees=str(worktrees),
                config_text=text,
                config_hash=hash_of(text),
                config_origin=ConfigOrigin.CHECKOUT,
                target="",
            )
    folder = world.data.project(known.id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    hub = Hub.create(facts.common_dir, folder / "hub.git")
    tip = hub.fetch_person(facts.common_dir, known.branch)
    target = hub.start_target(tip)
    landed = hub.read_file(target, FILE)
    in_force = landed.decode("utf-8", "replace") if landed is not None else text
    with world.store.write() as tx:
        current = projects.get(tx, known.id)
        ready = replace(
            current,
            target=target,
            config_text=in_force,
            config_hash=hash_of(in_force),
            config_origin=ConfigOrigin.TARGET if landed is not None else ConfigOrigin.CHECKOUT,
            person_tip=tip,
            person_absorbed=tip if hub.is_ancestor(tip, target) else current.person_absorbed,
        )
        if trust:
            projects.trust(tx, known.id, hash_of(text))
        return projects.save(tx, ready, Kind.PROJECT_ADDED, {"root": str(facts.root), "target": target})


def _refuse_unwritable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as trouble:
        raise NotAllowed(
            f"{folder} cannot be used for worktrees ({trouble.strerror}): set another `folder` under [worktrees] "
            "in your settings."
        ) from trouble
    if free < 50 * 2**20:
        raise NotAllowed(f"The disk that holds {folder} is full: free some room and try again.")


def _write_config(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as trouble:
        raise NotAllowed(
            f"{file} cannot be written ({trouble.strerror}): make the folder writable and try again."
        ) from trouble


def _notes(facts: RepositoryFacts, there: str | None, *, known: bool) -> list[str]:
    notes = []
    if known:
        notes.append("This repository was a project already; nothing was changed but what was missing.")
    if there is not None:
        notes.append(f"{FILE} was here already: read its commands and run `legion trust` to let Legion run them.")
    else:
        notes.append(f"Commit {FILE} when you are happy with it; until then Legion uses the file as it lies here.")
    if facts.dirty_files:
        notes.append(f"{facts.dirty_files} files are not committed; agents see only what is committed.")
    if facts.submodules:
        notes.append("Submodules are not checked out in worktrees; their entries stay as they are.")
    return notes


def _names(root: Path) -> list[str]:
    """The files that say what kind of repository this is: those at the top and one folder below."""
    return [
        path.relative_to(root).as_posix() for pattern in ("*", "*/*") for path in root.glob(pattern) if path.is_file()
    ]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _uncollected(world: World, project: Project) -> int:
    shop = world.workshop_of(project)
    tip = person.look(world, shop).person_tip
    if tip is None or not shop.hub.is_ancestor(tip, project.target):
        return 0
    return len(shop.hub.commits_between(tip, project.target))
