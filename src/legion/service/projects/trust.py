"""Trust in a repository's commands: the person approves the exact text that names them, by its hash."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import FILE, ProjectConfig, hash_of, parse
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.projects import ConfigOrigin, Project
from legion.git.person.inspect import WORKTREE_INCLUDE
from legion.jobs.agent import teams
from legion.jobs.trees import Trees
from legion.jobs.workspace.environment import include_hash
from legion.service.projects import registry
from legion.store.board import projects
from legion.system import safe_files
from legion.wire.projects import Done, Trust, Trustable, TrustText

_MOST_VERSIONS = 50
"""So many landed versions of a file are searched for one that was trusted."""


def unreadable_settings(project: Project) -> str:
    """What is wrong with its stored legion.toml and how to fix it; empty for one that can be parsed."""
    try:
        parse(project.config_text)
    except BadInput as wrong:
        fix = "fix the file in your checkout and run `legion trust`"
        return f"its legion.toml cannot be read ({wrong.message.rstrip('.')}): {fix}"
    return ""


def trustable(context: Trees, cwd: str) -> Trustable:
    """The texts that can be trusted: as landed, and as in the checkout if that differs."""
    record = registry.find(context, cwd)
    landed, in_checkout = _landed(context, record), in_the_checkout(record)
    if landed is None and in_checkout is None:
        raise NotFound(f"There is no {FILE} to trust: run `legion init` to write one.")
    texts = [("landed", landed)] if landed is not None else []
    if landed is not None and in_checkout not in (None, landed) and not _is_readable(landed):
        # Nothing could run by it, and so nothing could land that fixes it: the file in the checkout takes its place.
        texts = []
    if in_checkout is not None and in_checkout != landed:
        texts.append(("checkout", in_checkout))
    about = [(place, FILE, hash_of(text), text) for place, text in texts]
    project = context.project_of(record, ProjectConfig())
    theirs = {one.hash: ("checkout", one.file, one.hash, one.text) for one in teams.in_checkout(project)}
    theirs |= {one.hash: ("landed", one.file, one.hash, one.text) for one in teams.repository(project)}
    about += theirs.values()
    about += [("checkout", WORKTREE_INCLUDE, *include) for include in _include(record)]
    with context.store.read() as tx:
        trusted = {hash: projects.is_trusted(tx, record.id, hash) for _, _, hash, _ in about}
    return Trustable(
        texts=[
            TrustText(
                place=place,
                file=str(Path(record.root) / file),
                hash=hash,
                text=text,
                trusted=trusted[hash],
                difference="" if trusted[hash] else _difference(file, _last_trusted(context, record, file), text),
            )
            for place, file, hash, text in about
        ]
    )


def _include(record: Project) -> list[tuple[str, str]]:
    """The hash and the text of the file that names ignored files for agents, where the checkout has one."""
    raw = safe_files.read(Path(record.root), WORKTREE_INCLUDE)
    if raw is None:
        return []
    text = raw.decode("utf-8", "replace")
    return [(include_hash(text), text)]


def _last_trusted(context: Trees, project: Project, file: str) -> str | None:
    """The text of this file that was trusted last: the one in force, or a version that landed before."""
    known = [project.config_text] if file == FILE else []
    earlier = context.hub(project.id).versions(project.target, file, most=_MOST_VERSIONS)
    texts = [*known, *(version.decode("utf-8", "replace") for version in earlier)]
    with context.store.read() as tx:
        return next((text for text in texts if projects.is_trusted(tx, project.id, _hash(file, text))), None)


def _hash(file: str, text: str) -> str:
    """A definition of a role or a team is trusted under its name."""
    return hash_of(text) if file == FILE else hash_of(f"{file}\n{text}")


def _difference(file: str, before: str | None, now: str) -> str:
    if before is None:
        return ""
    old, new = before.splitlines(), now.splitlines()
    return "\n".join(difflib.unified_diff(old, new, f"{file}, trusted", f"{file}, now", lineterm=""))


def trust(context: Trees, request: Trust) -> Done:
    """Trust the texts that the person was shown, by hash. A text that changed since is refused."""
    if not request.hashes:
        raise BadInput("Name the trusted text by its hash: `legion trust --show` lists them.")
    while (done := _trusted(context, request)) is None:
        pass
    return done


def _trusted(context: Trees, request: Trust) -> Done | None:
    """None if something landed meanwhile: another text may be in force now."""
    project = registry.find(context, request.cwd)
    there = trustable(context, request.cwd)
    known = {text.hash for text in there.texts}
    if unknown := [asked for asked in request.hashes if asked not in known]:
        raise StateConflict(
            f"{FILE} changed since it was shown ({unknown[0][:12]} no longer exists): run `legion trust` again."
        )
    meant = [text for text in there.texts if text.hash in request.hashes]
    config = str(Path(project.root) / FILE)
    for text in meant:
        if text.file == config:
            parse(text.text, origin=f"{FILE} ({text.place})")
    with context.store.write() as tx:
        current = projects.get(tx, project.id)
        if current.target != project.target:
            return None
        for text in meant:
            projects.trust(tx, project.id, text.hash)
        first = there.texts[0]
        if first in meant:
            in_force = replace(
                current,
                config_text=first.text,
                config_hash=first.hash,
                config_origin=ConfigOrigin.TARGET if first.place == "landed" else ConfigOrigin.CHECKOUT,
                baseline_commit=None,
                baseline_verdict=None,
            )
            projects.save(tx, in_force, EventKind.PROJECT_TRUSTED, {"hash": first.hash})
    context.clear_backoffs()
    notes = [
        f"{FILE} in your checkout differs from the landed one; it takes effect when it has landed."
        for text in meant
        if text.place == "checkout" and text.file == config and there.texts[0].place == "landed"
    ]
    return Done(message=f"{_what(meant, config)} of {project.name} are trusted.", notes=notes)


def _is_readable(text: str) -> bool:
    try:
        parse(text)
    except BadInput:
        return False
    return True


def _what(meant: list[TrustText], config: str) -> str:
    files = [Path(text.file).relative_to(Path(config).parent) for text in meant if text.file != config]
    parts = [f"The commands in {FILE}"] if len(files) < len(meant) else []
    parts += [f"{'the' if parts else 'The'} definitions in {', '.join(map(str, files))}"] if files else []
    return " and ".join(parts)


def stale(project: Project) -> bool:
    """The file in the checkout is in force because none is committed, and it changed since it was trusted."""
    text = in_the_checkout(project)
    return project.config_origin is ConfigOrigin.CHECKOUT and text is not None and hash_of(text) != project.config_hash


def in_the_checkout(project: Project) -> str | None:
    """None also if it is no regular file or cannot be read: the board is shown all the same."""
    file = Path(project.root) / FILE
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    except OSError:
        return None


def _landed(context: Trees, project: Project) -> str | None:
    landed = context.hub(project.id).read_file(project.target, FILE)
    return landed.decode("utf-8", "replace") if landed is not None else None
