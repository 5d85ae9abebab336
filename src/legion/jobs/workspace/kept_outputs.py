"""The outputs of the last [setup] on a landed commit, kept aside: another tree gets a copy, which takes seconds.

Outputs that name the folder of their tree, as those of Python's `venv` do, work only there and are not kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from legion.jobs.context import ProjectContext
from legion.system import files, process, trees

_SEARCH_SECONDS = 300.0


def record(project: ProjectContext) -> Path:
    """What `setup` knows of the kept outputs. Without it there are none."""
    return project.folder / "kept" / "record.json"


@contextmanager
def alone(project: ProjectContext) -> Iterator[None]:
    """While this lasts, the kept outputs and their record belong together."""
    record(project).parent.mkdir(parents=True, exist_ok=True)
    with files.waiting_lock(project.folder / "kept.lock"):
        yield


def keep(project: ProjectContext, tree: Path, outputs: Sequence[str], facts: str) -> None:
    """Keep these outputs with their record instead of the earlier ones, if they work in another folder."""
    paths = [tree / path for path in outputs]
    if not paths or any(is_behind_link(tree, path) for path in outputs) or _names_its_folder(tree, paths):
        return
    with project.check_trees.scratch() as scratch:
        new = scratch / "kept"
        for number, path in enumerate(paths):
            (new / str(number)).mkdir(parents=True)
            if not trees.copy([path], new / str(number)):
                return
        files.write_atomic(new / record(project).name, facts)
        with alone(project):
            record(project).parent.rename(scratch / "old")
            new.rename(record(project).parent)


def give(project: ProjectContext, tree: Path, outputs: Sequence[str]) -> bool:
    """Copy the kept outputs into a tree. False: something is in their place there, or they could not be copied."""
    if any(os.path.lexists(tree / path) or is_behind_link(tree, path) for path in outputs):
        return False
    for number, path in enumerate(outputs):
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not trees.copy([record(project).parent / str(number) / place.name], place.parent):
            trees.remove_all([tree / path for path in outputs])
            return False
    return True


def is_behind_link(tree: Path, path: str) -> bool:
    """Whether a link on the way to the path leads elsewhere."""
    return (tree / path).parent.resolve() != (tree.resolve() / path).parent


def _names_its_folder(tree: Path, outputs: Sequence[Path]) -> bool:
    own = {str(tree), str(tree.resolve())}
    words = own | {quote(word) for word in own}
    if any(word in target for target in _links(outputs) for word in words):
        return True
    patterns = [part for word in sorted(words) for part in ("-e", word)]
    argv = ("grep", "-rqF", "-D", "skip", *patterns, "--", *map(str, outputs))
    return process.run(argv, timeout=_SEARCH_SECONDS, env={**os.environ, "LC_ALL": "C"}).code != 1


def _links(outputs: Iterable[Path]) -> Iterable[str]:
    for output in outputs:
        below = (output / one.path for one in trees.walk(output) if one.entry.is_symlink())
        for path in (output, *below):
            with suppress(OSError):
                yield str(path.readlink())
