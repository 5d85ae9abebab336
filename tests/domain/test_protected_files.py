"""Which files of a change need a person's yes: none that the ticket declares, and no test that is only added."""

from __future__ import annotations

import pytest

from legion.domain.review.protected_files import TouchedFile, deciding, stopped_by


def stopped(path: str, *, only_adds: bool = True, declared: tuple[str, ...] = ()) -> bool:
    return bool(
        stopped_by([TouchedFile(path=path, only_adds=only_adds)], ["migrations/**"], declared, ["sh ci/check.sh"])
    )


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


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("sh check.sh", ("check.sh",)),
        ("./ci/run.sh --all && bash 'b.bash'", ("ci/run.sh", "b.bash")),
        ("python3 tools/verify.py && ./bin/lint src", ("tools/verify.py", "bin/lint")),
        ("make -j4 test", ("**/Makefile", "**/GNUmakefile", "**/*.mk")),
        ("cd web && npm test", ("**/package.json",)),
        ("pytest tests/unit ./tests/test_a.py", ("**/pytest.ini",)),
        ("ruff check ./src; go test ./...; python3 app.py; /opt/x.sh; python3 -m unittest", ()),
    ],
)
def test_what_decides_the_outcome_of_a_check_is_found_in_its_command(command, files):
    assert deciding([command]) == files


def test_what_decides_a_tickets_own_proof_may_be_written_for_it_and_not_changed():
    def asked(path: str, *, new: bool) -> bool:
        touched = TouchedFile(path=path, only_adds=True, new=new)
        return bool(stopped_by([touched], [], [], [], ["sh prove.sh", "make test", "sh greet.sh | grep hi"]))

    assert asked("prove.sh", new=False)
    assert asked("Makefile", new=False)
    assert not asked("prove.sh", new=True)
    assert not asked("greet.sh", new=False), "that is the program itself"
