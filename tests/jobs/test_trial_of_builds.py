"""The trial where [setup] builds the code, or where no test runs at all: nothing is called seen that was not."""

from __future__ import annotations

import pytest

from legion.domain.review.trial import Sight
from legion.store.board import questions
from tests.jobs.test_trial import Make, finding, make, page, sights, tried

__all__ = ["make"]


@pytest.mark.parametrize(
    ("command", "sight"), [("sh check.sh", Sight.BLIND), ("python3 -c 'import lib.price'", Sight.SEES)]
)
def test_an_error_that_setup_does_not_build_says_nothing_of_the_checks(make: Make, command: str, sight: Sight):
    """A package with an extension in C, whose check may run no test at all."""
    files = {"lib/price.py": "price = 7\n", "lib/fast.rs": "// fast\n", "check.sh": "true\n"}
    build = "mkdir -p deps && ! grep -h compile_error lib/fast.rs && touch deps/fast"
    found = tried(make(f'[setup]\nrun = "{build}"\n[checks.test]\nrun = "{command}"\n', files))
    assert sights(found) == {"test": sight}
    assert bool(found.doubts) is (sight is Sight.BLIND)


def test_what_setup_alone_builds_is_not_known_to_be_seen_and_a_person_is_asked(make: Make):
    """A package of compiled code alone: no error in it reaches the checks."""
    files = {"lib/fast.rs": "// fast\n", "check.sh": "true\n"}
    build = "mkdir -p deps && ! grep -h compile_error lib/fast.rs && touch deps/fast"
    board = make(f'[setup]\nrun = "{build}"\n[checks.test]\nrun = "sh check.sh"\n', files)
    found = tried(board)
    assert sights(found) == {"test": Sight.NOTHING_TO_BREAK}
    assert found.sees.startswith("not known: an error in the root stops [setup]")
    assert "build it in the check" in page(board).remedy
    assert page(board).sees == "unknown"
    assert page(board).question is not None
    assert not finding(board).ok


def test_a_package_that_only_setup_builds_is_named_beside_one_that_is_seen(make: Make):
    files = {
        **{f"packages/{name}/package.json": "{}" for name in "ab"},
        "packages/a/run.sh": "a() { echo 1; }\n",
        "packages/b/fast.rs": "// fast\n",
    }
    build = "mkdir -p deps && ! grep -h compile_error packages/b/fast.rs && touch deps/fast"
    check = "sh check.sh; for one in packages/a/*.sh; do . ./$one; done; test $(a) = 1"
    found = tried(make(f'[setup]\nrun = "{build}"\n[checks.test]\nrun = "{check}"\n', files))
    assert sights(found) == {"test": Sight.SEES}
    assert found.unseen == ()
    assert found.doubts == ("an error in `packages/b` stops [setup], so it is not known whether a check would see it",)


@pytest.mark.parametrize(("code", "blind"), [(0, True), (5, False)])
def test_no_test_at_all_is_said_with_what_to_write(make: Make, code: int, blind: bool):
    found = tried(make(f'[checks.test]\nrun = "echo Ran 0 tests in 0.1s; exit {code}"\n'))
    assert "`test` ran no test: name in its `run` where they are" in "\n".join(found.lines)
    assert bool(found.doubts) is blind
    assert not blind or "discover -s FOLDER" in found.remedy("")


def test_the_question_about_checks_ends_with_its_project(make: Make):
    board = make('[checks.test]\nrun = "sh check.sh"\n')
    tried(board)
    assert page(board).question is not None
    board.service.remove_project(board.cwd)
    with board.store.read() as tx:
        assert questions.open_ones(tx) == ()
