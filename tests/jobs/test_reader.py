"""What Legion itself reads in an agent's worktree: in a sandbox that shows little, writes nothing and filters calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings
from legion.config.sections.machine import SystemCalls
from legion.jobs.context import Context
from legion.jobs.workspace import sandbox
from legion.runner import probe
from tests.jobs.office import Office
from tests.support.settings import PLAIN_SETTINGS

MAKES_A_NAMESPACE = ("unshare", "--user", "true")


def read(context: Context, project: int, tree: Path, *words: str) -> int | None:
    return sandbox.reader(context, context.project(project), tree)(words).code


def test_it_reads_writes_nothing_and_makes_no_namespace(tmp_path: Path):
    office, tree = Office(tmp_path), tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("text\n")
    (tmp_path / "elsewhere").write_text("not for agents\n")
    context = replace(office.context, sandbox=probe.probe(None))
    if not context.sandbox.filters_calls:
        pytest.skip("this machine has no sandbox with a filter of system calls")
    assert read(context, office.project, tree, "grep", "text", "file") == 0
    assert read(context, office.project, tree, "cat", str(tmp_path / "elsewhere")) == 1
    assert read(context, office.project, tree, "touch", "new") == 1
    assert read(context, office.project, tree, *MAKES_A_NAMESPACE) != 0
    user = PLAIN_SETTINGS
    open_calls = replace(user, sandbox=replace(user.sandbox, system_calls=SystemCalls.ALL))
    unfiltered = replace(context, settings=CurrentSettings(open_calls))
    assert read(unfiltered, office.project, tree, *MAKES_A_NAMESPACE) == 0, "the filter refused it, nothing else"
    office.close()
