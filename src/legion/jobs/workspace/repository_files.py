"""Applies the rules for files that git takes for a repository to a change in the hub."""

from __future__ import annotations

from legion.domain.landing import repository_files
from legion.domain.landing.repository_files import ChangedEntry, FaultyEntry
from legion.domain.tickets.ticket import Change
from legion.git.core.history import FileStatus
from legion.git.hub.repository import Hub


def faults(hub: Hub, change: Change) -> tuple[FaultyEntry, ...]:
    """The entries of the change that may not land."""
    return repository_files.faults(_entries(hub, change))


def links_into_git(hub: Hub, change: Change) -> tuple[str, ...]:
    return repository_files.links_into_git(_entries(hub, change))


def links_outside(hub: Hub, change: Change) -> tuple[str, ...]:
    return repository_files.links_outside(_entries(hub, change))


def repositories(hub: Hub, change: Change, commit: str) -> tuple[str, ...]:
    """The folders of `commit`, which holds the change, that the change makes a repository or alters as one."""
    changed = [file.path for file in hub.changed_files(change.base, change.commit)]
    return (
        repository_files.repositories(changed, hub.files(commit))
        if repository_files.may_form_repository(changed)
        else ()
    )


def _entries(hub: Hub, change: Change) -> list[ChangedEntry]:
    found = []
    for file in hub.changed_files(change.base, change.commit):
        if file.status is FileStatus.DELETED:
            continue
        mode, _, blob = file.content.partition(" ")
        content = (
            hub.content(blob).decode("utf-8", "replace") if repository_files.needs_content(file.path, mode) else ""
        )
        found.append(ChangedEntry(path=file.path, mode=mode, content=content))
    return found
