"""Source files of every kind of layout, the packages that they form, and the checks that look at them."""

from __future__ import annotations

import pytest

from legion.domain.checks import Check
from legion.domain.review.source_files import CheckKind, kind_of, layout, packages, remedy, source_files

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
def test_what_a_check_starts_is_not_source_for_a_broken_script_is_no_broken_program(command: str, path: str):
    assert source_files([path, "src/shop/price.py"], [command]) == ("src/shop/price.py",)


@pytest.mark.parametrize(
    "command", ["eslint src/a.js", "mypy src/a.py tool.py", "sh -c 'cat lib/*.sh'", "tsc src/a.ts"]
)
def test_what_a_check_only_reads_is_source(command: str):
    paths = ("src/a.js", "src/a.py", "lib/x.sh", "src/a.ts", "tool.py")
    assert source_files(paths, [command]) == paths


@pytest.mark.parametrize(
    ("name", "command", "kind"),
    [
        ("test", "make", CheckKind.TESTS),
        ("py", "python -m pytest -q", CheckKind.TESTS),
        ("web", "npm test", CheckKind.TESTS),
        ("unit-tests", "make unit", CheckKind.TESTS),
        ("contest", "make contest", CheckKind.OTHER),
        ("lint", "ruff check .", CheckKind.READER),
        ("types", "mypy src", CheckKind.READER),
        ("style", "npx eslint .", CheckKind.READER),
        ("docs", "mkdocs build", CheckKind.OTHER),
    ],
)
def test_which_checks_run_the_code_and_which_read_it(name: str, command: str, kind: CheckKind):
    assert kind_of(Check(name=name, command=command), {}) is kind


@pytest.mark.parametrize(
    ("scripts", "kind"),
    [
        ({"test": "tsd"}, CheckKind.READER),
        ({"test": "npm run lint && tsc --noEmit", "lint": "eslint ."}, CheckKind.READER),
        ({"test": "npm run lint && npm run unit", "lint": "eslint .", "unit": "uvu"}, CheckKind.TESTS),
        ({"test": "xo && ava && tsd"}, CheckKind.TESTS),
        ({"test": "npm run test"}, CheckKind.TESTS),
        ({}, CheckKind.TESTS),
    ],
)
def test_a_script_called_test_that_only_reads_the_code_is_judged_as_a_reader(scripts: dict[str, str], kind: CheckKind):
    assert kind_of(Check(name="test", command="CI=true npm run test"), scripts) is kind


def test_source_files_belong_to_the_nearest_folder_that_declares_a_package():
    paths = (
        "pyproject.toml",
        "packages/aa/pyproject.toml",
        "packages/aa/src/aa/x.py",
        "tool/run.py",
        "web/package.json",
    )
    source = ("packages/aa/src/aa/x.py", "tool/run.py", "web/src/a.ts")
    assert packages(paths, source) == {
        "packages/aa": ("packages/aa/src/aa/x.py",),
        "": ("tool/run.py",),
        "web": ("web/src/a.ts",),
    }


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


@pytest.mark.parametrize(
    ("paths", "folders"),
    [
        (["src/shop/a.py", "src/shop/deep/b.py"], ["src/shop"]),
        (["src/shop/a.py", "src/shop2/b.py"], ["src/shop", "src/shop2"]),
        (["a.py", "src/shop/a.py", "src/shop/deep/b.py"], ["", "src/shop"]),
        (["lib/shop/a.py"], ["lib/shop"]),
    ],
)
def test_the_layout_is_where_the_code_begins_and_not_each_folder_below(paths: list[str], folders: list[str]):
    assert layout({"": paths}) == [("", folders)]
