"""The scratch project: where an agent works that was hired in a folder of no project."""

from __future__ import annotations

from legion.domain.projects import Project
from legion.git.person.scratch import make_scratch
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.wire.projects import AddProject

NAME = "scratch"


def find_or_scratch(context: Trees, cwd: str) -> tuple[Project, list[str]]:
    """The project of a folder, or the scratch project and a sentence what that means."""
    found = registry.find_or_none(context, cwd)
    if found is not None:
        return found, []
    root = make_scratch(context.data.root / "own" / NAME)
    if registry.find_or_none(context, str(root)) is None:
        registry.add(context, AddProject(path=str(root)))
    said = (
        f"{cwd} is in no project, so this agent works in Legion's own folder {root} and does not see {cwd}. "
        "`legion init` there, and a new hire, give an agent its files."
    )
    return registry.find(context, str(root)), [said]
