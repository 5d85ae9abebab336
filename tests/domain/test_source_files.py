"""Source files, and checks that do not notice their absence: every kind of layout, and every outcome of few checks."""

from __future__ import annotations

import itertools

import pytest

from legion.domain.checks import Check
from legion.domain.review.source_files import blind, remedy, source_files

SOURCE = (
    "src/h11/_state.py",
    "h11/_state.py",
    "single.py",
    "index.js",
    "lib/parse.mjs",
    "src/main.rs",
    "cmd/tool/main.go",
    "app/models/user.rb",
    "bin/run.sh",
    "src/latest/contest.py",
    "pkg/attestation.ts",
)
NO_SOURCE = (
    "tests/test_state.py",
    "h11/tests/helpers.py",
    "src/h11/tests/test_io.py",
    "test.js",
    "test/index.js",
    "src/__tests__/a.tsx",
    "src/parse.test.ts",
    "parse_test.go",
    "conftest.py",
    "setup.py",
    "noxfile.py",
    "jest.config.js",
    "eslint.config.mjs",
    ".eslintrc.js",
    ".github/tool.py",
    "build.rs",
    "docs/conf.py",
    "examples/aliases/aliases.py",
    "bench/run.py",
    "pyproject.toml",
    "package.json",
    "package-lock.json",
    "README.md",
    "data/table.json",
    "Makefile",
)


@pytest.mark.parametrize("path", SOURCE)
def test_programs_are_source(path: str):
    assert source_files([path], ["pytest", "npm test", "make test"]) == (path,)


@pytest.mark.parametrize("path", NO_SOURCE)
def test_tests_settings_documents_and_data_are_not(path: str):
    assert source_files([path], ["pytest"]) == ()


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("sh check.sh", "check.sh"),
        ("./ci/run", "ci/run"),
        ("python manage.py test", "manage.py"),
        ("cd web && node run.js", "web/run.js"),
        ("python -m shop.selfcheck", "src/shop/selfcheck.py"),
        ("python -m shop", "shop/__main__.py"),
        ("bash 'tools/verify.sh'", "tools/verify.sh"),
    ],
)
def test_what_a_check_starts_is_not_source_for_an_empty_script_passes(command: str, path: str):
    assert source_files([path, "src/shop/price.py"], [command]) == ("src/shop/price.py",)


TEST, LINT, TYPES = (Check(name=name, command=run) for name, run in (("test", "run"), ("lint", "ruff"), ("t", "mypy")))


def test_a_green_check_proves_nothing_if_it_runs_tests_or_if_every_check_is_green():
    for outcome in itertools.product((True, False, None), repeat=3):
        passes = dict(zip((TEST, LINT, TYPES), outcome, strict=True))
        found = blind(passes)
        green = tuple(check for check, passed in passes.items() if passed)
        if all(outcome):
            assert found == green
        else:
            assert found == tuple(check for check in green if check is TEST)


@pytest.mark.parametrize(
    ("name", "command", "tests"),
    [
        ("test", "make", True),
        ("py", "python -m pytest -q", True),
        ("web", "npm test", True),
        ("unit-tests", "make unit", True),
        ("contest", "make contest", False),
        ("lint", "ruff check .", False),
        ("types", "mypy src", False),
    ],
)
def test_which_checks_run_tests(name: str, command: str, tests: bool):
    one = Check(name=name, command=command)
    assert blind({one: True, LINT: False}) == ((one,) if tests else ())


def test_without_checks_nothing_is_blind():
    assert blind({}) == ()


@pytest.mark.parametrize(
    ("setup", "copies"),
    [
        ("pip install .", True),
        ("python -m venv .venv && .venv/bin/pip install '.[test]' pytest", True),
        (".venv/bin/pip install . pytest", True),
        ("pip install -e .", False),
        ("pip install --editable '.[test]'", False),
        ("pip install -r requirements.txt", False),
        ("pip install pytest; ls .", False),
    ],
)
def test_a_setup_that_installs_a_copy_is_named(setup: str, copies: bool):
    assert ("installs a copy of the package" in remedy(setup)) is copies


def test_the_remedy_speaks_of_setup_only_where_there_is_one():
    assert "[setup]" in remedy("make deps")
    assert "[setup]" not in remedy("")
