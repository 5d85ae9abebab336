"""Which files of a change need a person's yes: none that the ticket declares, and no test that is only added."""

from __future__ import annotations

import pytest

from legion.domain.protection import Touched, scripts_of, stopped_by


def stopped(path: str, *, only_adds: bool = True, declared: tuple[str, ...] = ()) -> bool:
    return bool(stopped_by([Touched(path=path, only_adds=only_adds)], ["migrations/**"], declared, ["sh ci/check.sh"]))


@pytest.mark.parametrize(
    "path",
    [
        "legion.toml",
        ".github/workflows/ci.yml",
        ".GitHub/workflows/ci.yml",
        "sub/.gitattributes",
        ".claude/settings.json",
        "deep/.mcp.json",
        "CLAUDE.md",
        "docs/AGENTS.md",
        ".envrc",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        "web/package-lock.json",
        "Cargo.lock",
        "go.sum",
        "requirements-dev.lock",
        "migrations/0001.sql",
        "ci/check.sh",
        "tests/conftest.py",
    ],
)
def test_what_acts_by_itself_or_decides_what_is_green_is_guarded_even_where_it_is_new(path):
    assert stopped(path)
    assert not stopped(path, declared=(path,))


@pytest.mark.parametrize(
    "path",
    ["tests/test_a.py", "pkg/a_test.go", "src/a.test.ts", "src/test/java/ATest.java", "spec/a_spec.rb", "tests/a.rs"],
)
def test_tests_may_be_added_and_not_changed(path):
    assert not stopped(path)
    assert stopped(path, only_adds=False)
    assert not stopped(path, only_adds=False, declared=("**/*est*", "spec", "tests"))


@pytest.mark.parametrize("path", ["src/app.py", "README.md", "package.json", "latest/a.py", "docs/testing.md"])
def test_everything_else_is_free(path):
    assert not stopped(path, only_adds=False)


def test_the_scripts_of_checks_are_found_in_their_commands():
    assert scripts_of(["sh check.sh", "./ci/run.sh --all && bash 'b.bash'", "pytest", "/opt/x.sh"]) == (
        "check.sh",
        "ci/run.sh",
        "b.bash",
    )
